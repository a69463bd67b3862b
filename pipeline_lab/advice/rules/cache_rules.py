"""Rules about keeping what was made once: caches in memory where they fit, else on disk, never above anything random."""

from collections.abc import Iterator, Sequence
from functools import partial

from pipeline_lab.advice.option_edits import Stages, edit_stages, with_cache
from pipeline_lab.advice.proposals import CAREFUL, SAFE, Case, Proposal, Rule
from pipeline_lab.advice.stage_costs import full_cache
from pipeline_lab.advice.step_terms import amount_behind, example_bytes
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.stage import Stage
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
