"""Notes every batch that a script takes and every call of Keras' training functions, from inside TensorFlow and Keras.

Installed once per process; without a listener each hook costs a comparison. Nothing that a script can see changes: no
callback is added, no graph, no type. A step inside a graph is noted as the call that makes it; how long it waited there,
tf.data itself tells (:func:`read_gaps`).
"""

import contextlib
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.distribute.input_lib import DistributedIteratorBase
from tensorflow.python.eager import context
from tensorflow.python.util.tf_stack import CurrentModuleFilter

from pipeline_lab.capture.step_log import Called, Ended, Evaluated, Gaps, Note, Pass, Role, Seen, Took
from pipeline_lab.units import NS_PER_US

Take = Callable[[Note], None]

_listeners: list[Take] = []
_installed = threading.Lock()
_MARK = "notes_for_pipeline_lab"


@dataclass(frozen=True)
class Fit:
    """What ``fit`` was last called with.

    Attributes:
        model: The model.
        dataset: That its steps took batches of.
    """

    model: Any
    dataset: Any


_fits: list[Fit] | None = None
"""The last call of ``fit``, once somebody wants it kept."""


def keep_last_fit() -> None:
    """Keep model and dataset of the last ``fit`` from now on, to time them by themselves afterwards."""
    global _fits
    _fits = _fits or []


def last_fit() -> Fit | None:
    """Return the last ``fit``; None where none was kept."""
    return _fits[-1] if _fits else None


class _Here(threading.local):
    """Where a thread is.

    Attributes:
        role: Of the Keras call that it is in; None outside.
        of: The pass that it took its last batch from.
        epoch: The pass that Keras makes.
        model: That Keras fits.
        is_nested: It is inside a hook already.
    """

    role: Role | None = None
    of: Pass | None = None
    epoch: Pass | None = None
    model: "weakref.ref[Any] | None" = None
    is_nested = False


_KERAS = frozenset({Role.FIT, Role.EVALUATE})
"""Here batches are noted as calls of Keras' functions; `predict` asks for each from Python."""
_here = _Here()
_last: Pass | None = None
"""The pass of the last batch of any thread: gradients may be taken on threads of a strategy."""
_now_ns = time.perf_counter_ns
os.register_at_fork(after_in_child=_listeners.clear)


def listen(take: Take) -> None:
    """Pass notes to a listener from now on; it must be quick, and thread-safe."""
    _listeners.append(take)
    with _installed:
        _hook_iterators()
        _hook_gradients()


def leave(take: Take) -> None:
    """Pass it no more notes."""
    with contextlib.suppress(ValueError):
        _listeners.remove(take)


def hook_keras() -> bool:
    """Note what Keras calls; say whether Keras is loaded, with TensorFlow as its backend."""
    with _installed:
        return _hook_keras()


def read_gaps(iterator: Any) -> Gaps | None:
    """Return the times between requests that tf.data remembers of an iterator; None if it keeps no model of it."""
    try:
        model = tf.data.experimental.get_model_proto(iterator)
        elements = int(model.nodes[model.output].num_elements)
    except Exception:  # distributed, symbolic, without a model or being destroyed: must not affect the job
        return None
    return Gaps(elements, [gap * NS_PER_US for gap in model.gap_times])


def _tell(note: Note) -> None:
    for take in _listeners:
        take(note)


