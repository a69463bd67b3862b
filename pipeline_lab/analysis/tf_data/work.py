"""How long each stage worked, waited, and kept threads busy with its function, and which ops these threads ran."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.element_links import Links
from pipeline_lab.analysis.tf_data.functions import Functions
from pipeline_lab.analysis.tf_data.kinds import Role, is_any
from pipeline_lab.analysis.tf_data.tf_data import Operation, Tally
from pipeline_lab.analysis.tf_data.threads import IndexArray, Threads


@dataclass(frozen=True, eq=False)
class OperationTypes:
    """The types of ops in a trace.

    Attributes:
        names: ``DecodeJpeg``, ``PyFunc``, …
        of_name: Of every event name of the host the index of its op's type, 0 for other names, shape (n_names,).
    """

    names: tuple[str, ...]
    of_name: IndexArray


def find_types(threads: Threads, names: Sequence[str]) -> OperationTypes:
    """Tell the ops of a trace apart by their type.

    Args:
        threads: The trace's events.
        names: The event names of the host's plane.
    """
    types: dict[str, int] = {}
    of_name = np.zeros(len(names), np.int32)
    for name in np.unique(threads.name[threads.rows(Role.OPERATION)]).tolist():
        of_name[name] = types.setdefault(event_names.operation(names[name]) or names[name], len(types))
    return OperationTypes(tuple(types), of_name)


@dataclass(frozen=True, eq=False)
class Work:
    """Of every stage, shape (n_stages,); see :class:`results.Stage`."""

    self_ns: IntArray
    blocked_ns: IntArray
    function_calls: IntArray
    on_thread_ns: IntArray
    latency: tuple[Tally, ...]
    operations: tuple[tuple[Operation, ...], ...]


def measure_work(threads: Threads, functions: Functions, links: Links, types: OperationTypes) -> Work:
    """Add up each stage's time from its own part of every event."""
    stages = len(threads.places.places)
    own_ns, operations = np.zeros(stages, np.int64), np.zeros((stages, len(types.names), 2), np.int64)
    waiting_ns = np.zeros(len(links.row), np.int64)
    kernels.add_up(
        (threads.start_ns, threads.end_ns, threads.parent, threads.role, functions.stage),
        (threads.name, types.of_name),
        links.wait,
        own_ns,
        operations,
        waiting_ns,
    )

    def by_stage(rows: IntArray, values: IntArray) -> IntArray:
        stage = functions.stage[rows]
        known = stage >= 0
        return np.bincount(stage[known], values[known], minlength=stages).astype(np.int64)

    blocked_ns = by_stage(links.row, np.minimum(links.ready_ns - threads.start_ns[links.row], waiting_ns))
    outer_runs = functions.runs[~_lies_in_run(threads, functions.runs)]
    finished = np.flatnonzero(functions.end_ns >= 0)
    latency = (functions.end_ns - functions.start_ns)[finished].astype(np.float64)
    stage = functions.call_stage[finished]
    count = np.bincount(stage, minlength=stages)
    total = np.bincount(stage, latency, minlength=stages)
    squares = np.bincount(stage, latency * latency, minlength=stages)
    return Work(
        self_ns=own_ns - blocked_ns,
        blocked_ns=blocked_ns,
        function_calls=np.bincount(functions.call_stage, minlength=stages),
        on_thread_ns=by_stage(outer_runs, threads.end_ns[outer_runs] - threads.start_ns[outer_runs]),
        latency=tuple(map(Tally, count.tolist(), total.tolist(), squares.tolist())),
        operations=tuple(_rank(of_stage, types.names) for of_stage in operations),
    )


def _lies_in_run(threads: Threads, rows: IntArray) -> NDArray[np.bool_]:
    """Say which rows lie directly in the run of a function."""
    around = threads.parent[rows]
    return (around >= 0) & is_any(threads.role[around], Role.PROCESS, Role.DONE)


def _rank(operations: IntArray, names: tuple[str, ...]) -> tuple[Operation, ...]:
    """Rank the ops of a stage's function by their time; ``operations`` holds calls and time of each, shape (n, 2)."""
    ranked = np.argsort(-operations[:, 1], kind="stable")
    return tuple(Operation(names[kind], *operations[kind].tolist()) for kind in ranked if operations[kind, 0])
