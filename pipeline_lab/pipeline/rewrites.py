"""The rewrites of a script's pipelines: where each applies, which change it makes, what that does to the examples.

Each is declared once, in :data:`REWRITES`. A rewrite looks at the chain of calls behind the trained dataset and yields
changes (:mod:`pipeline_lab.pipeline.changes`); it never offers what is known to alter the content. What only a run can tell,
such as whether a function also takes whole batches, is left to the proof.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.cache_rewrites import (
    SIZED,
    find_cache,
    find_cache_before_shuffle,
    find_cache_python,
    find_cache_shuffled,
    find_cache_slip,
    find_caches,
    find_disk_cache,
    find_snapshot,
    find_split_cache,
)
from pipeline_lab.pipeline.chain import OF_PYTHON, Chain, RewritePlace, is_random, is_seeded, said_at
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    Change,
    Effect,
    Insert,
    MoveBefore,
    Rename,
    Risk,
    SetArgument,
    SetTraining,
    made_at_one_place,
    told_apart,
)
from pipeline_lab.pipeline.iterator_rewrites import (
    ONE_ITERATOR,
    find_autotuner_off,
    find_one_iterator,
    place_for_all_epochs,
    why_not_one_iterator,
)
from pipeline_lab.pipeline.python_rewrites import (
    find_generator_batches,
    find_parallel_python,
    find_wider_pool,
    find_workers,
)
from pipeline_lab.pipeline.recipe import TRAINING, DatasetCall, DatasetUse, Recipe, SourcePlace
from pipeline_lab.pipeline.stacked_functions import StackedFunction, find_stacked
from pipeline_lab.pipeline.step_rewrites import find_into_step

PARAMETERS: dict[str, tuple[str, ...]] = {
    "map": ("map_func", "num_parallel_calls", "deterministic"),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls", "deterministic"),
    "flat_map": ("map_func",),
    "batch": ("batch_size", "drop_remainder", "num_parallel_calls", "deterministic"),
    "padded_batch": ("batch_size", "padded_shapes", "padding_values", "drop_remainder"),
    "shuffle": ("buffer_size", "seed", "reshuffle_each_iteration"),
    "prefetch": ("buffer_size",),
    "cache": ("filename",),
    "repeat": ("count",),
    "snapshot": ("path",),
    "TFRecordDataset": ("filenames", "compression_type", "buffer_size", "num_parallel_reads"),
}
"""Parameters of the calls that changes can be about, in their order; of a class without ``self``."""

STEPS_AT_ONCE = 8
"""Steps that one call runs: the Python between steps is then an eighth, and callbacks still come several times a second."""


@dataclass(frozen=True)
class Rewrite:
    """One kind of change.

    Attributes:
        key: Its name on the command line.
        title: For people.
        why: What it is good for, a sentence.
        effect: What it does to the examples.
        risk: How much has to be thought over.
        find: Yields where it applies: the call, or None for the training, the edits, the sentence, and what else changes.
        in_branches: It may also apply to what ``zip`` takes: each of these then gives the same as before.
    """

    key: str
    title: str
    why: str
    effect: Effect
    risk: Risk
    find: Callable[[Chain], Iterator[RewritePlace]]
    in_branches: bool = False

    def changes(self, chain: Chain) -> Iterator[Change]:
        for found in self.find(chain):
            yield self.change(found, chain.use.place)

    def change(self, found: RewritePlace, used_at: SourcePlace | None) -> Change:
        """Return the change at a place of a dataset that is read there."""
        call = None if found.call is None else found.call.number
        place = used_at if found.call is None else found.call.place
        return Change(self.key, call, found.edits, self.effect, self.risk, found.words, found.also, place)


def _prefetch(chain: Chain) -> Iterator[RewritePlace]:
    ends = list(reversed(chain.calls))
    tail = next((call for call in ends if call.method not in ("with_options", "take", "repeat")), None)
    if tail is None or tail.method in SIZED or not ends[0].is_direct:
        return
    last = ends[0]
    yield RewritePlace(
        last,
        (Insert(last.number, "prefetch", {"buffer_size": AUTOTUNE}),),
        f"Prefetch batches after {said_at(last)}, while the step runs.",
        ("A few batches more are held in memory.",),
    )


def _parallel(method: str, verb: str) -> Callable[[Chain], Iterator[RewritePlace]]:
    def find(chain: Chain) -> Iterator[RewritePlace]:
        for call in chain.direct:
            if call.method != method or call.arguments.get("num_parallel_calls") is not None:
                continue
            if method == "interleave" and call.arguments.get("cycle_length") in (None, AUTOTUNE):
                continue  # TensorFlow then opens another number of files at a time, which changes the order
            together = made_at_one_place(chain.recipe, call.number)
            kept = [each for one in together for each in _kept_by(one)]
            if not all(map(is_random, kept)) or is_seeded(kept):
                continue  # what it keeps, or the example that a seeded draw belongs to, would depend on the calls' order
            also: tuple[str, ...] = ()
            if any(each.python for each in together):
                also += ("The calls run in several Python threads; their function must not change what they share.",)
            if kept:
                also += ("Random draws go to other examples than before; their distribution is the same.",)
            yield RewritePlace(
                call,
                (SetArgument(call.number, "num_parallel_calls", AUTOTUNE),),
                f"{verb} {said_at(call)} in parallel.",
                also,
            )

    return find


def _kept_by(call: DatasetCall) -> list[str]:
    """Return what of a function's operations, beside Python, gives something else each time, or keeps a state."""
    return [each for each in call.stateful if each not in OF_PYTHON or not call.python]


