from pathlib import Path

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.steps.job_steps import NO_JOB_STEPS
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.own_job_runs import begin
from pipeline_lab.runs.run_events import WindowEvent
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.note.event_log import EventLog


def test_a_job_that_is_not_ours_says_that_it_did_not_time_its_steps(tmp_path: Path) -> None:
    folder = begin(RunStore(tmp_path), "watched", tags=())
    EventLog(folder.events).write(WindowEvent("window-0001", None, None, 10, 20, 30, size_bytes=400))
    diagnosis = diagnose(folder.path)
    assert diagnosis.job_steps == Unavailable(NO_JOB_STEPS)
    cost = diagnosis.profiler_cost
    assert isinstance(cost, ProfilerCost)
    assert cost.profiled_steps is None
    (window,) = cost.windows.to_pylist()
    assert (window["first_step"], window["start_cost_ns"], window["rss_growth_bytes"]) == (None, None, None)
