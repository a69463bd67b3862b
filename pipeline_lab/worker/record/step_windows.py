"""Profile windows by the step: a few steps in every n are recorded."""

from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.runs.run_events import NoteEvent
from pipeline_lab.units import BYTES_PER_MB
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.note.failures import is_disk_full
from pipeline_lab.worker.record.window_recorder import NO_WINDOW, Window, WindowRecorder, is_taken


class StepWindows:
    """Opens and closes windows as training steps go by.

    The training thread calls :meth:`before_step` and :meth:`after_step`; another thread may call :meth:`watch_memory`, so
    that not even an endless step fills the memory.

    Args:
        options: How long windows are, and how often they open.
        recorder: Records them.
        log: For remarks.
        first_step: The first step that may be recorded.
        max_cost_share: A window waits until the last one has cost no more than this share of the time; None for no limit.
    """

    def __init__(
        self,
        options: ProfilingOptions,
        recorder: WindowRecorder,
        log: EventLog,
        *,
        first_step: int = 0,
        max_cost_share: float | None = None,
    ) -> None:
        self._max_cost_share = max_cost_share
        self._options, self._recorder, self._log = options, recorder, log
        self._step = 0
        self._steps_limit = options.steps_per_window
        self._next_step: int | None = first_step if options.enabled else None

    @property
    def is_flushing(self) -> bool:
        return self._recorder.is_flushing

    @property
    def number(self) -> int:
        """Number of the window that records, ``NO_WINDOW`` if none does."""
        window = self._recorder.recorded
        return NO_WINDOW if window is None else window.number

    def before_step(self, step: int) -> None:
        """Open a window if one is due.

        Raises:
            OSError: The disk was full when an earlier window was written.
        """
        self._step = step
        self._recorder.check()
        if self._next_step is None or step < self._next_step or not self._recorder.is_ready:
            return
        if self._max_cost_share is not None and not self._recorder.has_paid(self._max_cost_share):
            return
        self._next_step = step + self._options.every_steps
        with self._recorder.lock:
            self._open(step)

    def after_step(self, step: int) -> None:
        """Close the window if it is long or large enough."""
        if self._recorder.recorded is None:
            return
        with self._recorder.lock:
            self._recorder.note_memory()
            window = self._recorder.recorded
            if window is not None:
                window.last_step = step
                if _steps(window) >= self._steps_limit or self._is_next_step_too_much(window):
                    self._close(window)

    def watch_memory(self, rss_bytes: int) -> bool:
        """Close the window if it fills the memory during a step; return whether one is being flushed.

        The memory is more urgent than the device's work on that step, which the window then lacks.
        """
        with self._recorder.lock:
            self._recorder.note_memory(rss_bytes)
            window = self._recorder.recorded
            if window is not None and window.growth_bytes > self._ceiling_bytes:
                window.last_step = self._step
                self._close(window, settles=False)
        return self.is_flushing

    def interrupt(self) -> None:
        """Close the open window, if any: no training follows."""
        with self._recorder.lock:
            window = self._recorder.recorded
            if window is not None:
                self._close(window)

    def stop(self) -> None:
        """Open no more windows."""
        self._next_step = None

    def finish(self) -> None:
        """Close the open window, if any, and wait until it is on disk.

        Raises:
            OSError: The disk is full.
        """
        self.stop()
        self.interrupt()
        self._recorder.finish()

    @property
    def _ceiling_bytes(self) -> int:
        return self._options.memory_ceiling_mb * BYTES_PER_MB

    def _is_next_step_too_much(self, window: Window) -> bool:
        steps = _steps(window)
        return window.growth_bytes * (steps + 1) > self._ceiling_bytes * steps

    def _open(self, step: int) -> None:
        try:
            self._recorder.open(step).last_step = step - 1
        except Exception as error:  # the profiler raises any of TensorFlow's; the job is not to suffer
            if is_disk_full(error):
                raise
            if is_taken(error):
                self._recorder.report_busy()
                return
            self._log.write(NoteEvent(f"The profiler did not start ({error}); the run continues without it."))
            self._next_step = None

    def _close(self, window: Window, *, settles: bool = True) -> None:
        steps = _steps(window)
        if self._is_next_step_too_much(window):
            self._steps_limit = max(1, min(self._steps_limit, steps))
        window.is_shortened = self._steps_limit < self._options.steps_per_window
        self._recorder.close(settles=settles)


def _steps(window: Window) -> int:
    """Return how many complete steps a window has recorded."""
    if window.first_step is None or window.last_step is None:
        return 0
    return window.last_step - window.first_step + 1
