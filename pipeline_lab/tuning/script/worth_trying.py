"""Which changes of a script are worth a proof and a race: by the model, by the memory that they take, by what was read of the data."""

import itertools
import math
from collections.abc import Mapping, Sequence, Set
from functools import partial

from pipeline_lab.advice.script.cache_room import SIZE_UNKNOWN, find_kept, find_no_room
from pipeline_lab.advice.script.script_model import ENDS_UNKNOWN, is_of_keras_2, predict_change
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.chain import Chain
from pipeline_lab.pipeline.changes import Change, IntoStep, MoveBefore, are_compatible
from pipeline_lab.pipeline.recipe import DatasetUse, Recipe
from pipeline_lab.pipeline.rewrites import find_earlier_caches
from pipeline_lab.pipeline.samples import Sample, StageSize
from pipeline_lab.runs.machine.limits import usable_memory_bytes

WORTH_PERCENT = 5.0
"""Gain of a step from which a change is worth a proof and a race, where something speaks against it."""


def promises(change: Change, run: ScriptRun | Unavailable) -> bool:
    """Say whether the model expects a gain of a change."""
    return not isinstance(run, Unavailable) and expected_gain(change, run) >= WORTH_PERCENT


def expected_gain(change: Change, run: ScriptRun) -> float:
    """Return what the model expects a change to save of a step, percent; 0 where it cannot tell."""
    found = predict_change(run, change.edits)
    return 0.0 if isinstance(found, Unavailable) else found.gain_percent


def _promise(run: ScriptRun, change: Change) -> tuple[int, bool]:
    """Return what orders rivals: first what gains most, in whole percent, and of equals what moves no call."""
    return -round(expected_gain(change, run)), any(isinstance(edit, MoveBefore) for edit in change.edits)


def choose_rivals(
    found: Sequence[Change], run: ScriptRun | Unavailable
) -> tuple[list[Change], list[tuple[Change, Change]]]:
    """Of changes that cannot be made together keep the one that the model expects more of; of equals one that moves no call, or the first.

    Returns:
        What is kept, and each that is not with the one that is tried instead.
    """
    kept: list[Change] = []
    beaten: list[tuple[Change, Change]] = []
    ordered = found if isinstance(run, Unavailable) else sorted(found, key=partial(_promise, run))
    for change in ordered:
        rival = next((each for each in kept if not are_compatible([each, change])), None)
        if rival is None:
            kept.append(change)
        else:
            beaten.append((change, rival))
    return [each for each in found if each in kept], beaten


def worth_proving(
    found: Sequence[Change], before: Sample, recipe: Recipe, use: DatasetUse, run: ScriptRun | Unavailable
) -> tuple[list[Change], list[tuple[Change, str]]]:
    """Return the changes that are worth a proof, and the others with the reason; a cache that is too large stands earlier if it fits there."""
    worth: list[Change] = []
    left: list[tuple[Change, str]] = []
    for change in found:
        reason = too_large(change, before, recipe, use) or never_full(change, before, recipe, use)
        reason = reason or no_smaller(change, before, recipe, use) or needless(change, recipe, run)
        if not reason:
            worth.append(change)
            continue
        left.append((change, reason))
        if change.rewrite == "cache":
            smaller = (each for each in find_earlier_caches(recipe, use) if not too_large(each, before, recipe, use))
            worth += itertools.islice(smaller, 1)
    return worth, left


def too_large(change: Change, before: Sample, recipe: Recipe, use: DatasetUse) -> str:
    """Return why a cache does not fit into memory; empty where it does, or nothing is cached there."""
    kept = find_kept(recipe, change.edits)
    if not kept:
        return ""
    stages = stages_of(before, recipe, use)
    sizes = [
        held.element_bytes * counted.elements
        for each in kept
        if (held := stages.get(each.call)) is not None
        and (counted := stages.get(each.after)) is not None
        and held.element_bytes is not None
        and counted.elements is not None
    ]
    if len(sizes) < len(kept):
        return SIZE_UNKNOWN
    full = find_no_room(sum(sizes), usable_memory_bytes())
    return "" if full is None else f"{full.reason} --change snapshot keeps the elements in files instead."


_OF_THREADS = (
    "The model expects nothing of more threads here: what runs in them computes, and there are as many as cores."
)
_NEEDLESS = {
    "pool": _OF_THREADS,
    "parallel-python": _OF_THREADS,
    "workers": "The model expects nothing of more threads here.",
    "generator-batches": "The model expects nothing of fewer calls here: the generator's own work takes the time, not its calls.",
}
_UNKNOWN_BESIDE_ENDS = (
    "Where an epoch ends, Keras 2 may wait 5 s for threads, and whether they would save more is not known. {why}"
)
_ENDS_TOO_LONG = (
    "The model expects nothing of more threads here: where an epoch ends, Keras 2 may wait 5 s for them, which is counted in; longer "
    "epochs would change that."
)


