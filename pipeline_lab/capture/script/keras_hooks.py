"""Notes every call of Keras' training functions, from inside Keras; see :mod:`pipeline_lab.capture.script.step_hooks`.

Keras 3 with TensorFlow as its backend, and Keras 2 (the package ``tf_keras``), which is ``tf.keras`` with ``TF_USE_LEGACY_KERAS=1``.
"""

import contextlib
import functools
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import tensorflow as tf
from tensorflow.python.util.tf_stack import CurrentModuleFilter

from pipeline_lab.capture.script.gradient_hooks import note_beside, note_gradients
from pipeline_lab.capture.script.job_threads import (
    MARK,
    OF_KERAS,
    here,
    installed,
    is_hooked,
    listeners,
    now_ns,
    replace_method,
    tell,
    trained,
    words_of_call,
)
from pipeline_lab.capture.script.step_hooks import examples_of, note_gaps, noting_checkpoints
from pipeline_lab.capture.script.step_notes import (
    Called,
    Ended,
    Evaluated,
    Fed,
    Pass,
    Predicted,
    Role,
    count_examples,
    refer_to,
    take_made,
)
from pipeline_lab.data_classes import dataclass
from pipeline_lab.worker.record.profiler import mark_evaluation

KERAS_BATCH = 32
"""Examples of a batch where ``predict`` is not told how many."""
SMALL_BYTES = 128 << 20
"""Variables of a model and its optimizer that are kept until the next ``fit`` although the script has dropped the model."""


@dataclass(frozen=True)
class Fit:
    """What ``fit`` was last called with.

    Attributes:
        model: The model.
        dataset: That its steps took batches of.
        is_fed: Workers of a ``PyDataset`` feed it, which begin again with each reading.
    """

    model: Any
    dataset: Any
    is_fed: bool = False


class _KeptFit:
    """The last call of ``fit``; its dataset is kept until the next one, its model if it is small or that is asked for."""

    def __init__(self, *, large_models: bool) -> None:
        self._large_models = large_models
        self.drop()

    def drop(self) -> None:
        self._model: Callable[[], Any] = lambda: None
        self._dataset: Any = None
        self._is_fed = False

    def keep(self, model: Any, dataset: Any, *, is_fed: bool) -> None:
        self._model = (lambda: model) if self._large_models or _is_small(model) else weakref.ref(model)
        self._dataset, self._is_fed = dataset, is_fed

    def fit(self) -> Fit | None:
        model = self._model()
        return None if model is None else Fit(model, self._dataset, self._is_fed)


_kept: _KeptFit | None = None
"""None until somebody wants it."""


def _is_small(model: Any) -> bool:
    with contextlib.suppress(Exception):  # a model of any kind
        variables = (*model.variables, *getattr(model.optimizer, "variables", ()))
        sizes: Iterator[int] = (math.prod(each.shape) * int(tf.as_dtype(each.dtype).size) for each in variables)
        return sum(sizes) <= SMALL_BYTES
    return False


def keep_last_fit(*, large_models: bool) -> None:
    """Keep the last ``fit`` from now on, to time it by itself afterwards.

    Args:
        large_models: Also a model of more than :data:`SMALL_BYTES` that the script drops, and the memory that it takes.
    """
    global _kept
    _kept = _kept or _KeptFit(large_models=large_models)


def last_fit() -> Fit | None:
    """Return the last ``fit``; None where none was kept, or its model is gone."""
    return None if _kept is None else _kept.fit()


def hook_keras() -> bool:
    """Note what Keras calls; say whether a Keras is loaded, with TensorFlow as its backend."""
    with installed:
        found = [_hook_keras_3(), _hook_keras_2()]
    return any(found)


def _hook_keras_3() -> bool:
    module = sys.modules.get("keras.src.backend.tensorflow.trainer")
    trainer, epochs = getattr(module, "TensorFlowTrainer", None), getattr(module, "TFEpochIterator", None)
    model = getattr(sys.modules.get("keras.src.models.model"), "Model", None)
    if trainer is None or epochs is None or model is None:
        return False
    if is_hooked(epochs, "__iter__"):
        return True
    replace_method(epochs, "__iter__", _noting_epochs)
    replace_method(epochs, "tf_sync", _noting_ends_of_epochs)
    adapters = sys.modules.get("keras.src.trainers.data_adapters.py_dataset_adapter")
    replace_method(getattr(adapters, "PyDatasetAdapter", None), "_get_iterator", _noting_fed)
    _hook_methods(trainer, model)
    return True


