"""Processor time per step, from samples that no profile window touched."""

import pyarrow as pa
import pytest

from pipeline_lab.analysis import job_load
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.tables import RESOURCES, STEPS
from pipeline_lab.runs.written import WrittenPipeline

MS = 1_000_000


def step(number: int, window: int = -1) -> dict[str, object]:
    start_ns = number * 100 * MS
    return {
        "step": number,
        "warmup": number == 0,
        "start_ns": start_ns,
        "end_ns": start_ns + 100 * MS,
        "window": window,
    }


def sample(time_ms: int, own: float, other: float, *, flushing: bool = False) -> dict[str, object]:
    return {"time_ns": time_ms * MS, "cpu_percent": own, "other_cpu_percent": other, "flushing": flushing}


STEP_TABLE = pa.Table.from_pylist([step(0), step(1), step(2, window=0), step(3)], schema=STEPS)


def test_processor_time_per_step_leaves_out_warm_up_windows_and_flushes():
    resources = pa.Table.from_pylist(
        [
            sample(50, 900, 0),  # warm-up
            sample(150, 120, 30),
            sample(250, 900, 0),  # a window
            sample(310, 900, 0, flushing=True),
            sample(350, 80, 10),
        ],
        schema=RESOURCES,
    )
    found = job_load.measure({"cores": 2.0}, WrittenPipeline((), 7), STEP_TABLE, resources)
    assert found.cpu_ns_per_step == pytest.approx(100 * MS)
    assert found.other_cores == pytest.approx(0.2)
    assert (found.cores, found.pool_threads) == (2.0, 7)


def test_without_a_sample_there_is_no_load():
    with pytest.raises(TraceIncompleteError, match="processor time"):
        job_load.measure({"cores": 2.0}, None, STEP_TABLE, RESOURCES.empty_table())
