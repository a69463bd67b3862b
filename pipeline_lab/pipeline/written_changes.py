"""Changes as people write them on the command line: ``prefetch``, ``train.py:41 cache``, ``train.py:41 num_parallel_calls=8``."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from pipeline_lab.errors import OptionsError, did_you_mean
from pipeline_lab.pipeline.chain import Chain, said_at
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    NTH,
    THREADS,
    Change,
    Effect,
    Insert,
    Risk,
    SetArgument,
    SetTraining,
    Value,
    nth_of_line,
)
from pipeline_lab.pipeline.python_rewrites import place_pool
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe
from pipeline_lab.pipeline.rewrites import PARAMETERS, REWRITES, find_changes, find_earlier_caches, refuse_one_iterator

EFFECTS: dict[str, Effect] = {
    "num_parallel_calls": Effect.NOTHING,
    "num_parallel_reads": Effect.ORDER,
    "deterministic": Effect.ORDER,
    "cycle_length": Effect.ORDER,
    "block_length": Effect.ORDER,
    "steps_per_execution": Effect.NOTHING,
    "workers": Effect.NOTHING,
    "max_queue_size": Effect.NOTHING,
}
"""What setting an argument does to the examples; another one may alter them."""
_OF_BUFFER = {"prefetch": Effect.NOTHING, "shuffle": Effect.ORDER}
"""The same for the size of a call's buffer."""
_OF_TRAINING = ("steps_per_execution", "workers", "max_queue_size")


def parse_change(recipe: Recipe, text: str) -> Change:
    """Read a change as people write it on the command line.

    Args:
        recipe: Of the script.
        text: ``prefetch``, ``train.py:41 cache``, ``train.py:41 num_parallel_calls=8`` or ``steps_per_execution=8``; of a line with
            several calls, ``train.py:41#2 cache`` means the second one.

    Raises:
        OptionsError: It is none, or applies nowhere or at several places.
    """
    place, _, what = text.strip().rpartition(" ")
    name, is_set, value = what.partition("=")
    if is_set and name in _OF_TRAINING and not place:
        edit = SetTraining(name, _value(text, value))
        return Change("set", None, (edit,), EFFECTS[name], Risk.SOME, f"Set {what} for the training.")
    if is_set and name == POOL and not place:
        return _pool(recipe, _value(text, value), text)
    at = _calls_at(recipe, place.strip(), text)
    if is_set:
        return _setting(recipe, at, name, _value(text, value), text)
    if name not in REWRITES:
        raise OptionsError(
            f"{text!r}: there is no rewrite {name!r}; known are {', '.join(REWRITES)}.{did_you_mean(name, REWRITES)}"
        )
    numbers = {call.number for call in at}
    found = [
        change
        for change in find_changes(recipe)
        if change.rewrite == name and (not place or not numbers.isdisjoint(_about(change)))
    ]
    if not found and name == "cache":
        legal = [each for each in find_earlier_caches(recipe, recipe.trained) if each.call in numbers]
        if len(legal) == 1:
            return legal[0]
    if not found and name == "cache" and len(at) == 1:
        words = f"Cache the elements after {said_at(at[0])}, as requested: later epochs repeat the first one's."
        return Change(
            name, at[0].number, (Insert(at[0].number, "cache"),), Effect.CONTENT, Risk.HIGH, words, (), at[0].place
        )
    if not found and name == "one-iterator" and (refused := refuse_one_iterator(recipe, recipe.trained)) is not None:
        raise OptionsError(f"{text!r} cannot be made: {refused[1]}")
    if len(found) != 1:
        several = f"applies at {_places(recipe, [recipe.call(each.call) for each in found if each.call is not None])}; {_ONE_OF_THEM}"
        raise OptionsError(f"{text!r} {several if found else 'applies nowhere in the dataset that is trained on'}.")
    return found[0]


def _about(change: Change) -> set[int | None]:
    """Return the numbers of the calls that a change is about; one of what ``zip`` takes keeps elements of several."""
    return {change.call, *(edit.after for edit in change.edits if isinstance(edit, Insert))}


_ONE_OF_THEM = "put one of these places before it"


def _places(recipe: Recipe, calls: Sequence[DatasetCall]) -> str:
    """List the places of calls, those on the same line with their numbers."""
    lines = Counter(str(call.place) for call in {call.place: call for call in calls}.values())
    said = {
        f"{call.place}{NTH}{nth_of_line(recipe, call)} ({call.text})"
        if lines[str(call.place)] > 1
        else str(call.place): None
        for call in calls
        if call.place is not None
    }
    return ", ".join(said)


POOL = THREADS.rpartition(".")[2]


def _pool(recipe: Recipe, threads: Value, text: str) -> Change:
    if recipe.trained is None or type(threads) is not int or threads < 1:
        raise OptionsError(f"{text!r}: a pool has a number of threads of 1 or more, such as {POOL}=8.")
    found = place_pool(Chain(recipe, recipe.trained), threads)
    return REWRITES["pool"].change(found, recipe.trained.place)


def _calls_at(recipe: Recipe, place: str, text: str) -> list[DatasetCall]:
    if not place:
        return []
    written = re.fullmatch(rf"(.+):(\d+)(?:{NTH}(\d+))?", place)
    if written is None:
        raise OptionsError(
            f"{text!r}: a place is written FILE:LINE, such as train.py:41; the second call of that line is train.py:41#2."
        )
    file, line, nth = written.groups()
    at = [
        call
        for call in recipe.calls
        if call.place is not None
        and call.place.name_line == int(line)
        and PurePath(call.place.file).name == PurePath(file).name
        and (nth is None or nth_of_line(recipe, call) == int(nth))
    ]
    if not at:
        known = _places(recipe, [call for call in recipe.calls if call.place])
        raise OptionsError(f"{text!r}: no dataset is made at {place}; the places are {known or 'not known'}.")
    return at


def _setting(recipe: Recipe, at: list[DatasetCall], name: str, value: Value, text: str) -> Change:
    fitting = [call for call in at if name in PARAMETERS.get(call.method, ())]
    if not fitting:
        known = sorted({each for call in at for each in PARAMETERS.get(call.method, ())})
        where = f"; it takes {', '.join(known)}" if known else ""
        raise OptionsError(
            f"{text!r}: no call there takes {name}{where}."
            if at
            else f"{text!r}: put a place before it, such as train.py:41."
        )
    call = fitting[0]
    if any(each.place != call.place for each in fitting):
        raise OptionsError(f"{text!r} may mean {_places(recipe, fitting)}; {_ONE_OF_THEM}.")
    effect = (
        _OF_BUFFER[call.method]
        if name == "buffer_size" and call.method in _OF_BUFFER
        else EFFECTS.get(name, Effect.CONTENT)
    )
    if call.method == "interleave" and call.arguments.get("cycle_length") in (None, AUTOTUNE):
        effect = max(effect, Effect.ORDER, key=list(Effect).index)  # it then opens another number of files at a time
    risk = {Effect.NOTHING: Risk.LOW, Effect.ORDER: Risk.SOME, Effect.CONTENT: Risk.HIGH}[effect]
    return Change(
        "set",
        call.number,
        (SetArgument(call.number, name, value),),
        effect,
        risk,
        f"Set {name}={value} in {said_at(call)}.",
        place=call.place,
    )


def _value(text: str, value: str) -> Value:
    plain = {"true": True, "false": False, "none": None, "autotune": AUTOTUNE}
    if value.lower() in plain:
        return plain[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    if not value:
        raise OptionsError(f"{text!r}: a value is missing after =.")
    return value