def _hook_keras_2() -> bool:
    model = getattr(sys.modules.get("tf_keras.src.engine.training"), "Model", None)
    handler = getattr(sys.modules.get("tf_keras.src.engine.data_adapter"), "DataHandler", None)
    if model is None or handler is None:
        return False
    if not is_hooked(handler, "enumerate_epochs"):
        replace_method(handler, "enumerate_epochs", _noting_each_epoch)
        replace_method(handler, "sync", _noting_ends_of_epochs)
        _hook_methods(model, model)
    return True


def _hook_methods(trainer: Any, model: Any) -> None:
    for method, role in (("fit", Role.FIT), ("evaluate", Role.EVALUATE), ("predict", Role.PREDICT)):
        replace_method(trainer, method, partial(_in_role, role))
    for method, name in (("make_train_function", "train_function"), ("make_test_function", "test_function")):
        replace_method(trainer, method, partial(_wrapping, name))
    for method, trains in (("train_on_batch", True), ("test_on_batch", False)):
        replace_method(trainer, method, partial(_on_batch, trains=trains))
    for method in ("save", "save_weights"):
        replace_method(model, method, noting_checkpoints)


def is_evaluating(longer_than_ns: int = 0) -> bool:
    """Say whether Keras evaluates or predicts between steps of a training now, and has done so for that long."""
    return _evaluations > 0 and now_ns() - _evaluating_since_ns >= longer_than_ns


def is_building() -> bool:
    """Say whether Keras calls a training function for the first time now, which traces and compiles it."""
    return _built_now > 0


_evaluations = _evaluating_since_ns = _built_now = 0


