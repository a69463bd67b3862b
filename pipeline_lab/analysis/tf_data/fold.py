"""What one trace says about its tf.data pipeline, and what several say together."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.tf_data.history import read_history
from pipeline_lab.analysis.tf_data.merging import merge_stages
from pipeline_lab.analysis.tf_data.pool import measure_pool
from pipeline_lab.analysis.tf_data.results import HISTORY_TABLE, POOL_TABLE, TfData
from pipeline_lab.analysis.tf_data.settings import choose
from pipeline_lab.analysis.tf_data.stages import calls_by_stage, describe_stages
from pipeline_lab.analysis.tf_data.threads import NO_ITERATORS, read_threads
from pipeline_lab.errors import TraceIncompleteError, Unavailable

NO_PATH = Unavailable("The critical path is not analysed by this version.")


def analyse(activity: Activity) -> TfData:
    """Read the pipeline of one trace.

    Raises:
        TraceIncompleteError: The trace has no tf.data events.
    """
    threads = read_threads(activity.host)
    start, end = activity.extent
    rows = calls_by_stage(threads)
    calls = [choose(threads, found) for found in rows]
    host = activity.trace.host
    roots = [calls[number] for number, place in enumerate(threads.places.places) if place.parent is None]
    return TfData(
        stages=describe_stages(threads, rows, calls, end - start),
        critical_path=NO_PATH,
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
        critical_path=NO_PATH,
        observed_ns=sum(part.observed_ns for part in parts),
        threadpool_size=_largest(part.threadpool_size for part in parts),
        cpu_budget=_largest(part.cpu_budget for part in parts),
        history=tables.concat(HISTORY_TABLE, histories),
        pool=tables.concat(POOL_TABLE, [part.pool for part in parts]),
    )


def _renumber(history: pa.Table, numbers: Sequence[int]) -> pa.Table:
    """Return a history with the merged stages' numbers; ``numbers[k]`` is that of the part's stage ``k``."""
    stage = np.array([*numbers, 0], np.int64)[tables.ints(history, "stage")]
    return tables.replace_column(history, "stage", stage)


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
