"""What differs between runs before anything was measured: options, environment, the pipeline's source.

Options are compared by path, in the words of ``--set``: a stage is named, not numbered, so that one stage more does
not make all later ones look changed.
"""

import difflib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from pipeline_lab.data_classes import dataclass

MAX_VALUE_LENGTH = 200
CONTEXT_LENGTH = 20
"""Characters before the first one that differs, of long values whose beginnings are alike."""
_NOT_OPTIONS = frozenset({"schema_version", "name"})


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all runs.

    Attributes:
        path: Where it stands, such as ``pipeline.prefetch.buffer_size``.
        values: Its value in each run as text, baseline first; None where a run does not have it. Long ones are cut where
            that hides no difference.
    """

    path: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class Differences:
    """All that differs.

    Attributes:
        options: By path; a run whose options are not known has None everywhere.
        environment: By path, in the same way.
        sources: For each candidate a unified diff of its source against the baseline's: empty if they are equal,
            None if one of the two is not known.
        unknown_options, unknown_environment: Indices of runs that carry none.
    """

    options: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    sources: tuple[str | None, ...]
    unknown_options: tuple[int, ...]
    unknown_environment: tuple[int, ...]


def find_differences(
    options: Sequence[Mapping[str, Any] | None],
    environments: Sequence[Mapping[str, Any]],
    sources: Sequence[str | None],
) -> Differences:
    """Compare the options of runs and what they ran on; one entry per run, baseline first."""
    baseline = sources[0]
    return Differences(
        options=_differing([_leaves_of_options(each) if each else {} for each in options]),
        environment=_differing([_leaves(each) for each in environments]),
        sources=tuple(_source_diff(baseline, source) for source in sources[1:]),
        unknown_options=tuple(index for index, each in enumerate(options) if not each),
        unknown_environment=tuple(index for index, each in enumerate(environments) if not each),
    )


def flatten(document: Mapping[str, Any]) -> dict[str, str]:
    """Return every leaf of a document by its dotted path, as text that is cut; a list of plain values is one leaf."""
    return {path: _cut(text) for path, text in _leaves(document).items()}


def flatten_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Return an options document by path in the same way, stages under their names and their order as one entry."""
    return {path: _cut(text) for path, text in _leaves_of_options(options).items()}


def _leaves(document: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in document.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(_leaves(value, f"{path}."))
        elif isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
            flat.update(_leaves({str(number): entry for number, entry in enumerate(value)}, f"{path}."))
        else:
            flat[path] = _text(value)
    return flat


def _leaves_of_options(options: Mapping[str, Any]) -> dict[str, str]:
    document = {key: value for key, value in options.items() if key not in _NOT_OPTIONS}
    pipeline = document.get("pipeline")
    if not isinstance(pipeline, Mapping) or not isinstance(pipeline.get("stages"), list | tuple):
        return _leaves(document)
    stages = [dict(stage) for stage in pipeline["stages"] if isinstance(stage, Mapping)]
    names = _stage_names([str(stage.pop("stage", "?")) for stage in stages])
    others = {key: value for key, value in pipeline.items() if key != "stages"}
    document["pipeline"] = {"stages": " → ".join(names), **dict(zip(names, stages, strict=True)), **others}
    return _leaves(document)


def _stage_names(kinds: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for kind in kinds:
        seen[kind] += 1
        names.append(kind if seen[kind] == 1 else f"{kind}#{seen[kind]}")
    return names


def _differing(flats: list[dict[str, str]]) -> tuple[Difference, ...]:
    """Return what differs among the runs that carry anything at all, in the order of first appearance."""
    known = [flat for flat in flats if flat]
    paths = dict.fromkeys(path for flat in known for path in flat)
    return tuple(
        Difference(path, _shorten(tuple(flat.get(path) for flat in flats)))
        for path in paths
        if len({flat.get(path) for flat in known}) > 1
    )


def _source_diff(baseline: str | None, candidate: str | None) -> str | None:
    if baseline is None or candidate is None:
        return None
    lines = difflib.unified_diff(
        baseline.splitlines(), candidate.splitlines(), "baseline/pipeline.py", "candidate/pipeline.py", lineterm=""
    )
    return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return _equal_entries(value) or json.dumps(value, ensure_ascii=False, default=str)


def _shorten(values: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Cut long values after their beginnings, or from where they begin to differ; leave them whole where both hide it."""
    long = [value for value in values if value is not None and len(value) > MAX_VALUE_LENGTH]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*long, strict=False))
    differ_at = sum(1 for _ in alike)
    for begin in (0, max(0, differ_at - CONTEXT_LENGTH)):
        cut = tuple(None if value is None else _cut(value, begin) for value in values)
        if len(set(cut)) == len(set(values)):
            return cut
    return values


def _cut(text: str, begin: int = 0) -> str:
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    text = f"…{text[begin:]}" if begin else text
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"


def _equal_entries(value: Any) -> str:
    """Write a list that repeats one number, such as equal file sizes, the way options accept it: ``8x512``."""
    if isinstance(value, list | tuple) and len(value) > 2 and all(each == value[0] for each in value):
        return f"{len(value)}x{value[0]}" if isinstance(value[0], int | float) else ""
    return ""
