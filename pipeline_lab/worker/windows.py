"""Profile windows: short recordings, each written to disk while training goes on.

TensorFlow keeps every event in memory (about 1 kB each) until its profiler is stopped, and has one profiler per
process. So a window is a few steps long, its ``stop()``, which gathers and writes the events, runs on a thread of its
own, at low priority, and the next window opens only when that is done. What lies between two windows is a capture gap.

Every window records into a scratch folder of its own, because TensorFlow names sessions to the second, and moves to
its place in the run in one rename: readers never see half a window.
"""

import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.runs.events import NoteEvent, WindowEvent
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.event_log import EventLog
from pipeline_lab.worker.failures import is_disk_full
from pipeline_lab.worker.memory import ResidentMemory, return_free_memory
from pipeline_lab.worker.priority import lower_own_priority

NO_WINDOW = -1
BYTES_PER_MB = 1_000_000


class Profiler(Protocol):
    """The part of ``tf.profiler.experimental`` that windows use."""

    def start(self, logdir: Path) -> None: ...

    def stop(self, *, save: bool) -> None: ...


@dataclass
class _Window:
    """A window that is being recorded or flushed; memory in bytes."""

    number: int
    first_step: int
    started_ns: int
    start_cost_ns: int
    rss_before_bytes: int
    rss_peak_bytes: int
    last_step: int
    stopped_ns: int = 0
    stop_cost_ns: int = 0
    is_shortened: bool = False

    @property
    def name(self) -> str:
        return f"window-{self.number:04d}"

    @property
    def steps(self) -> int:
        return self.last_step - self.first_step + 1

    @property
    def growth_bytes(self) -> int:
        return self.rss_peak_bytes - self.rss_before_bytes


