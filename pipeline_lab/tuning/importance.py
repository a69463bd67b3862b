"""Which options mattered in a search: how much of the differences between the configurations that raced each explains."""

import math
from dataclasses import dataclass

import numpy as np

from pipeline_lab.comparison.differences import find_differences
from pipeline_lab.errors import Unavailable
from pipeline_lab.tuning.history import Proposed, rank_configurations
from pipeline_lab.tuning.search_result import RecordedSearch, Tuning
from pipeline_lab.tuning.space import START

FEWEST = 3
NOT_LOOKED_AT = frozenset({"name", "schema_version"})


@dataclass(frozen=True)
class OptionEffect:
    """One option of the search.

    Attributes:
        path: Of the option, such as ``pipeline.map.num_parallel_calls``.
        share: Part of the variance of the logarithmic times that its values explain by themselves, 0 to 1; options that were
            only changed together have the same share.
        values: Its values with the geometric mean of the times of the configurations that had it, over the reference's; the
            fastest first.
        configurations: How many configurations that is from.
    """

    path: str
    share: float
    values: tuple[tuple[str, float], ...]
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
    effects = [
        _effect(each.path, ["–" if value is None else value for value in each.values], logs, total)
        for each in differences
        if each.path.rpartition(".")[2] not in NOT_LOOKED_AT
    ]
    return tuple(sorted(effects, key=lambda effect: -effect.share))


def _effect(path: str, values: list[str], logs: np.ndarray, total: float) -> OptionEffect:
    groups = {value: logs[[one == value for one in values]] for value in dict.fromkeys(values)}
    between = sum(len(group) * float(group.mean() - logs.mean()) ** 2 for group in groups.values())
    means = sorted(((value, math.exp(float(group.mean()))) for value, group in groups.items()), key=lambda one: one[1])
    return OptionEffect(path, between / total, tuple(means), len(values))
