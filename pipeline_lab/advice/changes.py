"""A change of options in words: by option, and as a diff of the pipeline's source."""

from pipeline_lab.comparison.differences import find_differences
from pipeline_lab.options.run import RunOptions
from pipeline_lab.pipeline.source import render_source

NAME_LENGTH = 120


def option_changes(before: RunOptions, after: RunOptions) -> tuple[str, ...]:
    """Return what differs, a line for each option: ``pipeline.map.num_parallel_calls = 4 (was none)``."""
    documents = [before.model_dump(mode="json"), after.model_dump(mode="json")]
    differences = find_differences(documents, [{}, {}], [None, None])
    return tuple(
        f"{each.path} = {_value(each.values[1])} (was {_value(each.values[0])})" for each in differences.options
    )


def source_diff(before: RunOptions, after: RunOptions) -> str:
    """Return the change of the pipeline's source as a unified diff; empty where it stays the same."""
    sources = [render_source(before), render_source(after)]
    return find_differences([None, None], [{}, {}], sources).sources[0] or ""


def name_change(before: RunOptions, after: RunOptions) -> str:
    """Return a short name for changed options: ``map.num_parallel_calls = 4, …``."""
    lines = [line.partition(" (was ")[0].partition(".")[2] for line in option_changes(before, after)]
    name = ", ".join(lines) or "the same again"
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def _value(text: str | None) -> str:
    return "none" if text in (None, "null") else text
