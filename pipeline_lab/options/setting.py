"""One value of an options document changed by its path, as ``--set PATH=VALUE`` does."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_lab.errors import OptionsError, closest, did_you_mean
from pipeline_lab.options.explaining import unknown_option
from pipeline_lab.stages.registry import STAGE_TYPES, usual_place

FREE = ["workload", "arguments"]
"""The place where any name is allowed: arguments of the user's own function."""


def set_in(document: dict[str, Any], path: str, text: str) -> None:
    """Change one value of a whole document, in place.

    A stage is named by its number or by its name: ``pipeline.prefetch.buffer_size`` or
    ``pipeline.stages.3.buffer_size``.

    Raises:
        OptionsError: There is no such path.
    """
    *parents, last = path.split(".")
    holder: Any = document
    for step in parents:
        holder = _descend(document, holder, step, path)
    if isinstance(holder, list):
        holder[_list_index(holder, last, path)] = _parse_value(text)
    elif isinstance(holder, dict) and (last in holder or parents == FREE):
        holder[last] = _parse_value(text)
    else:
        raise OptionsError(unknown_option(path, list(_paths(document))))


def add_in(document: dict[str, Any], word: str) -> None:
    """Add a stage to a whole document at its usual place, as ``--add STAGE[=VALUE]`` does; the value is of its main field.

    Raises:
        OptionsError: There is no such stage, it is there already and may be there once only, or it takes no value.
    """
    kind, equals, value = word.partition("=")
    stages = document["pipeline"]["stages"]
    present = [stage["stage"] for stage in stages]
    if kind not in STAGE_TYPES:
        raise OptionsError(f"There is no stage {kind[:80]!r} to add.{did_you_mean(kind, STAGE_TYPES)}")
    model = STAGE_TYPES[kind]
    if kind in present and (model.once or model.at_end):
        field = next(iter(model.matters), "…")
        raise OptionsError(f"The pipeline has a {kind} already; change it with --set pipeline.{kind}.{field}=VALUE.")
    if equals and not model.matters:
        raise OptionsError(f"{kind} takes no value here; write --add {kind}, and --set pipeline.{kind}.FIELD=VALUE.")
    chosen = {model.matters[0]: _parse_value(value)} if equals else {}
    stages.insert(usual_place(kind, present), {"stage": kind, **chosen})


def _descend(document: dict[str, Any], holder: Any, step: str, path: str) -> Any:
    if isinstance(holder, list):
        return holder[_list_index(holder, step, path)]
    if isinstance(holder, dict) and step in holder:
        return holder[step]
    if isinstance(holder, dict) and "stages" in holder:
        stages = {stage["stage"]: stage for stage in reversed(holder["stages"])}
        if step in stages:
            return stages[step]
        if step in STAGE_TYPES or closest(step, stages) is None:
            has = ", ".join(stage["stage"] for stage in holder["stages"]) or "none"
            raise OptionsError(
                f"{path!r}: the pipeline has no stage {step!r}, only {has}{_how_to_add(step, holder['stages'])}."
            )
    raise OptionsError(unknown_option(path, list(_paths(document))))


def _how_to_add(kind: str, stages: list[dict[str, Any]]) -> str:
    """Return the setting that adds a stage, ready to paste; nothing for a stage that there is not."""
    if kind not in STAGE_TYPES:
        return ""
    place = usual_place(kind, [stage["stage"] for stage in stages])
    return "; add it with --set " + shlex.quote(write_stages([*stages[:place], {"stage": kind}, *stages[place:]]))


def write_stages(stages: Sequence[Mapping[str, Any]]) -> str:
    """Return the setting that sets all stages of a pipeline, without what has its default."""
    short = (
        STAGE_TYPES[one["stage"]].model_validate(one).model_dump(mode="json", exclude_defaults=True) for one in stages
    )
    chosen = [{"stage": one["stage"], **more} for one, more in zip(stages, short, strict=True)]
    return f"pipeline.stages={json.dumps(chosen, ensure_ascii=False)}"


def _list_index(holder: list[Any], step: str, path: str) -> int:
    if not step.isdecimal() or int(step) >= len(holder):
        raise OptionsError(f"{path!r}: {step!r} should be a number from 0 to {len(holder) - 1}.")
    return int(step)


def _paths(document: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the path of every value, stages by their names."""
    for name, value in document.items():
        path = f"{above}{name}"
        if name == "stages":
            for stage in value:
                yield from _paths(stage, f"{above}{stage['stage']}.")
        elif isinstance(value, dict):
            yield from _paths(value, f"{path}.")
        else:
            yield path


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
