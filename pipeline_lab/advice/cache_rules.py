"""Rules about keeping what was made once: caches in memory where they fit, else on disk, never above anything random.

What to do about the remarks on a pipeline's order: for each kind that has one answer, the changed options.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pipeline_lab.advice.proposals import (
    CAREFUL,
    SAFE,
    Case,
    Proposal,
    Rule,
    Stages,
    edit_stages,
    set_pipeline,
    set_stage,
    with_cache,
)
from pipeline_lab.advice.stage_costs import full_cache
from pipeline_lab.advice.step_terms import amount_behind, example_bytes
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Remark
from pipeline_lab.units import format_bytes, format_duration

FITS_SHARE = 0.8
"""Part of the memory for buffers that a cache may take."""


def cache(case: Case) -> Iterator[Proposal]:
    """Cache the elements after the last stage that does the same every epoch."""
    stages = case.options.pipeline.stages
    if full_cache(case.options) is not None:
        return
    sizes = case.options.pipeline.batch_sizes
    kept = [
        stage
        for stage, size in zip(stages, sizes, strict=True)
        if stage.is_function and size is None and not stage.is_random(case.options.workload)
    ]
    first_random = next((stage for stage in stages if stage.is_function and stage not in kept), None)
    if first_random is not None:
        kept = [stage for stage in kept if stages.index(stage) < stages.index(first_random)]
    in_memory, on_disk = (_cached(case.options, kept, where) for where in ("memory", "file"))
    if in_memory is None or on_disk is None:
        return
    place = next(index for index, stage in enumerate(in_memory.pipeline.stages) if stage.stage == "cache")
    amount, size = amount_behind(in_memory, case.measured, place), example_bytes(in_memory, case.measured)[place]
    if amount is None or size is None or amount.is_endless:
        return
    saved = [case.times[stages.index(stage)] for stage in (stages[0], *kept)]
    behind = " and ".join(stage.stage for stage in (kept or stages[:1]))
    held_bytes = amount.examples * size
    memory = case.memory_of(in_memory)
    fits = case.ram_bytes is not None and memory is not None and memory <= FITS_SHARE * case.ram_bytes
    why = (
        f"Every epoch reads and processes the same {format_bytes(held_bytes)} again, "
        f"{format_duration(sum(time.work_ns for time in saved))} of thread time per batch; nothing before the cache is random."
    )
    effects = ["The first epoch is no faster."]
    if any(stage.buffered for stage in stages):
        effects.append("The shuffle buffer comes after the cache and holds a second copy.")
    room = "" if case.ram_bytes is None else f" of {format_bytes(case.ram_bytes)} for buffers"
    if fits:
        effects.append(f"The cache takes {format_bytes(held_bytes)} of memory{room}.")
        yield Proposal(f"Cache in memory after {behind}.", why, in_memory, tuple(effects), CAREFUL)
    else:
        effects.append(f"The cache takes {format_bytes(held_bytes)} on disk; memory{room} is too small.")
        yield Proposal(f"Cache on disk after {behind}.", why, on_disk, tuple(effects), CAREFUL)


def smaller_shuffle_elements(case: Case) -> Iterator[Proposal]:
    """Shuffle records before they are decoded."""
    stages, sizes = case.options.pipeline.stages, example_bytes(case.options, case.measured)
    for index, stage in enumerate(stages):
        before = [at for at in range(1, index) if stages[at].is_function]
        if stage.buffered is None or not before or any(each.fixes_order for each in stages[before[0] : index]):
            continue
        small, large = sizes[before[0] - 1], sizes[index]
        moved = edit_stages(case.options, partial(_moved, at=index, to=before[0]))
        own, other = (None if each is None else case.memory_of(each) for each in (case.options, moved))
        if small is None or large is None or own is None or other is None or other > own / 2:
            continue
        yield Proposal(
            f"Put shuffle before {stages[before[0]].stage}.",
            f"Its buffer holds examples of {format_bytes(large)}; before {stages[before[0]].stage} they take "
            f"{format_bytes(small)}.",
            moved,
            (f"Buffers take {format_bytes(other)} of memory instead of {format_bytes(own)}.",),
            SAFE,
            serves_sampling=True,
        )


CACHE_RULES: tuple[Rule, ...] = (cache, smaller_shuffle_elements)


def _cached(options: RunOptions, kept: Sequence[Stage], where: str) -> RunOptions | None:
    """Return options with a cache after the reader and the kept functions; None if that would change the data set."""
    if any(stage.is_part for stage in options.pipeline.stages):
        return None
    return with_cache(options, [stage.stage for stage in kept], where)


def _moved(stages: Stages, at: int, to: int) -> Stages:
    stages.insert(to, stages.pop(at))
    return stages


OrderFix = Callable[[RunOptions, int], RunOptions | None]


def fix_order(options: RunOptions, finding: Remark) -> RunOptions | None:
    """Return options without the trouble of a finding; None where there is no one answer to it."""
    found = ORDER_FIXES.get(finding.kind)
    return None if found is None or finding.stage is None else found(options, finding.stage)


def _add_prefetch(options: RunOptions, _: int) -> RunOptions | None:
    return edit_stages(options, lambda stages: [*stages, {"stage": "prefetch", "buffer_size": "autotune"}])


def _prefetch_last(options: RunOptions, _: int) -> RunOptions | None:
    def change(stages: Stages) -> Stages:
        place = next(index for index, stage in enumerate(stages) if stage["stage"] == "prefetch")
        return [*stages[:place], *stages[place + 1 :], stages[place]]

    return edit_stages(options, change)


def _parallel(options: RunOptions, index: int) -> RunOptions | None:
    return set_stage(options, index, num_parallel_calls="autotune")


def _wide_pool(options: RunOptions, index: int) -> RunOptions | None:
    calls = getattr(options.pipeline.stages[index], "num_parallel_calls", None)
    return set_pipeline(options, private_threadpool_size=calls)


def _cache_early(options: RunOptions, index: int) -> RunOptions | None:
    """Put a cache after the functions that do the same every epoch, before anything that shuffles or repeats."""
    stage = options.pipeline.stages[index]
    where = getattr(stage, "where", None)
    if where is None:  # a snapshot or a saved data set, which do not move alike
        return None
    kept: list[str] = []
    for each, size in zip(options.pipeline.stages, options.pipeline.batch_sizes, strict=True):
        if each.is_function:
            if size is not None or each.is_random(options.workload):
                break
            kept.append(each.stage)
    return with_cache(options, kept, where)


def _cache_before_shuffle(options: RunOptions, _: int) -> RunOptions | None:
    place = next((i for i, stage in enumerate(options.pipeline.stages) if stage.stage == "cache"), None)
    return None if place is None else _cache_early(options, place)


def _before(kind: str) -> OrderFix:
    """Move a stage right before the first one of a kind."""

    def move(options: RunOptions, index: int) -> RunOptions | None:
        def change(stages: Stages) -> Stages:
            place = next(at for at, stage in enumerate(stages) if stage["stage"] == kind)
            return [*stages[:place], stages[index], *stages[place:index], *stages[index + 1 :]]

        return edit_stages(options, change)

    return move


ORDER_FIXES: dict[str, OrderFix] = {
    "no-prefetch": _add_prefetch,
    "prefetch-not-last": _prefetch_last,
    "serial-stage": _parallel,
    "small-pool": _wide_pool,
    "frozen-augmentation": _cache_early,
    "endless-cache": _cache_early,
    "frozen-order": _cache_before_shuffle,
    "mixed-epochs": _before("repeat"),
    "shuffled-batches": _before("batch"),
    "decoded-shuffle": _before("parse"),
}
