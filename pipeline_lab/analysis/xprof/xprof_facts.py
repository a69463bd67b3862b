"""What leads XProf to other numbers than ours: what a trace holds, and which of our steps it keeps.

By the rules of its sources (step_events_to_steps_db.cc, step_intersection.cc).
"""

from collections.abc import Iterable
from functools import reduce

import numpy as np

from pipeline_lab.analysis.activity.event_names import CAPTURED_FUNCTION, ITERATOR
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.schema import BoolArray, IntArray, Line, Plane, Trace

# XProf gives up grouping altogether when one of these event names occurs.
_LOOP_OPS = frozenset({"WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp"})
_EXECUTOR = "ExecutorState::Process"
_INPUT_PREFIX = "iteratorgetnext"


@dataclass(frozen=True)
class TraceFacts:
    """What a trace holds that leads XProf elsewhere.

    Attributes:
        loop: The event that shows a loop inside a step, with its iterations; empty if there is none.
        devices: Device planes with events.
        input_names_ns: Summed time of every host event that XProf takes for waiting, by name.
        has_tf_data: Whether tf.data's iterators left events.
    """

    loop: str
    devices: tuple[str, ...]
    input_names_ns: dict[str, int]
    has_tf_data: bool


def find_facts(traces: Iterable[Trace]) -> TraceFacts:
    """Collect the facts of all windows and hosts; one trace after another, so that they need not be in memory together."""
    loop, devices, names, has_tf_data = "", dict[str, None](), dict[str, int](), False
    for trace in traces:
        devices.update((plane.name, None) for plane in trace.device_planes if plane.event_count)
        host = trace.host_plane
        if host is not None:
            loop = loop or _find_loop(host)
            has_tf_data |= any(name.startswith(ITERATOR) for name in host.names)
            for name, total_ns in _input_names(host).items():
                names[name] = names.get(name, 0) + total_ns
    return TraceFacts(loop, tuple(devices), names, has_tf_data)


def counts_in_xprof(name: str) -> bool:
    """Say whether XProf takes a host event of this name for waiting."""
    return name.lower().startswith(_INPUT_PREFIX)


def _find_loop(host: Plane) -> str:
    """Say which event shows a loop, by the same events that XProf looks at; empty without one."""
    op = next((name for name in host.names if name in _LOOP_OPS), None)
    if op is not None:
        return op
    executor = host.name_mask(lambda name: name == _EXECUTOR)
    captured = host.name_mask(lambda name: name.startswith(CAPTURED_FUNCTION))
    if not executor.any():
        return ""
    tf_data = np.concatenate([_stat(line, captured, "id")[0] for line in host.lines])
    most = 0
    for line in host.lines:
        step, iteration = _stat(line, executor, "id", "iter_num")
        most = max(most, int(iteration[~np.isin(step, tf_data)].max(initial=0)))
    return f"{_EXECUTOR} with iter_num up to {most}" if most else ""


def _stat(line: Line, names: BoolArray, *stats: str) -> tuple[IntArray, ...]:
    """Return whole-number stats of a line's events of those names, events that lack one left out."""
    rows = line.rows_named(names)
    columns = [line.stats.ints(rows, stat) for stat in stats]
    known = np.logical_and.reduce([known for _, known in columns])
    return tuple(values[known] for values, _ in columns)


def _input_names(host: Plane) -> dict[str, int]:
    """Return the summed time, ns, of each event name that XProf counts as waiting for input."""
    counted = host.name_mask(counts_in_xprof)
    totals = np.zeros(len(host.names), np.int64)
    if counted.any():
        for line in host.lines:
            rows = counted[line.name_index]
            np.add.at(totals, line.name_index[rows], line.duration_ns[rows])
    found: dict[str, int] = {}
    for index in np.flatnonzero(totals):
        found[host.names[index]] = found.get(host.names[index], 0) + int(totals[index])
    return found


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