def _parallel_draws(chain: Chain) -> Iterator[RewritePlace]:
    for call in chain.direct:
        kept, given = _kept_by(call), call.arguments.get("num_parallel_calls")
        if call.method == "map" and given is None and is_seeded(kept) and all(map(is_random, kept)):
            yield RewritePlace(
                call,
                (SetArgument(call.number, "num_parallel_calls", AUTOTUNE),),
                f"Run {said_at(call)} in parallel, though a seed is set: its random draws then go to other examples each time.",
            )


def _batch_first(chain: Chain) -> Iterator[RewritePlace]:
    """Let a function see whole batches; whether it can is for the proof to tell."""
    for mapped, batched in zip(chain.direct, chain.direct[1:], strict=False):
        if (
            mapped.method == "map"
            and batched.method == "batch"
            and batched.inputs == (mapped.number,)
            and OF_PYTHON.issuperset(mapped.stateful)
        ):
            stacked = _stacked(chain, mapped)
            and_stack = "" if stacked is None else f", and stack along the last axis in {stacked.name}"
            yield RewritePlace(
                batched,
                (MoveBefore(batched.number, mapped.number, stacked=stacked),),
                f"Batch before {said_at(mapped)}, so that its function is called once per batch{and_stack}.",
                ("The function then sees batches: it has to treat each example as before, which the proof checks.",),
            )


def _stacked(chain: Chain, mapped: DatasetCall) -> StackedFunction | None:
    """Return a map's function where it stacks the values of one example; None where another line may map it over single ones."""
    given = mapped.arguments.get("map_func")
    file = given.get("file", "") if isinstance(given, dict) else ""
    text = chain.recipe.text(file)
    others = (each for each in chain.recipe.calls if each.arguments.get("map_func") == given)
    if not isinstance(given, dict) or text is None or any(each.place != mapped.place for each in others):
        return None
    if chain.recipe.may_use(file, given["function"].rpartition(".")[2]):
        return None
    return find_stacked(text, file, given["function"], given["line"])


def _shuffle_first(chain: Chain) -> Iterator[RewritePlace]:
    for mapped, shuffled in zip(chain.direct, chain.direct[1:], strict=False):
        is_next = mapped.method == "map" and shuffled.method == "shuffle" and shuffled.inputs == (mapped.number,)
        if is_next and not mapped.stateful and not mapped.python:
            yield RewritePlace(
                shuffled,
                (MoveBefore(shuffled.number, mapped.number),),
                f"Shuffle before {said_at(mapped)}, so that the buffer holds what the function has not made larger yet.",
            )


def _shuffle_examples(chain: Chain) -> Iterator[RewritePlace]:
    for batched, shuffled in zip(chain.direct, chain.direct[1:], strict=False):
        if batched.method == "batch" and shuffled.method == "shuffle" and shuffled.inputs == (batched.number,):
            yield RewritePlace(
                shuffled,
                (MoveBefore(shuffled.number, batched.number),),
                f"Shuffle before {said_at(batched)}: after it whole batches change places, and their examples stay together.",
                ("The buffer then holds single examples; a larger one mixes as far as before.",),
            )


