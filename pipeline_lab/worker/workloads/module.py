"""Data and step of the module workload: the step that a user's module brings, a function, a compiled Keras model, or
nothing but taking batches.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.errors import UserCodeError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.prepare.user_code import UserPipeline
from pipeline_lab.worker.train.training_steps import OneDeviceTrainer, Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep
from pipeline_lab.workloads.module import ModuleWorkload


class UserTrainer(OneDeviceTrainer):
    """Calls the user's step, or trains their model as ``fit`` does: loss and metrics of each batch by itself."""

    def __init__(self, pipeline: UserPipeline) -> None:
        self._pipeline, self._first_batch = pipeline, pipeline.first_batch
        self._model: Any = getattr(pipeline.workload, "model", None)  # of Keras, which has no types
        self._variables = list(getattr(pipeline.workload, "variables", ()))
        self._train: Callable[[Any], Any] = getattr(pipeline.workload, "step", None) or _take
        self._judge: Callable[[Any], Any] | None = None

    def distribute(self, dataset: Any) -> Any:
        """Build the model for these batches: what is not built yet has no weights that could be put back."""
        if self._model is not None and self._judge is None:
            tf.function(self._model.train_step).get_concrete_function(dataset.element_spec)
            self._variables = [*self._model.variables, *self._model.optimizer.variables]
            self._judge = tf.function(self._judge_model, reduce_retracing=True)
            self._train = tf.function(self._train_model, jit_compile=self._model.jit_compile, reduce_retracing=True)
        return dataset

    def step(self, batch: Any) -> Any:
        if tf.executing_eagerly():  # a loop in a graph is traced before any batch has come
            self._first_batch.came()
        return self._train(batch)

    def evaluate(self, batch: Any) -> Any:
        """Return a model's loss and metrics on a batch; a step function cannot tell without training."""
        return None if self._judge is None else self._judge(batch)

    def read(self, result: Any) -> tuple[float, float]:
        """Read loss and accuracy out of what the step returned.

        Raises:
            UserCodeError: They are not numbers.
        """
        self._first_batch.came()
        if isinstance(result, Mapping):
            loss, accuracy = result.get("loss"), result.get("accuracy")
        elif isinstance(result, tuple | list):
            loss, accuracy = (*result, None, None)[:2]
        else:
            loss, accuracy = result, None
        return self._number(loss), self._number(accuracy)

    def weights(self) -> list[Any]:
        return self._variables

    def _train_model(self, batch: Any) -> Any:
        self._model.reset_metrics()
        return _loss_and_accuracy(self._model.train_step(batch))

    def _judge_model(self, batch: Any) -> Any:
        self._model.reset_metrics()
        return _loss_and_accuracy(self._model.test_step(batch))

    def _number(self, value: Any) -> float:
        if value is None:
            return math.nan
        try:
            return float(np.mean(np.asarray(value, dtype=np.float64)))
        except (TypeError, ValueError):
            raise UserCodeError(
                f"{self._pipeline.stepper} returned an object of type {type(value).__name__}; it should return a loss, "
                "(loss, accuracy), a mapping with these names, or None."
            ) from None


def _take(_batch: Any) -> None:
    """Do nothing with a batch."""


def _loss_and_accuracy(logs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Take two numbers out of what Keras says of a batch, as a loop inside a graph needs them."""
    loss, accuracy = (logs.get(name, math.nan) for name in ("loss", "accuracy"))
    return tf.cast(tf.reduce_mean(loss), tf.float32), tf.cast(tf.reduce_mean(accuracy), tf.float32)


class ModuleDataAndStep(DataAndStep[ModuleWorkload]):
    """The user's dataset and step, as their module returned them."""

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del options, is_gpu, tables
        return UserTrainer(pipeline)


DATA_AND_STEP = ModuleDataAndStep