class ProfileWindows:
    """Opens and closes windows as training steps go by.

    The training thread calls :meth:`before_step` and :meth:`after_step`; a watcher may call :meth:`watch_memory` from
    another thread, so that even one endless step cannot fill the memory.
    """

    def __init__(
        self, options: ProfilingOptions, folder: RunFolder, profiler: Profiler, log: EventLog, clock: Clock
    ) -> None:
        self._options, self._folder, self._profiler, self._log, self._clock = options, folder, profiler, log, clock
        self._memory = ResidentMemory()
        self._lock = threading.Lock()
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="flush", initializer=lower_own_priority)
        self._flush: Future[None] | None = None
        self._window: _Window | None = None
        self._failure: Exception | None = None
        self._count, self._step = 0, 0
        self._steps_limit = options.steps_per_window
        self._next_step: int | None = 0 if options.enabled else None

    @property
    def is_flushing(self) -> bool:
        return self._flush is not None and not self._flush.done()

    @property
    def number(self) -> int:
        """Number of the window that records, ``NO_WINDOW`` if none does."""
        window = self._recorded()
        return NO_WINDOW if window is None else window.number

    def before_step(self, step: int) -> None:
        """Open a window if one is due.

        Raises:
            OSError: The disk was full when an earlier window was written.
        """
        self._step = step
        if self._failure is not None:
            raise self._failure
        if self._next_step is None or step < self._next_step or self._window is not None:
            return
        self._next_step = step + self._options.every_steps
        with self._lock:
            self._open(step)

    def after_step(self, step: int) -> None:
        """Close the window if it is long or large enough."""
        if self._window is None:
            return
        with self._lock:
            self._note_memory(self._memory.read_bytes())
            window = self._recorded()
            if window is not None:
                window.last_step = step
                if window.steps >= self._steps_limit or self._is_next_step_too_much(window):
                    self._close(window)

    def watch_memory(self, rss_bytes: int) -> bool:
        """Close the window if it fills the memory in the middle of a step; say whether one is being flushed."""
        with self._lock:
            self._note_memory(rss_bytes)
            window = self._recorded()
            if window is not None and window.growth_bytes > self._ceiling_bytes:
                window.last_step = self._step
                self._close(window)
        return self.is_flushing

    def finish(self) -> None:
        """Close the window that is open, if any, and wait until it is on disk.

        Raises:
            OSError: The disk is full.
        """
        with self._lock:
            window = self._recorded()
            if window is not None:
                self._close(window)
        self._next_step = None
        self._flusher.shutdown(wait=True)
        if self._failure is not None:
            raise self._failure

    def _recorded(self) -> _Window | None:
        """Return the window that is being recorded, not one that is only being flushed."""
        window = self._window
        return window if window is not None and window.stopped_ns == 0 else None

    @property
    def _ceiling_bytes(self) -> int:
        return self._options.memory_ceiling_mb * BYTES_PER_MB

    def _note_memory(self, rss_bytes: int) -> None:
        window = self._window
        if window is not None:
            window.rss_peak_bytes = max(window.rss_peak_bytes, rss_bytes)

    def _is_next_step_too_much(self, window: _Window) -> bool:
        return window.growth_bytes * (window.steps + 1) > self._ceiling_bytes * window.steps

    def _open(self, step: int) -> None:
        rss_bytes, begun_ns = self._memory.read_bytes(), self._clock.now_ns()
        scratch = self._scratch(self._count + 1)
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            self._profiler.start(scratch)
        except Exception as error:
            if is_disk_full(error):
                raise
            self._log.write(NoteEvent(f"The profiler did not start ({error}); the run goes on without it."))
            self._next_step = None
            return
        self._count += 1
        started_ns = self._clock.now_ns()
        self._window = _Window(
            self._count, step, started_ns, started_ns - begun_ns, rss_bytes, rss_bytes, last_step=step - 1
        )

    def _close(self, window: _Window) -> None:
        """Hand the window to the flush thread; the caller holds the lock."""
        window.stopped_ns = self._clock.now_ns()
        if self._is_next_step_too_much(window):
            self._steps_limit = max(1, min(self._steps_limit, window.steps))
        window.is_shortened = self._steps_limit < self._options.steps_per_window
        self._flush = self._flusher.submit(self._write, window)
        window.stop_cost_ns = self._clock.now_ns() - window.stopped_ns

    def _write(self, window: _Window) -> None:
        """Gather and write a window's events; runs on the flush thread."""
        try:
            self._save(window)
        except Exception as error:
            self._failure = error
        finally:
            return_free_memory()
            self._window = None

    def _save(self, window: _Window) -> None:
        scratch = self._scratch(window.number)
        try:
            self._profiler.stop(save=window.steps > 0)
            if window.steps > 0:
                self._report(window, _publish(scratch, self._folder.window(window.name)))
        except Exception as error:
            if is_disk_full(error):
                raise
            self._log.write(NoteEvent(f"Profile {window.name} was lost: {error}."))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _report(self, window: _Window, size_bytes: int) -> None:
        with self._lock:
            self._note_memory(self._memory.read_bytes())
        event = WindowEvent(
            name=window.name,
            first_step=window.first_step,
            last_step=window.last_step,
            started_ns=window.started_ns,
            stopped_ns=window.stopped_ns,
            flushed_ns=self._clock.now_ns(),
            start_cost_ns=window.start_cost_ns,
            stop_cost_ns=window.stop_cost_ns,
            size_bytes=size_bytes,
            rss_before_bytes=window.rss_before_bytes,
            rss_peak_bytes=window.rss_peak_bytes,
            shortened=window.is_shortened,
        )
        self._log.write(event)

    def _scratch(self, number: int) -> Path:
        return self._folder.scratch / f"window-{number:04d}"


def _publish(scratch: Path, target: Path) -> int:
    """Move the session that the profiler wrote to its place and return its size, bytes."""
    traces = sorted(scratch.rglob("*.xplane.pb"))
    if not traces:
        raise FileNotFoundError("the profiler wrote no trace")
    session = traces[0].parent
    size_bytes = sum(file.stat().st_size for file in session.iterdir())
    if size_bytes == 0:
        raise ValueError("it holds more than the profiler can write (2 GiB); choose fewer steps per window")
    target.parent.mkdir(parents=True, exist_ok=True)
    session.rename(target)
    return size_bytes
