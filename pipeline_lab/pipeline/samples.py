"""What was read of a script's dataset: elements by their digests, and what differs between two readings.

A process that has TensorFlow takes the samples (:mod:`pipeline_lab.capture.script_sample`); here they are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, Self

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.recipe import DatasetUse, Recipe

FAR_ENOUGH = 3
"""Elements that are read at least, however long they take."""
PASSES = 2
"""Times that a dataset is read: what a cache keeps, and what draws again, shows in the second only."""
ROUNDING = 1e-5
"""Difference between numbers, relative to the largest of their kind, that another order of the same additions explains."""


class Draws(Enum):
    """Where random numbers come from while a dataset is read; the value is how to ask for it."""

    AS_THEY_COME = "as they come"
    IN_ORDER = "in order"
    """TensorFlow hands them out in the order of the elements, whatever runs in parallel."""
    BY_ELEMENT = "by element"
    """Python draws anew for each element, from what it is given and the number of the pass."""


class Epochs(Enum):
    """How a changed dataset hands its epochs on; the value says what of them is compared."""

    APART = "each in a pass of its own"
    JOINED = "one epoch after the other"
    REDRAWN = "of the first epoch; in later ones other random numbers are drawn, as before"
    """From the same seed TensorFlow draws the same in each pass over a dataset that ends, and draws on where one goes on."""


BEFORE_ITS_END = "of the first epoch, whose end was not reached"


@dataclass(frozen=True)
class ReadingPlace:
    """Where a script reads a dataset; another run of it may leave out what it read before, such as to fill a cache.

    Attributes:
        role: What for, as in the recipe.
        file: Of the expression; empty where nobody knows.
        line: Its first line in the text that is run.
        turn: How many others are read there for that before.
        made_at: Where the calls that make the dataset stand in the script as it is, sorted.
    """

    role: str
    file: str = ""
    line: int = 0
    turn: int = 0
    made_at: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{PurePath(self.file).name}:{self.line}" if self.file else "an unknown line"


def find_reading(recipe: Recipe, use: DatasetUse) -> ReadingPlace:
    """Return where a script reads the dataset of a use."""
    there = [each for each in recipe.uses if _read_at(each) == _read_at(use)]
    made_at = {str(call.place) for call in recipe.upstream(use.call, inside=False) if call.place is not None}
    return ReadingPlace(*_read_at(use), there.index(use), sorted(made_at))


def _read_at(use: DatasetUse) -> tuple[str, str, int]:
    return (use.role, "", 0) if use.place is None else (use.role, use.place.file, use.place.line)


@dataclass(frozen=True)
class SampleRequest:
    """What is to be sampled.

    Attributes:
        target, arguments, is_module: The script, as on the command line.
        texts: Files to run in another form than they have on disk.
        reading: Where it is read.
        elements, seconds: How far to read.
        values: File for the first elements.
        patience_s: Time that the script may take in all.
        draws: One of :class:`Draws`.
        python_waits: Each call of the pipeline's Python waits a moment first, so that calls at once come in another order.
        passes: Times that it is read.
        is_seeded: Seeds are set before the script begins; TensorFlow then draws the same in each pass.
        others: Places; also read the other datasets that the script has made until then, that no other one takes, and whose
            calls stand there.
        numbers: Of such datasets, to read them wherever their calls stand.
        measures: Measure the stages as well, last, for that reads on where a shuffle draws.
    """

    target: str
    arguments: Sequence[str]
    is_module: bool
    texts: Mapping[str, str]
    reading: ReadingPlace
    elements: int
    seconds: float
    values: str
    patience_s: float
    draws: str = Draws.AS_THEY_COME.value
    is_seeded: bool = True
    others: Sequence[str] = ()
    numbers: Sequence[int] = ()
    python_waits: bool = False
    passes: int = PASSES
    measures: bool = False

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Return a request from its JSON."""
        return cls(**{**document, "reading": ReadingPlace(**document["reading"])})


@dataclass(frozen=True)
class StageSize:
    """Elements that a call hands on.

    Attributes:
        method: The call.
        element_bytes: Of one, on average.
        elements: In an epoch.
        stateful: As of a call of a recipe.
        spec: Types and shapes of an element, as far as they are known before one is made.
        is_kept: A cache keeps what is made of them.
    """

    method: str
    element_bytes: float | None
    elements: int | None
    stateful: Sequence[str] = ()
    spec: str = ""
    is_kept: bool = False

    @property
    def epoch_bytes(self) -> float | None:
        """All of an epoch; None where that is not known."""
        if self.element_bytes is None or self.elements is None:
            return None
        return self.element_bytes * self.elements


