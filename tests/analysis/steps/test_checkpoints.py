"""What checkpoints take of a job's time."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.checkpoints import measure_checkpoints
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import CheckpointEvent
from pipeline_lab.runs.run_tables import STEPS
from pipeline_lab.units import NS_PER_MS as MS


def _steps(count: int, step_ns: int) -> pa.Table:
    rows = [{"step": n, "warmup": False, "start_ns": 10**15 + n * step_ns, "wait_ns": 0} for n in range(count)]
    made = [dict.fromkeys(STEPS.schema.names) | row | {"end_ns": row["start_ns"] + step_ns} for row in rows]
    return pa.Table.from_pylist(made, schema=STEPS.schema)


def test_only_checkpoints_between_steps_count() -> None:
    steps = _steps(10, 100 * MS)
    begun = steps.column("start_ns")[0].as_py()
    spans = ((-50, -10), (300, 350), (500, 600), (1200, 1500))
    found = measure_checkpoints(JobEvents([CheckpointEvent(begun + a * MS, begun + b * MS) for a, b in spans]), steps)
    assert (found.count, found.total_ns, found.longest_ns) == (2, 150 * MS, 100 * MS)
    assert found.percent == pytest.approx(15)


def test_a_checkpoint_that_waits_for_steps_on_the_device_counts_from_their_end() -> None:
    steps = _steps(10, 100 * MS)
    begun = steps.column("start_ns")[0].as_py()
    behind = pa.array([end + 30 * MS for end in steps.column("end_ns").to_pylist()], pa.int64())
    steps = steps.set_column(steps.schema.get_field_index("ready_ns"), "ready_ns", behind)
    spans = ((300, 350), (500, 520))
    found = measure_checkpoints(JobEvents([CheckpointEvent(begun + a * MS, begun + b * MS) for a, b in spans]), steps)
    assert (found.count, found.total_ns, found.longest_ns) == (2, 20 * MS, 20 * MS)


def test_a_job_without_checkpoints_has_no_number() -> None:
    with pytest.raises(TraceIncompleteError, match="No checkpoint was noted"):
        measure_checkpoints(JobEvents(), _steps(3, MS))
    with pytest.raises(TraceIncompleteError):
        measure_checkpoints(JobEvents([CheckpointEvent(1, 2)]), STEPS.schema.empty_table())


def test_checkpoints_of_the_warm_up_are_left_out() -> None:
    steps = _steps(10, 100 * MS)
    begun = steps.column("start_ns")[0].as_py()
    steps = tables.replace_column(steps, "warmup", np.arange(10) < 4)
    saved = JobEvents([CheckpointEvent(begun + a * MS, begun + (a + 60) * MS) for a in (300, 500)])
    found = measure_checkpoints(saved, steps)
    assert (found.count, found.total_ns) == (1, 60 * MS)
    assert found.percent == pytest.approx(10), "of 600 ms"