def _is_hooked(owner: Any, name: str) -> bool:
    return hasattr(getattr(owner, name, None), _MARK)


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Wrap a method, once."""
    original = owner.__dict__.get(name, getattr(owner, name, None))
    if original is None or _is_hooked(owner, name):
        return
    wrapper = functools.wraps(original)(make(original))
    setattr(wrapper, _MARK, True)
    setattr(owner, name, wrapper)


# batches that Python asks for


def _hook_iterators() -> None:
    _replace(OwnedIterator, "_next_internal", _noting_batches)  # `next`, `get_next` and loops all end there
    _replace(DistributedIteratorBase, "get_next", _noting_batches)


def _noting_batches(original: Callable[..., Any]) -> Callable[..., Any]:
    here, is_eager = _here, context.executing_eagerly

    def take(self: Any, *arguments: Any, **options: Any) -> Any:
        if not is_eager():
            with CurrentModuleFilter():  # errors quote the lines that made an op: none of them is ours
                return original(self, *arguments, **options)
        if not _listeners or here.role in _KERAS or here.is_nested:
            return original(self, *arguments, **options)
        here.is_nested = True
        asked_ns = _now_ns()
        try:
            batch = original(self, *arguments, **options)
        except tf.errors.OutOfRangeError:
            _note_end(self, asked_ns)
            raise
        finally:
            here.is_nested = False
        _note_batch(self, asked_ns, batch)
        return batch

    return take


def _note_batch(iterator: Any, asked_ns: int, batch: Any) -> None:
    global _last
    arrived_ns = _now_ns()
    try:
        of = iterator.__dict__.get("_pass_for_pipeline_lab") or _begin_pass(iterator)
        _here.of = _last = of
        _tell(Took(of, asked_ns, arrived_ns, of.examples or _count(batch)))
    except Exception:  # an element like no other must not affect the job
        return


def _note_end(iterator: Any, asked_ns: int) -> None:
    of = iterator.__dict__.get("_pass_for_pipeline_lab")
    if of is not None:
        _tell(Ended(of, asked_ns, _now_ns()))


def _begin_pass(iterator: Any) -> Pass:
    dataset = getattr(iterator, "_dataset", None)
    of = Pass(_stream_of(dataset), examples=_examples_of(iterator))
    iterator._pass_for_pipeline_lab = of
    return of


_streams: "weakref.WeakKeyDictionary[Any, Hashable]" = weakref.WeakKeyDictionary()


def _stream_of(dataset: Any) -> Hashable:
    """Return what is equal for passes over one dataset, or from one place of the script where it is built each time."""
    if dataset is None:
        return _place()
    found = _streams.get(dataset)
    if found is None:
        found = _streams[dataset] = _place()
    return found


def _place() -> Hashable:
    """Return the calls of the script's own code that led here."""
    frame: FrameType | None = sys._getframe(2)
    calls = []
    while frame is not None:
        name = frame.f_code.co_filename
        if not any(part in name for part in _FOREIGN):
            calls.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(calls)


_FOREIGN = ("/tensorflow/", "/keras/", "/pipeline_lab/")


def _examples_of(iterator: Any) -> int | None:
    """Return the examples of every batch, from the shapes that are known before there is one."""
    with contextlib.suppress(Exception):
        specs = tf.nest.flatten(iterator.element_spec)
        parts = getattr(specs[0], "_value_specs", specs[:1])  # one for each replica
        sizes = [part.shape[0] for part in parts]
        return None if None in sizes else int(sum(sizes))
    return None


def _count(batch: Any) -> int | None:
    """Return the examples of a batch by its first tensor, whose shape is known without waiting for a device."""
    first = batch
    with contextlib.suppress(Exception):  # an element of any structure
        while isinstance(first, (tuple, list, dict)):
            first = next(iter(first.values())) if isinstance(first, dict) else first[0]
        fast = getattr(first, "_shape_tuple", None)  # of an eager tensor; its public twin takes several µs
        shape = first.shape if fast is None else fast()
        return int(shape[0]) if len(shape) and shape[0] is not None else None
    return None


# gradients


def _hook_gradients() -> None:
    _replace(tf.GradientTape, "gradient", _noting_gradients)