@dataclass(frozen=True)
class Sample:
    """What one script's dataset gave.

    Attributes:
        passes: Digest of each element, in order, of each time that it was read.
        rows: How often each example came in each pass, by its digest.
        ended: Whether a pass came to the end of the dataset.
        first_bytes: Of all elements of the first pass.
        stages: From the last call to the source.
        places, number: Of another dataset: where its calls stand, the last one first, and which one it is of those made.
        others: Of the other datasets that were asked for.
        made: Other datasets that there are.
        steps_at_once: Steps that one call of the training runs.
        spec: Types and shapes of its elements, as far as they are known before one is made.
    """

    passes: tuple[tuple[str, ...], ...]
    rows: tuple[Mapping[str, int], ...]
    ended: tuple[bool, ...]
    first_bytes: int
    stages: tuple[StageSize, ...] = ()
    places: tuple[str, ...] = ()
    number: int = 0
    others: "tuple[Sample, ...]" = ()
    made: int = 0
    steps_at_once: int = 1
    spec: str = ""


def read_answer(document: dict[str, Any]) -> Sample:
    """Return a sample from its JSON."""
    return _read_sample(document["sample"])


def _read_sample(found: dict[str, Any]) -> Sample:
    return Sample(
        tuple(map(tuple, found["passes"])),
        tuple(found["rows"]),
        tuple(found["ended"]),
        found["first_bytes"],
        tuple(StageSize(**each) for each in found["stages"]),
        tuple(found["places"]),
        found["number"],
        tuple(map(_read_sample, found["others"])),
        found["made"],
        found["steps_at_once"],
        found["spec"],
    )


class ProofOutcome(Enum):
    """What a comparison found."""

    EQUAL = "equal"
    ROUNDED = "equal but for rounding"
    REDRAWN = "equal once random draws are fixed"
    REORDERED = "the same examples in another order"
    DIFFERENT = "different"
    FAILED = "failed"


@dataclass(frozen=True)
class Proof:
    """Whether two pipelines give the same.

    Attributes:
        outcome: What was found.
        sentence: The same for people, with what was compared.
        elements: Compared in each pass.
        is_whole: Both came to the end of the dataset each time.
    """

    outcome: ProofOutcome
    sentence: str
    elements: tuple[int, ...] = ()
    is_whole: bool = False


def compare_samples(before: Sample, after: Sample, values: tuple[Path, Path] | None = None) -> Proof:
    """Say whether two samples hold the same elements in the same order in every pass.

    Args:
        before, after: Of the script as it is and as it would be.
        values: Files with their first elements.
    """
    counts = tuple(min(len(one), len(other)) for one, other in zip(before.passes, after.passes, strict=True))
    is_whole = all(before.ended) and all(after.ended)
    said = f"{' and '.join(f'{count:,}' for count in counts)} elements in {len(counts)} passes"
    said += ", each to the end of the dataset" if is_whole else ""
    if not all(counts):
        empty = all(not one for one in (*before.passes, *after.passes))
        return Proof(
            ProofOutcome.FAILED if empty else ProofOutcome.DIFFERENT, "One of the two gives no elements.", counts
        )
    first = next(
        (_first_difference(before, after, number) for number in range(len(counts)) if _differ(before, after, number)),
        None,
    )
    if first is None:
        return Proof(ProofOutcome.EQUAL, f"Equal, element by element: {said}.", counts, is_whole)
    if is_whole and before.rows == after.rows:
        return Proof(
            ProofOutcome.REORDERED,
            f"The same examples in another order, each as often as before: {said}.",
            counts,
            True,
        )
    apart = None if values is None else _rounding(before, after, *values)
    has_lengths = [len(each) for each in before.passes] == [len(each) for each in after.passes] or not is_whole
    if apart is not None and apart <= ROUNDING and has_lengths:
        return Proof(
            ProofOutcome.ROUNDED,
            f"Equal but for rounding (at most {apart:.1g} of the largest number): {said}.",
            counts,
            is_whole,
        )
    return Proof(ProofOutcome.DIFFERENT, first, counts, is_whole)


