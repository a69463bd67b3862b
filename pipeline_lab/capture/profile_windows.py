"""Record windows of a training job of your own: two lines, as a Keras callback or around a loop.

With Keras::

    model.fit(dataset, callbacks=[ProfileWindows()])

With a loop of your own::

    with ProfileWindows() as windows:
        for batch in windows.steps(dataset):
            train_step(batch)
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import keras
from pydantic import ValidationError

from pipeline_lab.capture.live_iterators import note_new_iterators
from pipeline_lab.capture.training_session import TrainingSession
from pipeline_lab.errors import OptionsError, PipelineLabError
from pipeline_lab.options.explaining import explain as explain_options
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.profiler import mark_step

WARMUP_STEPS = 10

Batch = TypeVar("Batch")


class ProfileWindows(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
    """Records a few steps in every so many of your own training job into a run, while it goes on.

    Use it as a Keras callback, or as a context manager around a loop of your own with ``steps`` or ``step``.
    An object records one run and is used once.

    Args:
        store: Folder of the runs; None for the store that the command line and the app use too.
        name: Of the run.
        steps_per_window: Training steps recorded in one window.
        every_steps: Steps from the start of one window to the start of the next.
        warmup_steps: Steps before the first window; the first ones trace, compile and fill buffers.
        memory_ceiling_mb: Memory that one window may add to the process, MB; windows get shorter when they come near.
        max_cost_percent: Share of the time that recording and writing windows may cost, percent: where steps are so
            short that windows every ``every_steps`` would cost more, they come less often. None takes them all.

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
            raise OptionsError(explain_options(error, ProfilingOptions)) from None
        if max_cost_percent is not None and not 0 < max_cost_percent <= 100:
            raise OptionsError(
                f"max_cost_percent is {max_cost_percent:g}; it should lie between 0 and 100, or be None."
            )
        self._max_cost_share = None if max_cost_percent is None else max_cost_percent / 100
        note_new_iterators()
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

    # a loop of one's own

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
        """Surround one training step, from asking for its batch to its result."""
        self._enter_step()
        try:
            yield
        finally:
            self._leave_step()

    def steps(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield batches; a step lasts from asking for one to asking for the next."""
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

    # Keras

    def on_train_begin(self, logs: Any = None) -> None:
        del logs
        self._begin()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._enter_step()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._leave_step()

    def on_train_end(self, logs: Any = None) -> None:
        del logs
        self._leave_step()
        self._end(None)

    def _begin(self) -> None:
        if self._session is not None:
            raise PipelineLabError("This ProfileWindows has recorded its run; make another one for another training.")
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
        """Leave a step that asked for a batch in vain; it does not count."""
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
