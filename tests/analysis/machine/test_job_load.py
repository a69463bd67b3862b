"""Processor time per step, from samples that no profile window touched."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.machine import job_load
from pipeline_lab.analysis.steps.recorded_steps import STEP_TABLE as STEP_ROWS
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.runs.run_tables import RESOURCES, STEPS

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


STEP_TABLE = pa.Table.from_pylist([step(0), step(1), step(2, window=0), step(3)], schema=STEPS.schema)


def test_processor_time_per_step_leaves_out_warm_up_windows_and_flushes():
    resources = pa.Table.from_pylist(
        [
            sample(50, 900, 0),  # warm-up
            sample(150, 120, 30),
            sample(250, 900, 0),  # a window
            sample(310, 900, 0, flushing=True),
            sample(350, 80, 10),
        ],
        schema=RESOURCES.schema,
    )
    found = job_load.measure_load({"cores": 2.0}, WrittenPipeline((), 7), STEP_TABLE, resources)
    assert found.cpu_ns_per_step == pytest.approx(100 * MS)
    assert found.other_cores == pytest.approx(0.2)
    assert (found.cores, found.pool_threads) == (2.0, 7)


def test_the_ends_of_iterators_are_no_part_of_what_a_step_takes_of_the_processor():
    """Step 1 sleeps for 60 of its 100 ms while an iterator ends; awake, both steps keep two cores busy."""
    table = pa.Table.from_pylist([step(0), step(1), step(2)], schema=STEPS.schema)
    samples = [sample(110, 200, 0), sample(130, 200, 0), sample(195, 20, 0), sample(210, 90, 0), sample(250, 200, 0)]
    resources = pa.Table.from_pylist(samples, schema=RESOURCES.schema)
    ends = np.array([[140 * MS, 200 * MS]])
    found = job_load.measure_load({"cores": 2.0}, None, table, resources, ends)
    assert (found.cores_used, found.cpu_ns_per_step) == (2.0, 2 * (40 + 100) / 2 * MS)


@pytest.mark.parametrize("length_ms", [400, 2000])
def test_long_steps_tell_the_processor_time_also_where_windows_hold_all_of_them(length_ms: int):
    """What recording adds to a step of seconds is little; of short ones it would be much of the number."""
    rows = [{**step(number, window=number), "start_ns": number * length_ms * MS} for number in range(3)]
    rows = [{**row, "end_ns": (number + 1) * length_ms * MS} for number, row in enumerate(rows)]
    table = pa.Table.from_pylist(rows, schema=STEPS.schema)
    resources = pa.Table.from_pylist(
        [sample(length_ms // 2, 900, 0), sample(length_ms * 3 // 2, 10, 50)], schema=RESOURCES.schema
    )
    if length_ms < 1000:
        with pytest.raises(TraceIncompleteError):
            job_load.measure_load({"cores": 2.0}, None, table, resources)
        return
    found = job_load.measure_load({"cores": 2.0}, None, table, resources)
    assert (found.cores_used, found.other_cores) == pytest.approx((0.1, 0.5))


def test_samples_count_between_the_same_boundaries_as_the_steps_times():
    """The host requests step 1 at 100 ms; the device is done with step 0 at 180 ms, and with step 1 at 300 ms."""
    ready = {0: 180, 1: 300, 2: 400}
    rows = [{**step(number), "ready_ns": at * MS} for number, at in ready.items()]
    table = pa.Table.from_pylist([{**rows[0], "warmup": True}, rows[1], {**rows[2], "window": 0}], schema=STEPS.schema)
    resources = pa.Table.from_pylist(
        [sample(150, 900, 0), sample(250, 100, 0), sample(290, 100, 0)],  # the first one lies in step 0
        schema=RESOURCES.schema,
    )
    found = job_load.measure_load({"cores": 2.0}, None, table, resources)
    assert (found.cores_used, found.cpu_ns_per_step) == pytest.approx((1.0, 120 * MS))


def test_a_job_that_times_no_steps_is_sampled_from_its_first_recorded_step_to_the_last():
    # two recorded steps of 100 ms at 0.1 and 0.4 s; before them the job starts up
    rows = [{"start_ns": at * MS, "end_ns": (at + 100) * MS} for at in (100, 400)]
    blank = {"host": "h", "window": 0, "step": 0, "wait_ns": 0, "exposed_ns": 0, "busy_ns": 0}
    recorded = Steps("train", 1.0, pa.Table.from_pylist([{**blank, **row} for row in rows], STEP_ROWS), False)
    shift_ms = 1000  # the axis begins one second into the epoch
    resources = pa.Table.from_pylist(
        [
            sample(shift_ms + 50, 200, 0),
            {**sample(shift_ms + 150, 20, 10), "children_cpu_percent": 100},
            sample(shift_ms + 300, 40, 30),
            sample(shift_ms + 450, 900, 0, flushing=True),
        ],
        schema=RESOURCES.schema,
    )
    found = job_load.measure_recorded_load({"cores": 2.0}, recorded, resources, shift_ms * MS)
    assert (found.cores_used, found.children_cores, found.other_cores) == pytest.approx((0.8, 0.5, 0.2))
    assert found.cpu_ns_per_step == pytest.approx(80 * MS)


def test_without_a_sample_there_is_no_load():
    with pytest.raises(TraceIncompleteError, match="processor time"):
        job_load.measure_load({"cores": 2.0}, None, STEP_TABLE, RESOURCES.schema.empty_table())
