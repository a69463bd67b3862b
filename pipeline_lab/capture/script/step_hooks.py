"""Notes every batch that a script takes, every call that takes batches inside of a function, and every checkpoint.

Installed once per process; without a listener each hook costs a comparison. Nothing that a script can see changes: no
callback is added, no graph, no type. A step inside a graph is noted as the call that makes it; how long it waited there,
tf.data itself tells (:func:`read_gaps`). What Keras calls is noted in :mod:`pipeline_lab.capture.script.keras_hooks`.
"""

import contextlib
import functools
import linecache
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from types import FrameType
from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint.checkpoint import TrackableSaver
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.distribute.input_lib import DistributedIterator, DistributedIteratorBase
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
from tensorflow.python.util.tf_stack import CurrentModuleFilter

from pipeline_lab.capture.script.step_notes import (
    Called,
    Ended,
    Gaps,
    GivenUp,
    Note,
    Pass,
    Role,
    Saved,
    Seen,
    Took,
    refer_to,
)
from pipeline_lab.units import NS_PER_MS, NS_PER_US
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.notes import NOTE, TrainedSteps, UseKey
from pipeline_lab.worker.recipe.places import CallSite, find_site, write_site
from pipeline_lab.worker.record.profiler import wait_for_devices

Take = Callable[[Note], None]

listeners: list[Take] = []
installed = threading.Lock()
MARK = "notes_for_pipeline_lab"
MOST_BESIDE = 8
"""Functions that a script calls between two steps whose batches it makes itself; where it calls more, it evaluates."""
SHORTEST_END_NS = 10 * NS_PER_MS
"""The end of an iterator that waits for no thread takes less."""


class Here(threading.local):
    """Where a thread is.

    Attributes:
        role: Of the Keras call that it is in; None outside.
        of: The pass that it took its last batch from.
        asked_ns: When it asked for that.
        epoch: The pass that Keras makes.
        model: That Keras fits.
        fit: Calls of ``fit`` so far.
        is_nested: It is inside a hook already.
        is_saving: It writes a checkpoint.
        own: The pass whose batches the script makes itself.
        other: Place of the last step since then that was none of its steps.
        begun_ns: When the method of Keras began that runs such a step; 0 outside of one.
        returned_ns: When the last step of that ended.
        beside, beside_ns: Calls of other functions since then, and how long they took.
        eager: The loop that takes gradients in Python on batches that the script makes itself.
        eager_ns: When it last did.
        taken: The places where gradients have been taken since then.
        mark: What marks the step under way in profiles.
        functions: Those that have been called and have not returned, each with :func:`_key_of` its arguments, the outermost first.
        read: Counts of the datasets that have been read since the outermost was called.
    """

    role: Role | None = None
    of: Pass | None = None
    asked_ns = 0
    epoch: Pass | None = None
    model: "weakref.ref[Any] | None" = None
    fit = 0
    is_nested = is_saving = False
    own: Pass | None = None
    other: Hashable = None
    begun_ns = returned_ns = beside = beside_ns = 0
    eager: Pass | None = None
    eager_ns = 0
    taken: frozenset[Hashable] = frozenset()
    mark: Any = None
    functions: "tuple[tuple[Any, Key], ...]" = ()
    read: frozenset[TrainedSteps] = frozenset()


GRADIENTS = "gradients"
"""Marks, in profiles, a step that lasts from where it takes gradients until that is done again."""
KERAS = frozenset({Role.FIT, Role.EVALUATE})
"""Here batches are noted as calls of Keras' functions; `predict` asks for each from Python."""
here = Here()
_last: Pass | None = None
"""The pass of the last batch of any thread: gradients may be taken on threads of a strategy."""
_called: "tuple[tuple[Any, Key], ...]" = ()
"""The functions that any thread has called, for the same reason."""
trained: set[Hashable] = set()
"""Streams of passes in whose steps gradients were taken."""
function_listeners: list[Callable[[Any, tuple[Any, ...], dict[str, Any]], None]] = []
"""Called after each call of a ``tf.function`` that is inside of no other, with it and what it was given."""
now_ns = time.perf_counter_ns
os.register_at_fork(after_in_child=listeners.clear)


