"""Record windows of your own training job, with two lines: as a Keras callback or around a loop.

With Keras::

    model.fit(dataset, callbacks=[ProfileWindows()])

With a loop of your own::

    with ProfileWindows() as windows:
        for batch in windows.steps(dataset):
            train_step(batch)
"""

import atexit
import contextlib
import os
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import keras
from pydantic import ValidationError

from pipeline_lab.capture.device_use import UsedDevice, note_new_sessions
from pipeline_lab.capture.recording import Recording, find_process
from pipeline_lab.capture.sampler import Sampler
from pipeline_lab.capture.script.live_iterators import note_new_iterators
from pipeline_lab.capture.script.noted_datasets import note_new_datasets
from pipeline_lab.capture.script.timed_steps import TimedSteps
from pipeline_lab.capture.shared_profiler import SharedProfiler, make_room_for_others
from pipeline_lab.errors import OptionsError, PipelineLabError
from pipeline_lab.options.explaining import explain_problems
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import FailureEvent, ProgressEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import open_store
from pipeline_lab.worker.note.environment import describe_environment
from pipeline_lab.worker.note.failures import explain_user_error
from pipeline_lab.worker.recipe.keeping import KeptRecipe
from pipeline_lab.worker.recipe.wrapping import ledger
from pipeline_lab.worker.record.own_process import run_beside
from pipeline_lab.worker.record.profiler import mark_step
from pipeline_lab.worker.record.step_windows import StepWindows

note_new_datasets()  # before the script makes any, as imports come first

TAG = "captured"
PROGRESS_PERIOD_S = 0.5
STOPPED = "Recording was stopped; the training went on."


class TrainingSession:
    """A recording in progress; it may end before the training does.

    Args:
        store: Folder of the runs; None for the default store.
        name: Of the run.
        options: The windows.
        first_step: First step of the first window.
        max_cost_share: Share of the time that windows may cost; None for no limit.

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
        _end_abandoned()
        self.recording = Recording(
            open_store(None if store is None else Path(store)), name, tags=(TAG,), process=find_process(os.environ)
        )
        self.recording.describe({"command": shlex.join(sys.argv), **describe_environment()})
        self._device = UsedDevice(self.recording.describe)
        self.recording.enter("training")
        recorder = self.recording.windows(SharedProfiler())
        make_room_for_others(recorder.pause, recorder.resume)
        self._windows = StepWindows(
            options, recorder, self.recording.log, first_step=first_step, max_cost_share=max_cost_share
        )
        self._timed = TimedSteps(self.recording, recorder)
        self._recipe, self._beside = KeptRecipe(self.recording.own, ledger), contextlib.ExitStack()
        self._beside.enter_context(run_beside("recipe", self._keep_recipe))
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
        self._device.look()
        with self._unharmed():
            self._windows.after_step(step)
            self._steps = step + 1
            if is_report_due:
                self._report()
        if is_report_due and self.recording.folder.cancel_flag.exists():  # set by the app
            self._close()
            self.recording.end(RunState.CANCELLED, STOPPED)

    def end(self, error: BaseException | None) -> None:
        """Write the open window and record how it ended; a second call does nothing."""
        if self._is_over:
            return
        self._close()
        if error is None or isinstance(error, GeneratorExit):
            self.recording.end(RunState.DONE)
        elif isinstance(error, KeyboardInterrupt):
            self.recording.end(RunState.CANCELLED, "Interrupted (Ctrl-C); what was recorded is kept.")
        else:
            sentence = explain_user_error(error, Path.cwd(), "The training")
            with contextlib.suppress(OSError):
                self.recording.log.write(FailureEvent(sentence, "".join(traceback.format_exception(error))))
            self.recording.end(RunState.FAILED, sentence)

    def _close(self) -> None:
        """Write the open window; nothing is recorded afterwards."""
        self._is_over = True
        _open.remove(self)
        atexit.unregister(self._abandon)
        with self._unharmed():
            self._report()
            self._windows.finish()
        self._timed.close()
        self._sampler.close()
        self._beside.close()
        self._recipe.write(is_last=True)

    @contextlib.contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Keep failures of the recording, such as a full disk, away from the training."""
        try:
            yield
        except OSError as error:
            self.recording.note(f"No more windows are recorded: {error}.")
            self._windows.stop()

    def _report(self) -> None:
        self._reported_s = time.monotonic()
        self.recording.log.write(ProgressEvent(self._steps, None, self._reported_s - self._begun_s, None))

    def _keep_recipe(self, end: threading.Event) -> None:
        """Write the recipe whenever it has grown; that takes as long as several steps of a fast training."""
        while not end.wait(PROGRESS_PERIOD_S):
            self._recipe.write()

    def _abandon(self) -> None:
        if self.begun_by[0] == os.getpid():  # not in a forked process
            self.end(getattr(sys, "last_value", None) or PipelineLabError("the process ended before the training did"))


