"""What an event has to do with tf.data: the part of its names that only the pipeline's own analyses need."""

import re
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names

_ASYNCHRONOUS = re.compile(r"Prefetch|Parallel|LegacyParallel|MapAndBatch|ParseExample|DataService|MultiDevice")
_PRODUCE = re.compile(r"\w+Produce")
_CONSUME = re.compile(r"\w+Consume")


class EventRole(IntEnum):
    """What an event is to the pipeline."""

    NONE = 0
    WAIT = 1
    """The job waits for an element."""
    ITERATOR = 2
    """A stage is asked for an element."""
    PRODUCE = 3
    """A stage's own thread makes an element for its buffer."""
    CONSUME = 4
    """A stage takes an element out of its buffer."""
    FUNCTION = 5
    """A stage calls the user's function and waits for its result."""
    NESTED_FUNCTION = 6
    """A function calls another one, or is called."""
    PROCESS = 7
    """A thread runs ops of a function."""
    DONE = 8
    """A thread hands over the result of a function."""
    OPERATION = 9
    """One op."""
    OUTER_WAIT = 10
    """Wraps a wait; stands in for it in captures without the inner event."""
    BACKGROUND_FUNCTION = 11
    """A stage's own thread starts the user's function and goes on."""


@lru_cache(event_names.REMEMBERED_NAMES)
def role_of(name: str) -> EventRole:
    """Return the role of a host event by its name."""
    if event_names.iterator_way(name) is not None:
        return EventRole.ITERATOR
    kind = event_names.host_kind(name)
    if kind & event_names.Kind.WAIT:
        return EventRole.WAIT
    if kind & event_names.Kind.OUTER_WAIT:
        return EventRole.OUTER_WAIT
    if kind & event_names.Kind.INPUT_FUNCTION:
        return EventRole.BACKGROUND_FUNCTION if name.endswith("::RunAsync") else EventRole.FUNCTION
    if name == "FunctionRun":
        return EventRole.NESTED_FUNCTION
    if name == "ExecutorState::Process":
        return EventRole.PROCESS
    if name == "ExecutorDoneCallback":
        return EventRole.DONE
    if kind & event_names.Kind.OP:
        return EventRole.OPERATION
    if _PRODUCE.fullmatch(name):
        return EventRole.PRODUCE
    return EventRole.CONSUME if _CONSUME.fullmatch(name) else EventRole.NONE


_MATCHED_BY_ID = (EventRole.FUNCTION, EventRole.BACKGROUND_FUNCTION, EventRole.PROCESS, EventRole.DONE)
_BEGIN = (event_names.CAPTURED_FUNCTION, "Executor")
"""How their names begin: a capture may hold ten thousand others, whose roles nobody asks for."""
_USUAL_BUFFER = ("PrefetchProduce", "PrefetchConsume")


def asked_of(name: str) -> str | None:
    """Return the stat by which nearly all events of a name are matched with others, None if they are not.

    Elements are followed into the buffers that the job waits for, which is one of ``prefetch`` as a rule.
    """
    if name in _USUAL_BUFFER:
        return "element_id"
    return "id" if name.startswith(_BEGIN) and role_of(name) in _MATCHED_BY_ID else None


def is_any(role: NDArray[np.int8], *roles: EventRole) -> NDArray[np.bool_]:
    """Say which entries are one of these roles; a fraction of the time of ``np.isin``."""
    found: NDArray[np.bool_] = role == roles[0]
    for other in roles[1:]:
        found |= role == other
    return found


def is_asynchronous(stage: str) -> bool:
    """Say whether a kind of iterator has threads of its own that fill a buffer."""
    return _ASYNCHRONOUS.match(stage) is not None
