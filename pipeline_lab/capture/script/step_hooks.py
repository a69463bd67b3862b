"""Notes every batch that a script takes, every call that takes batches inside of a function, and every checkpoint.

Installed once per process; without a listener each hook costs a comparison. Nothing that a script can see changes: no
callback is added, no graph, no type. A step inside a graph is noted as the call that makes it; how long it waited there,
tf.data itself tells (:func:`read_gaps`). What Keras calls is noted in :mod:`pipeline_lab.capture.script.keras_hooks`, which of all that trains in
:mod:`pipeline_lab.capture.script.gradient_hooks`.
"""

import contextlib
import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint.checkpoint import TrackableSaver
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.distribute.input_lib import DistributedIterator, DistributedIteratorBase
from tensorflow.python.eager import context
from tensorflow.python.util.tf_stack import CurrentModuleFilter

from pipeline_lab.capture.script.gradient_hooks import hook_gradients
from pipeline_lab.capture.script.interrupts import keep_interrupts
from pipeline_lab.capture.script.job_threads import (
    KERAS,
    Take,
    anywhere,
    here,
    installed,
    listeners,
    now_ns,
    place_of_loop,
    replace_method,
    tell,
)
from pipeline_lab.capture.script.step_notes import (
    MADE,
    Called,
    Ended,
    Gaps,
    GivenUp,
    Made,
    Pass,
    Role,
    Saved,
    Seen,
    Took,
    count_examples,
    refer_to,
    take_made,
)
from pipeline_lab.units import NS_PER_MS, NS_PER_US
from pipeline_lab.worker.recipe.notes import NOTE
from pipeline_lab.worker.record.profiler import wait_for_devices

SHORTEST_END_NS = 10 * NS_PER_MS
"""The end of an iterator that waits for no thread takes less."""
SHORTEST_START_NS = NS_PER_MS
"""Making an iterator takes less where there is nothing to optimize."""


def listen(take: Take) -> None:
    """Pass notes to a listener from now on; it must be quick, and thread-safe."""
    listeners.append(take)
    with installed:
        _hook_iterators()
        hook_gradients()
        replace_method(TrackableSaver, "save", noting_checkpoints)


def leave(take: Take) -> None:
    """Pass it no more notes."""
    with contextlib.suppress(ValueError):
        listeners.remove(take)


def read_gaps(iterator: Any) -> Gaps | None:
    """Return the times between requests that tf.data remembers of an iterator; None if it keeps no model of it.

    Of one for several devices, those of the first one.
    """
    try:
        model = tf.data.experimental.get_model_proto(_of_first_device(iterator))
        elements = int(model.nodes[model.output].num_elements)
    except Exception:  # symbolic, without a model or being destroyed: must not affect the job
        return None
    return Gaps(elements, [gap * NS_PER_US for gap in model.gap_times])


def _of_first_device(iterator: Any) -> Any:
    if not isinstance(iterator, DistributedIteratorBase):
        return iterator
    of_worker = iterator._iterators[0]._iterator
    return getattr(of_worker, "_device_iterators", [of_worker])[0]


def note_gaps(of: Pass, iterator: Any) -> None:
    """Note what tf.data remembers now: the iterator ends with its epoch."""
    gaps = read_gaps(iterator) if listeners and iterator is not None else None
    if gaps is not None:
        seen_ns = now_ns()
        tell(Seen(of, seen_ns, seen_ns, gaps))


# batches that Python asks for


def _hook_iterators() -> None:
    replace_method(OwnedIterator, "_next_internal", _noting_batches)  # `next`, `get_next` and loops all end there
    replace_method(DistributedIteratorBase, "get_next", functools.partial(_noting_batches, asks_others=True))
    for kind in (OwnedIterator, DistributedIterator):
        replace_method(kind, "__tf_tracing_type__", _noting_calls)
    replace_method(tf.data.Dataset, "__iter__", _noting_making)
    if not hasattr(OwnedIterator, "__del__"):
        OwnedIterator.__del__ = _note_giving_up
        keep_interrupts(_note_giving_up)


def _noting_making(original: Callable[..., Any]) -> Callable[..., Any]:
    is_eager = context.executing_eagerly

    def make(self: Any) -> Any:
        begun_ns = now_ns()
        iterator = original(self)
        made = Made(begun_ns, now_ns())
        if listeners and made.ended_ns - made.asked_ns >= SHORTEST_START_NS and is_eager():
            with contextlib.suppress(AttributeError):  # a dataset of another library may return anything
                setattr(iterator, MADE, made)
        return iterator

    return make


def _note_giving_up(iterator: Any) -> None:
    """Release what TensorFlow holds for an iterator, as would follow anyway, and note it if that took long."""
    if not listeners:
        return
    begun_ns = now_ns()
    iterator.__dict__.pop("_iterator_resource", None)
    ended_ns = now_ns()
    if ended_ns - begun_ns >= SHORTEST_END_NS:
        tell(GivenUp(begun_ns, ended_ns, iterator.__dict__.get("_pass_for_pipeline_lab")))


