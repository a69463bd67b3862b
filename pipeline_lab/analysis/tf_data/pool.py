"""How busy the threads were that run the pipeline's functions."""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.event_names import is_tf_data_pool
from pipeline_lab.analysis.intervals import length_within, union
from pipeline_lab.analysis.tf_data.kinds import Role, is_any
from pipeline_lab.analysis.tf_data.results import POOL_TABLE
from pipeline_lab.analysis.tf_data.threads import Threads

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