def compare_joined(before: Sample, after: Sample, epochs: Epochs) -> Proof:
    """Say whether a dataset without an end gives what one that ends gives in its passes, one after the other.

    Args:
        before: Of the dataset that ends.
        after: Of the other one, a single pass.
        epochs: How it hands them on.
    """
    if after.steps_at_once > 1:
        sentence = f"One call runs {after.steps_at_once} steps, and an epoch of a dataset without an end is a multiple of them."
        return Proof(ProofOutcome.FAILED, sentence)
    passes = before.passes if before.ended[0] and epochs is Epochs.JOINED else before.passes[:1]
    one = replace(before, passes=(tuple(chain.from_iterable(passes)),), rows=({},), ended=(False,))
    proof = compare_samples(one, replace(after, rows=({},), ended=(False,)))
    if proof.outcome is not ProofOutcome.EQUAL:
        return proof
    is_short = not before.ended[0] or proof.elements[0] <= len(before.passes[0])
    said = BEFORE_ITS_END if is_short and epochs is Epochs.JOINED else epochs.value
    sentence = f"Equal, element by element: {proof.elements[0]:,} elements, {said}."
    outcome = ProofOutcome.REDRAWN if epochs is Epochs.REDRAWN else ProofOutcome.EQUAL
    return replace(proof, sentence=sentence, outcome=outcome)


def compare_others(before: Sample, after: Sample, places: Sequence[str]) -> Proof | None:
    """Say what differs in the other datasets that a change touches; None where nothing does.

    Args:
        before, after: Of the script as it is and as it would be.
        places: Of their last calls in the script as it is.
    """
    known = {each.places[0] for each in before.others if each.places}
    for place in places:
        if place not in known:
            sentence = f"It also changes the dataset that {place} makes, which cannot be compared: it is not there when the training begins."
            return Proof(ProofOutcome.FAILED, sentence)
    if (before.others and before.made != after.made) or len(before.others) != len(after.others):
        return Proof(ProofOutcome.FAILED, "The changed script makes other datasets beside the training's.")
    for one, other in zip(before.others, after.others, strict=True):
        found = compare_samples(one, other)
        is_empty = not any(any(each) for each in (*one.passes, *other.passes))
        if found.outcome is not ProofOutcome.EQUAL and not is_empty:
            where = f"The dataset that {one.places[0]} makes" if one.places else "Another dataset of the script"
            return Proof(found.outcome, f"{where} would change too: {found.sentence}", found.elements)
    return None


def _differ(before: Sample, after: Sample, number: int) -> bool:
    one, other = before.passes[number], after.passes[number]
    count = min(len(one), len(other))
    has_other_end = len(one) != len(other) and (before.ended[number] if len(one) < len(other) else after.ended[number])
    return one[:count] != other[:count] or has_other_end


def _first_difference(before: Sample, after: Sample, number: int) -> str:
    one, other = before.passes[number], after.passes[number]
    where = f"pass {number + 1}" if number else "the first pass"
    index = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if index is None:
        return f"In {where} there are {len(other):,} elements instead of {len(one):,}."
    if number and after.passes[number] == after.passes[0] and one != before.passes[0]:
        return REPEATS
    return f"Element {index + 1:,} of {where} is another one than without the change."


def _rounding(before: Sample, after: Sample, one: Path, other: Path) -> float | None:
    """Return by how much elements differ at most, relative to the largest number; None if one was not kept, or is of another kind."""
    largest = 0.0
    with np.load(one) as left, np.load(other) as right:
        for number, (old, new) in enumerate(zip(before.passes, after.passes, strict=True)):
            for index in (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]):
                names = [name for name in left.files if name.startswith(f"{number}-{index}-")]
                if not names or not all(name in right.files for name in names):
                    return None
                apart = [_apart(left[name], right[name]) for name in names]
                if None in apart:
                    return None
                largest = max(largest, *(each for each in apart if each is not None))
    return largest


def _apart(left: Any, right: Any) -> float | None:
    if left.shape != right.shape or left.dtype != right.dtype:
        return None
    if not np.issubdtype(left.dtype, np.floating):
        return 0.0 if np.array_equal(left, right) else None
    scale = float(np.max(np.abs(left), initial=0.0)) or 1.0
    return float(np.max(np.abs(left - right), initial=0.0)) / scale


def repeats_what_was_new(before: Sample, after: Sample) -> bool:
    """Say whether the later pass repeats the first one where it did not before; of samples without seeds."""
    return before.rows[0] != before.rows[1] and after.rows[0] == after.rows[1]


REPEATS = "Pass 2 repeats the elements of the first one, where the script as it is gives others."
