import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.capture.recording import JobProcess, Recording, find_process
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.record import RunState, this_process
from pipeline_lab.runs.run_folder import update_record
from pipeline_lab.runs.store import RunStore
from tests.worker.fakes import FakeProfiler


def _record_window(recording: Recording) -> None:
    recorder = recording.windows(FakeProfiler())
    recorder.open()
    recorder.close()
    recorder.finish()


def test_a_lone_process_owns_its_run(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    recording = Recording(store, "job", tags=("watched",))
    _record_window(recording)
    assert store.read(recording.folder.id).status.state is RunState.RUNNING
    recording.end(RunState.DONE)
    record = store.read(recording.folder.id)
    assert (record.status.state, record.name, record.tags) == (RunState.DONE, "job", ("watched",))
    assert not recording.folder.scratch.exists()


def test_processes_of_one_job_record_into_one_run(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first, second = (Recording(store, "job", tags=(), process=JobProcess(rank, 2, "job-7")) for rank in (0, 1))
    assert second.folder.path == first.folder.path
    assert second.own.path != first.own.path
    for recording in (first, second):
        _record_window(recording)
    (window,) = first.folder.windows()
    assert sorted(trace.name for trace in window.iterdir()) == ["host.rank0.xplane.pb", "host.rank1.xplane.pb"]
    second.end(RunState.FAILED, "This one has no say.")
    assert store.read(first.folder.id).status.state is RunState.RUNNING
    first.end(RunState.DONE)
    assert store.read(first.folder.id).status.state is RunState.DONE


def test_a_process_whose_first_one_never_came_records_a_run_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_job_runs.join, "__defaults__", (0.0,))
    store = RunStore(tmp_path)
    earlier = Recording(store, "job", tags=(), process=JobProcess(0, 2, "job-7"))
    earlier.end(RunState.DONE)
    late = Recording(store, "job", tags=(), process=JobProcess(1, 2, "job-7"))
    assert late.is_owner
    assert late.folder.path != earlier.folder.path
    late.end(RunState.DONE)
    assert len(store.runs()) == 2


def test_the_first_process_takes_nothing_with_it_that_others_record(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first, second = (Recording(store, "job", tags=(), process=JobProcess(rank, 2, "job-7")) for rank in (0, 1))

    class Profiler(FakeProfiler):
        def stop(self, *, save: bool) -> None:
            super().stop(save=save)
            first.end(RunState.DONE)

    recorder = second.windows(Profiler())
    recorder.open()
    recorder.close()
    recorder.finish()
    second.end(RunState.DONE)
    assert [trace.name for trace in first.folder.windows()[0].iterdir()] == ["host.rank1.xplane.pb"]
    assert not second.own.scratch.exists()


def test_a_run_whose_first_process_was_killed_is_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_job_runs.join, "__defaults__", (0.0,))
    store = RunStore(tmp_path)
    killed = Recording(store, "job", tags=(), process=JobProcess(0, 2, "job-7"))
    somebody_else = replace(this_process(), created_s=0.0, started_ticks=1)
    update_record(
        killed.folder, lambda record: replace(record, status=replace(record.status, supervisor=somebody_else))
    )
    late = Recording(store, "job", tags=(), process=JobProcess(1, 2, "job-7"))
    assert late.folder.path != killed.folder.path


def test_a_process_that_nobody_launched_is_alone() -> None:
    assert find_process({}) == JobProcess(0, 1, "")
    assert find_process({}).label == ""


@pytest.mark.parametrize(
    "environment",
    [
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "job-7"},
        {"PMI_RANK": "2", "PMI_SIZE": "4", "PMI_JOBID": "job-7"},
        {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"},
    ],
)
def test_launchers_say_which_process_it_is(environment: dict[str, str]) -> None:
    place = find_process(environment)
    assert (place.rank, place.size, place.label) == (2, 4, ".rank2")
    assert "7" in place.job


def test_tf_config_counts_the_chief_first() -> None:
    cluster = {"worker": ["a:1", "b:1"], "chief": ["c:1"], "ps": ["d:1"]}
    places = {
        (kind, index): find_process(
            {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}
        )
        for kind, index in (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0))
    }
    assert [places[key].rank for key in (("chief", 0), ("worker", 0), ("worker", 1))] == [0, 1, 2]
    assert len({places[key].job for key in (("chief", 0), ("worker", 0), ("worker", 1))}) == 1
    assert places["ps", 0] == JobProcess()


@pytest.mark.parametrize(
    "environment",
    [
        {"TF_CONFIG": "no json"},
        {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
        {"PMI_RANK": "9", "PMI_SIZE": "4"},
        {"PMI_RANK": "two", "PMI_SIZE": "4"},
    ],
)
def test_what_names_no_group_leaves_the_process_alone(environment: dict[str, str]) -> None:
    assert find_process(environment) == JobProcess()


def test_a_job_can_be_named_by_hand() -> None:
    assert find_process({"PMI_RANK": "0", "PMI_SIZE": "2", "PIPELINE_LAB_JOB": "mine"}).job == "mine"
