"""The rewrites that keep elements for later epochs: where a cache, or files, may follow a script's calls."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipeline_lab.pipeline.chain import OF_PYTHON, Chain, Doubt, RewritePlace, is_random, said_at
from pipeline_lab.pipeline.changes import KEEPING, Insert, MoveBefore, Split, Value, made_at_one_place
from pipeline_lab.pipeline.function_parts import FunctionParts, split_function
from pipeline_lab.pipeline.recipe import DatasetCall

SIZED = frozenset({"prefetch", "with_options", "prefetch_to_device", "copy_to_device"})
"""Calls at the end of a chain that hand the same elements on."""
_PARTS = frozenset({"take", "take_while"})
"""Calls after which a cache would never be complete."""
_CUTTING = KEEPING | _PARTS
_IN_MEMORY = "All of them stay in memory from the first epoch on; only later epochs get faster."
"""What a cache of elements changes beside the time of a step."""
_LEAVING_OUT = frozenset({"take", "take_while", "skip", "shard"})
"""Calls after which a shuffled epoch holds other examples than the next one."""
_WORTH_KEEPING = frozenset({"map", "interleave", "flat_map", "filter", "TFRecordDataset", "from_generator"})
"""Calls whose work a cache saves."""


def _cache_place(chain: Chain, doubts: frozenset[Doubt] = frozenset()) -> DatasetCall | None:
    """Return the last call that a cache may follow; None if there is none, or one is there already.

    Args:
        chain: Behind the dataset.
        doubts: That are left to the user or the proof; exactly these.
    """
    return next(_cache_places(chain, doubts), None)


def _cache_places(chain: Chain, doubts: frozenset[Doubt] = frozenset()) -> Iterator[DatasetCall]:
    """Yield the calls that a cache may follow and saves something, the last one first; none where one is there already."""
    if any(call.method in KEEPING for call in chain.calls):
        return
    legal = [call for call in chain.ends if chain.doubts(call) == doubts and call.method not in SIZED | {"repeat"}]
    if not legal:  # a library's function may end with a prefetch
        legal = [call for call in chain.ends if chain.doubts(call) == doubts and not call.is_direct]
    for place in reversed(legal):
        is_cut = any(call.method in _PARTS for call in chain.until_repeated(place))
        if not is_cut and any(each.method in _WORTH_KEEPING for each in chain.upstream(place)):
            yield place


def find_cache(chain: Chain) -> Iterator[RewritePlace]:
    """Find the last place of a cache; where all of what is zipped cannot have one, those of what can, together."""
    last = next(find_caches(chain), None)
    found = [] if last is not None else _zipped_places(chain)
    if last is not None:
        yield last
    elif found:
        words = " and after ".join(map(said_at, found))
        edits = tuple(Insert(place.number, "cache") for place in found)
        yield RewritePlace(found[0], edits, f"Cache the elements after {words} in memory.", (_IN_MEMORY,))


def _zipped_places(chain: Chain) -> list[DatasetCall]:
    """Return the last place of a cache in each chain of what is zipped that can have one; none of what is behind another one."""
    until_repeated = chain.until_repeated(chain.calls[0])
    is_kept = any(call.method in KEEPING for call in chain.calls)
    if is_kept or chain.calls[0].method != "zip" or any(call.method in _PARTS for call in until_repeated):
        return []
    found: dict[int, DatasetCall] = {}
    for number in chain.calls[0].inputs:
        branch = Chain(chain.recipe, chain.use, number)
        places = [*itertools.islice(_cache_places(branch), 1)] or _zipped_places(branch)
        found |= {place.number: place for place in places}
    first = [each for each in found.values() if not any(below.number in found for below in chain.upstream(each)[1:])]
    read = {call.number for call in chain.recipe.upstream(chain.calls[0].number)}
    made = {one.number for each in first for one in made_at_one_place(chain.recipe, each.number)} & read
    return first if made == {each.number for each in first} else []


def find_caches(chain: Chain) -> Iterator[RewritePlace]:
    """Find every place of a cache, the last one, which saves most, first; those before it may take less memory."""
    for place in _cache_places(chain):
        yield _keep(place, "in memory", {}, _IN_MEMORY)


def find_disk_cache(chain: Chain) -> Iterator[RewritePlace]:
    place = _cache_place(chain)
    if place is not None:
        also = "The files have to be deleted when the data or the functions before them change."
        yield _keep(place, "in files beside the script", {"filename": "pipeline-cache"}, also)


def find_snapshot(chain: Chain) -> Iterator[RewritePlace]:
    """Files that TensorFlow finds again by the calls before them: those of other calls are left alone."""
    place = _cache_place(chain)
    if place is not None:
        yield RewritePlace(
            place,
            (Insert(place.number, "snapshot", {"path": "pipeline-snapshot"}),),
            f"Keep the elements after {said_at(place)} in files beside the script.",
            (
                "The first epoch writes them. When the calls before them change they are written again; when the data change, delete them.",
            ),
        )


def find_cache_shuffled(chain: Chain) -> Iterator[RewritePlace]:
    """Where all that is worth keeping comes after a shuffle, a cache keeps the order of the first epoch."""
    if _cache_place(chain) is not None or any(find_cache_before_shuffle(chain)):
        return
    place = _cache_place(chain, frozenset({Doubt.ORDER})) or _place_after_own_shuffle(chain)
    if place is not None:
        also = "Every epoch then has the order and the batches of the first one; shuffle() after the cache mixes them again."
        yield _keep(place, "in memory", {}, "All of them stay in memory from the first epoch on.", also)


def _place_after_own_shuffle(chain: Chain) -> DatasetCall | None:
    """Return the last call that a cache may follow after the script's first shuffle, and before another one."""
    for place in _cache_places(chain, frozenset({Doubt.OWN_SHUFFLE})):
        above = chain.calls[: chain.calls.index(place) + 1]
        shuffles = [index for index, call in enumerate(above) if call.method == "shuffle"]
        if len(shuffles) != 1:
            continue
        since = above[shuffles[0] + 1 :]
        leaves_out = any(call.method in _LEAVING_OUT or call.arguments.get("drop_remainder") for call in since)
        if not leaves_out and any(call.method in _WORTH_KEEPING for call in since):
            return place
    return None


