"""A change of options: in words, as a command that can be pasted, and as a diff of the pipeline's source."""

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline_lab.comparison.differences import find_differences
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.setting import write_stages
from pipeline_lab.pipeline.source import render_source

NAME_LENGTH = 120
_NOT_SET = frozenset({"schema_version", "name"})


def option_changes(before: RunOptions, after: RunOptions) -> tuple[str, ...]:
    """Return what differs, a line for each option: ``pipeline.map.num_parallel_calls = 4 (was none)``."""
    documents = [before.model_dump(mode="json"), after.model_dump(mode="json")]
    differences = find_differences(documents, [{}, {}], [None, None])
    return tuple(
        f"{each.path} = {_value(each.values[1])} (was {_value(each.values[0])})" for each in differences.options
    )


def find_settings(before: RunOptions, after: RunOptions) -> tuple[str, ...]:
    """Return the change as ``--set`` takes it: ``PATH=VALUE`` each, which turn the one into the other, names apart."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    stages = list(_stage_settings(before, after))
    del old["pipeline"]["stages"], new["pipeline"]["stages"]
    others = (setting for key in new if key not in _NOT_SET for setting in _settings(key, old.get(key), new[key]))
    return (*stages, *others)


def write_command(run: str, settings: Sequence[str]) -> str:
    """Return the command that races a change against a run, as a shell takes it.

    Args:
        run: Its id or folder.
        settings: As :func:`find_settings` returns them.
    """
    return shlex.join(
        ["pipeline-lab", "what-if", run, "--race", *(word for each in settings for word in ("--set", each))]
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


def _stage_settings(before: RunOptions, after: RunOptions) -> Iterator[str]:
    """Yield fields of stages where the same stages stand in the same order, else all stages in one setting."""
    old, new = ([stage.model_dump(mode="json") for stage in each.pipeline.stages] for each in (before, after))
    kinds = [stage["stage"] for stage in old]
    if kinds != [stage["stage"] for stage in new]:
        yield write_stages(new)
        return
    for index, (kind, one, other) in enumerate(zip(kinds, old, new, strict=True)):
        place = kind if kinds.index(kind) == index else f"stages.{index}"
        yield from _settings(f"pipeline.{place}", one, other)


def _settings(path: str, old: object, new: object) -> Iterator[str]:
    """Yield a setting for each value below a path that differs; what has other keys is set as a whole."""
    if old == new:
        return
    if (
        isinstance(old, dict)
        and isinstance(new, dict)
        and old.keys() == new.keys()
        and not any("." in key for key in new)
    ):
        for key in new:
            yield from _settings(f"{path}.{key}", old[key], new[key])
    else:
        yield f"{path}={_text(new)}"


def _text(value: Any) -> str:
    """Write a value so that ``--set`` reads the same one: a text as it is, unless it would be read as JSON."""
    written = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return written
    try:
        json.loads(value)
    except ValueError:
        return value
    return written


def _value(text: str | None) -> str:
    return "none" if text in (None, "null") else text