def never_full(change: Change, before: Sample, recipe: Recipe, use: DatasetUse) -> str:
    """Return why a cache stays incomplete where the script takes a part of its data; empty where it does not."""
    kept = {each.after for each in find_kept(recipe, change.edits)}
    stages = stages_of(before, recipe, use)
    elements = {number: stage.elements for number, stage in stages.items() if stage.elements is not None}
    return _left_out_by_zip(kept, elements, recipe, use) or _left_out_by_take(kept, elements, recipe, use)


NO_SMALLER = "What the function is given is no smaller than what it makes, so there would not be less to copy."


def no_smaller(change: Change, before: Sample, recipe: Recipe, use: DatasetUse) -> str:
    """Return why the training step need not call a function; empty where that spares bytes, or something else is changed."""
    stages = stages_of(before, recipe, use)
    for call in (edit.call for edit in change.edits if isinstance(edit, IntoStep)):
        sizes = [stages[number].element_bytes for number in (call, *recipe.call(call).inputs) if number in stages]
        if len(sizes) != 2 or sizes[0] is None or sizes[1] is None or sizes[1] >= sizes[0]:
            return NO_SMALLER
    return ""


def _left_out_by_zip(kept: Set[int], elements: Mapping[int, int], recipe: Recipe, use: DatasetUse) -> str:
    """Say that ``zip`` ends before what is kept does; empty where it does not, or that is not known."""
    for call in recipe.upstream(use.call, inside=False):
        for taken in call.inputs if call.method == "zip" else ():
            read, there = elements.get(call.number), elements.get(taken)
            above = list(
                itertools.takewhile(lambda each: each.number not in kept, recipe.upstream(taken, inside=False))
            )
            is_kept = not kept.isdisjoint(each.number for each in recipe.upstream(taken))
            is_kept = is_kept and all(each.method != "repeat" for each in above)
            if is_kept and read is not None and there is not None and read < there:
                return f"zip reads {read:,} of {there:,} elements; the cache is never full."
    return ""


def _left_out_by_take(kept: Set[int], elements: Mapping[int, int], recipe: Recipe, use: DatasetUse) -> str:
    """Say that ``take`` ends before one epoch does of what is kept and repeated; empty where it does not."""
    calls = Chain(recipe, use).calls
    own = next((place for place, call in enumerate(calls) if call.number in kept), None)
    if not kept or (own is None and calls[0].method != "zip"):
        return ""
    repeat = next((place for place in range((own or 0) + 1, len(calls)) if calls[place].method == "repeat"), len(calls))
    take = next((place for place in range(repeat + 1, len(calls)) if calls[place].method == "take"), None)
    if take is None:
        return ""
    epoch, taken = elements.get(calls[repeat - 1].number), elements.get(calls[take].number)
    sizes = [call.arguments.get("batch_size") for call in calls[repeat:take] if call.method.endswith("batch")]
    if taken is None or epoch is None or not all(isinstance(size, int) for size in sizes):
        return "Whether the script takes a whole pass over the data, so that a cache becomes full, is not known."
    examples = taken * math.prod(int(size or 1) for size in sizes)
    return "" if examples >= epoch else f"The script takes {examples:,} of {epoch:,} elements; the cache is never full."


def stages_of(before: Sample, recipe: Recipe, use: DatasetUse) -> dict[int, StageSize]:
    """Return what was measured of each call, by its number."""
    numbers = (call.number for call in recipe.upstream(use.call, inside=False))
    return dict(zip(numbers, before.stages, strict=False))


def needless(change: Change, recipe: Recipe, run: ScriptRun | Unavailable) -> str:
    """Return why more threads, or fewer calls, are not worth a try; empty where they are, or something else is changed."""
    if change.rewrite not in _NEEDLESS:
        return ""
    has_ends = change.rewrite == "workers" and is_of_keras_2(recipe)
    found = run if isinstance(run, Unavailable) else predict_change(run, change.edits)
    if found == Unavailable(ENDS_UNKNOWN):
        return ENDS_UNKNOWN
    if isinstance(found, Unavailable):
        return _UNKNOWN_BESIDE_ENDS.format(why=found.reason) if has_ends else ""
    if found.high_percent >= WORTH_PERCENT:
        return ""
    return _ENDS_TOO_LONG if has_ends else _NEEDLESS[change.rewrite]
