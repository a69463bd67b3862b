"""How long each stage worked, waited, and kept threads busy with its function."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.analysis.tf_data.functions import Functions
from pipeline_lab.analysis.tf_data.kinds import Role
from pipeline_lab.analysis.tf_data.links import Links
from pipeline_lab.analysis.tf_data.operations import OperationTypes
from pipeline_lab.analysis.tf_data.results import Operation, Tally
from pipeline_lab.analysis.tf_data.threads import Threads

_OWN = (Role.ITERATOR, Role.PRODUCE, Role.CONSUME, Role.BACKGROUND_FUNCTION)
_RUNS = (Role.PROCESS, Role.DONE)


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

    def by_stage(rows: IntArray, values: IntArray) -> IntArray:
        stage = functions.stage[rows]
        known = stage >= 0
        return np.bincount(stage[known], values[known], minlength=stages).astype(np.int64)

    waiting = np.flatnonzero(links.ready_ns)
    blocked_ns = by_stage(
        waiting, np.minimum(links.ready_ns[waiting] - threads.start_ns[waiting], threads.own_ns[waiting])
    )
    own = np.flatnonzero(np.isin(threads.role, _OWN))
    started = threads.rows(Role.NESTED_FUNCTION)
    started = started[_lies_in(threads, started, (Role.BACKGROUND_FUNCTION,))]
    own = np.concatenate((own, started))
    outer_runs = functions.runs[~_lies_in(threads, functions.runs, _RUNS)]
    finished = np.flatnonzero(functions.end_ns >= 0)
    latency = (functions.end_ns - functions.start_ns)[finished].astype(np.float64)
    stage = functions.call_stage[finished]
    count = np.bincount(stage, minlength=stages)
    total = np.bincount(stage, latency, minlength=stages)
    squares = np.bincount(stage, latency * latency, minlength=stages)
    return Work(
        self_ns=by_stage(own, threads.own_ns[own]) - blocked_ns,
        blocked_ns=blocked_ns,
        function_calls=np.bincount(functions.call_stage, minlength=stages),
        on_thread_ns=by_stage(outer_runs, threads.end_ns[outer_runs] - threads.start_ns[outer_runs]),
        latency=tuple(map(Tally, count.tolist(), total.tolist(), squares.tolist())),
        operations=_operations(threads, functions, types),
    )


def _lies_in(threads: Threads, rows: IntArray, roles: tuple[Role, ...]) -> NDArray[np.bool_]:
    """Say which rows lie directly in an event of one of these roles."""
    around = threads.parent[rows]
    return (around >= 0) & np.isin(threads.role[around], roles)


def _operations(threads: Threads, functions: Functions, types: OperationTypes) -> tuple[tuple[Operation, ...], ...]:
    """Rank the ops of each stage's function by their time."""
    stages = len(threads.places.places)
    rows = threads.rows(Role.OPERATION)
    rows = rows[functions.stage[rows] >= 0]
    kinds = max(1, len(types.names))
    cell = functions.stage[rows].astype(np.int64) * kinds + types.of_row[rows]
    calls = np.bincount(cell, minlength=stages * kinds).reshape(stages, kinds)
    spent = np.bincount(cell, threads.own_ns[rows], minlength=stages * kinds).reshape(stages, kinds).astype(np.int64)
    return tuple(
        tuple(
            Operation(types.names[kind], int(calls[stage, kind]), int(spent[stage, kind]))
            for kind in np.argsort(-spent[stage], kind="stable").tolist()
            if calls[stage, kind]
        )
        for stage in range(stages)
    )
