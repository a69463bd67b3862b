"""Profile windows by the clock, for a job whose steps are unknown."""

import math
import time
from collections.abc import Callable

from pipeline_lab.capture.recording import Recording
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.note.failures import is_disk_full
from pipeline_lab.worker.record.window_recorder import Window, WindowRecorder, is_taken

FIRST_S = 2.0
"""From the beginning to the first window; each later one waits twice as long, up to the period."""
TICK_S = 0.02
"""Between ticks while a window is open, or due."""
STEPS_IN_WINDOW, LONGEST_S = 2.5, 30.0
"""Steps that a window of a slow job holds, so that one is whole wherever it opens, and its longest time for that."""
MEMORY_PER_FILE_BYTE = 100
"""Bytes that the profiler takes at most for each one of the file that it writes in the end; 52 were measured."""
LONGEST_FIRST_S = 60.0
"""Longest that a window waits for the end of the first step, whose tracing and compiling say nothing of later ones."""
LONGEST_PAUSE_S = 0.25
"""Between ticks while nothing is due: each one holds Python's lock, which the job needs."""


class ClockWindows:
    """Opens a window every n seconds from :meth:`begin` on, and closes it after its length or when it fills the memory.

    Args:
        every_s: From the start of one window to the start of the next.
        length_s: Of one window.
        ceiling_bytes: Memory that one window may add to the process.
        in_step: Open windows at multiples of the period since the epoch, so that all processes of a job record the same
            moments with the same numbers.
        step_ns: Returns how long a step takes; None before that is known. A window that would not hold a whole step is made
            longer.
        in_first_step: Says whether the job is in its first step; a window that is due waits for its end.
    """

    def __init__(
        self,
        recording: Recording,
        recorder: WindowRecorder,
        *,
        every_s: float,
        length_s: float,
        ceiling_bytes: int,
        in_step: bool = False,
        step_ns: Callable[[], float | None] = lambda: None,
        in_first_step: Callable[[], bool] = lambda: False,
    ) -> None:
        self._recording, self._recorder = recording, recorder
        self._every_s, self._length_s, self._ceiling_bytes, self._in_step = every_s, length_s, ceiling_bytes, in_step
        self._step_ns, self._longest_s, self._in_first_step = step_ns, LONGEST_S, in_first_step
        self._usual_s = length_s
        self._cut: Window | None = None
        self._may_wait = not in_step
        self._failed = False
        self._wait_s = min(FIRST_S, every_s)
        self._due_s = math.inf

    def begin(self) -> None:
        """Let windows open; a second call does nothing."""
        if self._due_s == math.inf:
            self._due_s = self._next_due()

    def tick(self) -> None:
        """Do what is due; call often, always from the same thread."""
        with self._recorder.lock:
            window = self._recorder.recorded
            if window is not None:
                age_s = (self._recording.clock.now_ns() - window.started_ns) / NS_PER_S
                if age_s >= max(self._length_s, self._whole_steps_s):
                    self._recorder.close()
            elif self._is_due():
                self._open()

    @property
    def pause_s(self) -> float:
        """How long the next tick can wait, s."""
        if self._recorder.recorded is not None:
            return TICK_S
        waits = self._failed or (self._may_wait and self._in_first_step())
        left_s = LONGEST_PAUSE_S if waits else self._due_s - time.time()
        return min(LONGEST_PAUSE_S, max(TICK_S, left_s))

    def interrupt(self) -> None:
        """Close the open window, if any: what follows is not training."""
        with self._recorder.lock:
            if self._recorder.recorded is not None:
                self._recorder.close()

    @property
    def _whole_steps_s(self) -> float:
        """How long a window has to be to hold whole steps, s; no longer than is bearable."""
        return min(self._longest_s, STEPS_IN_WINDOW * (self._step_ns() or 0.0) / NS_PER_S)

    def watch_memory(self, rss_bytes: int) -> bool:
        """Close a window that fills the memory; say whether one is being flushed."""
        with self._recorder.lock:
            self._recorder.note_memory(rss_bytes)
            window = self._recorder.recorded
            if window is not None and window.growth_bytes > self._ceiling_bytes:
                window.is_shortened, self._cut = True, window
                self._longest_s = self._length_s = max(
                    0.05, 0.8 * (self._recording.clock.now_ns() - window.started_ns) / NS_PER_S
                )
                self._recorder.close()
        return self._recorder.is_flushing

    def finish(self) -> None:
        """Close the open window and wait until it is on disk."""
        self._recorder.close()
        try:
            self._recorder.finish()
        except OSError as error:
            self._report_full(error)

    def _is_due(self) -> bool:
        late_s = time.time() - self._due_s
        self._may_wait = self._may_wait and late_s < LONGEST_FIRST_S
        waits = self._may_wait and self._in_first_step()
        return self._recorder.is_ready and not self._failed and late_s >= 0 and not waits

    def _open(self) -> None:
        self._due_s = self._next_due()
        self._forgive()
        try:
            self._recorder.check()
            self._recorder.open(number=self._number())
        except Exception as error:  # the profiler raises any of TensorFlow's; the job is not to suffer
            self._refused(error)

    def _forgive(self) -> None:
        """Let windows be as long as they were where the one that filled the memory turned out small: it was the job that grew."""
        window, self._cut = self._cut, None
        if window is not None and 0 < MEMORY_PER_FILE_BYTE * window.size_bytes < window.growth_bytes:
            self._ceiling_bytes += window.growth_bytes
            self._longest_s, self._length_s = LONGEST_S, self._usual_s

    def _number(self) -> int | None:
        """Return the number of the window that opens now; None for the next one.

        Traces of several processes are compared by window number. A process may start late or miss a window, so they all
        count periods since the run began.
        """
        if not self._in_step:
            return None
        return int(time.time() // self._every_s) - int(self._recording.begun_s // self._every_s)

    def _next_due(self) -> float:
        """Return when the next window opens, s since the epoch."""
        now_s = time.time()
        if self._in_step:
            return (now_s // self._every_s + 1) * self._every_s
        due_s = now_s + self._wait_s
        self._wait_s = min(2 * self._wait_s, self._every_s)
        return due_s

    def _refused(self, error: Exception) -> None:
        if is_disk_full(error):
            self._report_full(error)
        elif is_taken(error):
            self._recorder.report_busy()
        else:
            self._failed = True
            self._recording.note(f"The profiler did not start ({error}); the job continues without it.")

    def _report_full(self, error: Exception) -> None:
        self._failed = True
        self._recording.note(f"No more windows are recorded: the disk is full ({error}).")
