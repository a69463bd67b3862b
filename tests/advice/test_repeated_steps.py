from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.advice.repeated_steps import device_times, read_repeated_steps
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from tests.support import results
from tests.support.xspace import XSpace


def test_a_job_on_the_host_gives_what_its_steps_took_after_their_batches_came() -> None:
    found = replace(results.diagnosis(), idle_gaps=Unavailable("No device was recorded."))
    job = found.job_steps
    assert not isinstance(job, Unavailable)
    assert (
        device_times(found).tolist()
        == tables.ints(job.table, "compute_ns")[~tables.bools(job.table, "warmup")].tolist()
    )


def test_a_job_whose_compute_is_not_known_gives_none() -> None:
    found = replace(results.diagnosis(), idle_gaps=Unavailable("No device was recorded."))
    job = found.job_steps
    assert not isinstance(job, Unavailable)
    unknown = replace(job, table=tables.replace_column(job.table, "compute_ns", None))
    with pytest.raises(TraceIncompleteError, match="computed is not known"):
        device_times(replace(found, job_steps=unknown))


def test_a_capture_with_a_device_gives_the_device_time_of_each_step(tmp_path: Path) -> None:
    space = XSpace()
    host = space.plane("/host:CPU").line("python", timestamp_ns=0)
    stream = space.plane("/device:GPU:0").line("Stream #13(Compute)", timestamp_ns=0)
    for step, kernel_us in enumerate((300, 500, 400)):
        host.event("train", start_us=1000 * step, duration_us=900, step_num=step)
        stream.event("kernel", start_us=1000 * step + 100, duration_us=kernel_us)
    space.write(tmp_path / "h.xplane.pb")
    assert read_repeated_steps(tmp_path / "h.xplane.pb") == (0.3, 0.5, 0.4)


def test_what_holds_no_step_is_refused(tmp_path: Path) -> None:
    space = XSpace()
    space.plane("/host:CPU").line("python", timestamp_ns=0).event("something", start_us=0, duration_us=10)
    space.write(tmp_path / "h.xplane.pb")
    with pytest.raises(TraceIncompleteError, match="No steps in this trace"):
        read_repeated_steps(tmp_path / "h.xplane.pb")