def _in_role(role: Role, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        global _evaluations, _evaluating_since_ns
        outer, epoch = here.role, here.epoch
        is_small = role is Role.PREDICT and bool(listeners) and is_one_batch(arguments, options)
        is_whole = role is not Role.FIT and not is_small and outer in (None, Role.FIT)
        is_of_fit = is_whole and outer is Role.FIT and _calls_itself(role, sys._getframe(1))
        is_beside = is_whole and bool(outer is Role.FIT or here.fit or trained)
        here.role, begun_ns = role, now_ns()
        if is_beside:
            _evaluating_since_ns = begun_ns if not _evaluations else _evaluating_since_ns
            _evaluations += 1
        if role is Role.FIT:
            here.model = weakref.ref(self)
            here.fit += 1
            if _kept is not None:
                _kept.drop()
        try:
            with CurrentModuleFilter(), mark_evaluation() if is_beside else contextlib.nullcontext():
                result = original(self, *arguments, **options)
            if is_small and listeners:
                tell(Predicted(words_of_call(role.value), begun_ns, now_ns()))
            return result
        finally:
            _evaluations -= is_beside
            of, here.role, here.epoch = here.epoch, outer, epoch
            if outer is None:
                note_beside(begun_ns)
            if is_whole and of is not None and of is not epoch and listeners:
                tell(Evaluated(of, begun_ns, now_ns(), "" if is_of_fit else words_of_call(role.value)))

    return call


def _calls_itself(role: Role, caller: FrameType | None) -> bool:
    """Say whether Keras' own ``fit`` calls a method, or one of a model's class that stands for it."""
    while caller is not None and caller.f_code.co_name == role.value:
        caller = caller.f_back
    code = None if caller is None else caller.f_code
    return code is not None and code.co_name == Role.FIT.value and any(part in code.co_filename for part in OF_KERAS)


def is_one_batch(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Say whether ``predict`` is given arrays of no more than one batch."""
    with contextlib.suppress(Exception):  # must not affect the job
        given = arguments[0] if arguments else options.get("x")
        batch_size = arguments[1] if len(arguments) > 1 else options.get("batch_size")
        examples = count_examples(given)
        return examples is not None and examples <= (batch_size or KERAS_BATCH)
    return False


def _noting_epochs(original: Callable[..., Any]) -> Callable[..., Any]:
    def begin(self: Any) -> Any:
        adapter: Any = getattr(self, "data_adapter", None)
        if here.role is not None:
            here.epoch = Pass((here.role, ""), here.role, _examples_of(adapter, "get_tf_dataset"), fit=here.fit)
            with contextlib.suppress(AttributeError):
                adapter.pass_for_pipeline_lab = here.epoch
        _keep_fit(self._distributed_dataset, getattr(adapter, "enqueuer", None))
        return original(self)

    return begin


def _noting_each_epoch(original: Callable[..., Any]) -> Callable[..., Any]:
    def enumerate_epochs(self: Any) -> Iterator[Any]:
        for epoch in original(self):
            if here.role is not None:
                here.epoch = Pass((here.role, ""), here.role, _examples_of(self._adapter, "get_dataset"), fit=here.fit)
            _keep_fit(self._dataset, None)
            try:
                yield epoch
            finally:  # also of one that a callback ends; it begins when the first batch is asked for
                _keep_fit(self._dataset, getattr(self._adapter, "_enqueuer", None))

    return enumerate_epochs


def _keep_fit(dataset: Any, enqueuer: Any) -> None:
    """Keep what ``fit`` reads, where somebody wants it."""
    if here.role is Role.FIT and _kept is not None and here.model is not None:
        _kept.keep(here.model(), dataset, is_fed=enqueuer is not None)


def _noting_fed(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note how long batches of a ``PyDataset`` with workers take to come: tf.data keeps no model of it, and asks when a step does."""

    def begin(self: Any) -> Any:
        batches = original(self)
        return batches if getattr(self, "enqueuer", None) is None else _fed(self, batches)

    return begin


def _fed(adapter: Any, batches: Iterator[Any]) -> Iterator[Any]:
    nothing = object()
    while True:
        asked_ns = now_ns()
        batch = next(batches, nothing)
        of = getattr(adapter, "pass_for_pipeline_lab", None)
        if of is not None and listeners:
            tell(Fed(of, asked_ns, now_ns()))
        if batch is nothing:
            return
        yield batch


def _noting_ends_of_epochs(original: Callable[..., Any]) -> Callable[..., Any]:
    def synchronize(self: Any) -> Any:
        if here.role is Role.FIT and here.epoch is not None and here.epoch.iterator is not None:
            note_gaps(here.epoch, here.epoch.iterator())
        return original(self)

    return synchronize


def _examples_of(adapter: Any, method: str) -> int | None:
    """Return the batch size of what Keras iterates: from its shapes, else from the stage that makes the batches.

    Args:
        adapter: Keras' of what it was given.
        method: Of the adapter, which returns the dataset.
    """
    with contextlib.suppress(Exception):
        dataset = getattr(adapter, method)()
        known = examples_of(dataset)
        while known is None and dataset is not None:
            size = getattr(dataset, "_batch_size", None)
            known = None if size is None else int(tf.get_static_value(size))
            dataset = getattr(dataset, "_input_dataset", None)
        first = getattr(adapter, "_first_batches", None)  # of a generator, taken to learn its shapes
        if known is None and first is None:
            return getattr(adapter, "_first_batch_size", None)  # the same in Keras 2
        return count_examples(first) if known is None and first else known
    return None


def _wrapping(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Time the function that a method of the model makes."""

    def make(self: Any, *arguments: Any, **options: Any) -> Any:
        before = getattr(self, name, None)
        made = original(self, *arguments, **options)
        function = getattr(self, name, None)
        if function is not None and function is not before and not hasattr(function, MARK):
            timed = _timed(function, partial(steps_of_call, self), trains=name == "train_function")
            setattr(self, name, timed)
            return timed if made is function else made  # Keras 2 takes what it is given back
        return made

    return make


def _on_batch(original: Callable[..., Any], *, trains: bool) -> Callable[..., Any]:
    """Count all of ``train_on_batch`` as the step: Keras 2 makes an iterator for each batch, which is no pass over data, and reads its metrics."""

    def call(*arguments: Any, **options: Any) -> Any:
        around, here.is_nested = here.is_nested, True
        here.begun_ns = now_ns() if trains else 0
        try:
            return original(*arguments, **options)
        finally:
            here.is_nested = around
            if trains and here.own is not None and here.returned_ns > here.begun_ns:
                here.returned_ns = now_ns()
            here.begun_ns = 0

    return call


def steps_of_call(model: Any) -> int:
    """Return how many steps a model's function runs when it is called; Keras 2 keeps that in a variable, and changes it."""
    steps = getattr(model, "steps_per_execution", None) or getattr(model, "_steps_per_execution", None)
    return 1 if steps is None else int(getattr(steps, "numpy", lambda: steps)())


def _timed(function: Callable[[Any], Any], steps: Callable[[], int], *, trains: bool) -> Callable[[Any], Any]:
    is_first = True

    @functools.wraps(function, updated=())  # of Keras 2 it is a `tf.function` itself, with attributes of its own
    def call(iterator: Any) -> Any:
        global _built_now
        nonlocal is_first
        of = here.epoch
        if of is None or not listeners:
            if trains and here.is_nested:  # in ``train_on_batch``
                note_gradients()
            return function(iterator)
        if of.iterator is None:
            with contextlib.suppress(TypeError):
                of.iterator = refer_to(iterator)
                of.made = take_made(iterator)
        asked_ns, builds = now_ns(), is_first and trains
        _built_now += builds
        try:
            result = function(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            tell(Ended(of, asked_ns, now_ns()))
            note_gaps(of, iterator)
            raise
        finally:
            _built_now -= builds
        tell(Called(of, asked_ns, now_ns(), steps(), is_first))
        is_first = False
        return result

    setattr(call, MARK, True)
    return call