_open: list[TrainingSession] = []
"""Open sessions of this process."""


def _end_abandoned() -> None:
    """End sessions that this thread abandoned, as Keras' ``fit`` abandons its callbacks after an error.

    An open window would keep the profiler from every later training of a notebook.
    """
    for session in [each for each in _open if each.begun_by == _who()]:
        session.end(PipelineLabError("the next training began before this one had ended"))


def _who() -> tuple[int, int]:
    """Identify the calling process and thread."""
    return os.getpid(), threading.get_ident()


WARMUP_STEPS = 10

Batch = TypeVar("Batch")


class ProfileWindows(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
    """Records a few steps in every n of your own training job into a run.

    Use it as a Keras callback, or as a context manager around a custom loop with ``steps`` or ``step``. An object records
    one run.

    Args:
        store: Folder of the runs; None for the default store.
        name: Of the run.
        steps_per_window: Training steps in one window.
        every_steps: Steps from the start of one window to the start of the next.
        warmup_steps: Steps before the first window, which trace, compile and fill buffers.
        memory_ceiling_mb: Memory that one window may add to the process, MB; windows get shorter near it.
        max_cost_percent: Share of the time that windows may cost, percent: where windows every ``every_steps`` would cost
            more, they come less often. None for no limit.

    Raises:
        OptionsError: The windows do not fit.
        StoreError: The store cannot be written (when recording begins).
    """

    def __init__(
        self,
        store: str | Path | None = None,
        name: str = "training",
        *,
        steps_per_window: int = 5,
        every_steps: int = 100,
        warmup_steps: int = WARMUP_STEPS,
        memory_ceiling_mb: int = 200,
        max_cost_percent: float | None = 1.0,
    ) -> None:
        super().__init__()
        self._store, self._name, self._warmup_steps = store, name, warmup_steps
        try:
            self._options = ProfilingOptions(
                steps_per_window=steps_per_window, every_steps=every_steps, memory_ceiling_mb=memory_ceiling_mb
            )
        except ValidationError as error:
            raise OptionsError(explain_problems(error, ProfilingOptions)) from None
        if max_cost_percent is not None and not 0 < max_cost_percent <= 100:
            raise OptionsError(
                f"max_cost_percent is {max_cost_percent:g}; it should lie between 0 and 100, or be None."
            )
        self._max_cost_share = None if max_cost_percent is None else max_cost_percent / 100
        note_new_iterators()
        note_new_sessions()
        self._session: TrainingSession | None = None
        self._marker: contextlib.ExitStack | None = None
        self._step = 0

    @property
    def run(self) -> RunFolder:
        """The run that was recorded; ``pipeline_lab.analyze`` takes its ``path``.

        Raises:
            PipelineLabError: Recording has not begun.
        """
        if self._session is None:
            raise PipelineLabError("Nothing is recorded yet; the run exists from the first training step on.")
        return self._session.recording.folder

    # custom loops

    def __enter__(self) -> "ProfileWindows":
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave_step()
        self._end(error)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Surround one training step, from requesting its batch to its result."""
        self._enter_step()
        try:
            yield
        finally:
            self._leave_step()

    def steps(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield batches; a step lasts from requesting one to requesting the next."""
        iterator = iter(batches)
        try:
            while True:
                self._enter_step()
                try:
                    batch = next(iterator)
                except StopIteration:
                    self._drop_step()
                    return
                yield batch
                self._leave_step()
        finally:
            self._leave_step()

    # Keras: a step ends where the next one begins, because a callback with ``on_train_batch_end`` makes ``fit`` of most
    # versions wait for the results of every step

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        self._begin()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._leave_step()
        self._enter_step()

    def on_test_begin(self, logs: Any = None) -> None:
        del logs
        self._leave_step()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        del epoch, logs
        self._leave_step()

    def on_train_end(self, logs: Any = None) -> None:
        del logs
        self._leave_step()
        self._end(None)

    def _begin(self) -> None:
        if self._session is not None:
            raise PipelineLabError("This ProfileWindows has recorded its run; create another one for another training.")
        self._session = TrainingSession(
            self._store, self._name, self._options, self._warmup_steps, self._max_cost_share
        )

    def _enter_step(self) -> None:
        session = self._session
        if session is None:
            raise PipelineLabError("Recording has not begun; use `with ProfileWindows() as windows:` around the loop.")
        self._marker = contextlib.ExitStack()
        session.before_step(self._step)
        self._marker.enter_context(mark_step(self._step))

    def _drop_step(self) -> None:
        """Leave a step that got no batch; it does not count."""
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.close()

    def _leave_step(self) -> None:
        marker, self._marker = self._marker, None
        if marker is None or self._session is None:
            return
        marker.close()
        self._session.after_step(self._step)
        self._step += 1

    def _end(self, error: BaseException | None) -> None:
        if self._session is not None:
            self._session.end(error)