def _noting_gradients(original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(self: Any, *arguments: Any, **options: Any) -> Any:
        _note_gradients()
        return original(self, *arguments, **options)

    return gradient


def _note_gradients() -> None:
    of = _here.of or _last
    if of is not None and _here.role is None:
        of.has_gradients = True


# Keras


def _hook_keras() -> bool:
    module = sys.modules.get("keras.src.backend.tensorflow.trainer")
    trainer, epochs = getattr(module, "TensorFlowTrainer", None), getattr(module, "TFEpochIterator", None)
    if trainer is None or epochs is None:
        return False
    if _is_hooked(epochs, "__iter__"):
        return True
    _replace(epochs, "__iter__", _noting_epochs)
    _replace(epochs, "tf_sync", _noting_ends_of_epochs)
    for method, role in (("fit", Role.FIT), ("evaluate", Role.EVALUATE), ("predict", Role.PREDICT)):
        _replace(trainer, method, functools.partial(_in_role, role))
    for method, name in (("make_train_function", "train_function"), ("make_test_function", "test_function")):
        _replace(trainer, method, functools.partial(_wrapping, name))
    return True


def is_validating() -> bool:
    """Say whether Keras evaluates between two epochs of its training now."""
    return _validations > 0


_validations = 0


def _in_role(role: Role, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        global _validations
        outer, epoch = _here.role, _here.epoch
        _validations += (validates := outer is Role.FIT and role is Role.EVALUATE)
        _here.role, begun_ns = role, _now_ns()
        if role is Role.FIT:
            _here.model = weakref.ref(self)
        try:
            with CurrentModuleFilter():
                return original(self, *arguments, **options)
        finally:
            _validations -= validates
            of, _here.role, _here.epoch = _here.epoch, outer, epoch
            if role is Role.EVALUATE and of is not None and of is not epoch and _listeners:
                _tell(Evaluated(of, begun_ns, _now_ns()))

    return call


def _noting_epochs(original: Callable[..., Any]) -> Callable[..., Any]:
    def begin(self: Any) -> Any:
        role = _here.role
        if role is not None:
            _here.epoch = Pass((role, ""), role, _examples_of_epoch(self))
        if role is Role.FIT and _fits is not None and _here.model is not None:
            _fits[:] = [Fit(_here.model(), self._distributed_dataset)]
        return original(self)

    return begin


def _noting_ends_of_epochs(original: Callable[..., Any]) -> Callable[..., Any]:
    def synchronize(self: Any) -> Any:
        if _here.role is Role.FIT and _here.epoch is not None and _here.epoch.iterator is not None:
            _note_gaps(_here.epoch, _here.epoch.iterator())
        return original(self)

    return synchronize


def _note_gaps(of: Pass, iterator: Any) -> None:
    """Note what tf.data remembers now: the iterator ends with its epoch."""
    gaps = read_gaps(iterator) if _listeners and iterator is not None else None
    if gaps is not None:
        now_ns = _now_ns()
        _tell(Seen(of, now_ns, now_ns, gaps))


def _examples_of_epoch(epoch: Any) -> int | None:
    """Return the batch size of what Keras iterates: from its shapes, else from the stage that makes the batches."""
    with contextlib.suppress(Exception):
        dataset = epoch.data_adapter.get_tf_dataset()
        known = _examples_of(dataset)
        while known is None and dataset is not None:
            size = getattr(dataset, "_batch_size", None)
            known = None if size is None else int(tf.get_static_value(size))
            dataset = getattr(dataset, "_input_dataset", None)
        first = getattr(epoch.data_adapter, "_first_batches", None)  # of a generator, taken to learn its shapes
        return _count(first) if known is None and first else known
    return None


def _wrapping(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Time the function that a method of the model makes."""

    def make(self: Any, *arguments: Any, **options: Any) -> Any:
        before = getattr(self, name, None)
        made = original(self, *arguments, **options)
        function = getattr(self, name, None)
        if function is not None and function is not before and not hasattr(function, _MARK):
            setattr(self, name, _timed(function, int(self.steps_per_execution or 1), trains=name == "train_function"))
        return made

    return make


def _timed(function: Callable[[Any], Any], steps: int, *, trains: bool) -> Callable[[Any], Any]:
    @functools.wraps(function)
    def call(iterator: Any) -> Any:
        of = _here.epoch
        if of is None or not _listeners:
            if trains:  # `train_on_batch`
                _note_gradients()
            return function(iterator)
        if of.iterator is None:
            with contextlib.suppress(TypeError):
                of.iterator = weakref.ref(iterator)
        asked_ns = _now_ns()
        try:
            result = function(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            _tell(Ended(of, asked_ns, _now_ns()))
            _note_gaps(of, iterator)
            raise
        _tell(Called(of, asked_ns, _now_ns(), steps))
        return result

    setattr(call, _MARK, True)
    return call