def listen(take: Take) -> None:
    """Pass notes to a listener from now on; it must be quick, and thread-safe."""
    listeners.append(take)
    with installed:
        _hook_iterators()
        replace_method(tf.GradientTape, "gradient", _noting_gradients)
        replace_method(Function, "__call__", _noting_functions)
        replace_method(TrackableSaver, "save", noting_checkpoints)
        if _note_reading not in wrapping.readers:
            wrapping.readers.append(_note_reading)


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


def tell(note: Note) -> None:
    """Pass a note to all listeners."""
    for take in listeners:
        take(note)


def is_hooked(owner: Any, name: str) -> bool:
    """Say whether a method is wrapped."""
    return hasattr(getattr(owner, name, None), MARK)


def replace_method(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Wrap a method, once."""
    original = getattr(owner, "__dict__", {}).get(name, getattr(owner, name, None))
    if original is None or is_hooked(owner, name):
        return
    wrapper = functools.wraps(original)(make(original))
    setattr(wrapper, MARK, True)
    setattr(owner, name, wrapper)


# batches that Python asks for


def _hook_iterators() -> None:
    replace_method(OwnedIterator, "_next_internal", _noting_batches)  # `next`, `get_next` and loops all end there
    replace_method(DistributedIteratorBase, "get_next", functools.partial(_noting_batches, asks_others=True))
    for kind in (OwnedIterator, DistributedIterator):
        replace_method(kind, "__tf_tracing_type__", _noting_calls)
    if not hasattr(OwnedIterator, "__del__"):
        OwnedIterator.__del__ = _note_giving_up


def _note_giving_up(iterator: Any) -> None:
    """Release what TensorFlow holds for an iterator, as would follow anyway, and note it if that took long."""
    if not listeners:
        return
    begun_ns = now_ns()
    iterator.__dict__.pop("_iterator_resource", None)
    ended_ns = now_ns()
    if ended_ns - begun_ns >= SHORTEST_END_NS:
        tell(GivenUp(begun_ns, ended_ns))


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
    global _last
    arrived_ns = now_ns()
    try:
        of = iterator.__dict__.get("_pass_for_pipeline_lab") or _begin_pass(iterator)
        if of.role is not Role.PREDICT:  # which no step of the script's takes its batch of
            around = here.of
            if around is not None and around is not of and not around.is_over:
                of.around, around.around = around, None  # no chain of passes that were broken off
            here.of = _last = of
            here.asked_ns = asked_ns
        tell(Took(of, asked_ns, arrived_ns, of.examples or count_examples(batch)))
    except Exception:  # an element like no other must not affect the job
        return


def _note_end(iterator: Any, asked_ns: int) -> None:
    global _last
    of: Pass | None = iterator.__dict__.get("_pass_for_pipeline_lab")
    if of is not None:
        of.is_over = True
        if of is here.of and of.around is not None:  # the pass in between whose steps it was read
            here.of = _last = of.around
        tell(Ended(of, asked_ns, now_ns()))


def _noting_calls(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note the calls of functions that are given an iterator: TensorFlow asks each time of what type it is."""

    def tracing_type(self: Any, *arguments: Any) -> Any:
        if listeners and here.role not in KERAS and not here.is_nested and context.executing_eagerly():
            _note_call(self)
        return original(self, *arguments)

    return tracing_type


def _note_call(iterator: Any) -> None:
    global _last
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
            _last = of
        if of.iterator is not None:
            tell(Called(of, asked_ns, None, None))


def _begin_pass(iterator: Any) -> Pass:
    dataset = getattr(iterator, "_dataset", None)
    role = Role.PREDICT if here.role is Role.PREDICT else Role.LOOP
    of = Pass(_stream_of(dataset), role, examples_of(iterator))
    of.dataset = (lambda: None) if dataset is None else weakref.ref(dataset)
    of.note = getattr(_dataset_behind(iterator), "__dict__", {}).get(NOTE)
    iterator._pass_for_pipeline_lab = of
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


def place_of_loop() -> Hashable:
    """Return the calls of the script's own code that led here."""
    frame: FrameType | None = sys._getframe(2)
    calls = []
    while frame is not None:
        name = frame.f_code.co_filename
        if not any(part in name for part in _FOREIGN):
            calls.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(calls)


_FOREIGN = ("/tensorflow/", "/keras/", "/tf_keras/", "/pipeline_lab/")


def examples_of(iterator: Any) -> int | None:
    """Return the examples of every batch, from the shapes that are known before there is one."""
    with contextlib.suppress(Exception):
        specs = tf.nest.flatten(iterator.element_spec)
        parts = getattr(specs[0], "_value_specs", specs[:1])  # one for each replica
        sizes = [part.shape[0] for part in parts]
        return None if None in sizes else int(sum(sizes))
    return None


def count_examples(batch: Any) -> int | None:
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


def _noting_gradients(original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(self: Any, *arguments: Any, **options: Any) -> Any:
        note_gradients()
        if listeners and here.role is None and context.executing_eagerly():
            with contextlib.suppress(Exception):  # must not affect the job
                _note_eager_step()
        return original(self, *arguments, **options)

    return gradient


def note_gradients() -> None:
    """Note that gradients are taken in the steps of the pass that this thread takes batches of."""
    if here.role is not None:
        return
    of, is_eager = _under_way(), context.executing_eagerly()
    for function, key in () if is_eager else here.functions or _called:  # which take them whenever they are called so
        _marks_of(function)[key] = True
    if of is not None:
        of.has_gradients = True
        trained.add(of.stream)
        if is_eager:
            _count_step(of)


def _note_eager_step() -> None:
    """Note a step of a loop in Python whose batches the script makes itself: from where it takes gradients until it does so again.

    One that no other follows, with no batch of a dataset in between, is none: at the end of a pass the last batch may be trained on.
    A step that takes gradients at several places lasts from the first of them. Profiles get a mark for each step.
    """
    if _under_way() is not None or threading.current_thread() is not threading.main_thread():
        here.eager = None
        return
    place, asked_ns = place_of_loop(), now_ns()
    if here.eager is None or here.asked_ns > here.eager_ns:
        here.eager = Pass("eager", has_gradients=True)
    elif place in here.taken:
        tell(Called(here.eager, asked_ns, None, 1))
        _mark_step(here.eager)
    else:  # in the same step, at another place
        here.taken |= {place}
        return
    here.taken, here.eager_ns = frozenset({place}), asked_ns


def _mark_step(of: Pass) -> None:
    if here.mark is not None:
        here.mark.__exit__(None, None, None)
    of.marked += 1
    here.mark = tf.profiler.experimental.Trace(GRADIENTS, step_num=of.marked, _r=1)
    here.mark.__enter__()


def _under_way() -> Pass | None:
    """Return the pass that this thread, else any other, took its last batch of; None where it is over."""
    of = here.of or _last
    return None if of is None or of.is_over else of


def _count_step(of: Pass) -> None:
    if of.steps is None and of.note is not None:
        of.steps, of.note = wrapping.ledger.find_steps(of.note), None
    if of.steps is not None:
        of.steps.count += 1


Key = tuple[Any, ...]
_TAKES = "takes_gradients_for_pipeline_lab"
"""Attribute of a function that says for which keys it takes gradients."""
_LOOPS = "loops_for_pipeline_lab"
"""Mark of a function that goes through a dataset."""
_READ = "read_for_pipeline_lab"
"""Attribute of a function with the counts of the datasets that it reads itself, by key; where it doesn't get them, only its tracing tells."""


def _key_of(arguments: tuple[Any, ...], options: dict[str, Any]) -> Key:
    """Return the Python values among what a function is given: for each of them TensorFlow traces it anew."""
    if not options and not any(type(each) in _PYTHON for each in arguments):
        return ()
    named = tuple((name, options[name]) for name in sorted(options) if type(options[name]) in _PYTHON)
    return (*(each if type(each) in _PYTHON else None for each in arguments), named)


_PYTHON = frozenset({bool, int, float, str})


def _marks_of(function: Any) -> dict[Key, bool]:
    marks: dict[Key, bool] = function.__dict__.setdefault(_TAKES, {})
    return marks


def _noting_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        global _called
        around, begun_ns, traced = here.functions, now_ns(), None
        key = _key_of(arguments, options)
        if here.role is None:
            here.functions = _called = (*around, (self, key))
            if key not in _marks_of(self):
                traced = self.experimental_get_tracing_count()
            if not around:
                here.read = frozenset()
        try:
            with CurrentModuleFilter():  # errors quote the lines that made an op: none of them is ours
                result = original(self, *arguments, **options)
        finally:
            here.functions = _called = around
        if here.role is None:
            marks = _marks_of(self)
            if (
                traced is not None and key not in marks
            ):  # its trace takes none, or it runs that of another key, as with defaults
                marks[key] = self.experimental_get_tracing_count() == traced and any(marks.values())
            _note_function(self, key, arguments, options, begun_ns)
        return result

    return call


def _note_function(function: Any, key: Key, arguments: tuple[Any, ...], options: dict[str, Any], begun_ns: int) -> None:
    is_eager, takes = context.executing_eagerly(), _marks_of(function).get(key, False)
    if not is_eager and takes:
        note_gradients()  # traced before what it is called by
    if not is_eager or here.functions:
        return
    if here.read:
        function.__dict__.setdefault(_READ, {})[key] = here.read
    read = getattr(function, _READ, {}).get(key, ()) if takes else ()
    for steps in read:
        steps.count += 1
    trains = takes and not read
    if trains and listeners and not hasattr(function, _LOOPS) and _makes_batches():
        _note_own_step(function, arguments, begun_ns)
    else:
        if trains:
            note_gradients()
        note_beside(begun_ns)
    for take in function_listeners:
        take(function, arguments, options)


def _makes_batches() -> bool:
    """Say whether the script makes the batches of a step itself: no dataset was read before, or this step was its own already.

    Beside a GPU nobody says so: a call returns before its step is done, so that the time up to the next one need not be a wait.
    """
    if here.own is not None:
        place = place_of_loop()
        is_again, here.other = place == here.other, place
        if here.own.stream == place:
            here.other = None
            return True
        if not is_again or here.asked_ns > here.returned_ns:
            return False
        here.own = None  # twice from another place: the first one was to trace the function
        return True
    return _under_way() is None and not tf.config.list_physical_devices("GPU")


def _note_own_step(function: Any, given: Any, begun_ns: int) -> None:
    """Note a step whose batch the script makes itself, from the end of the step before it on.

    Other functions that are called between the two are no wait; where many are, or a dataset is read, something else was done.
    """
    begun_ns = here.begun_ns or begun_ns
    is_plain = here.own is not None and here.asked_ns < here.returned_ns and here.beside <= MOST_BESIDE
    asked_ns = here.returned_ns + here.beside_ns if is_plain else begun_ns
    with contextlib.suppress(Exception):  # must not affect the job
        if here.own is None:
            call = words_of_call(getattr(function, "__name__", "the step"))
            here.own = Pass(place_of_loop(), has_gradients=True, call=call)
        here.returned_ns, here.beside, here.beside_ns = now_ns(), 0, 0
        tell(Took(here.own, asked_ns, begun_ns, count_examples(given)))


def words_of_call(name: str) -> str:
    """Name the script's call that led here, and its place: ``train_step at train.py:40``; what has a name of its own by that."""
    site = find_site(sys._getframe())
    if site is None:
        return name
    if site.key not in _words:
        _words[site.key] = _read_call(site, name)
    return _words[site.key]


_words: dict[Hashable, str] = {}


def _read_call(site: CallSite, name: str) -> str:
    place = write_site(site, "").place
    text = linecache.getline(place.file, place.line).encode()[place.column or 0 :].decode(errors="replace")
    called = text.partition("(")[0].strip()
    is_plain = place.column is not None and called.replace(".", "_").isidentifier()
    return f"{called if is_plain else name} at {place}"


def note_beside(begun_ns: int) -> None:
    """Note that something else than the script's own Python ran from a time until now, between two of its own steps."""
    if here.own is not None:
        here.beside += 1
        here.beside_ns += now_ns() - begun_ns


def _note_reading(_dataset: Any, key: UseKey, _site: object) -> None:
    if here.functions:
        here.read |= {wrapping.ledger.steps_of(key)}


@contextlib.contextmanager
def tracing(of: Pass) -> Iterator[None]:
    """Take gradients for those of a pass, while the loop over it is traced."""
    global _last
    for function, _ in here.functions:
        setattr(function, _LOOPS, True)
    before, last = here.of, _last
    here.of = _last = of
    try:
        yield
    finally:
        here.of = before
        if _last is of:  # else another thread took a batch meanwhile
            _last = last


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
