import errno
import itertools
from pathlib import Path

import pytest

from pipeline_lab.capture import clock_windows
from pipeline_lab.capture.clock_windows import MEMORY_PER_FILE_BYTE, ClockWindows
from pipeline_lab.capture.recording import Recording
from pipeline_lab.runs.run_events import NoteEvent, WindowEvent, read_events
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.record.window_recorder import BUSY, WindowRecorder
from tests.worker.fakes import FakeProfiler

MB = 1_000_000


class FakeTime:
    """Time that a test moves; seconds since the epoch, and the recording's clock with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, recording: Recording) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(clock_windows.time, "time", lambda: self.now_s)
        monkeypatch.setattr(recording.clock, "now_ns", lambda: round(self.now_s * 1e9))


class AlreadyExistsError(Exception):
    """Named as TensorFlow's."""


class RefusingProfiler(FakeProfiler):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.refusal = error
        self.asked = 0

    def start(self, logdir: Path) -> None:
        del logdir
        self.asked += 1
        raise self.refusal


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(RunStore(tmp_path), "job", tags=())


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch, recording: Recording) -> FakeTime:
    return FakeTime(monkeypatch, recording)


def _windows(recorder: WindowRecorder, recording: Recording, *, in_step: bool = False) -> ClockWindows:
    windows = ClockWindows(recording, recorder, every_s=10, length_s=1, ceiling_bytes=100 * MB, in_step=in_step)
    windows.begin()
    return windows


def _tick(windows: ClockWindows, recorder: WindowRecorder, now: FakeTime, until_s: float) -> list[float]:
    """Tick every tenth of a second, letting flushes end at once; return when windows opened."""
    opened, was_open = [], False
    for tenth in itertools.count(round(now.now_s * 10)):
        now.now_s = tenth / 10
        if now.now_s > until_s:
            return opened
        windows.tick()
        is_open = recorder.recorded is not None
        if is_open and not was_open:
            opened.append(now.now_s)
        was_open = is_open
        recorder.wait()
    raise AssertionError


def _notes(recording: Recording) -> list[str]:
    return [event.sentence for event in read_events(recording.own.events) if isinstance(event, NoteEvent)]


def test_the_first_windows_come_soon_and_later_ones_at_the_period(recording: Recording, now: FakeTime) -> None:
    recorder = recording.windows(FakeProfiler())
    windows = _windows(recorder, recording)
    assert _tick(windows, recorder, now, 1040) == [1002, 1006, 1014, 1024, 1034]
    windows.finish()
    events = [event for event in read_events(recording.folder.events) if isinstance(event, WindowEvent)]
    assert [round((event.stopped_ns - event.started_ns) / 1e9, 3) for event in events] == [1.0] * 5
    assert {(event.first_step, event.last_step) for event in events} == {(None, None)}


@pytest.mark.parametrize("in_step", [False, True])
def test_no_window_opens_before_the_beginning(recording: Recording, now: FakeTime, in_step: bool) -> None:
    recorder = recording.windows(FakeProfiler())
    windows = ClockWindows(recording, recorder, every_s=10, length_s=1, ceiling_bytes=100 * MB, in_step=in_step)
    assert _tick(windows, recorder, now, 1032) == []
    now.now_s = 1032
    windows.begin()
    windows.begin()
    assert _tick(windows, recorder, now, 1045)[0] == (1040 if in_step else 1034)
    windows.finish()


def test_a_window_ends_where_the_training_is_interrupted(recording: Recording, now: FakeTime) -> None:
    recorder = recording.windows(FakeProfiler())
    windows = _windows(recorder, recording)
    now.now_s += 2
    windows.tick()
    assert recorder.recorded is not None
    now.now_s += 0.3
    windows.interrupt()
    windows.interrupt()
    assert recorder.recorded is None
    windows.finish()
    (window,) = (event for event in read_events(recording.folder.events) if isinstance(event, WindowEvent))
    assert (window.stopped_ns - window.started_ns) / 1e9 == pytest.approx(0.3)


def test_a_window_is_long_enough_to_hold_a_whole_step_of_a_slow_job(recording: Recording, now: FakeTime) -> None:
    recorder = recording.windows(FakeProfiler())
    windows = ClockWindows(
        recording, recorder, every_s=30, length_s=1, ceiling_bytes=100 * MB, step_ns=lambda: 3_400_000_000
    )
    windows.begin()
    _tick(windows, recorder, now, 1012)
    windows.finish()
    window, *_ = (event for event in read_events(recording.folder.events) if isinstance(event, WindowEvent))
    assert (window.stopped_ns - window.started_ns) / 1e9 == pytest.approx(2.5 * 3.4, abs=0.11)


def test_a_window_waits_for_the_end_of_the_first_step_but_not_for_ever(recording: Recording, now: FakeTime) -> None:
    """A first step until 1,017.5 s: the window that was due at 1,002 opens then, and the later ones as ever."""
    recorder = recording.windows(FakeProfiler())
    windows = ClockWindows(
        recording,
        recorder,
        every_s=10,
        length_s=1,
        ceiling_bytes=100 * MB,
        in_first_step=lambda: now.now_s < 1017.5,
    )
    windows.begin()
    assert _tick(windows, recorder, now, 1040) == [1017.5, 1021.5, 1029.5, 1039.5]
    windows.finish()
    endless = ClockWindows(
        recording, recorder, every_s=10, length_s=1, ceiling_bytes=100 * MB, in_first_step=lambda: True
    )
    endless.begin()
    assert _tick(endless, recorder, now, 1125) == [1102.1, 1106.1, 1114.1, 1124.1], (
        "it waits once, and no longer than a minute"
    )
    endless.finish()


