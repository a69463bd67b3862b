"""Which options mattered in a search: how much of the differences between the configurations that raced each explains."""

import math
from collections.abc import Sequence

import numpy as np

from pipeline_lab.comparison.differences import Difference, find_differences
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.tuning.history import Proposed, rank_configurations
from pipeline_lab.tuning.search_result import RecordedSearch, Tuning
from pipeline_lab.tuning.space import START

FEWEST = 3
NOT_LOOKED_AT = frozenset({"name", "schema_version"})


@dataclass(frozen=True)
class OptionEffect:
    """One option of the search, or several that were only changed together.

    Attributes:
        paths: Of the options, such as ``pipeline.map.num_parallel_calls``.
        share: Part of the variance of the logarithmic times that the values explain by themselves, 0 to 1; corrected for their
            number, since many values explain few configurations by chance (epsilon squared: Kelley, PNAS 21, 1935).
        values: The values, each with the geometric mean of the times of the configurations that had it, over the reference's; the
            fastest first.
        best: The value of the configuration that leads.
        configurations: How many configurations that is from.
    """

    paths: tuple[str, ...]
    share: float
    values: tuple[tuple[str, float], ...]
    best: str
    configurations: int


def find_effects(tuning: RecordedSearch) -> tuple[OptionEffect, ...] | Unavailable:
    """Return the options that differ between the configurations that raced, the most important one first."""
    if not isinstance(tuning, Tuning):
        return Unavailable("The changes of a script are all different; what each adds is said where it raced.")
    picks = {
        pick.configuration: pick.options for step in tuning.steps if isinstance(step, Proposed) for pick in step.picks
    }
    picks[START] = tuning.options.start.model_dump(mode="json")
    rows = [row for row in rank_configurations(tuning.steps).rows if row.ratio and row.configuration in picks]
    if len(rows) < FEWEST:
        return Unavailable(
            f"What mattered shows from {FEWEST} configurations on that raced; {len(rows)} did. Search with a larger budget."
        )
    logs = np.log([row.ratio or 1.0 for row in rows])
    total = float(((logs - logs.mean()) ** 2).sum())
    if not total:
        return Unavailable("All configurations that raced take the same time, so no option mattered.")
    documents = [picks[row.configuration] for row in rows]
    differences = find_differences(documents, [{}] * len(rows), [None] * len(rows)).options
    together: dict[tuple[int, ...], list[Difference]] = {}
    for each in differences:
        if each.path.rpartition(".")[2] not in NOT_LOOKED_AT:
            together.setdefault(tuple(each.values.index(value) for value in each.values), []).append(each)
    effects = [_effect(options, logs, total) for values, options in together.items() if len(set(values)) < len(values)]
    if not effects:
        return Unavailable(
            "No value of an option raced twice, so what mattered cannot be told; search with a larger budget."
        )
    if not any(effect.share for effect in effects):
        return Unavailable("No option explains more of the differences than chance would; search with a larger budget.")
    return tuple(sorted(effects, key=lambda effect: -effect.share))


def _effect(options: Sequence[Difference], logs: np.ndarray, total: float) -> OptionEffect:
    """Say what options explain whose values go together, the leading configuration first."""
    values = [
        ", ".join("–" if one is None else one for one in each)
        for each in zip(*(each.values for each in options), strict=True)
    ]
    groups = {value: logs[[one == value for one in values]] for value in dict.fromkeys(values)}
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups.values())
    share = max(0.0, 1.0 - within / (len(logs) - len(groups)) * (len(logs) - 1) / total)
    means = sorted(((value, math.exp(float(group.mean()))) for value, group in groups.items()), key=lambda one: one[1])
    paths = tuple(each.path for each in options)
    return OptionEffect(paths, share, tuple(means), values[0], len(values))
