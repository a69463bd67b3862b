"""The arms of a race inside a script: its pipeline as it is, and made again with changes."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline_lab.capture.script_race.division import Division
from pipeline_lab.capture.script_race.switching import inside
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError
from pipeline_lab.pipeline.changes import Change, SetArgument, are_compatible, spread
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.pipeline.written_changes import parse_change
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.race.buffers import Buffers, end_steady
from pipeline_lab.worker.race.resting import Resting
from pipeline_lab.worker.recipe.changed import NotedDatasets, as_written, change_dataset
from pipeline_lab.worker.recipe.wrapping import ledger

SEVERAL = ";"
"""Stands between the changes of one candidate."""


@dataclass(frozen=True)
class AlternatingArm:
    """A pipeline that takes turns.

    Attributes:
        name: Of the arm.
        dataset: It, without an end.
        iterator: That yields its batches.
        buffers: What it has ready.
        resting: Its pauses.
        batches_beyond: That may lie behind its buffers, on their way to several devices.
    """

    name: str
    dataset: Any
    iterator: Any
    buffers: Buffers
    resting: Resting
    batches_beyond: int = 0

    def drain(self) -> int:
        """Drop what came in during a pause; return how many batches that was."""
        with inside():
            drained = self.resting.drain(self.iterator.get_next)
            for _ in range(self.batches_beyond):
                self.iterator.get_next()
            return drained + self.batches_beyond


@dataclass(frozen=True)
class ArmChanges:
    """What one arm changes."""

    text: str
    changes: tuple[Change, ...]

    @property
    def words(self) -> str:
        return " ".join(change.words for change in self.changes)


TWICE = 2
"""A race begins in the first pass over a dataset; that Python's elements end, which a later pass shows, is then up to who asks for a cache."""


def find_candidates(dataset: Any, texts: Sequence[str]) -> list[ArmChanges]:
    """Return what each candidate changes in a dataset of the script.

    Raises:
        OptionsError: A change is none, or suits no call of the dataset.
    """
    recipe = _recipe_of(dataset)
    return [_candidate(recipe, text) for text in texts]


def _recipe_of(dataset: Any) -> Recipe:
    """Return the recipe of all datasets, with the uses of this one alone."""
    noted = NotedDatasets(*ledger.noted())
    mine = noted.number_of(dataset)
    uses = tuple(use for use in noted.recipe.uses if use.call == mine) or noted.recipe.uses
    return replace(noted.recipe, uses=tuple(replace(use, iterators=max(use.iterators, TWICE)) for use in uses))


def _candidate(recipe: Recipe, text: str) -> ArmChanges:
    changes = tuple(spread(recipe, parse_change(recipe, part)) for part in text.split(SEVERAL) if part.strip())
    if not changes:
        raise OptionsError(
            f"{text!r} names no change; write one such as prefetch, or train.py:41 num_parallel_calls=8."
        )
    for change in changes:
        if change.cannot_race:
            raise OptionsError(
                f"{change.words} Pipelines that race share one training, and cannot differ in that; "
                "compare two recorded runs instead."
            )
        if any(isinstance(edit, SetArgument) and edit.name == "batch_size" for edit in change.edits):
            raise OptionsError(
                f"{text!r} changes how many examples a step trains on, and a race compares the time of steps."
            )
    if not are_compatible(changes):
        raise OptionsError(f"{text!r} changes one call twice, or moves what it changes; leave one of the changes out.")
    return ArmChanges(text, changes)


def make_datasets(dataset: Any, candidates: Sequence[ArmChanges], scratch: Path) -> list[Any]:
    """Return the datasets of all arms, the script's own first.

    Raises:
        OptionsError: A change makes other elements than the script's model takes.
        CannotReplayError: The script's dataset cannot be made again.
    """
    noted = NotedDatasets(*ledger.noted())
    made = [as_written(dataset, noted, scratch / "arm-0")]
    for number, each in enumerate(candidates, start=1):
        edits = [edit for change in each.changes for edit in change.edits]
        changed = change_dataset(dataset, noted, edits, scratch / f"arm-{number}")
        if not is_alike(changed.element_spec, dataset.element_spec):
            raise OptionsError(
                f"{each.text!r} makes other elements than the script trains on ({_short(changed.element_spec)} instead of "
                f"{_short(dataset.element_spec)}), so the two cannot take turns in one training."
            )
        made.append(changed)
    return made


def is_alike(one: Any, other: Any) -> bool:
    """Say whether a function that was traced for elements of one kind takes those of the other."""
    try:
        tf.nest.assert_same_structure(one, other, expand_composites=False)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True)
    return all(type(a) is type(b) and (a == b or _fits(a, b)) for a, b in pairs)


def _fits(one: Any, other: Any) -> bool:
    return isinstance(one, tf.TensorSpec) and one.dtype == other.dtype and one.shape.is_compatible_with(other.shape)


def _short(spec: Any) -> str:
    text = ", ".join(f"{part.dtype.name}{part.shape}" for part in tf.nest.flatten(spec) if hasattr(part, "shape"))
    return text if len(text) <= 120 else f"{text[:119]}…"


def open_arm(name: str, dataset: Any, stop: StopRequest, division: Division | None) -> AlternatingArm:
    """Begin to read an arm's dataset, again and again where it ends.

    Args:
        name: Of the arm.
        dataset: It.
        stop: A request to end the race.
        division: How its batches are divided among replicas; None where they are not.
    """
    with inside():
        endless = dataset if dataset.cardinality() == tf.data.INFINITE_CARDINALITY else dataset.repeat()
        endless = end_steady(dataset, endless)
        iterator = iter(endless)
        buffers = Buffers(iterator)
        resting = Resting(buffers, stop)
        if division is None:
            return AlternatingArm(name, endless, iterator, buffers, resting)
        return AlternatingArm(name, endless, division.divide(iterator), buffers, resting, division.batches_beyond)


def fill_caches(dataset: Any, limit_s: float, should_stop: Callable[[], bool]) -> bool:
    """Read what the caches of a dataset keep; return whether all of them are full.

    Caches are shared by the iterators of one dataset, so that a race reads from them what later epochs of a training would.
    """
    deadline_s = time.monotonic() + limit_s
    with inside():
        for cache in _caches(dataset, set()):
            for _ in cache:
                if should_stop() or time.monotonic() > deadline_s:
                    return False
    return True


def _caches(dataset: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the caches that a dataset is made of, those nearest to the source first."""
    if id(dataset) in seen:
        return
    seen.add(id(dataset))
    for below in dataset._inputs():
        yield from _caches(below, seen)
    if type(dataset).__name__ in ("CacheDataset", "_SnapshotDataset"):
        yield dataset
