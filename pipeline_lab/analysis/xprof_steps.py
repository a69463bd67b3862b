"""Which of our steps XProf keeps, by the rules of its sources (step_events_to_steps_db.cc, step_intersection.cc)."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.steps import Steps

ENDS_DROPPED_BEYOND = 5
"""Of more steps than this XProf leaves out the first and the last, which the capture may have cut."""


@dataclass(frozen=True)
class KeptSteps:
    """What XProf keeps of the steps of one window.

    Attributes:
        count: How many steps it then has.
        reasons: Why these are fewer than ours, one sentence each.
        mean_ns: Our mean length of the kept steps, by host; empty if none is kept.
    """

    count: int
    reasons: tuple[str, ...]
    mean_ns: dict[str, float]


def kept_steps(steps: Steps) -> KeptSteps:
    """Apply XProf's rules to the steps that we found."""
    number, start, end = (tables.ints(steps.table, name) for name in ("step", "start_ns", "end_ns"))
    host = np.array(steps.table.column("host").to_pylist(), np.str_)
    hosts = sorted(set(host.tolist()))
    of_host = [np.unique(number[host == name]) for name in hosts]
    kept = reduce(np.intersect1d, of_host) if of_host else number
    reasons: list[str] = []
    if len(hosts) > 1:
        reasons.append(f"XProf counts what {len(hosts)} hosts do under one number as one step.")
    elif len(kept) < len(number):
        reasons.append("XProf makes one step of all that share a number, wherever and whenever they ran.")
    if len(kept) > ENDS_DROPPED_BEYOND:
        kept = kept[1:-1]
        reasons.append(f"Of more than {ENDS_DROPPED_BEYOND} steps XProf leaves out the first and the last.")
    mean_ns = {name: _mean((end - start)[(host == name) & np.isin(number, kept)]) for name in hosts}
    return KeptSteps(len(kept), tuple(reasons), mean_ns if len(kept) else {})


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0
