"""Options with stages, pipeline or workload changed; and the change that answers a remark on a pipeline's order.

An edit returns None where the changed options would not be valid.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.stages.stage_values import Remark

Document = dict[str, Any]
Stages = list[Document]


def edit_stages(
    options: RunOptions, change: Callable[[Stages], Iterable[Document]], **pipeline: Any
) -> RunOptions | None:
    """Return options with other stages and, where they are given, other fields of the pipeline."""
    document = options.model_dump(mode="json")
    stages = list(change([dict(stage) for stage in document["pipeline"]["stages"]]))
    document["pipeline"] = {**document["pipeline"], "stages": stages, **pipeline}
    return _read(document)


def with_cache(options: RunOptions, functions: Sequence[str], where: str | None) -> RunOptions | None:
    """Return options with the reader, some functions, a cache and then all others; an older cache goes.

    Args:
        options: To change.
        functions: Stages that the cache keeps the results of; they move to the reader in the order that they have.
        where: ``memory`` or ``file``; None for no cache at all.
    """

    def change(stages: Stages) -> Stages:
        others = [stage for stage in stages[1:] if stage["stage"] != "cache"]
        if where is None:
            return [stages[0], *others]
        kept = [stage for stage in others if stage["stage"] in functions]
        rest = [stage for stage in others if stage["stage"] not in functions]
        return [stages[0], *kept, {"stage": "cache", "where": where}, *rest]

    return edit_stages(options, change)


def with_whole_batches(options: RunOptions, functions: Sequence[str]) -> RunOptions | None:
    """Return options in which these functions come after ``batch``, so that each call sees a whole batch.

    None where there is no ``batch``, or where views are made, which are examples of their own from then on.
    """
    if options.pipeline.find("batch") is None or "views" in functions:
        return None

    def change(stages: Stages) -> Stages:
        moved = [stage for stage in stages if stage["stage"] in functions]
        others = [stage for stage in stages if stage["stage"] not in functions]
        place = next(index for index, stage in enumerate(others) if stage["stage"] == "batch") + 1
        return [*others[:place], *moved, *others[place:]]

    return edit_stages(options, change)


def set_stage(options: RunOptions, index: int, **values: Any) -> RunOptions | None:
    """Return options with fields of one stage changed."""

    def change(stages: Stages) -> Stages:
        stages[index] |= values
        return stages

    return edit_stages(options, change)


def set_pipeline(options: RunOptions, **values: Any) -> RunOptions | None:
    """Return options with fields of the pipeline changed."""
    return edit_stages(options, lambda stages: stages, **values)


def set_workload(options: RunOptions, **values: Any) -> RunOptions | None:
    """Return options with fields of the workload changed."""
    document = options.model_dump(mode="json")
    document["workload"] |= values
    return _read(document)


def _read(document: Document) -> RunOptions | None:
    try:
        return read_options(document)
    except OptionsError:
        return None


OrderFix = Callable[[RunOptions, int], RunOptions | None]


def fix_order(options: RunOptions, finding: Remark) -> RunOptions | None:
    """Return options that resolve a finding; None where there is not exactly one way."""
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