def _interleave_files(chain: Chain) -> Iterator[RewritePlace]:
    for call in chain.direct:
        of_windows = any(chain.recipe.call(number).method == "window" for number in call.inputs)  # which are no files
        is_plain = call.inner is not None and not call.stateful and not call.python
        if call.method == "flat_map" and is_plain and not of_windows:
            yield RewritePlace(
                call,
                (Rename(call.number, "interleave"), SetArgument(call.number, "num_parallel_calls", AUTOTUNE)),
                f"Read several files at a time in {said_at(call)}.",
            )
        elif (
            call.method == "TFRecordDataset"
            and call.arguments.get("num_parallel_reads") is None
            and _is_many(call.arguments.get("filenames"))
        ):
            yield RewritePlace(
                call,
                (SetArgument(call.number, "num_parallel_reads", AUTOTUNE),),
                f"Read several files at a time in {said_at(call)}.",
            )


def _is_many(files: Any) -> bool:
    return isinstance(files, dict) or (isinstance(files, list) and len(files) > 1)


def _any_order(chain: Chain) -> Iterator[RewritePlace]:
    for call in chain.direct:
        if (
            call.method in ("map", "interleave")
            and call.arguments.get("num_parallel_calls") is not None
            and call.arguments.get("deterministic") is not False
            and not call.stateful
        ):
            yield RewritePlace(
                call,
                (SetArgument(call.number, "deterministic", False),),
                f"Let {said_at(call)} hand on what is ready first.",
                ("The order differs from run to run.",),
            )


def _steps_per_execution(chain: Chain) -> Iterator[RewritePlace]:
    if chain.use.role == TRAINING:
        yield RewritePlace(
            None,
            (SetTraining("steps_per_execution", STEPS_AT_ONCE),),
            f"Run {STEPS_AT_ONCE} steps in one call of the training function.",
            (f"Callbacks and the progress bar hear of every {STEPS_AT_ONCE}th batch only.",),
        )


def refuse_one_iterator(recipe: Recipe, use: DatasetUse | None) -> tuple[Change, str] | None:
    """Return the change to one iterator for all epochs of a dataset that is read again and again, and why it cannot be made; None where it can."""
    if use is None or use.role not in ONE_ITERATOR or use.iterators < 2:
        return None
    chain = Chain(recipe, use)
    reason = why_not_one_iterator(chain)
    return (REWRITES["one-iterator"].change(place_for_all_epochs(chain), use.place), reason) if reason else None


