"""What a run folder says of the job before anything is measured."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lab.analysis.diagnosis.job_tables import JobReader, read_job
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import NoteEvent, format_event
from pipeline_lab.runs.run_tables import RESOURCES
from tests.support.recorded_run import write_run

ON_A_GPU = pa.Table.from_pylist([{"time_ns": 1, "gpu_memory_bytes": 10**9, "gpu_percent": 50.0}], RESOURCES.schema)


@pytest.mark.parametrize(
    ("device", "is_sampled", "expected"),
    [
        ("GPU 0: NVIDIA H100", False, True),
        ("CPU", True, False),
        (None, True, True),  # `watch` lists no devices
        (None, False, False),
    ],
)
def test_a_script_on_a_gpu_launches_ahead(tmp_path: Path, device: str | None, is_sampled: bool, expected: bool) -> None:
    found = read_job(write_run(tmp_path / "run"))
    sampled = found.read | ({RESOURCES.name: ON_A_GPU} if is_sampled else {})
    script = replace(found, environment={} if device is None else {"device": device}, read=sampled)
    assert script.launches_ahead is expected
    assert not replace(script, is_launched=True).launches_ahead


def test_the_new_events_of_a_run_in_progress_are_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", state=RunState.RUNNING)
    reader = JobReader(folder)
    assert not reader.read().events.of(NoteEvent)
    with folder.events.open("a") as file:
        file.write(format_event(NoteEvent("Mind this.")))
    assert [event.sentence for event in reader.read().events.of(NoteEvent)] == ["Mind this."]
