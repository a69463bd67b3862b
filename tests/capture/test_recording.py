from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.capture.place import Place
from pipeline_lab.capture.recording import Recording
from pipeline_lab.runs import recorded
from pipeline_lab.runs.processes import this_process
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore, update_record
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
    first, second = (Recording(store, "job", tags=(), place=Place(rank, 2, "job-7")) for rank in (0, 1))
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
    monkeypatch.setattr(recorded.join, "__defaults__", (0.0,))
    store = RunStore(tmp_path)
    earlier = Recording(store, "job", tags=(), place=Place(0, 2, "job-7"))
    earlier.end(RunState.DONE)
    late = Recording(store, "job", tags=(), place=Place(1, 2, "job-7"))
    assert late.is_owner
    assert late.folder.path != earlier.folder.path
    late.end(RunState.DONE)
    assert len(store.runs()) == 2


def test_the_first_process_takes_nothing_with_it_that_others_record(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    first, second = (Recording(store, "job", tags=(), place=Place(rank, 2, "job-7")) for rank in (0, 1))

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
    monkeypatch.setattr(recorded.join, "__defaults__", (0.0,))
    store = RunStore(tmp_path)
    killed = Recording(store, "job", tags=(), place=Place(0, 2, "job-7"))
    somebody_else = replace(this_process(), created_s=0.0)
    update_record(
        killed.folder, lambda record: replace(record, status=replace(record.status, supervisor=somebody_else))
    )
    late = Recording(store, "job", tags=(), place=Place(1, 2, "job-7"))
    assert late.folder.path != killed.folder.path
