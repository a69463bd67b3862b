"""What to do about the remarks on a pipeline's order: for each kind that has one answer, the changed options."""

from collections.abc import Callable

from pipeline_lab.advice.cache_rules import is_random
from pipeline_lab.advice.edits import Stages, edit_stages, set_pipeline, set_stage, with_cache
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.finding import Finding
from pipeline_lab.workloads.registry import FUNCTION_STAGES

Cure = Callable[[RunOptions, int], RunOptions | None]


def cure(options: RunOptions, finding: Finding) -> RunOptions | None:
    """Return options without the trouble of a finding; None where there is no one answer to it."""
    found = CURES.get(finding.kind)
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
    """Put a cache behind the functions that do the same every epoch, before whatever shuffles or repeats."""
    stage = options.pipeline.stages[index]
    where = getattr(stage, "where", None)
    if where is None:  # a snapshot or a saved data set, which do not move alike
        return None
    kept: list[str] = []
    for each, size in zip(options.pipeline.stages, options.pipeline.batch_sizes, strict=True):
        if each.stage in FUNCTION_STAGES:
            if size is not None or is_random(each, options):
                break
            kept.append(each.stage)
    return with_cache(options, kept, where)


def _cache_before_shuffle(options: RunOptions, _: int) -> RunOptions | None:
    place = next((i for i, stage in enumerate(options.pipeline.stages) if stage.stage == "cache"), None)
    return None if place is None else _cache_early(options, place)


def _before(kind: str) -> Cure:
    """Move a stage right before the first one of a kind."""

    def move(options: RunOptions, index: int) -> RunOptions | None:
        def change(stages: Stages) -> Stages:
            place = next(at for at, stage in enumerate(stages) if stage["stage"] == kind)
            return [*stages[:place], stages[index], *stages[place:index], *stages[index + 1 :]]

        return edit_stages(options, change)

    return move


CURES: dict[str, Cure] = {
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
