"""Where a step runs: on one device, or mirrored over several that share each batch."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import tensorflow as tf

from pipeline_lab.worker.train.training_steps import Batch

Step = Callable[[Batch], Any]
"""From a batch to loss, accuracy and outputs."""


def compile_step(step: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Make a function of TensorFlow of a step whose loops and branches depend on no tensor.

    AutoGraph, which would rewrite it and all that it calls, has nothing to do, and takes 0.4 s of a launch (residual network).
    """
    compiled: Callable[..., Any] = tf.function(step, autograph=False, **options)
    return compiled


class Placement(Protocol):
    """The devices of a step."""

    @property
    def replicas(self) -> int:
        """Devices that share each batch."""

    def scope(self) -> AbstractContextManager[Any]:
        """Make variables in here."""

    def distribute(self, dataset: Any) -> Any:
        """Divide the pipeline's batches among the replicas."""

    def parts(self, value: Any) -> Sequence[Any]:
        """Return one entry of a batch, in one part per replica."""

    def compile(self, of_replica: Step, *, xla: bool = False) -> Step:
        """Turn a step on one replica's part of a batch into a step on the whole batch."""


class OneDevice:
    """A single device, which gets whole batches."""

    replicas = 1

    def scope(self) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def distribute(self, dataset: Any) -> Any:
        return dataset

    def parts(self, value: Any) -> Sequence[Any]:
        return (value,)

    def compile(self, of_replica: Step, *, xla: bool = False) -> Step:
        return compile_step(of_replica, jit_compile=True if xla else None)


COLLECTIVES_EACH = 1000
"""Collective keys reserved for one strategy, which needs a handful."""


class Mirrored:
    """Several devices with a copy of the model each (``MirroredStrategy``); gradients are averaged over all."""

    def __init__(self, replicas: int, *, is_gpu: bool) -> None:
        self.replicas = replicas
        devices = tf.config.list_logical_devices("GPU" if is_gpu else "CPU")[:replicas]
        self.strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
        # TensorFlow numbers the collectives of every strategy from the same start. Those of two strategies in one process, such
        # as two arms of a race, block each other if their shapes differ. There is no public way to separate them.
        tf.distribute.MirroredStrategy._collective_key_base += COLLECTIVES_EACH
        self.batch_spec: Any = None

    def scope(self) -> AbstractContextManager[Any]:
        scope: AbstractContextManager[Any] = self.strategy.scope()
        return scope

    def distribute(self, dataset: Any) -> Any:
        distributed = self.strategy.experimental_distribute_dataset(dataset)
        self.batch_spec = distributed.element_spec
        return distributed

    def parts(self, value: Any) -> Sequence[Any]:
        parts: Sequence[Any] = self.strategy.experimental_local_results(value)
        return parts

    def compile(self, of_replica: Step, *, xla: bool = False) -> Step:
        assert not xla, "options refuse it: gradients cross the replicas outside of what XLA compiles"
        return _OverReplicas(self, of_replica)


class _OverReplicas:
    """Runs a step on every replica and averages loss and accuracy; outputs stay in parts, like the batch.

    Traced once with the pipeline's specification, since the shapes of sparse values differ between batches.
    """

    def __init__(self, placement: Mirrored, of_replica: Step) -> None:
        self._placement, self._of_replica = placement, of_replica
        self._compiled: Any = None

    def __call__(self, batch: Batch) -> Any:
        if self._compiled is None:
            self._compiled = compile_step(self._run, input_signature=[self._placement.batch_spec])
        return self._compiled(batch)

    def _run(self, batch: Batch) -> Any:
        strategy = self._placement.strategy
        loss, accuracy, *outputs = strategy.run(self._of_replica, args=(batch,))
        with strategy.scope():  # ``fit`` calls this as the one replica of its default strategy
            means = [strategy.reduce("MEAN", number, axis=None) for number in (loss, accuracy)]
        return (*means, *outputs)


class PlacedTrainer(ABC):
    """Base of trainers whose steps may be mirrored.

    Args:
        placement: The devices.
        train, judge: Steps of one replica, to train and to evaluate.
        xla: Compile both with XLA.
    """

    def __init__(self, placement: Placement, train: Step, judge: Step, *, xla: bool = False) -> None:
        self._placement = placement
        self._train, self._judge = placement.compile(train, xla=xla), placement.compile(judge, xla=xla)

    def distribute(self, dataset: Any) -> Any:
        return self._placement.distribute(dataset)

    def parts(self, value: Any) -> Sequence[Any]:
        return self._placement.parts(value)

    def step(self, batch: Batch) -> Any:
        return self._train(batch)

    def evaluate(self, batch: Batch) -> Any:
        return self._judge(batch)

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy, *_ = result
        return float(loss), float(accuracy)

    def ended_ns(self, result: Any) -> int | None:
        del result
        return None

    @abstractmethod
    def weights(self) -> list[Any]:
        """Return the variables that training changes."""

    def save_state(self) -> Any:
        return [variable.numpy() for variable in self.weights()]

    def restore_state(self, state: Any) -> None:
        for variable, value in zip(self.weights(), state, strict=True):
            variable.assign(value)


def place(replicas: int, *, is_gpu: bool) -> Placement:
    """Return the placement for a number of replicas."""
    return OneDevice() if replicas == 1 else Mirrored(replicas, is_gpu=is_gpu)
