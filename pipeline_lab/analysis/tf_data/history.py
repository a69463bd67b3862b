"""Buffers, parallelism and memory over time, as the calls of each stage tell them."""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.analysis.tf_data.results import HISTORY_TABLE
from pipeline_lab.analysis.tf_data.settings import NOT_TOLD, Calls, ram_in_use
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
