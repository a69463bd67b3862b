import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.runs.run_events import NoteEvent, WindowEvent, read_events
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.record import window_recorder
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.record.window_recorder import BUSY, NO_WINDOW, WindowRecorder
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import TRACE, FakeMemory, FakeProfiler, make_job

MB = 1_000_000
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return make_job(tmp_path, SYNTHETIC.options)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> FakeMemory:
    fake = FakeMemory()
    monkeypatch.setattr(window_recorder, "ResidentMemory", lambda: fake)
    return fake


def _windows(job: Job, profiler: FakeProfiler, steps: int = 2, every: int = 5) -> StepWindows:
    options = ProfilingOptions(steps_per_window=steps, every_steps=every, memory_ceiling_mb=100)
    return StepWindows(options, WindowRecorder(job.folder, profiler, job.log, job.clock), job.log)


def _run(windows: StepWindows, steps: range) -> list[int]:
    """Take steps, letting each flush end before the next step; return the window of each."""
    numbers = []
    for step in steps:
        windows.before_step(step)
        numbers.append(windows.number)
        windows.after_step(step)
        while windows.is_flushing:
            pass
    return numbers


def _spans(job: Job) -> list[tuple[str, int, int]]:
    events = [event for event in read_events(job.folder.events) if isinstance(event, WindowEvent)]
    return [(event.name, event.first_step, event.last_step) for event in events]


def test_a_window_opens_every_so_many_steps_and_the_first_with_the_first_step(job: Job) -> None:
    windows = _windows(job, FakeProfiler())
    assert _run(windows, range(3, 11)) == [1, 1, NO_WINDOW, NO_WINDOW, NO_WINDOW, 2, 2, NO_WINDOW]
    windows.finish()
    assert _spans(job) == [("window-0001", 3, 4), ("window-0002", 8, 9)]


def test_each_window_lies_in_a_session_folder_of_its_own_and_nothing_else_is_left(job: Job) -> None:
    windows = _windows(job, FakeProfiler())
    _run(windows, range(7))
    windows.finish()
    traces = [folder / "host.xplane.pb" for folder in job.folder.windows()]
    assert [trace.parent.name for trace in traces] == ["window-0001", "window-0002"]
    assert all(trace.read_bytes() == TRACE for trace in traces)
    assert list(job.folder.scratch.iterdir()) == []


def test_the_devices_are_settled_before_a_window_opens_and_before_it_closes(job: Job) -> None:
    profiler = FakeProfiler()
    windows = _windows(job, profiler)
    _run(windows, range(7))
    windows.finish()
    assert profiler.settled_before == ["start", "stop", "start", "stop"]


def test_the_flush_runs_on_another_thread(job: Job) -> None:
    profiler = FakeProfiler()
    windows = _windows(job, profiler)
    _run(windows, range(2))
    windows.finish()
    assert profiler.threads != [threading.get_ident()]


def test_the_next_window_waits_for_the_flush(job: Job) -> None:
    profiler = FakeProfiler(is_slow=True)
    windows = _windows(job, profiler, steps=1, every=1)
    for step in range(3):
        windows.before_step(step)
        windows.after_step(step)
        assert windows.is_flushing
    profiler.may_end.set()
    while windows.is_flushing:
        pass
    assert _run(windows, range(3, 4)) == [2]
    windows.finish()
    assert _spans(job) == [("window-0001", 0, 0), ("window-0002", 3, 3)]


def test_a_job_shorter_than_a_window_still_gets_one(job: Job) -> None:
    windows = _windows(job, FakeProfiler(), steps=5)
    _run(windows, range(3))
    windows.finish()
    assert _spans(job) == [("window-0001", 0, 2)]


def test_a_window_without_a_step_is_not_kept(job: Job) -> None:
    profiler = FakeProfiler()
    windows = _windows(job, profiler)
    windows.before_step(0)
    windows.finish()
    assert profiler.saves == [False]
    assert job.folder.windows() == []


def test_profiling_that_is_off_opens_nothing(job: Job) -> None:
    windows = StepWindows(
        ProfilingOptions(enabled=False), WindowRecorder(job.folder, FakeProfiler(), job.log, job.clock), job.log
    )
    assert _run(windows, range(20)) == [NO_WINDOW] * 20
    windows.finish()
    assert job.folder.windows() == []


def test_a_window_closes_before_the_step_that_would_cross_the_ceiling_and_later_ones_are_as_short(
    job: Job, memory: FakeMemory
) -> None:
    windows = _windows(job, FakeProfiler(), steps=10, every=10)
    for step in range(14):
        windows.before_step(step)
        if windows.number != NO_WINDOW:
            memory.rss_bytes += 40 * MB  # after two steps 80 MB are taken: a third would make 120 of the allowed 100
        windows.after_step(step)
        while windows.is_flushing:
            pass
    windows.finish()
    assert _spans(job) == [("window-0001", 0, 1), ("window-0002", 10, 11)]
    events = [event for event in read_events(job.folder.events) if isinstance(event, WindowEvent)]
    assert [event.shortened for event in events] == [True, True]
    assert [event.rss_peak_bytes - event.rss_before_bytes for event in events] == [80 * MB, 80 * MB]


def test_the_watcher_closes_a_window_in_the_middle_of_a_step(job: Job, memory: FakeMemory) -> None:
    windows = _windows(job, FakeProfiler(), steps=10, every=10)
    windows.before_step(0)
    assert not windows.watch_memory(memory.rss_bytes + 100 * MB)
    assert windows.watch_memory(memory.rss_bytes + 101 * MB)
    assert windows.number == NO_WINDOW
    windows.finish()
    assert _spans(job) == [("window-0001", 0, 0)]