_DECLARED = (
    Rewrite(
        "prefetch",
        "Prefetch at the end",
        "The next batches are made while the step runs.",
        Effect.NOTHING,
        Risk.LOW,
        _prefetch,
    ),
    Rewrite(
        "parallel-map",
        "Parallel calls of a map",
        "Several cores call the function; the order stays.",
        Effect.NOTHING,
        Risk.LOW,
        _parallel("map", "Run"),
        in_branches=True,
    ),
    Rewrite(
        "parallel-draws",
        "Parallel calls of a map that draws from a seed",
        "Several cores call the function; which example gets which random draw is then left to chance.",
        Effect.NOTHING,
        Risk.SOME,
        _parallel_draws,
        in_branches=True,
    ),
    Rewrite(
        "parallel-interleave",
        "Parallel reading",
        "Several files are read at once; the order stays.",
        Effect.NOTHING,
        Risk.LOW,
        _parallel("interleave", "Read"),
        in_branches=True,
    ),
    Rewrite(
        "parallel-python",
        "Parallel calls of Python",
        "Calls that wait, for a disk or a network, wait at the same time.",
        Effect.NOTHING,
        Risk.SOME,
        find_parallel_python,
    ),
    Rewrite(
        "pool",
        "Threads for parallel calls",
        "As many threads as calls run at once; without, one per core runs them all.",
        Effect.NOTHING,
        Risk.LOW,
        find_wider_pool,
    ),
    Rewrite(
        "cache-before-shuffle",
        "Map and cache before shuffle or repeat",
        "Later epochs skip the function; a shuffle draws as before.",
        Effect.NOTHING,
        Risk.SOME,
        find_cache_before_shuffle,
    ),
    Rewrite(
        "batch-first",
        "Batch before map",
        "The function is called once per batch instead of once per example.",
        Effect.NOTHING,
        Risk.LOW,
        _batch_first,
        in_branches=True,
    ),
    Rewrite(
        "cache",
        "Cache in memory",
        "Later epochs skip all that is before the cache.",
        Effect.NOTHING,
        Risk.SOME,
        find_cache,
    ),
    Rewrite(
        "split-cache",
        "Cache before a function's random draws",
        "Later epochs skip what the function does before it draws.",
        Effect.NOTHING,
        Risk.SOME,
        find_split_cache,
    ),
    Rewrite(
        "disk-cache",
        "Cache in files",
        "Later epochs and runs skip all that is before the cache.",
        Effect.NOTHING,
        Risk.SOME,
        find_disk_cache,
    ),
    Rewrite(
        "snapshot",
        "Keep elements in files",
        "Later epochs and runs skip all that is before the files, which may be larger than the memory.",
        Effect.NOTHING,
        Risk.SOME,
        find_snapshot,
    ),
    Rewrite(
        "cache-python",
        "Cache what Python makes",
        "Later epochs do without the Python before the cache, which has to make the same in each.",
        Effect.NOTHING,
        Risk.HIGH,
        find_cache_python,
    ),
    Rewrite(
        "cache-slip",
        "Cache before repeat",
        "A cache after an endless repeat is never complete.",
        Effect.NOTHING,
        Risk.LOW,
        find_cache_slip,
    ),
    Rewrite(
        "shuffle-first",
        "Shuffle before map",
        "The shuffle buffer holds smaller elements.",
        Effect.NOTHING,
        Risk.LOW,
        _shuffle_first,
    ),
    Rewrite(
        "steps-per-execution",
        "Several steps per call",
        "The Python between steps runs less often.",
        Effect.NOTHING,
        Risk.SOME,
        _steps_per_execution,
    ),
    Rewrite(
        "one-iterator",
        "One iterator for all epochs",
        "The iterator is not made anew between epochs.",
        Effect.NOTHING,
        Risk.SOME,
        find_one_iterator,
    ),
    Rewrite(
        "autotuner-off",
        "Autotuner off",
        "The end of an iterator does not wait for the thread that tunes it, which may sleep for as long as the epoch took.",
        Effect.NOTHING,
        Risk.SOME,
        find_autotuner_off,
    ),
    Rewrite(
        "into-step",
        "The last map in the training step",
        "Elements stay small until they are on the device: fewer bytes are batched, buffered and copied there.",
        Effect.STEP,
        Risk.SOME,
        find_into_step,
    ),
    Rewrite(
        "workers",
        "Threads for a PyDataset or Sequence",
        "Several batches are made at a time, in their order.",
        Effect.NOTHING,
        Risk.SOME,
        find_workers,
    ),
    Rewrite(
        "generator-batches",
        "A generator's elements by the batch",
        "Python is called once for many elements instead of once for each.",
        Effect.NOTHING,
        Risk.SOME,
        find_generator_batches,
        in_branches=True,
    ),
    Rewrite(
        "interleave",
        "Interleave files",
        "Several files are read at a time.",
        Effect.ORDER,
        Risk.SOME,
        _interleave_files,
    ),
    Rewrite(
        "cache-shuffled",
        "Cache what was shuffled before",
        "Later epochs skip all that is before the cache, and keep the order of the first one.",
        Effect.ORDER,
        Risk.SOME,
        find_cache_shuffled,
    ),
    Rewrite(
        "any-order",
        "Deterministic off",
        "A slow element does not hold up those that are ready.",
        Effect.ORDER,
        Risk.SOME,
        _any_order,
    ),
    Rewrite(
        "shuffle-examples",
        "Shuffle before batch",
        "Batches are made of other examples each time.",
        Effect.ORDER,
        Risk.SOME,
        _shuffle_examples,
    ),
)

ON_REQUEST = frozenset({"disk-cache", "parallel-draws", "snapshot", "steps-per-execution"})
"""Rewrites that leave files behind or that callbacks notice; they are written where they are asked for."""
REWRITES: dict[str, Rewrite] = {rewrite.key: rewrite for rewrite in _DECLARED}
"""Every rewrite by its key, the ones that change nothing first."""


def find_changes(recipe: Recipe, use: DatasetUse | None = None) -> tuple[Change, ...]:
    """Return every change that applies to a dataset that was read, one for each expression; none where nothing was read.

    Args:
        recipe: Of the script.
        use: The reading; by default the training's.
    """
    use = use or recipe.trained
    if use is None:
        return ()
    chain = Chain(recipe, use)
    found: dict[tuple[str, SourcePlace | int | None], Change] = {}
    for rewrite in REWRITES.values():
        for one in (chain, *(chain.branches if rewrite.in_branches else ())):
            for change in rewrite.changes(one):
                found.setdefault((rewrite.key, change.place or change.call), change)
    return told_apart(recipe, found.values())


def find_earlier_caches(recipe: Recipe, use: DatasetUse | None) -> tuple[Change, ...]:
    """Return the caches that may stand before the one that :func:`find_changes` returns, the nearest first."""
    if use is None:
        return ()
    chain = Chain(recipe, use)
    return told_apart(recipe, (REWRITES["cache"].change(found, use.place) for found in find_caches(chain)))[1:]
