"""Training by Keras' own ``Model.fit``: its iterator, its compiled function, its callbacks; the step is the workload's."""

import contextlib
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.course import Course
from pipeline_lab.worker.graph_steps import StepNotes
from pipeline_lab.worker.loop import Follow


class FitLoop:
    """Lets ``fit`` call the steps, ``steps_per_execution`` of them at a time; it takes whole executions only."""

    def __init__(
        self, course: Course, notes: StepNotes, clock: Clock, steps_per_execution: int, *, is_mirrored: bool
    ) -> None:
        self._course, self._clock, self._steps_per_execution = course, clock, steps_per_execution
        self._notes = notes
        self._model = _MirroredModel(notes) if is_mirrored else _Model(notes)
        self._model.compile(optimizer=None, steps_per_execution=steps_per_execution, jit_compile=False)

    def run(self, dataset: Any, follow: Follow) -> None:
        if not self._course.next_steps(self._steps_per_execution):
            return
        self._model.follow = follow
        calls = _Calls(self._course, self._notes, self._clock, self._steps_per_execution)
        with contextlib.closing(calls):
            self._model.fit(dataset, epochs=1, verbose=0, shuffle=False, callbacks=[calls])
        if not calls.is_over:
            self._course.end_of_data()


class _Model(keras.Model):  # type: ignore[misc]  # Keras has no types
    """What ``fit`` trains: the workload's step, in Keras' functions; see "Customizing what happens in fit()"."""

    train_function: Any

    def __init__(self, notes: StepNotes) -> None:
        super().__init__()
        self._notes = notes
        self._followed: Any = None
        self.follow: Follow = lambda _: None
        self.built = True

    def train_step(self, data: Any) -> dict[str, Any]:
        loss, accuracy = self._notes.step(data)
        return {"loss": loss, "accuracy": accuracy}

    def make_train_function(self, force: bool = False) -> Any:
        """Make the function that takes an execution's steps, and see the iterator that it is called on."""
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


class _MirroredModel(_Model):
    """What ``fit`` trains on several replicas.

    Keras' loop over the steps of an execution hands batches on as optionals, from which TensorFlow (2.21) cannot build a
    graph around a mirrored step; this one asks for them as they come.
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
    """Tells the course of every execution."""

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
        """Record what was taken; where the data ended in the middle of an execution, that is less than all of it."""
        taken = self._notes.read(self._start_ns)
        self._course.record(taken)
        self._open.close()
        self._course.finish_call(taken)
