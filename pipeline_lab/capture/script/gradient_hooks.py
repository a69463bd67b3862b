"""What trains: notes where gradients are taken, the functions that take them, and steps whose batches the script makes itself.

Such a step is a call of a function, or in a loop in Python what lasts from gradients to gradients.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
from tensorflow.python.util.tf_stack import CurrentModuleFilter

from pipeline_lab.capture.script.eager_steps import OF_KERAS, OF_TENSORFLOW, EagerSteps
from pipeline_lab.capture.script.job_threads import (
    Key,
    anywhere,
    here,
    listeners,
    now_ns,
    place_of_loop,
    replace_method,
    tell,
    trained,
    under_way,
    words_of_call,
)
from pipeline_lab.capture.script.step_notes import Called, Pass, Role, Took, count_examples
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.notes import UseKey

MOST_BESIDE = 8
"""Functions that a script calls between two steps whose batches it makes itself; where it calls more, it evaluates."""
GRADIENTS = "gradients"
"""Marks, in profiles, a step that lasts from where it takes gradients until that is done again."""
function_listeners: list[Callable[[Any, tuple[Any, ...], dict[str, Any]], None]] = []
"""Called after each call of a ``tf.function`` that is inside of no other, with it and what it was given."""
eager_steps = EagerSteps()


def hook_gradients() -> None:
    """Note from now on where gradients are taken; ``installed`` is held."""
    replace_method(tf.GradientTape, "gradient", _noting_gradients)
    replace_method(Function, "__call__", _noting_functions)
    if _note_reading not in wrapping.readers:
        wrapping.readers.append(_note_reading)


def _noting_gradients(original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(self: Any, *arguments: Any, **options: Any) -> Any:
        note_gradients()
        if listeners and context.executing_eagerly():
            with contextlib.suppress(Exception):  # must not affect the job
                if tf.config.functions_run_eagerly():
                    eager_steps.note_switch(OF_TENSORFLOW)
                elif here.role is Role.FIT and here.model is not None and getattr(here.model(), "run_eagerly", False):
                    eager_steps.note_switch(OF_KERAS)  # else a callback takes them
                elif here.role is None:
                    eager_steps.note(sys._getframe())
                if here.role is None:
                    _note_eager_step()
        return original(self, *arguments, **options)

    return gradient


def note_gradients() -> None:
    """Note that gradients are taken in the steps of the pass that this thread takes batches of."""
    if here.role is not None:
        return
    of, is_eager = under_way(), context.executing_eagerly()
    if not is_eager:
        for function, key in here.functions or anywhere.functions:  # which take them whenever they are called so
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
    if under_way() is not None or threading.current_thread() is not threading.main_thread():
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


def _count_step(of: Pass) -> None:
    if of.steps is None and of.note is not None:
        of.steps, of.note = wrapping.ledger.find_steps(of.note), None
    if of.steps is not None:
        of.steps.count += 1


_TAKES = "takes_gradients_for_pipeline_lab"
"""Attribute of a function that says for which keys it takes gradients."""
_LOOPS = "loops_for_pipeline_lab"
"""Mark of a function that goes through a dataset."""
_READ = "read_for_pipeline_lab"
"""Attribute of a function with the counts of the datasets that it reads itself, by key; where it doesn't get them, only its tracing tells."""


def _key_of(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Key:
    """Return the Python values among what a function is given: for each of them TensorFlow traces it anew, unless it has a signature."""
    if function.input_signature is not None or not (options or any(type(each) in _PYTHON for each in arguments)):
        return ()
    named = tuple((name, options[name]) for name in sorted(options) if type(options[name]) in _PYTHON)
    return (*(each if type(each) in _PYTHON else None for each in arguments), named)


_PYTHON = frozenset({bool, int, float, str})


def _marks_of(function: Any) -> dict[Key, bool]:
    marks: dict[Key, bool] = function.__dict__.setdefault(_TAKES, {})
    return marks


def _noting_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        around, begun_ns, traced = here.functions, now_ns(), None
        key = _key_of(self, arguments, options)
        if here.role is None:
            here.functions = anywhere.functions = (*around, (self, key))
            if key not in _marks_of(self):
                traced = self.experimental_get_tracing_count()
            if not around:
                here.read = frozenset()
        try:
            with CurrentModuleFilter():  # errors quote the lines that made an op: none of them is ours
                result = original(self, *arguments, **options)
        finally:
            here.functions = anywhere.functions = around
        if here.role is None:
            marks = _marks_of(self)
            if traced is not None and key not in marks:
                # its trace takes none, or it runs that of another key, as with defaults
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
    return under_way() is None and not tf.config.list_physical_devices("GPU")


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
    for function, _ in here.functions:
        setattr(function, _LOOPS, True)
    before, last = here.of, anywhere.of
    here.of = anywhere.of = of
    try:
        yield
    finally:
        here.of = before
        if anywhere.of is of:  # else another thread took a batch meanwhile
            anywhere.of = last
