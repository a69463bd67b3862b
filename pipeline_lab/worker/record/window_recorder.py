"""Record one profile window at a time, and write each to disk while training goes on.

TensorFlow keeps every event in memory (about 1 kB each) until its profiler stops, and has one profiler per process. So
windows are short, ``stop()``, which collects and writes the events, runs on a thread of low priority, and the next window
opens only after it. The time between two windows is a capture gap.

Every window records into its own scratch folder, because TensorFlow names sessions to the second, and moves into the run
in one rename: readers never see half a trace.
"""

import contextlib
import shutil
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.run_events import NoteEvent, WindowEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.note.failures import is_disk_full
from pipeline_lab.worker.record.own_process import ResidentMemory, lower_own_priority, return_free_memory

NO_WINDOW = -1
TRACE_SUFFIX = ".xplane.pb"
BUSY = (
    "Something else in this process uses TensorFlow's profiler (the script itself, or its profiler server): its sessions "
    "take precedence, and no window is recorded during them."
)


class Profiler(Protocol):
    """The part of ``tf.profiler.experimental`` that windows use."""

    def load(self) -> None:
        """Load what the first session of a process needs; later calls do nothing."""

    def settle(self) -> None:
        """Wait until the devices have finished their work.

        A loop that never waits for the device runs ahead of it: otherwise, a window would begin with the work of steps that
        were launched before it, and miss that of its last ones.
        """

    def start(self, logdir: Path) -> None: ...

    def stop(self, *, save: bool) -> None: ...


@dataclass
class Window:
    """A window that is being recorded or flushed; memory in bytes.

    ``first_step`` and ``last_step`` are None where steps are not counted. The costs include waiting for the devices.
    """

    number: int
    first_step: int | None
    started_ns: int
    start_cost_ns: int
    rss_before_bytes: int
    rss_peak_bytes: int
    last_step: int | None = None
    stopped_ns: int = 0
    stop_cost_ns: int = 0
    is_shortened: bool = False
    flush_cpu_ns: int = 0
    size_bytes: int = 0

    @property
    def name(self) -> str:
        return f"window-{self.number:04d}"

    @property
    def is_empty(self) -> bool:
        """Whether steps are counted and none has ended."""
        return self.first_step is not None and (self.last_step is None or self.last_step < self.first_step)

    @property
    def growth_bytes(self) -> int:
        return self.rss_peak_bytes - self.rss_before_bytes

    @property
    def cost_ns(self) -> int:
        """Time that it held the training thread, plus CPU time of its flush."""
        return self.start_cost_ns + self.stop_cost_ns + self.flush_cpu_ns