def test_processes_in_step_open_at_whole_multiples_of_the_period(recording: Recording, now: FakeTime) -> None:
    now.now_s = 1003.7
    recorder = recording.windows(FakeProfiler())
    windows = _windows(recorder, recording, in_step=True)
    assert _tick(windows, recorder, now, 1032) == [1010, 1020, 1030]
    windows.finish()


def test_processes_in_step_number_their_windows_alike_however_late_one_begins(
    recording: Recording, now: FakeTime
) -> None:
    recording.begun_s = now.now_s = 1003.7
    early, late = recording.windows(FakeProfiler()), recording.windows(FakeProfiler())
    windows = _windows(early, recording, in_step=True)
    _tick(windows, early, now, 1012)
    windows_of_late = _windows(late, recording, in_step=True)
    now.now_s = 1020
    for each, recorder in ((windows, early), (windows_of_late, late)):
        each.tick()
        assert recorder.recorded is not None
        assert recorder.recorded.number == 2


def test_a_window_that_fills_the_memory_closes_and_later_ones_are_shorter(recording: Recording, now: FakeTime) -> None:
    recorder = recording.windows(FakeProfiler(size_bytes=102 * MB // MEMORY_PER_FILE_BYTE))
    windows = _windows(recorder, recording)
    now.now_s += 2
    windows.tick()
    assert recorder.recorded is not None
    before = recorder.recorded.rss_before_bytes
    now.now_s += 0.5
    assert not windows.watch_memory(before + 100 * MB)
    windows.watch_memory(before + 101 * MB)
    assert recorder.recorded is None
    recorder.wait()
    assert _tick(windows, recorder, now, 1008) == [1006]
    windows.finish()
    first, second = (event for event in read_events(recording.folder.events) if isinstance(event, WindowEvent))
    assert first.shortened
    assert (second.stopped_ns - second.started_ns) / 1e9 == pytest.approx(0.4, abs=0.11)


def test_a_window_that_turns_out_small_did_not_fill_the_memory_and_shortens_none(
    recording: Recording, now: FakeTime
) -> None:
    recorder = recording.windows(FakeProfiler(size_bytes=1000))
    windows = _windows(recorder, recording)
    now.now_s += 2
    windows.tick()
    window = recorder.recorded
    assert window is not None
    now.now_s += 0.5
    windows.watch_memory(window.rss_before_bytes + 101 * MB)
    recorder.wait()
    assert window.size_bytes < 101 * MB / MEMORY_PER_FILE_BYTE
    now.now_s = 1006
    windows.tick()
    again = recorder.recorded
    assert again is not None
    windows.watch_memory(again.rss_before_bytes + 200 * MB)
    assert recorder.recorded is again, "the job's memory may grow as much once more"
    now.now_s += 0.9
    windows.tick()
    assert recorder.recorded is again
    now.now_s += 0.2
    windows.tick()
    assert recorder.recorded is None, "as long as windows usually are"
    windows.finish()


def test_while_the_script_profiles_itself_no_window_opens_and_a_sentence_says_so(
    recording: Recording, now: FakeTime
) -> None:
    profiler = RefusingProfiler(AlreadyExistsError())
    recorder = recording.windows(profiler)
    windows = _windows(recorder, recording)
    assert _tick(windows, recorder, now, 1025) == []
    windows.finish()
    assert profiler.asked == 4
    assert _notes(recording) == [BUSY]


def test_a_paused_recorder_opens_nothing_until_it_is_resumed(recording: Recording, now: FakeTime) -> None:
    recorder = recording.windows(FakeProfiler())
    windows = _windows(recorder, recording)
    now.now_s = 1002
    windows.tick()
    assert recorder.recorded is not None
    recorder.pause()
    assert recorder.recorded is None
    assert _tick(windows, recorder, now, 1008) == []
    recorder.resume()
    assert _tick(windows, recorder, now, 1009)
    windows.finish()
    assert len(recording.folder.windows()) == 2


def test_a_full_disk_ends_the_windows_and_not_the_job(recording: Recording, now: FakeTime) -> None:
    profiler = RefusingProfiler(OSError(errno.ENOSPC, "No space left on device"))
    recorder = recording.windows(profiler)
    windows = _windows(recorder, recording)
    assert _tick(windows, recorder, now, 1030) == []
    windows.finish()
    assert profiler.asked == 1
    assert "disk is full" in _notes(recording)[0]


def test_between_windows_it_looks_rarely_and_is_there_when_one_is_due(recording: Recording, now: FakeTime) -> None:
    windows = _windows(recording.windows(FakeProfiler()), recording)
    pauses = []
    for now.now_s in (1000.0, 1001.875, 1002.0):
        pauses.append(windows.pause_s)
    windows.tick()  # opens the first window
    pauses.append(windows.pause_s)
    now.now_s = 1003.0
    windows.tick()
    pauses.append(windows.pause_s)
    assert pauses == [0.25, 0.125, 0.02, 0.02, 0.25]
    windows.finish()
