"""Changed options: one edit each, None where the result would not be allowed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions, read_options

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
    """Return options in which these functions stand behind ``batch``, so that each call sees a whole batch.

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
