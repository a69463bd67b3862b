"""What hooks note of a user's loops: passes over datasets, and what happens in them; small, for the training thread writes it."""

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from pipeline_lab.data_classes import dataclass


class Role(Enum):
    """What a pass over a dataset is for, as far as its caller tells."""

    FIT = "fit"
    EVALUATE = "evaluate"
    PREDICT = "predict"
    LOOP = "loop"
    """A loop of the script's own."""


class Made(NamedTuple):
    """When Python made an iterator, which took time."""

    asked_ns: int
    ended_ns: int


@dataclass(eq=False)
class Pass:
    """One pass over a dataset: an iterator in the script's own loop, or an epoch of Keras.

    Attributes:
        stream: Equal for all passes of one loop.
        role: What it is for.
        examples: Of a batch; None where that varies or nobody knows.
        has_gradients: Gradients are taken in its steps.
        knows_gradients: All of its steps were seen where they were traced, so that without gradients it does not train.
        iterator: Returns the iterator that a graph reads; None where Python asks for each batch.
        made: When its iterator was made; None where that took no time or served a pass before.
        steps_per_call: Batches that a call takes inside a graph, as far as that had to be found out.
        dataset: Returns what it goes over, while the script has it.
        call: Of the step, as :class:`~pipeline_lab.runs.run_events.OwnBatchesEvent` tells it, where no dataset makes the batches.
        marked: Steps of it that were marked in profiles.
        is_over: It has come to its end.
        around: The pass that was under way when its first batch was taken.
        fit: Number of the call of ``fit`` that it belongs to; 0 for none.
        note: Of the dataset that it goes over, until the recipe was asked for ``steps``.
        steps: Count of the steps that train, which the recipe tells; None where it does not, and before it was asked.
    """

    stream: Hashable
    role: Role = Role.LOOP
    examples: int | None = None
    has_gradients: bool = False
    knows_gradients: bool = False
    iterator: Callable[[], Any] | None = None
    made: Made | None = None
    steps_per_call: int | None = None
    dataset: Callable[[], Any] = lambda: None
    call: str = ""
    marked: int = 0
    is_over: bool = False
    around: "Pass | None" = None
    fit: int = 0
    note: Any = None
    steps: Any = None


MADE = "_made_for_pipeline_lab"
"""Attribute of an iterator that says when it was made."""


def take_made(iterator: Any) -> Made | None:
    """Return when an iterator was made, once: later passes that it serves are not begun by that."""
    made: Made | None = getattr(iterator, "__dict__", {}).pop(MADE, None)
    return made


def refer_to(iterator: Any) -> Callable[[], Any]:
    """Return a reference to an iterator that leaves it to the script, and tells its passes apart also once it is gone."""
    reference = weakref.ref(iterator)
    hash(reference)  # which it keeps; of an iterator that is gone there is none
    return reference


class Took(NamedTuple):
    """Python asked for a batch and got it; ns of ``perf_counter``."""

    of: Pass
    asked_ns: int
    arrived_ns: int
    examples: int | None


class Called(NamedTuple):
    """A function was called that takes batches from inside a graph; None where its end or its steps are not seen.

    The first call of a function builds its graph.
    """

    of: Pass
    asked_ns: int
    ended_ns: int | None
    steps: int | None
    is_first: bool = False


class Ended(NamedTuple):
    """There was no further batch."""

    of: Pass
    asked_ns: int
    ended_ns: int


class Evaluated(NamedTuple):
    """Keras' ``evaluate`` returned, from inside ``fit`` or not, or its ``predict`` of more than a batch; by which call of the script."""

    of: Pass
    asked_ns: int
    ended_ns: int
    call: str = ""


class Fed(NamedTuple):
    """A thread of Python made a batch for a graph, which waited for it."""

    of: Pass
    asked_ns: int
    ended_ns: int


class Gaps(NamedTuple):
    """What tf.data knows of an iterator's consumer: elements taken, and the last times between two requests, ns."""

    elements: int
    between_ns: Sequence[int]


class Seen(NamedTuple):
    """What tf.data knew at the end of a pass, before the iterator is gone."""

    of: Pass
    asked_ns: int
    ended_ns: int
    gaps: Gaps


class Saved(NamedTuple):
    """A checkpoint was written."""

    asked_ns: int
    ended_ns: int


class GivenUp(NamedTuple):
    """Python released an iterator, which took long; its pass, where Python asked for each batch."""

    asked_ns: int
    ended_ns: int
    of: Pass | None = None


class Predicted(NamedTuple):
    """Keras' ``predict`` returned what it made of no more than one batch."""

    call: str
    asked_ns: int
    ended_ns: int


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


OfPass = Took | Called | Ended | Evaluated | Seen
Note = OfPass | Fed | Saved | GivenUp | Predicted


def sort_notes(notes: deque[Note]) -> None:
    """Sort notes by the end of what they report; others may be added meanwhile."""
    known = [notes.popleft() for _ in range(len(notes))]
    notes.extendleft(sorted(known, key=_over_ns, reverse=True))


def _over_ns(note: Note) -> int:
    if isinstance(note, Took):
        return note.arrived_ns
    return note.asked_ns if note.ended_ns is None else note.ended_ns