class WindowRecorder:
    """Opens and closes windows on request; a schedule decides when.

    Args:
        process: Suffix of this process's traces among others in the same run; empty for a single process.
        scratch: Private folder on the disk of the run; None for the run's scratch folder.

    Attributes:
        lock: Hold it to check :attr:`recorded` and then act on it.
        windows: Every window so far.
    """

    def __init__(
        self,
        folder: RunFolder,
        profiler: Profiler,
        log: EventLog,
        clock: Clock,
        *,
        process: str = "",
        scratch: Path | None = None,
    ) -> None:
        self._folder, self._profiler, self._log, self._clock, self._process = folder, profiler, log, clock, process
        self._scratches = scratch or folder.scratch
        self._memory = ResidentMemory()
        self.lock = threading.RLock()
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="flush", initializer=lower_own_priority)
        self._flush: Future[None] | None = None
        self._window: Window | None = None
        self._failure: Exception | None = None
        self._count, self._pauses = 0, 0
        self._reported_busy = False
        self._last: Window | None = None
        self.windows: list[Window] = []

    @property
    def recorded(self) -> Window | None:
        """The window that records, not one that is being flushed."""
        window = self._window
        return window if window is not None and window.stopped_ns == 0 else None

    @property
    def is_ready(self) -> bool:
        """Whether a window can open: none is open or being flushed, and nobody else uses the profiler."""
        return self._window is None and not self._pauses

    def has_paid(self, share: float) -> bool:
        """Say whether the last window's cost is at most that share of the time since it began."""
        last = self._last
        return last is None or last.cost_ns <= share * (self._clock.now_ns() - last.started_ns)

    @property
    def is_flushing(self) -> bool:
        return self._flush is not None and not self._flush.done()

    def open(self, first_step: int | None = None, number: int | None = None) -> Window:
        """Open a window.

        Args:
            first_step: The next step, where steps are counted.
            number: Of the window, larger than that of the one before; None for the next.

        Raises:
            Exception: From the profiler, when it does not start.
        """
        self._profiler.load()
        begun_ns = self._clock.now_ns()
        self._profiler.settle()
        rss_bytes = self._memory.read_bytes()
        number = self._count + 1 if number is None else number
        scratch = self._scratch(number)
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            self._profiler.start(scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        self._count = number
        started_ns = self._clock.now_ns()
        self._window = Window(self._count, first_step, started_ns, started_ns - begun_ns, rss_bytes, rss_bytes)
        self.windows.append(self._window)
        return self._window

    def note_memory(self, rss_bytes: int | None = None) -> None:
        """Update the open window's memory peak, from a new reading if none is given."""
        window = self._window
        if window is not None:
            reading = self._memory.read_bytes() if rss_bytes is None else rss_bytes
            window.rss_peak_bytes = max(window.rss_peak_bytes, reading)

    def close(self, *, settles: bool = True) -> None:
        """Hand the open window, if any, to the flush thread, which drops an empty one.

        Args:
            settles: Wait for the devices first, so that the window holds the work of its last steps. False while another
                thread trains: it would have to wait for :attr:`lock` meanwhile.
        """
        with self.lock:
            window = self.recorded
            if window is None:
                return
            begun_ns = self._clock.now_ns()
            if settles:
                self._profiler.settle()
            window.stopped_ns = self._clock.now_ns()
            try:
                self._flush = self._flusher.submit(self._write, window)
            except RuntimeError:  # the interpreter is exiting and starts no threads
                self._write(window)
            window.stop_cost_ns = self._clock.now_ns() - begun_ns

    def pause(self) -> None:
        """Release the profiler: the open window is written, and none opens until :meth:`resume`."""
        self.report_busy()
        with self.lock:
            self._pauses += 1
            self.close()
        self.wait()

    def resume(self) -> None:
        with self.lock:
            self._pauses -= 1

    def report_busy(self) -> None:
        """Report once that something else uses the profiler."""
        if not self._reported_busy:
            self._reported_busy = True
            with contextlib.suppress(OSError):
                self._log.write(NoteEvent(BUSY))

    def check(self) -> None:
        """Raise the error of an earlier window that met a full disk.

        Raises:
            OSError: The disk is full.
        """
        if self._failure is not None:
            raise self._failure

    def finish(self) -> None:
        """Wait until the last window is on disk; nothing opens afterwards.

        Raises:
            OSError: The disk is full.
        """
        self._flusher.shutdown(wait=True)
        self.check()

    def wait(self) -> None:
        """Wait until no window is being flushed."""
        if self._flush is not None:
            self._flush.result()

    def _write(self, window: Window) -> None:
        """Collect and write a window's events; runs on the flush thread."""
        begun_ns = time.thread_time_ns()
        try:
            self._save(window)
        except Exception as error:  # `check` raises it where the job can end
            self._failure = error
        finally:
            return_free_memory()
            window.flush_cpu_ns = time.thread_time_ns() - begun_ns
            self._last, self._window = window, None

    def _save(self, window: Window) -> None:
        scratch = self._scratch(window.number)
        try:
            self._profiler.stop(save=not window.is_empty)
            if not window.is_empty:
                self._report(window, publish(scratch, self._folder.window(window.name), self._process))
        except Exception as error:  # the profiler raises any of TensorFlow's; the job is not to suffer
            if is_disk_full(error):
                raise
            self._log.write(NoteEvent(f"Profile {window.name} was lost: {error}."))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _report(self, window: Window, size_bytes: int) -> None:
        with self.lock:
            self.note_memory()
        window.size_bytes = size_bytes
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
        return self._scratches / f"window-{number:04d}"


def is_taken(error: Exception) -> bool:
    """Say whether the profiler did not start because it is in use; by name, as TensorFlow is not imported here."""
    return type(error).__name__ == "AlreadyExistsError"


def publish(scratch: Path, target: Path, process: str = "") -> int:
    """Move a recorded session into the run and return its size, bytes.

    Args:
        scratch: Folder that the profiler wrote to.
        target: The window's folder.
        process: Suffix of this process's traces, where several processes share the folder.

    Raises:
        FileNotFoundError: The profiler wrote no trace.
        ValueError: The trace is empty, because it was too large for TensorFlow.
    """
    traces = sorted(scratch.rglob(f"*{TRACE_SUFFIX}"))
    if not traces:
        raise FileNotFoundError("the profiler wrote no trace")
    session = traces[0].parent
    size_bytes = sum(file.stat().st_size for file in session.iterdir())
    if size_bytes == 0:
        raise ValueError("it holds more than the profiler can write (2 GiB); choose shorter windows")
    if not process:
        target.parent.mkdir(parents=True, exist_ok=True)
        session.rename(target)
        return size_bytes
    target.mkdir(parents=True, exist_ok=True)
    for trace in traces:
        trace.rename(target / f"{trace.name.removesuffix(TRACE_SUFFIX)}{process}{TRACE_SUFFIX}")
    return size_bytes