def find_cache_python(chain: Chain) -> Iterator[RewritePlace]:
    """Only the proof, or the author, can tell whether Python returns the same each time."""
    if _cache_place(chain) is not None:
        return
    place = _cache_place(chain, frozenset({Doubt.PYTHON}))
    if place is not None:
        yield _keep(
            place, "in memory", {}, "All of them stay in memory from the first epoch on.", _doubt_python(chain, place)
        )
        return
    for mapped, over in _before_shuffle(chain, _is_python_given_the_same):
        yield _run_before(
            mapped, over, "All of it stays in memory from the first epoch on.", _doubt_python(chain, mapped)
        )


def _doubt_python(chain: Chain, place: DatasetCall) -> str:
    python = ", ".join(dict.fromkeys(str(part.function) for call in chain.upstream(place) for part in call.python))
    return (
        f"Where {python or 'its Python'} draws at random or shuffles, every epoch then sees the draws of the first one."
    )


def _keep(place: DatasetCall, where: str, arguments: dict[str, Value], *also: str) -> RewritePlace:
    edits = (Insert(place.number, "cache", arguments),)
    return RewritePlace(place, edits, f"Cache the elements after {said_at(place)} {where}.", also)


def find_cache_slip(chain: Chain) -> Iterator[RewritePlace]:
    """A cache after an endless repeat is never complete: it holds every epoch again."""
    for repeated, cached in zip(chain.direct, chain.direct[1:], strict=False):
        is_slip = repeated.method == "repeat" and cached.method == "cache" and cached.inputs == (repeated.number,)
        if (
            is_slip
            and repeated.arguments.get("count", -1) == -1
            and chain.is_pure(chain.recipe.call(repeated.inputs[0]))
        ):
            yield RewritePlace(
                cached,
                (MoveBefore(cached.number, repeated.number),),
                f"Cache before {said_at(repeated)}: after it the cache grows with every epoch and is never read.",
            )


def find_cache_before_shuffle(chain: Chain) -> Iterator[RewritePlace]:
    """Let a function run before a shuffle, which draws the same whatever it holds, or a repeat, so that a cache can keep what it makes.

    Where a cache fits before the shuffle as it is, that keeps less, and the two are rivals.
    """
    for mapped, over in _before_shuffle(chain, _is_the_same):
        also = "All of it stays in memory from the first epoch on; only later epochs get faster."
        yield _run_before(mapped, over, also)


def _run_before(mapped: DatasetCall, over: Sequence[DatasetCall], *also: str) -> RewritePlace:
    before = " and ".join(dict.fromkeys(f"the {call.method}" for call in over))
    return RewritePlace(
        mapped,
        (MoveBefore(mapped.number, over[0].number, "cache"),),
        f"Run {said_at(mapped)} before {before}, and cache what it makes in memory.",
        also,
    )


IsSame = Callable[[Chain, DatasetCall, Sequence[DatasetCall]], bool]
"""Says whether a map may move before calls and be cached, for one dataset of its expression."""


