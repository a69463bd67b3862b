"""What one trace says about its tf.data pipeline, and what several say together."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.steps import Steps
from pipeline_lab.analysis.tf_data.critical_path import follow_waits, rank_shares
from pipeline_lab.analysis.tf_data.functions import find_functions
from pipeline_lab.analysis.tf_data.history import read_history
from pipeline_lab.analysis.tf_data.links import find_links
from pipeline_lab.analysis.tf_data.merging import merge_stages
from pipeline_lab.analysis.tf_data.operations import find_types
from pipeline_lab.analysis.tf_data.pool import measure_pool
from pipeline_lab.analysis.tf_data.results import HISTORY_TABLE, POOL_TABLE, CriticalPath, PathShare, TfData
from pipeline_lab.analysis.tf_data.settings import choose
from pipeline_lab.analysis.tf_data.stages import calls_by_stage, describe_stages
from pipeline_lab.analysis.tf_data.threads import NO_ITERATORS, read_threads
from pipeline_lab.analysis.tf_data.work import measure_work
from pipeline_lab.errors import TraceIncompleteError, Unavailable

NO_WAITS = Unavailable(
    "The job never waited for input in this trace, so nothing held it up: no IteratorGetNext event lies in its steps."
)


def analyse(activity: Activity, steps: Steps | None) -> TfData:
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
        critical_path=path if path.wait_ns else NO_WAITS,
        observed_ns=end - start,
        threadpool_size=_largest(root.last("threadpool_size") for root in roots),
        cpu_budget=_largest(root.last("cpu_budget") for root in roots),
        history=read_history(host, calls),
        pool=measure_pool(host, threads, (start, end)),
    )


def merge(parts: Sequence[TfData]) -> TfData:
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
