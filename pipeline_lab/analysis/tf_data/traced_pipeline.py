"""What one trace says about its tf.data pipeline (stages, what each wait was spent on, buffers, busy threads), and several together."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import is_tf_data_pool
from pipeline_lab.analysis.activity.intervals import IntArray, intersect, length_within, subtract, union
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import Partly
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.element_links import NONE, Functions, Links, find_functions, find_links
from pipeline_lab.analysis.tf_data.iterator_places import is_shared
from pipeline_lab.analysis.tf_data.iterator_settings import NOT_TOLD, Calls, sample_calls
from pipeline_lab.analysis.tf_data.kinds import EventRole, is_any
from pipeline_lab.analysis.tf_data.stage_facts import (
    OperationTypes,
    WorkByStage,
    add_work,
    calls_by_stage,
    describe_stages,
    find_types,
    measure_work,
    merge_stages,
)
from pipeline_lab.analysis.tf_data.tf_data import (
    HANDOVER,
    HISTORY_TABLE,
    OTHER_OPERATIONS,
    OWN_WORK,
    POOL_TABLE,
    QUEUEING,
    UNSEEN,
    CriticalPath,
    PathShare,
    TfData,
)
from pipeline_lab.analysis.tf_data.threads import NO_ITERATORS, IndexArray, Threads, read_threads
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.trace.parallel import beside
from pipeline_lab.units import BYTES_PER_MB

_WHAT = {
    kernels.OWN: OWN_WORK,
    kernels.QUEUED: QUEUEING,
    kernels.HIDDEN: UNSEEN,
    kernels.OTHER_OPS: OTHER_OPERATIONS,
    kernels.HANDOVER: HANDOVER,
}


def find_waits(threads: Threads, in_loops: tuple[NDArray[np.bool_], IntArray] | None) -> IntArray:
    """Return thread, start and end of the waits; what several cover belongs to the one that began first.

    Args:
        threads: The trace's events.
        in_loops: Where loops inside of functions wait: of each name of the host's plane whether it is such a wait, and when they start.

    Returns:
        Ordered by start, shape (n, 3).
    """
    if in_loops is not None:
        rows = threads.rows(EventRole.ITERATOR)
        rows = rows[in_loops[0][threads.name[rows]]]
        rows = rows[np.isin(threads.start_ns[rows], in_loops[1])]
    else:
        rows = threads.rows(EventRole.WAIT)
        rows = rows if len(rows) else threads.rows(EventRole.OUTER_WAIT)
    rows = rows[np.argsort(threads.start_ns[rows], kind="stable")]
    start, end = threads.start_ns[rows], threads.recorded_end_ns(rows)
    if len(rows):
        start = np.maximum(start, np.concatenate((start[:1], np.maximum.accumulate(end)[:-1])))
    lasts = end > start
    return np.stack((threads.thread_of(rows), start, end), axis=1)[lasts]


def follow_waits(
    threads: Threads,
    functions: Functions,
    links: Links,
    types: OperationTypes,
    in_loops: tuple[NDArray[np.bool_], IntArray] | None,
    busy: IntArray,
    within: IntArray | None,
) -> CriticalPath:
    """Divide the waits of one trace among what caused them.

    Args:
        threads: The trace's events.
        functions: The calls of functions.
        links: What made each element.
        types: The types of ops.
        in_loops: As :func:`find_waits` takes them.
        busy: When a device works; a wait outside of that is exposed.
        within: The steps, to which the waits are clipped; None to follow all of them.
    """
    waits = find_waits(threads, in_loops)
    moments = waits[:, 1:]
    if within is not None:
        moments = intersect(moments, union(within[:, 0], within[:, 1]))
    exposed = _pieces(waits, subtract(moments, busy))
    hidden = _pieces(waits, intersect(moments, busy))
    shape = (len(threads.places.places) + 1, kernels.FIRST_OP + len(types.names))
    exposed_ns, hidden_ns = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for pieces, spent in ((exposed, exposed_ns), (hidden, hidden_ns)):
        _walk(pieces, threads, functions, links, types, spent)
    labels = [*_WHAT.values(), *types.names]
    shares = [
        PathShare(
            None if stage == shape[0] - 1 else stage,
            labels[code],
            int(exposed_ns[stage, code] + hidden_ns[stage, code]),
            int(exposed_ns[stage, code]),
        )
        for stage, code in np.argwhere(exposed_ns + hidden_ns).tolist()
    ]
    return CriticalPath(int((exposed_ns + hidden_ns).sum()), int(exposed_ns.sum()), rank_shares(shares))


def rank_shares(shares: Sequence[PathShare]) -> tuple[PathShare, ...]:
    """Order shares: the largest exposed part first, of equal ones the largest wait."""
    return tuple(sorted(shares, key=lambda share: (-share.exposed_ns, -share.wait_ns)))


def _pieces(waits: IntArray, moments: IntArray) -> IntArray:
    """Return the waits clipped to moments that lie in them, with their threads, shape (n, 3)."""
    if not len(moments):
        return np.empty((0, 3), np.int64)
    wait = np.searchsorted(waits[:, 1], moments[:, 0], side="right") - 1
    return np.column_stack((waits[wait, 0], moments))


def _walk(
    pieces: IntArray,
    threads: Threads,
    functions: Functions,
    links: Links,
    types: OperationTypes,
    spent: NDArray[np.int64],
) -> None:
    stages = len(threads.places.places)
    finished = np.flatnonzero(functions.end_ns >= 0)
    by_end = finished[np.lexsort((functions.end_ns[finished], functions.call_stage[finished]))]
    bounds = np.searchsorted(functions.call_stage[by_end], np.arange(stages + 1))
    kernels.walk(
        pieces,
        threads.bounds,
        (threads.start_ns, threads.end_ns, threads.parent, threads.role, functions.stage, threads.name),
        types.of_name,
        (links.wait, links.call),
        (links.ready_ns, links.source, links.source_thread),
        (functions.call_stage, functions.start_ns, functions.end_ns),
        (functions.first_run, functions.runs, threads.start_ns[functions.runs]),
        (bounds.astype(np.int64), by_end.astype(np.int64), functions.end_ns[by_end]),
        _beyond(threads),
        spent,
        np.empty(kernels.TASKS, np.int64),
    )


def _beyond(threads: Threads) -> IndexArray:
    """Return the thread that each stage's function waits for: one that deals out elements of a multi-device iterator."""
    beyond = np.full(len(threads.places.places), NONE, np.int32)
    for number, line in enumerate(threads.lines):
        if not is_shared(line.name):
            continue
        rows = threads.rows_of(number)
        is_outermost = (threads.role[rows] == EventRole.ITERATOR) & (threads.parent[rows] < 0)
        roots = np.unique(threads.place[rows][is_outermost])
        if not len(roots):
            continue
        above = int(threads.places.above[roots.min()])
        if above >= 0 and threads.places.places[int(roots.min())].name in ("Root", "Model"):
            beyond[above] = number
    return beyond