def _before_shuffle(chain: Chain, is_same: IsSame) -> Iterator[tuple[DatasetCall, tuple[DatasetCall, ...]]]:
    """Yield the maps that may move before the shuffle and repeat they follow, and these calls."""
    if any(call.method in KEEPING for call in chain.calls):
        return
    for mapped in chain.direct:
        over = _passed_on(chain, mapped) if mapped.method == "map" and mapped.inputs else ()
        if not over or any(call.method in _PARTS for call in _in_an_epoch(chain, over[0])):
            continue
        if all(is_same(chain, each, over) for each in made_at_one_place(chain.recipe, mapped.number)):
            yield mapped, over


def _passed_on(chain: Chain, mapped: DatasetCall) -> tuple[DatasetCall, ...]:
    """Return the calls directly before a map that hand elements on as they are, the first one first."""
    found: list[DatasetCall] = []
    below = chain.recipe.call(mapped.inputs[0])
    while below.method in ("shuffle", "repeat") and below in chain.direct:
        found.insert(0, below)
        below = chain.recipe.call(below.inputs[0])
    return tuple(found)


def _in_an_epoch(chain: Chain, call: DatasetCall) -> tuple[DatasetCall, ...]:
    """Return the calls before one, and those after it up to the one that begins with the data again."""
    return chain.calls[: chain.calls.index(call)] + chain.until_repeated(call)


def _is_the_same(chain: Chain, mapped: DatasetCall, over: Sequence[DatasetCall]) -> bool:
    """Say whether what a map makes is the same each time but for calls that it moves before, for one dataset of its expression."""
    return not mapped.stateful and not mapped.python and _is_given_the_same(chain, mapped, over)


def _is_python_given_the_same(chain: Chain, mapped: DatasetCall, over: Sequence[DatasetCall]) -> bool:
    """Say the same of a map of Python, of which nobody knows whether it makes the same of the same."""
    is_python = bool(mapped.python) and OF_PYTHON.issuperset(mapped.stateful)
    return is_python and _is_given_the_same(chain, mapped, over)


def _is_given_the_same(chain: Chain, mapped: DatasetCall, over: Sequence[DatasetCall]) -> bool:
    """Say whether a map is given the same each time, for one dataset of its expression.

    Where it is behind calls of the expressions that it moves before, what these take counts.

    Args:
        chain: Of a dataset of the expression.
        mapped: The map of this dataset.
        over: The calls that the map of the other one moves before, the first one first.
    """
    first = mapped
    for call in reversed(over):
        made = made_at_one_place(chain.recipe, call.number)
        below = next((each for each in made if first.inputs == (each.number,)), None)
        if below is None:
            first = mapped
            break
        first = below
    return _is_pure_before(Chain(chain.recipe, chain.use, mapped.number), first)


def find_split_cache(chain: Chain) -> Iterator[RewritePlace]:
    """Find functions that read and decode, say, and then draw at random: what they do before that is the same in every epoch."""
    for call in chain.direct:
        draws = all(is_random(each) and "(seeded)" not in each for each in call.stateful)
        given = call.arguments.get("map_func")
        if call.method != "map" or call.python or not call.stateful or not draws or not isinstance(given, dict):
            continue
        below = chain.recipe.call(call.inputs[0])
        shuffled = below if below.method == "shuffle" and below in chain.direct else None
        same = made_at_one_place(chain.recipe, call.number)
        if not all(_keeps_the_same(chain, each, () if shuffled is None else (shuffled,)) for each in same):
            continue
        if any(each.method in _CUTTING for each in chain.calls) or (parts := _parts_of(chain, given)) is None:
            continue
        yield RewritePlace(
            call,
            (Split(call.number, parts, None if shuffled is None else shuffled.number),),
            f"Split {parts.name} of {said_at(call)} before its random draws, and cache what the first part makes in memory"
            f"{'' if shuffled is None else ', before the shuffle'}.",
            ("All of that stays in memory from the first epoch on; only later epochs get faster.",),
        )


def _keeps_the_same(chain: Chain, mapped: DatasetCall, over: Sequence[DatasetCall]) -> bool:
    """Say whether what a map's first part is given is the same each time, and all of it is read, for one dataset of its expression."""
    calls = Chain(chain.recipe, chain.use, mapped.number).calls
    is_whole = not any(call.method in _CUTTING for call in calls)
    return is_whole and _is_given_the_same(chain, mapped, over)


def _parts_of(chain: Chain, given: dict[str, Any]) -> FunctionParts | None:
    """Return the parts of a function; None where it has none, or another file of the user's may use it as it is."""
    recipe, file, name = chain.recipe, given.get("file", ""), given["function"].rpartition(".")[2]
    text = recipe.text(file)
    if text is None or recipe.may_use(file, name):
        return None
    return split_function(text, name, given["line"])


def _is_pure_before(chain: Chain, call: DatasetCall) -> bool:
    return len(call.inputs) == 1 and chain.is_pure(chain.recipe.call(call.inputs[0]))
