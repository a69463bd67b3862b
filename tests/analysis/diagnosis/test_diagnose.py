"""Whole diagnoses of run folders and logs, through the real reader."""

import contextlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis import later_epochs
from pipeline_lab.analysis.diagnosis.conclusion import _bears_out, _steps_of_others, _without_waits
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.analysis.diagnosis.trace_parts import analyze_trace
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS, NO_STEPS_IN_PART
from pipeline_lab.analysis.steps.step_phases import Phase
from pipeline_lab.analysis.verdict.verdict import Confidence
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_tables import STEPS, TableWriter, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.trace.xplane.xspace import read_xplane
from tests.support import results
from tests.support.long_run import LongRun
from tests.support.measured import options
from tests.support.measured_run import make_measured_run
from tests.support.recorded_run import write_run
from tests.support.xspace import XSpace
from tests.trace.legacy.test_derived import analysis, generic_step

RECORDED = Path(__file__).parents[2] / "data"
MS = 1_000_000


def write_log(path: Path, window: str, at_ms: int | None, host: str = "host") -> Path:
    """Write a window with two steps of 10 ms, 3 of them waiting; an ``at_ms`` puts it on the clock."""
    space = XSpace()
    plane = space.plane("/host:CPU")
    python, pool = plane.line("python"), plane.line("tf_Compute/1")
    for step in range(2):
        python.event("train", step * 10_000, 10_000, step_num=step, _r=1)
        python.event("IteratorGetNextOp::DoCompute", step * 10_000, 3_000)
        pool.event("ExecutorState::Process", step * 10_000 + 3_000, 7_000)
    if at_ms is not None:
        space.environment(10**18 + at_ms * MS, 10**18 + (at_ms + 20) * MS)
    return space.write(path / "plugins" / "profile" / window / f"{host}.xplane.pb", host=host)


def test_a_run_is_put_together_from_its_windows_and_tables(tmp_path: Path):
    told: list[tuple[int, int, str]] = []
    found = diagnose(write_run(tmp_path / "run").path, progress=lambda *args: told.append(args))
    assert told == [(0, 2, "window-0001"), (1, 2, "window-0002")]
    assert (found.source.kind, found.source.windows, found.source.hosts) == ("run", 2, ("trainer",))
    assert not isinstance(found.steps, Unavailable)
    assert found.steps.table.column("step").to_pylist() == [5, 6, 7, 12, 13, 14]
    assert found.steps.table.column("window").to_pylist() == [0, 0, 0, 1, 1, 1]
    # the axis begins with the run's first step
    assert tables.ints(found.steps.table, "start_ns")[0] == 50 * MS
    assert not isinstance(found.idle_gaps, Unavailable)
    assert found.idle_gaps.by_cause_ns[GapCause.CAPTURE_GAP] == 41 * MS  # from the last thing known of a window
    assert found.idle_gaps.busy_ns == 6 * 5 * MS
    longest = found.to_json()["idle_gaps"]["longest"]
    assert "capture_gap" not in [gap["cause"] for gap in longest]  # nothing is known of it, idle least of all
    assert not isinstance(found.job_steps, Unavailable)
    assert found.job_steps.count == 18
    assert not isinstance(found.calibration, Unavailable)
    assert found.calibration.utilisation_percent == 50.0
    assert found.verdict.verdict_class is VerdictClass.INPUT_BOUND
    assert found.verdict.cause == "no-overlap"


def test_a_job_whose_first_epoch_is_another_matter_is_judged_by_the_later_ones(tmp_path: Path):
    # ten steps of 10 ms that wait for 4, then ten of 6 ms that do not wait; a window of three steps in each
    found = diagnose(write_run(tmp_path / "run", cached_from=10).path)
    assert found.verdict.verdict_class is VerdictClass.DEVICE_BOUND
    assert found.verdict.sentence.endswith(
        " This describes the later epochs; in the first, a step takes 10 ms and waits for input 40 % of the time."
    )
    shown = {one.name: one.value for one in found.verdict.evidence}
    assert shown["recorded steps"].startswith("3 ")
    assert shown["input wait"] == "0 % of the steps"
    assert shown["first epoch"] == "8 steps, median 10 ms, waiting 40 %"
    assert shown["later epochs, which are judged"] == "10 steps, median 6 ms, waiting 0 %"
    # the charts show all of it
    assert not isinstance(found.steps, Unavailable)
    assert found.steps.count == 6
    assert not isinstance(found.job_steps, Unavailable)
    assert found.job_steps.count == 18
    # advice goes by what was judged
    assert found.later_epochs is not None
    assert found.later_epochs.first_step == 10
    judged = later_epochs.judged(found)
    assert not isinstance(judged.job_steps, Unavailable)
    assert (judged.job_steps.count, judged.job_steps.median_ns) == (10, 6 * MS)
    assert not isinstance(judged.calibration, Unavailable)
    assert (judged.calibration.step_ns, judged.calibration.pipeline_only_ns) == (6 * MS, None)


