"""The run that a training of one's own records into, step by step; trouble with the recording is kept away from it."""

import atexit
import contextlib
import os
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from pipeline_lab.capture.place import find_place
from pipeline_lab.capture.profilers import OwnProfiler
from pipeline_lab.capture.recording import Recording, Sampler
from pipeline_lab.capture.yielding import make_room_for_others
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.runs.events import FailureEvent, ProgressEvent
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import open_store
from pipeline_lab.worker.code_places import explain
from pipeline_lab.worker.device import describe_gpus
from pipeline_lab.worker.environment import describe_environment
from pipeline_lab.worker.windows import StepWindows

TAG = "captured"
PROGRESS_PERIOD_S = 0.5
STOPPED = "Recording was stopped; the training went on."


class TrainingSession:
    """A recording under way, from the first step to its end; it may end before the training does.

    Args:
        store: Folder of the runs; None for the store that the command line and the app use too.
        name: Of the run.
        options: The windows.
        first_step: Of the first window.
        max_cost_share: Share of the time that windows may cost; None takes them all.

    Attributes:
        begun_by: Process and thread.
    """

    def __init__(
        self,
        store: str | Path | None,
        name: str,
        options: ProfilingOptions,
        first_step: int,
        max_cost_share: float | None,
    ) -> None:
        _end_those_left_open()
        place = find_place(os.environ)
        self.recording = Recording(open_store(None if store is None else Path(store)), name, tags=(TAG,), place=place)
        gpus = describe_gpus()
        device = f"GPU 0: {gpus[0]['name']}" if gpus else "CPU"
        self.recording.describe({"command": shlex.join(sys.argv), **describe_environment(device, gpus)})
        self.recording.enter("training")
        recorder = self.recording.windows(OwnProfiler())
        make_room_for_others(recorder.pause, recorder.resume)
        self._windows = StepWindows(
            options, recorder, self.recording.log, first_step=first_step, max_cost_share=max_cost_share
        )
        self._sampler = Sampler(self.recording.own, self.recording.clock, self._windows.watch_memory)
        self._begun_s = self._reported_s = time.monotonic()
        self._steps, self._is_over = 0, False
        self.begun_by = _who()
        _open.append(self)
        atexit.register(self._abandon)

    def before_step(self, step: int) -> None:
        if not self._is_over:
            with self._unharmed():
                self._windows.before_step(step)

    def after_step(self, step: int) -> None:
        if self._is_over:
            return
        is_report_due = time.monotonic() - self._reported_s >= PROGRESS_PERIOD_S
        with self._unharmed():
            self._windows.after_step(step)
            self._steps = step + 1
            if is_report_due:
                self._report()
        if is_report_due and self.recording.folder.cancel_flag.exists():  # set by the app
            self._close()
            self.recording.end(RunState.CANCELLED, STOPPED)

    def end(self, error: BaseException | None) -> None:
        """Write what is open and say how it ended; a second call does nothing."""
        if self._is_over:
            return
        self._close()
        if error is None or isinstance(error, GeneratorExit):
            self.recording.end(RunState.DONE)
        elif isinstance(error, KeyboardInterrupt):
            self.recording.end(RunState.CANCELLED, "Interrupted (Ctrl-C); what was recorded is kept.")
        else:
            sentence = explain(error, Path.cwd(), "The training")
            with contextlib.suppress(OSError):
                self.recording.log.write(FailureEvent(sentence, "".join(traceback.format_exception(error))))
            self.recording.end(RunState.FAILED, sentence)

    def _close(self) -> None:
        """Write what is open; nothing is recorded afterwards."""
        self._is_over = True
        _open.remove(self)
        atexit.unregister(self._abandon)
        with self._unharmed():
            self._report()
            self._windows.finish()
        self._sampler.close()

    @contextlib.contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Keep trouble with the recording, a full disk say, away from the training."""
        try:
            yield
        except OSError as error:
            self.recording.note(f"No more windows are recorded: {error}.")
            self._windows.stop()

    def _report(self) -> None:
        self._reported_s = time.monotonic()
        self.recording.log.write(ProgressEvent(self._steps, None, self._reported_s - self._begun_s, None))

    def _abandon(self) -> None:
        if self.begun_by[0] == os.getpid():  # not at the end of a process that the training has forked
            self.end(getattr(sys, "last_value", None) or PipelineLabError("the process ended before the training did"))


_open: list[TrainingSession] = []
"""The sessions of this process that have not ended."""


def _end_those_left_open() -> None:
    """End what this thread began before and left without a word, as Keras' ``fit`` leaves its callbacks after an error.

    A window that is still open would keep the profiler from every later training of a notebook.
    """
    for session in [each for each in _open if each.begun_by == _who()]:
        session.end(PipelineLabError("the next training began before this one had ended"))


def _who() -> tuple[int, int]:
    """Name the process and the thread that ask."""
    return os.getpid(), threading.get_ident()
