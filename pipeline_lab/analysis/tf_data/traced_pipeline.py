"""What one trace says about its tf.data pipeline (stages, waits, buffers over time, busy threads), and several together."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import is_tf_data_pool
from pipeline_lab.analysis.activity.intervals import IntArray, length_within, union
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.tf_data.critical_path import follow_waits, rank_shares
from pipeline_lab.analysis.tf_data.element_links import find_links
from pipeline_lab.analysis.tf_data.functions import find_functions
from pipeline_lab.analysis.tf_data.iterator_settings import NOT_TOLD, Calls, choose, ram_in_use
from pipeline_lab.analysis.tf_data.kinds import Role, is_any
from pipeline_lab.analysis.tf_data.stage_facts import calls_by_stage, describe_stages, merge_stages
from pipeline_lab.analysis.tf_data.tf_data import HISTORY_TABLE, POOL_TABLE, CriticalPath, PathShare, TfData
from pipeline_lab.analysis.tf_data.threads import NO_ITERATORS, Threads, read_threads
from pipeline_lab.analysis.tf_data.work import find_types, measure_work
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.units import BYTES_PER_MB


def read_history(host: str, stages: list[Calls]) -> pa.Table:
    """Return what the calls of each stage told, :data:`HISTORY_TABLE`; calls that told nothing are left out.

    Args:
        host: Name of the host.
        stages: The calls whose stats are read, stage by stage.
    """
    parts = [_history_of(host, stage, calls) for stage, calls in enumerate(stages) if len(calls.rows)]
    return tables.concat(HISTORY_TABLE, parts)


def _history_of(host: str, stage: int, calls: Calls) -> pa.Table:
    told = {
        "buffered_elements": calls.ints("buffered_elements"),
        "buffer_limit": np.maximum(calls.ints("buffer_limit"), calls.ints("buffer_size")),
        "parallelism": calls.ints("parallelism"),
        "ram_used_bytes": ram_in_use(calls),
        "ram_budget_bytes": _bytes(calls.ints("ram_budget_megabytes")),
    }
    kept = np.flatnonzero(np.any([values != NOT_TOLD for values in told.values()], axis=0))
    columns = {name: np.ma.masked_equal(values[kept], NOT_TOLD) for name, values in told.items()}
    return tables.build(
        HISTORY_TABLE, len(kept), host=host, window=0, start_ns=calls.start_ns[kept], stage=stage, **columns
    )


def _bytes(megabytes: IntArray) -> IntArray:
    return np.where(megabytes == NOT_TOLD, NOT_TOLD, megabytes * BYTES_PER_MB)


STRETCHES = 200
"""Rows per window."""


def measure_pool(host: str, threads: Threads, extent: tuple[int, int]) -> pa.Table:
    """Return how many threads of tf.data's own pool were busy over the window, :data:`POOL_TABLE`.

    TensorFlow up to 2.4 or so runs the functions on the pool of all ops: then there are no rows.
    """
    lines = [number for number, line in enumerate(threads.lines) if is_tf_data_pool(line.name)]
    if not lines:
        return tables.empty(POOL_TABLE)
    edges = np.linspace(*extent, STRETCHES + 1).astype(np.int64)
    stretches = np.stack((edges[:-1], edges[1:]), axis=1)
    stretches = stretches[stretches[:, 1] > stretches[:, 0]]
    busy_ns = np.zeros(len(stretches), np.int64)
    for number in lines:
        rows = threads.rows_of(number)
        runs = is_any(threads.role[rows], Role.PROCESS, Role.DONE)
        busy_ns += length_within(union(threads.start_ns[rows][runs], threads.end_ns[rows][runs]), stretches)
    start, end = stretches[:, 0], stretches[:, 1]
    return tables.build(
        POOL_TABLE,
        len(stretches),
        host=host,
        window=0,
        start_ns=start,
        end_ns=end,
        busy_threads=busy_ns / (end - start),
    )


NEVER_WAITED = Unavailable(
    "The job never waited for input in this trace, so nothing held it up: no IteratorGetNext event lies in its steps."
)


def analyse_pipeline(activity: Activity, steps: Steps | None) -> TfData:
    """Read the pipeline of one trace.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis; None if it has none.

    Raises:
        TraceIncompleteError: The trace has no tf.data events.
    """
    threads = read_threads(activity.host)
    assert activity.host is not None
    functions = find_functions(threads)
    links = find_links(threads, functions, activity.waits.moments)
    types = find_types(threads, activity.host.names)
    spans = None if steps is None else tables.intervals(steps.table)
    path = follow_waits(threads, functions, links, types, activity.busy, spans)
    start, end = activity.extent
    rows = calls_by_stage(threads)
    calls = [choose(threads, found) for found in rows]
    host = activity.trace.host
    roots = [calls[number] for number, place in enumerate(threads.places.places) if place.parent is None]
    return TfData(
        stages=describe_stages(threads, rows, calls, measure_work(threads, functions, links, types), end - start),
        critical_path=path if path.wait_ns else NEVER_WAITED,
        observed_ns=end - start,
        threadpool_size=_largest(root.last("threadpool_size") for root in roots),
        cpu_budget=_largest(root.last("cpu_budget") for root in roots),
        history=read_history(host, calls),
        pool=measure_pool(host, threads, (start, end)),
    )


def merge_pipelines(parts: Sequence[TfData]) -> TfData:
    """Put together what several traces say.

    Args:
        parts: Results whose tables are on one axis.

    Raises:
        TraceIncompleteError: There are none.
    """
    if not parts:
        raise TraceIncompleteError(NO_ITERATORS)
    stages, numbers = merge_stages([part.stages for part in parts])
    histories = [_renumber(part.history, new) for part, new in zip(parts, numbers, strict=True)]
    return TfData(
        stages=stages,
        critical_path=_merge_paths([part.critical_path for part in parts], numbers),
        observed_ns=sum(part.observed_ns for part in parts),
        threadpool_size=_largest(part.threadpool_size for part in parts),
        cpu_budget=_largest(part.cpu_budget for part in parts),
        history=tables.concat(HISTORY_TABLE, histories),
        pool=tables.concat(POOL_TABLE, [part.pool for part in parts]),
    )


def _merge_paths(
    paths: Sequence[CriticalPath | Unavailable], numbers: Sequence[Sequence[int]]
) -> CriticalPath | Unavailable:
    """Add up what caused the waits; ``numbers[k][s]`` is the merged number of the stage ``s`` of part ``k``."""
    wait_ns, exposed_ns = Counter[tuple[int | None, str]](), Counter[tuple[int | None, str]]()
    for path, new in zip(paths, numbers, strict=True):
        for share in () if isinstance(path, Unavailable) else path.shares:
            key = (None if share.stage is None else new[share.stage], share.what)
            wait_ns[key] += share.wait_ns
            exposed_ns[key] += share.exposed_ns
    if not wait_ns:
        return paths[0]
    shares = [PathShare(stage, what, wait_ns[stage, what], exposed_ns[stage, what]) for stage, what in wait_ns]
    return CriticalPath(sum(wait_ns.values()), sum(exposed_ns.values()), rank_shares(shares))


def _renumber(history: pa.Table, numbers: Sequence[int]) -> pa.Table:
    """Return a history with the merged stages' numbers; ``numbers[k]`` is that of the part's stage ``k``."""
    stage = np.array([*numbers, 0], np.int64)[tables.ints(history, "stage")]
    return tables.replace_column(history, "stage", stage)


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