def test_the_watcher_does_not_wait_for_the_devices(job: Job, memory: FakeMemory) -> None:
    """The training thread, which may go on giving them work, would wait for the lock."""
    profiler = FakeProfiler()
    windows = _windows(job, profiler)
    windows.before_step(0)
    windows.watch_memory(memory.rss_bytes + 101 * MB)
    windows.finish()
    assert profiler.saves == [True]
    assert profiler.settled_before == ["start"]


LOADING_NS, SETTLING_NS = 5_000, 30


class TimedProfiler(FakeProfiler):
    """Takes time to load and to wait for the devices, none for the rest."""

    now_ns = 0

    def load(self) -> None:
        self.now_ns += LOADING_NS

    def settle(self) -> None:
        super().settle()
        self.now_ns += SETTLING_NS


def test_waiting_for_the_devices_is_a_cost_of_the_window_and_loading_the_profiler_is_not(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = TimedProfiler()
    monkeypatch.setattr(job.clock, "now_ns", lambda: profiler.now_ns)
    recorder = WindowRecorder(job.folder, profiler, job.log, job.clock)
    window = recorder.open()
    recorder.close()
    recorder.finish()
    assert (window.start_cost_ns, window.stop_cost_ns) == (SETTLING_NS, SETTLING_NS)
    assert (window.started_ns, window.stopped_ns) == (LOADING_NS + SETTLING_NS, LOADING_NS + 2 * SETTLING_NS)
    assert window.cost_ns >= 2 * SETTLING_NS


def test_a_full_disk_in_a_flush_ends_the_job(job: Job) -> None:
    windows = _windows(job, FakeProfiler(error=OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        _run(windows, range(5))


def test_a_full_disk_in_the_last_flush_is_seen_at_the_end(job: Job) -> None:
    windows = _windows(job, FakeProfiler(error=OSError(errno.ENOSPC, "No space left on device")), steps=5)
    _run(windows, range(1))
    with pytest.raises(OSError, match="No space left"):
        windows.finish()


def test_a_window_that_fails_otherwise_is_lost_and_the_job_goes_on(job: Job) -> None:
    windows = _windows(job, FakeProfiler(error=RuntimeError("broken")))
    _run(windows, range(4))
    windows.finish()
    notes = [event for event in read_events(job.folder.events) if isinstance(event, NoteEvent)]
    assert [note.sentence for note in notes] == ["Profile window-0001 was lost: broken."]
    assert job.folder.windows() == []


def test_the_first_window_can_wait_for_a_step(job: Job) -> None:
    options = ProfilingOptions(steps_per_window=2, every_steps=5)
    recorder = WindowRecorder(job.folder, FakeProfiler(), job.log, job.clock)
    windows = StepWindows(options, recorder, job.log, first_step=3)
    assert _run(windows, range(10)) == [NO_WINDOW] * 3 + [1, 1] + [NO_WINDOW] * 3 + [2, 2]
    windows.finish()


class AlreadyExistsError(Exception):
    """Named as TensorFlow's."""


class TakenProfiler(FakeProfiler):
    """Refuses to start a first time, as while somebody else's session is on."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0

    def start(self, logdir: Path) -> None:
        if not self.refusals:
            self.refusals += 1
            raise AlreadyExistsError
        super().start(logdir)


def test_a_profiler_that_is_taken_is_tried_again_when_the_next_window_is_due(job: Job) -> None:
    windows = _windows(job, TakenProfiler())
    assert _run(windows, range(7)) == [NO_WINDOW] * 5 + [1, 1]
    windows.finish()
    assert [event.sentence for event in read_events(job.folder.events) if isinstance(event, NoteEvent)] == [BUSY]


def test_a_window_that_is_given_away_within_its_first_step_is_dropped(job: Job) -> None:
    profiler = FakeProfiler()
    recorder = WindowRecorder(job.folder, profiler, job.log, job.clock)
    windows = StepWindows(ProfilingOptions(), recorder, job.log)
    windows.before_step(0)
    recorder.pause()
    windows.after_step(0)
    recorder.resume()
    windows.finish()
    assert profiler.saves == [False]
    assert _spans(job) == []


@pytest.mark.slow
def test_a_window_that_is_due_waits_until_the_one_before_has_paid(job: Job) -> None:
    options = ProfilingOptions(steps_per_window=1, every_steps=2, memory_ceiling_mb=100)
    for share, taken in ((None, 3), (1e-12, 1), (1e12, 3)):
        recorder = WindowRecorder(job.folder, FakeProfiler(), job.log, job.clock, process=f".{share}")
        windows = StepWindows(options, recorder, job.log, max_cost_share=share)
        assert len({*_run(windows, range(6))} - {NO_WINDOW}) == taken
        windows.finish()


AT_THE_END = """
import atexit, sys
from pathlib import Path
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from tests.worker.fakes import FakeProfiler

folder = RunFolder(Path(sys.argv[1]))
recorder = WindowRecorder(folder, FakeProfiler(), EventLog(folder.events), Clock())
recorder.open()
atexit.register(recorder.finish)
atexit.register(recorder.close)
"""


@pytest.mark.slow
def test_a_window_that_is_open_when_the_interpreter_ends_is_written(tmp_path: Path) -> None:
    """Threads are no help then: the pool that flushes takes no work any more."""
    subprocess.run([sys.executable, "-c", AT_THE_END, str(tmp_path)], cwd=ROOT, check=True)
    assert [event.name for event in read_events(tmp_path / "events.jsonl") if isinstance(event, WindowEvent)] == [
        "window-0001"
    ]
