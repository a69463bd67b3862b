"""The last step of a loop of the script's own: the functions that it called, kept to be timed when the script has ended.

They run again on the batch that they had last, with copies of all variables, so that nothing of the script changes. A step
that does more than call functions, or whose functions use more than tensors and variables, cannot be run so.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import psutil
import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.eager.polymorphic_function import function_type_utils

from pipeline_lab.capture.script.gradient_hooks import function_listeners
from pipeline_lab.capture.script.job_threads import here, trained
from pipeline_lab.capture.script.step_notes import Pass
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError

_ALTERS = re.compile(r"LookupTable(?!Find|Size)|Mutable|Queue|Summary|Write|Mutex|Barrier|StackP")
"""Ops that alter a resource that is not a variable, or may."""
_REACHES_OUT = re.compile(r"Print|WriteFile|Save|Write.*Summary|Collective|Nccl|.*Enqueue")
"""Ops that act outside of the process' own tensors: they print, write, or wait for other processes."""
_PYTHON_OPS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
MOST_CALLS = 1000
"""Calls that one step makes at most; a longer one has no boundaries that we know."""


Call: TypeAlias = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A ``tf.function``, and what it was given."""


class CannotRunAloneError(PipelineLabError):
    """The step of a loop cannot be run by itself."""


@dataclass(eq=False)
class OwnStep:
    """What a step called.

    Attributes:
        of: The pass that it took its batch of.
        asked_ns: When it asked for the batch, by which steps are told apart.
        dataset: That the pass goes over; None where that is not known.
        calls: Functions, with what they were given.
    """

    of: Pass
    asked_ns: int
    dataset: Any
    calls: list[Call] = field(default_factory=list)

    @property
    def trains(self) -> bool:
        return self.of.stream in trained


class _Open(threading.local):
    step: OwnStep | None = None


_open = _Open()
_last: list[OwnStep] = []


def keep_last_step() -> None:
    """Keep the last complete step of a loop from now on, of one that takes gradients if there is one."""
    if _keep not in function_listeners:
        function_listeners.append(_keep)


def last_step() -> OwnStep | None:
    """Return it; None where no loop of the script's own called functions for its batches."""
    return _last[-1] if _last else None


def _keep(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    if here.of is None:
        return
    step = _open.step
    if step is None or step.of is not here.of or step.asked_ns != here.asked_ns:
        if step is not None and (step.trains or not _last or not _last[-1].trains):
            _last[:] = [step]
        step = _open.step = OwnStep(here.of, here.asked_ns, here.of.dataset())
    if len(step.calls) < MOST_CALLS:
        step.calls.append((function, arguments, options))


def prepare_alone(calls: Sequence[Call], dataset: Any) -> Callable[[], Any]:
    """Return what makes the calls of a step again, on copies of their variables.

    Args:
        calls: Of the step.
        dataset: That it takes its batches of; None where that is not known.

    Raises:
        CannotRunAloneError: It needs more than its batch and its variables.
    """
    if not calls or len(calls) == MOST_CALLS:
        raise CannotRunAloneError("it calls no tf.function")
    copies: dict[int, Any] = {}
    prepared = [_prepare(*call, dataset, copies) for call in calls]

    def run() -> Any:
        return [function._call_flat(given, captured) for function, given, captured in prepared]

    return run


def _prepare(
    function: Any, arguments: tuple[Any, ...], options: dict[str, Any], dataset: Any, copies: dict[int, Any]
) -> tuple[Any, list[Any], list[Any]]:
    arguments, options = tf.nest.map_structure(lambda each: _held(each, dataset), (arguments, options))
    traced = function.experimental_get_tracing_count()
    concrete = function.get_concrete_function(*arguments, **options)
    if function.experimental_get_tracing_count() != traced:
        raise CannotRunAloneError("its function is traced again for each step")
    operations = set(_operations(concrete))
    if python := operations & _PYTHON_OPS:
        raise CannotRunAloneError(f"its function runs Python ({min(python)})")
    if outside := next((op for op in sorted(operations) if _REACHES_OUT.match(op)), None):
        raise CannotRunAloneError(f"its function does more than compute ({outside})")
    only_looks_up = "LookupTableFindV2" in operations and not any(map(_ALTERS.match, operations))
    bound = function_type_utils.canonicalize_function_inputs(arguments, options, concrete.function_type)
    given = concrete.function_type.unpack_inputs(bound)
    iterators = {id(each._iterator_resource) for each in _iterators((arguments, options))}
    known = [*concrete.variables, *(each for each in _leaves((arguments, options)) if isinstance(each, tf.Variable))]
    variables = {id(each.handle): each for each in known}

    def copy(tensor: Any) -> Any:
        if tensor.dtype not in (tf.resource, tf.variant) or id(tensor) in iterators:
            return tensor
        if id(tensor) not in variables:
            if only_looks_up:
                return tensor
            raise CannotRunAloneError("its function uses a resource that is not a variable")
        if id(tensor) not in copies:
            copies[id(tensor)] = _copy(variables[id(tensor)])
        return copies[id(tensor)].handle

    return concrete, [copy(each) for each in given], [copy(each) for each in concrete.captured_inputs]


def _held(value: Any, dataset: Any) -> Any:
    """Return an iterator over the first batch alone in place of an iterator."""
    if not isinstance(value, OwnedIterator):
        return value
    if dataset is None:
        raise CannotRunAloneError("its iterator's dataset is not known")
    return iter(dataset.take(1).cache().repeat())


def _iterators(structure: Any) -> Iterator[Any]:
    return (each for each in _leaves(structure) if isinstance(each, OwnedIterator))


def _leaves(structure: Any) -> list[Any]:
    leaves: list[Any] = tf.nest.flatten(structure)
    return leaves


def _copy(variable: Any) -> Any:
    if not isinstance(variable, tf.Variable) or hasattr(variable, "_values"):  # one of a strategy
        raise CannotRunAloneError("its variables are distributed")
    if (variable.shape.num_elements() or 0) * variable.dtype.size > psutil.virtual_memory().available / 2:
        raise CannotRunAloneError("there is too little memory for copies of its variables")
    with tf.device(variable.device):
        return tf.Variable(variable.read_value(), trainable=variable.trainable, shape=variable.shape)


def _operations(concrete: Any) -> Iterator[str]:
    """Yield the types of all operations, those of functions inside among them."""
    graph = concrete.graph.as_graph_def()
    yield from (node.op for node in graph.node)
    for function in graph.library.function:
        yield from (node.op for node in function.node_def)