_TOLD: dict[str, Callable[[Calls], IntArray]] = {
    "buffered_elements": lambda calls: calls.ints("buffered_elements"),
    "buffer_limit": lambda calls: np.maximum(calls.ints("buffer_limit"), calls.ints("buffer_size")),
    "parallelism": lambda calls: calls.ints("parallelism"),
    "ram_used_bytes": lambda calls: calls.ram_used_bytes,
    "ram_budget_bytes": lambda calls: _bytes(calls.ints("ram_budget_megabytes")),
}
"""What a call may tell, by the columns of :data:`HISTORY_TABLE`."""


def read_history(host: str, stages: list[Calls]) -> pa.Table:
    """Return what the calls of each stage told, :data:`HISTORY_TABLE`; calls that told nothing are left out.

    Args:
        host: Name of the host.
        stages: The calls whose stats are read, stage by stage.
    """
    told = {name: np.concatenate([np.empty(0, np.int64), *map(read, stages)]) for name, read in _TOLD.items()}
    start_ns = np.concatenate([np.empty(0, np.int64), *(calls.start_ns for calls in stages)])
    stage = np.repeat(np.arange(len(stages)), [len(calls.at) for calls in stages])
    tells = np.flatnonzero(np.any([values != NOT_TOLD for values in told.values()], axis=0))
    kept = tells[np.argsort(start_ns[tells], kind="stable")]
    columns = {name: Partly(told[name][kept], told[name][kept] != NOT_TOLD) for name in told}
    return tables.build(
        HISTORY_TABLE, len(kept), host=host, window=0, start_ns=start_ns[kept], stage=stage[kept], **columns
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
        runs = is_any(threads.role[rows], EventRole.PROCESS, EventRole.DONE)
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


def analyze_pipeline(activity: Activity, find_steps: Callable[[], Steps | None]) -> TfData:
    """Read the pipeline of one trace.

    Args:
        activity: The trace.
        find_steps: Returns its own steps, not yet placed on a common axis, None if it has none; asked late, since another thread
            may be finding them.

    Raises:
        TraceIncompleteError: The trace has no tf.data events.
    """
    host = activity.host
    threads = read_threads(host)
    assert host is not None
    functions = find_functions(threads)
    start, end = activity.extent
    in_loops = (activity.loops.is_wait, activity.waits.start_ns) if activity.waits_in_loops else None

    def follow() -> tuple[CriticalPath, WorkByStage]:
        links = find_links(threads, functions, activity.waits.moments)
        types = find_types(threads, host.names)
        steps = find_steps()
        spans = None if steps is None else tables.intervals(steps.table)
        return beside(
            partial(follow_waits, threads, functions, links, types, in_loops, activity.busy, spans),
            partial(measure_work, threads, functions, links, types),
            activity.trace.event_count,
        )

    def describe() -> TfData:
        rows = calls_by_stage(threads)
        calls = sample_calls(threads, rows)
        roots = [calls[number] for number, place in enumerate(threads.places.places) if place.parent is None]
        return TfData(
            stages=describe_stages(threads, rows, calls, end - start),
            critical_path=NEVER_WAITED,
            observed_ns=end - start,
            threadpool_size=_largest(root.last("threadpool_size") for root in roots),
            cpu_budget=_largest(root.last("cpu_budget") for root in roots),
            history=read_history(activity.trace.host, calls),
            pool=measure_pool(activity.trace.host, threads, (start, end)),
        )

    (path, work), described = beside(follow, describe, activity.trace.event_count)
    return replace(
        described,
        stages=add_work(described.stages, work),
        critical_path=path if path.wait_ns else described.critical_path,
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
    if list(numbers) == list(range(len(numbers))):
        return history
    stage = np.array([*numbers, 0], np.int64)[tables.ints(history, "stage")]
    return tables.replace_column(history, "stage", stage)


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
