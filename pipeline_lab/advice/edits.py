"""Changed options: one edit each, None where the result would not be allowed."""

from collections.abc import Callable, Iterable
from typing import Any

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run import RunOptions, read_options

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