def test_without_a_window_in_the_later_epochs_the_jobs_own_steps_speak_for_them(tmp_path: Path):
    found = diagnose(write_run(tmp_path / "run", cached_from=10, windows=1).path).verdict
    assert found.verdict_class is VerdictClass.DEVICE_BOUND
    assert found.sentence.startswith(  # nine steps of 6 ms, the last one to its own end
        "Input is not the limit: the training step is busy for 100 % of each 5.9 ms step."
    )
    assert found.confidence is Confidence.MEDIUM


def test_later_epochs_of_which_nothing_is_known_but_their_length_leave_the_verdict_to_the_windows(tmp_path: Path):
    """A script whose waits only the windows tell, with its one window in the first epoch."""
    folder = write_run(tmp_path / "run", cached_from=10, windows=1)
    rows = read_table(folder.steps, STEPS).to_pylist()
    with contextlib.closing(TableWriter(folder.steps, STEPS)) as table:
        for row in rows:
            table.append(*(row | {"wait_ns": None, "epoch": row["step"] // 10}).values())
    found = diagnose(folder.path)
    assert found.verdict.verdict_class is VerdictClass.INPUT_BOUND
    assert found.later_epochs is None


def test_epochs_that_are_alike_are_judged_together(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    write_files(folder.files, [DataFile("/data/a", 20, 400), DataFile("/data/b", 20, 400)])  # 40 records: two epochs
    found = diagnose(folder.path)
    assert not isinstance(found.step_phases, Unavailable)
    assert len(found.step_phases.phases) == 3
    assert "first epoch" not in found.verdict.sentence
    assert found.later_epochs is None


def test_epochs_of_a_run_are_as_long_as_what_its_options_let_through(tmp_path: Path):
    """Of 300 records a shard of two reads 150, which is 15 steps; ten of these are the warm-up."""
    sharded = options({"stage": "shard", "num_shards": 2, "index": 0}, {"stage": "repeat"}, {"stage": "map"})
    found = diagnose(make_measured_run(RunStore(tmp_path), sharded, cold_steps=30).path)
    assert not isinstance(found.step_phases, Unavailable)
    assert {one.phase: one.steps for one in found.step_phases.phases}[Phase.FIRST_EPOCH] == 5
    assert not isinstance(found.file_sampling, Unavailable)
    assert found.file_sampling.epochs.column("samples").to_pylist() == [150] * 4


def test_a_run_without_windows_says_so_and_judges_by_its_own_steps(tmp_path: Path):
    found = diagnose(write_run(tmp_path / "run", windows=0).path)
    assert isinstance(found.steps, Unavailable)
    assert found.steps.reason.startswith("No profile window has been recorded")
    assert found.verdict.verdict_class is VerdictClass.INPUT_BOUND


def test_a_window_that_cannot_be_read_is_left_out_and_said(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    (folder.window("window-0001") / "trainer.xplane.pb").write_bytes(b"")
    found = diagnose(folder.path)
    assert not isinstance(found.steps, Unavailable)
    assert found.steps.count == 3
    assert "unreadable" in [finding.kind for finding in found.findings]


def stalls_ms(found: Diagnosis) -> float:
    assert not isinstance(found.input_stalls, Unavailable)
    return found.input_stalls.wait_ns / MS


def test_windows_and_hosts_of_a_log_share_one_axis(tmp_path: Path):
    for window, at_ms in (("a", 0), ("b", 500)):
        for name in ("left", "right"):
            write_log(tmp_path, window, at_ms, name)
    found = diagnose(tmp_path)
    assert (found.source.windows, found.source.hosts, found.source.kept_apart) == (2, ("left", "right"), False)
    assert found.origin_epoch_ns == 10**18
    assert stalls_ms(found) == 4 * 6
    assert not isinstance(found.idle_gaps, Unavailable)
    assert found.idle_gaps.by_cause_ns[GapCause.CAPTURE_GAP] == 2 * 480 * MS
    document = found.to_json()
    assert [device["name"] for device in document["idle_gaps"]["devices"]] == [
        "left host compute",
        "right host compute",
    ]


@pytest.mark.slow
def test_sessions_put_one_after_another_into_one_file_are_windows_of_their_own(tmp_path: Path):
    run = LongRun(tmp_path / "run")
    run.grow(2)
    run.close()
    captures = sorted(run.folder.profile.rglob("*.xplane.pb"))
    apart = tmp_path / "apart"
    for path in captures:
        shutil.copytree(path.parent, apart / "plugins" / "profile" / path.parent.name)
    joined = tmp_path / "joined.xplane.pb"
    joined.write_bytes(b"".join(path.read_bytes() for path in captures))
    one, several = diagnose(joined), diagnose(apart)
    assert one.source.windows == several.source.windows == 2
    assert one.source.events == several.source.events
    assert one.to_json() | {"source": None} == several.to_json() | {"source": None}


def test_captures_without_a_clock_are_kept_apart_and_that_is_said(tmp_path: Path):
    write_log(tmp_path, "a", None)
    write_log(tmp_path, "b", 500)
    found = diagnose(tmp_path)
    assert found.origin_epoch_ns is None
    assert "kept-apart" in [finding.kind for finding in found.findings]
    assert not isinstance(found.steps, Unavailable)
    starts = tables.ints(found.steps.table, "start_ns")
    assert (starts[1:] > starts[:-1]).all()  # one after the other
    assert not isinstance(found.idle_gaps, Unavailable)
    assert found.idle_gaps.by_cause_ns[GapCause.CAPTURE_GAP] == 0


def test_a_lone_file_has_no_job_behind_it(tmp_path: Path):
    found = diagnose(write_log(tmp_path, "a", 0))
    assert found.source.kind == "xplane"
    assert stalls_ms(found) == 6
    for part in (found.job_steps, found.calibration, found.memory, found.profiler_cost):
        assert isinstance(part, Unavailable)


def test_a_zipped_run_is_still_a_run(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, folder.id)
    found = diagnose(Path(archive))
    assert found.source.kind == "run"
    assert not isinstance(found.job_steps, Unavailable)


def test_nothing_to_read_is_an_error(tmp_path: Path):
    with pytest.raises(TraceReadError):
        diagnose(tmp_path)


def test_python_between_the_steps_of_a_real_capture():
    found = diagnose(RECORDED / "python_between_steps.xplane.pb")
    assert not isinstance(found.steps, Unavailable)
    assert found.steps.table.column("step").to_pylist() == [10, 11, 12, 13, 14, 15]
    assert not isinstance(found.idle_gaps, Unavailable)
    assert found.idle_gaps.device == "host compute"
    python_ns = found.idle_gaps.by_cause_ns[GapCause.PYTHON]
    assert python_ns > 5 * 20 * MS  # the window ends with the sixth step, before its pause could be seen
    assert python_ns > 0.8 * found.idle_gaps.idle_ns
    long = [row for row in found.idle_gaps.gaps.to_pylist() if row["duration_ns"] > 15 * MS]
    assert [row["cause"] for row in long] == ["python"] * 5
    assert not isinstance(found.input_stalls, Unavailable)
    assert found.input_stalls.exposed_percent < 10
    assert (found.verdict.verdict_class, found.verdict.cause) == (VerdictClass.IDLE_OTHER, "python")


@pytest.mark.slow
@pytest.mark.reference_traces
def test_the_input_wait_that_xprof_calls_zero(reference_traces: Path):
    found = diagnose(reference_traces / "P1-gpu-multiworker-8gpu")
    assert not isinstance(found.steps, Unavailable)
    assert [round(length / MS, 3) for length in found.steps.length_ns] == [19.865, 21.310]
    assert not isinstance(found.input_stalls, Unavailable)
    assert found.input_stalls.event_sum_ns is not None
    assert round(found.input_stalls.event_sum_ns / MS, 3) == 13.735
    assert stalls_ms(found) == pytest.approx(13.735, abs=0.001)
    assert found.input_stalls.events == 2


@pytest.mark.reference_traces
@pytest.mark.parametrize(
    ("name", "function", "count", "step_ms", "busy_percent"),
    [("P6-jax-rocm-8gpu-nosteps", "forward_3d_conv", 4, 34.1, 7.6), ("P7-tpu-inference", "f", 99, 572, 92.8)],
)
def test_jitted_calls_are_the_steps_of_logs_without_marks(
    reference_traces: Path, name: str, function: str, count: int, step_ms: float, busy_percent: float
):
    found = diagnose(reference_traces / name)
    assert not isinstance(found.steps, Unavailable)
    assert (found.steps.marker, found.steps.count) == (f"rhythm of PjitFunction({function})", count)
    assert float(found.steps.length_ns.mean()) / MS == pytest.approx(step_ms, rel=0.005)
    assert isinstance(found.input_stalls, Unavailable), "never zero percent where no waits were recorded"
    assert found.verdict.step is not None
    assert found.verdict.step.busy_percent == pytest.approx(busy_percent, abs=0.1)


@pytest.mark.reference_traces
def test_asynchronous_lines_of_a_tpu_are_not_added_to_its_work(reference_traces: Path):
    found = diagnose(reference_traces / "P7-tpu-inference")
    assert not isinstance(found.idle_gaps, Unavailable)
    assert len(found.idle_gaps.devices) == 4
    assert all(device.busy_ns / 1e9 == pytest.approx(78.78, abs=0.02) for device in found.idle_gaps.devices)


@pytest.mark.slow
@pytest.mark.reference_traces
def test_steps_and_waits_of_old_json_traces(reference_traces: Path):
    found = diagnose(reference_traces / "P4-json-tfrecord-cache")
    assert not isinstance(found.steps, Unavailable)
    assert [round(length / MS, 3) for length in found.steps.length_ns] == [63.929]
    assert stalls_ms(found) == pytest.approx(13.068, abs=0.001)
    older = diagnose(reference_traces / "P5-tf22-cpu-run")
    assert stalls_ms(older) == pytest.approx(51.522, abs=0.001)
    assert older.verdict.verdict_class is VerdictClass.INPUT_BOUND


@pytest.mark.reference_traces
@pytest.mark.parametrize(
    ("name", "count", "percent"),
    [
        ("P2-derived-only-demo", 9, 68.9),
        ("P3-derived-gpu-input-bound", 11, 81.4),
        ("P3-derived-gpu-compute-bound", 11, 0.02),
    ],
)
def test_derived_files_give_the_steps_that_they_store(reference_traces: Path, name: str, count: int, percent: float):
    found = diagnose(reference_traces / name)
    assert found.source.kind == "derived"
    assert isinstance(found.file_sampling, Unavailable)
    assert "only what TensorFlow derived" in found.file_sampling.reason
    assert not isinstance(found.steps, Unavailable)
    assert found.steps.count == count
    assert not isinstance(found.input_stalls, Unavailable)
    assert found.input_stalls.wait_percent == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize("shape", ["file", "folder", "hosts", "archive", "run"])
def test_a_run_opened_from_a_log_is_diagnosed_as_the_log_is(tmp_path: Path, shape: str):
    log = tmp_path / "log"
    trace = write_log(log, "one", 0)
    if shape == "file":
        log = trace
    elif shape == "hosts":
        write_log(log, "one", 0, host="other")
    elif shape == "archive":
        log = Path(shutil.make_archive(str(tmp_path / "log"), "zip", log))
    elif shape == "run":
        log = write_run(tmp_path / "recorded").path
    store = RunStore(tmp_path / "profiles")
    arrival = opened_logs.new_arrival(store)
    opened_logs.bring(log, arrival)
    folder = opened_logs.adopt(store, arrival, "log")
    found, wanted = diagnose(folder.path).to_json(), diagnose(log).to_json()
    assert found["source"].pop("path") == str(folder.path)
    for word in ("path", "kind"):  # a log directory with one file is that file
        found["source"].pop(word, None)
        wanted["source"].pop(word)
    assert found == wanted


@pytest.mark.reference_traces
def test_every_session_of_a_log_without_traces_counts(reference_traces: Path, tmp_path: Path):
    for session, which in (("one", "compute-bound"), ("two", "input-bound")):
        folder = reference_traces / f"P3-derived-gpu-{which}" / "plugins" / "profile" / "run"
        shutil.copytree(folder, tmp_path / "plugins" / "profile" / session)
    found = diagnose(tmp_path)
    assert found.source.windows == 2
    assert not isinstance(found.steps, Unavailable)
    assert found.steps.count == 22


def test_names_without_events_are_no_pipeline() -> None:
    # a file whose middle is lost keeps the names of events that it no longer has
    trace = read_xplane(RECORDED / "small_pipeline.xplane.pb")
    emptied = tuple(replace(plane, lines=()) for plane in trace.planes)
    found = analyze_trace(replace(trace, planes=emptied))
    assert isinstance(found.found["tf_data"], Unavailable)
    assert found.reads.total == 0


def test_a_damaged_session_of_a_log_without_traces_is_left_out_and_said(tmp_path: Path):
    whole = analysis(generic_step(0, 10, 4), generic_step(1, 10, 4))
    for session, content in (("one", whole), ("two", whole[:-1])):
        folder = tmp_path / "plugins" / "profile" / session
        folder.mkdir(parents=True)
        (folder / "host.input_pipeline.pb").write_bytes(content)
    found = diagnose(tmp_path)
    assert not isinstance(found.steps, Unavailable)
    assert (found.source.windows, found.steps.count) == (1, 2)
    (sentence,) = found.source.unreadable
    assert sentence.startswith("host.input_pipeline.pb is damaged at byte ")
    (tmp_path / "plugins" / "profile" / "one" / "host.input_pipeline.pb").unlink()
    with pytest.raises(TraceReadError, match="is damaged at byte"):
        diagnose(tmp_path)


def test_names_of_files_that_are_no_text_are_read_and_kept(tmp_path: Path):
    log = tmp_path / os.fsdecode(b"l\xf6g")
    trace = write_log(log, os.fsdecode(b"w\xf6"), None, host="")
    trace.rename(trace.with_name(os.fsdecode(b"h\xf6st.xplane.pb")))
    found = diagnose_saved(log)
    assert (found.source.hosts, found.source.path) == (("h?st",), str(log))
    assert diagnose_saved(log).to_json() == found.to_json()


def test_a_damaged_file_without_steps_is_not_told_to_mark_them(tmp_path: Path):
    space = XSpace()
    line = space.plane("/host:CPU").line("python")
    for number in range(200):
        line.event("work", 1_000 * number, 10)
    whole = space.write(tmp_path / "whole.xplane.pb", "alpha")
    data = whole.read_bytes()
    (tmp_path / "part.xplane.pb").write_bytes(data[: len(data) * 2 // 3])
    for name, reason in (("whole", NO_STEPS), ("part", NO_STEPS_IN_PART)):
        found = diagnose(tmp_path / f"{name}.xplane.pb")
        assert {found.steps, found.step_breakdown} == {Unavailable(reason)}, name


def test_steps_in_windows_are_not_those_of_a_script_that_makes_its_batches_itself() -> None:
    job = replace(results.job_steps(), own_call="step at train.py:4")
    assert set(_steps_of_others({"job_steps": job})) == {"steps", "step_breakdown", "input_stalls"}
    assert (
        _steps_of_others({"job_steps": results.job_steps()}) == _steps_of_others({"job_steps": Unavailable("")}) == {}
    )


def test_what_passes_between_calls_is_a_wait_only_where_windows_show_the_computation_idle_as_long() -> None:
    job = replace(results.job_steps(), own_call="step at train.py:4")
    percent = job.wait_percent or 0.0
    for idle_percent, is_wait in (
        (percent, True),
        (percent - 14, True),
        (percent - 16, False),
        (Unavailable("None."), False),
    ):
        assert _bears_out(SimpleNamespace(idle_percent=idle_percent), job) is is_wait  # type: ignore[arg-type]
    assert not _bears_out(Unavailable("No windows."), job)
    unknown = _without_waits(job)
    assert unknown.own_call is unknown.wait_percent is unknown.first_batch_ns is None
    assert unknown.table.schema == job.table.schema