def _noting_batches(original: Callable[..., Any], *, asks_others: bool = False) -> Callable[..., Any]:
    is_eager = context.executing_eagerly

    def take(self: Any, *arguments: Any, **options: Any) -> Any:
        if not is_eager():
            with CurrentModuleFilter():  # errors quote the lines that made an op: none of them is ours
                return original(self, *arguments, **options)
        if not listeners or here.role in KERAS or here.is_nested:
            return original(self, *arguments, **options)
        if asks_others:
            here.is_nested = True
        asked_ns = now_ns()
        try:
            batch = original(self, *arguments, **options)
        except tf.errors.OutOfRangeError:
            _note_end(self, asked_ns)
            raise
        finally:
            if asks_others:
                here.is_nested = False
        _note_batch(self, asked_ns, batch)
        return batch

    return take


def _note_batch(iterator: Any, asked_ns: int, batch: Any) -> None:
    arrived_ns = now_ns()
    try:
        of = iterator.__dict__.get("_pass_for_pipeline_lab") or _begin_pass(iterator)
        if of.role is not Role.PREDICT:  # which no step of the script's takes its batch of
            around = here.of
            if around is not None and around is not of and not around.is_over:
                of.around, around.around = around, None  # no chain of passes that were broken off
            here.of = anywhere.of = of
            here.asked_ns = asked_ns
        tell(Took(of, asked_ns, arrived_ns, of.examples or count_examples(batch)))
    except Exception:  # an element like no other must not affect the job
        return


def _note_end(iterator: Any, asked_ns: int) -> None:
    of: Pass | None = iterator.__dict__.get("_pass_for_pipeline_lab")
    if of is not None:
        of.is_over = True
        if of is here.of and of.around is not None:  # the pass in between whose steps it was read
            here.of = anywhere.of = of.around
        tell(Ended(of, asked_ns, now_ns()))


def _noting_calls(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note the calls of functions that are given an iterator: TensorFlow asks each time of what type it is."""

    def tracing_type(self: Any, *arguments: Any) -> Any:
        if listeners and here.role not in KERAS and not here.is_nested and context.executing_eagerly():
            _note_call(self)
        return original(self, *arguments)

    return tracing_type


def _note_call(iterator: Any) -> None:
    with contextlib.suppress(Exception):  # must not affect the job
        of = iterator.__dict__.get("_pass_for_pipeline_lab")
        if of is None:
            of = _begin_pass(iterator)
            of.iterator = refer_to(iterator)
        elif of.steps_per_call is None and of.iterator is not None:
            gaps = read_gaps(iterator)
            of.steps_per_call = 1 if gaps is None else gaps.elements  # by the first call, which is over
        asked_ns = now_ns()
        if of.role is not Role.PREDICT:  # as in Keras 2; no step of the script's takes its batch of it
            here.of, here.asked_ns = of, asked_ns
            anywhere.of = of
        if of.iterator is not None:
            tell(Called(of, asked_ns, None, None))


def _begin_pass(iterator: Any) -> Pass:
    dataset = getattr(iterator, "_dataset", None)
    role = Role.PREDICT if here.role is Role.PREDICT else Role.LOOP
    of = Pass(_stream_of(dataset), role, examples_of(iterator))
    of.dataset = (lambda: None) if dataset is None else weakref.ref(dataset)
    of.note = getattr(_dataset_behind(iterator), "__dict__", {}).get(NOTE)
    of.made = take_made(iterator)
    iterator._pass_for_pipeline_lab = of
    if role is Role.PREDICT:
        here.epoch = of  # of which is told once `predict` has returned
    return of


def _dataset_behind(iterator: Any) -> Any:
    """Return what an iterator goes over; of one for several devices, what their batches are taken from."""
    return getattr(
        iterator._iterators[0] if isinstance(iterator, DistributedIteratorBase) else iterator, "_dataset", None
    )


_streams: "weakref.WeakKeyDictionary[Any, Hashable]" = weakref.WeakKeyDictionary()


def _stream_of(dataset: Any) -> Hashable:
    """Return what is equal for passes over one dataset, or from one place of the script where it is built each time."""
    if dataset is None:
        return place_of_loop()
    found = _streams.get(dataset)
    if found is None:
        found = _streams[dataset] = place_of_loop()
    return found


def examples_of(iterator: Any) -> int | None:
    """Return the examples of every batch, from the shapes that are known before there is one."""
    with contextlib.suppress(Exception):
        specs = tf.nest.flatten(iterator.element_spec)
        parts = getattr(specs[0], "_value_specs", specs[:1])  # one for each replica
        sizes = [part.shape[0] for part in parts]
        return None if None in sizes else int(sum(sizes))
    return None


# checkpoints


def noting_checkpoints(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note how long a method writes a checkpoint on a thread that trains, if no other does around it."""

    def save(self: Any, *arguments: Any, **options: Any) -> Any:
        trains = here.of is not None or here.own is not None or here.role is not None
        if not listeners or not trains or here.is_saving:
            return original(self, *arguments, **options)
        here.is_saving, begun_ns = True, now_ns()
        try:
            wait_for_devices()  # as the weights have to for the steps under way: that is the steps' time
            begun_ns = now_ns()
            return original(self, *arguments, **options)
        finally:
            here.is_saving = False
            tell(Saved(begun_ns, now_ns()))

    return save
