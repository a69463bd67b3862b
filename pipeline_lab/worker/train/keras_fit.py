"""The loop of Keras' ``fit``, which calls the steps of a job."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.train.course import Course, Follow
from pipeline_lab.worker.train.graph_steps import StepNotes
from pipeline_lab.worker.train.training_steps import TakenStep


class FitLoop:
    """Lets ``fit`` call the steps, ``steps_per_execution`` at a time; it takes whole executions only.

    Args:
        course: Called around each call.
        notes: Of each step.
        clock: The job's.
        steps_per_execution: Steps of a call.
        is_mirrored: On several replicas.
        is_ahead: Calls are of one step and return before the device has done it. Only then ``fit`` reads the results, as it
            does for everybody; until it does, what was recorded of the call before is written.
    """

    def __init__(
        self,
        course: Course,
        notes: StepNotes,
        clock: Clock,
        steps_per_execution: int,
        *,
        is_mirrored: bool,
        is_ahead: bool = False,
    ) -> None:
        self._course, self._clock, self._steps_per_execution = course, clock, steps_per_execution
        self._notes, self._is_ahead = notes, is_ahead
        course.writes_later = is_ahead
        if is_ahead:
            self._model: _Model = _ModelAhead(notes, course.write)
        else:
            self._model = _MirroredModel(notes) if is_mirrored else _Model(notes)
        self._model.compile(optimizer=None, steps_per_execution=steps_per_execution, jit_compile=False)

    def run(self, dataset: Any, follow: Follow) -> None:
        if not self._course.next_steps(self._steps_per_execution):
            return
        self._model.follow = follow
        kind = _CallsAhead if self._is_ahead else _Calls
        calls = kind(self._course, self._notes, self._clock, self._steps_per_execution)
        with contextlib.closing(calls):
            self._model.fit(dataset, epochs=1, verbose=0, shuffle=False, callbacks=[calls])
        self._course.write()
        if not calls.is_over:
            self._course.end_of_data()


class _Model(keras.Model):  # type: ignore[misc]  # Keras has no types
    """What ``fit`` trains: the workload's step; see "Customizing what happens in fit()"."""

    train_function: Any

    def __init__(self, notes: StepNotes) -> None:
        super().__init__()
        self._notes = notes
        self._followed: Any = None
        self.follow: Follow = lambda _: None
        self.built = True

    def train_step(self, data: Any) -> dict[str, Any]:
        loss, _ = self._notes.step(data)
        return {"loss": loss}  # Keras copies every entry to the host after each call; the notes hold the rest

    def make_train_function(self, force: bool = False) -> Any:
        """Make the function that takes an execution's steps, and notice the iterator that it is called on."""
        if self.train_function is not None and not force:
            return self.train_function
        call = self.make_execution(force)

        def call_and_follow(iterator: Any) -> Any:
            if iterator is not self._followed:
                self._followed = iterator
                self.follow(iterator)
            return call(iterator)

        self.train_function = call_and_follow
        return call_and_follow

    def make_execution(self, force: bool) -> Callable[[Any], Any]:
        """Make Keras' own function."""
        super().make_train_function(force)
        call: Callable[[Any], Any] = self.train_function
        return call


class _ModelAhead(_Model):
    """What ``fit`` trains on a device that works beside the host, a step at a time.

    Args:
        notes: Of each step.
        write: Called when a step has been launched.
    """

    def __init__(self, notes: StepNotes, write: Callable[[], None]) -> None:
        super().__init__(notes)
        self._write = write

    def train_step(self, data: Any) -> dict[str, Any]:
        loss, accuracy, *_ = self._notes.step_ahead(data)
        return {"loss": loss, "accuracy": accuracy}

    def make_execution(self, force: bool) -> Callable[[Any], Any]:
        call = super().make_execution(force)

        def call_and_write(iterator: Any) -> Any:
            logs = call(iterator)
            self._write()
            return logs

        return call_and_write


class _MirroredModel(_Model):
    """What ``fit`` trains on several replicas.

    Keras' loop over the steps of an execution passes batches as optionals, from which TensorFlow (2.21) cannot build a
    graph around a mirrored step; this loop requests them directly.
    """

    def make_execution(self, force: bool) -> Callable[[Any], Any]:
        del force
        execute = tf.function(self._execute)

        def call(iterator: Any) -> dict[str, Any]:
            try:
                execute(iterator)
            except tf.errors.OutOfRangeError:
                raise StopIteration from None
            return {}

        return call

    def _execute(self, iterator: Any) -> None:
        for _ in tf.range(self.steps_per_execution):
            self._notes.step(iterator.get_next())


class _Calls(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Reports every execution to the course."""

    def __init__(self, course: Course, notes: StepNotes, clock: Clock, most: int) -> None:
        super().__init__()
        self._course, self._notes, self._clock, self._most = course, notes, clock, most
        self._open = contextlib.ExitStack()
        self._start_ns = 0
        self.is_over = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._open.enter_context(self._course.mark())
        self._start_ns = self._clock.now_ns()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self.close()
        self.is_over = not self._course.next_steps(self._most)
        self.model.stop_training = self.is_over

    def close(self) -> None:
        """Record the steps taken: fewer than an execution where the data ended."""
        taken = self._read()
        self._course.record(taken)
        self._open.close()
        self._course.finish_call(taken)

    def _read(self) -> Sequence[TakenStep]:
        return self._notes.read(self._start_ns)


class _CallsAhead(_Calls):
    """Reports steps whose results ``fit`` has read."""

    _taken: Sequence[TakenStep] = ()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._taken = _StepOfFit(self._notes, self._start_ns, self._clock.now_ns(), logs)
        super().on_train_batch_end(batch)

    def _read(self) -> Sequence[TakenStep]:
        taken, self._taken = self._taken, ()
        return taken


class _StepOfFit(Sequence[TakenStep]):
    """A step, whose notes are read when it is looked at."""

    def __init__(self, notes: StepNotes, start_ns: int, ended_ns: int, logs: Mapping[str, float]) -> None:
        self._notes, self._start_ns, self._ended_ns, self._logs = notes, start_ns, ended_ns, logs

    @cached_property
    def _step(self) -> TakenStep:
        result = self._logs["loss"], self._logs["accuracy"]
        step = self._notes.read_ahead(self._start_ns, result)
        arrived_ns = min(step.arrived_ns, self._ended_ns)
        return replace(step, arrived_ns=arrived_ns, returned_ns=self._ended_ns, ready_ns=self._ended_ns)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return [self._step][index]
