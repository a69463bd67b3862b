"""Steps inside of a graph, whose times and batches are noted there until Python reads them."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf

from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record.step_recorder import ELEMENTS, count_elements
from pipeline_lab.worker.record.step_results import LENGTH
from pipeline_lab.worker.train.training_steps import Batch, TakenStep, Trainer

RECORDED = {"id": tf.int64, "label": tf.int64, LENGTH: tf.int64, ELEMENTS: tf.int64, "name": tf.string}
"""Recorded entries of a batch, with their types."""


class StepNotes:
    """Takes steps inside a graph and keeps notes of each until Python reads them.

    A graph cannot return values while it runs, so each step puts its notes into a queue, which is emptied after the call.
    Time is read inside the graph: when a batch has arrived, and when the step's result is on the host.

    Args:
        trainer: The step.
        clock: The job's.
        capacity: Most steps of one call; a graph that takes more would block.
        recorded: Entries of a batch to keep, with their types; none for batches of a user's module.
        keeps_outputs: Note the outputs of each step too.
    """

    def __init__(
        self, trainer: Trainer, clock: Clock, capacity: int, recorded: Mapping[str, Any], *, keeps_outputs: bool
    ) -> None:
        self._trainer, self._clock, self._recorded, self._keeps_outputs = trainer, clock, recorded, keeps_outputs
        types = [tf.float64, tf.float64, tf.float32, tf.float32, *recorded.values()]
        types += [tf.float32] if keeps_outputs else []
        with tf.device("/CPU:0"):
            self._queue = tf.queue.FIFOQueue(capacity, types)
            # Of a step, and of the one before it where that is read meanwhile.
            self._arrivals = tf.queue.FIFOQueue(2, [tf.float64, *recorded.values()])

    def step(self, batch: Batch) -> tuple[Any, Any]:
        """Add a training step to the graph that is being traced; return its loss and accuracy."""
        arrived_s = _arrival_s(batch)
        loss, accuracy, *outputs = self._trainer.step(_held_until(arrived_s, batch))
        with tf.device("/CPU:0"):
            on_host = [tf.identity(tf.cast(value, tf.float32)) for value in (loss, accuracy)]
            with tf.control_dependencies(on_host):
                ended_s = tf.timestamp()
            kept = [self._joined(outputs[0])] if self._keeps_outputs else []
            self._queue.enqueue([arrived_s, ended_s, *on_host, *self._entries(batch), *kept])
        return loss, accuracy

    def step_ahead(self, batch: Batch) -> Any:
        """Add a training step for whose result the graph does not wait; return the result.

        All else goes through a queue, before the step: a call that returns values from the host waits for the device.
        """
        arrived_s = _arrival_s(batch)
        with tf.device("/CPU:0"):
            noted = self._arrivals.enqueue([arrived_s, *self._entries(batch)])
        return self._trainer.step(_held_until(noted, batch))

    def read_ahead(self, start_ns: int, result: Any) -> TakenStep:
        """Return a step of :meth:`step_ahead`, which may still be on its way."""
        returned_ns = self._clock.now_ns()
        shift_ns = returned_ns - time.time_ns()
        noted = self._arrivals.dequeue()
        arrived_s, *values = (value.numpy() for value in (noted if self._recorded else [noted]))
        arrived_ns = max(start_ns, _ns(arrived_s) + shift_ns)
        return TakenStep(start_ns, arrived_ns, returned_ns, None, result, self._named(values))

    def read(self, start_ns: int) -> list[TakenStep]:
        """Return the steps since the last call.

        Args:
            start_ns: Start of the call; each later step starts where the one before it ended.
        """
        shift_ns = self._clock.now_ns() - time.time_ns()
        taken = []
        for _ in range(int(self._queue.size())):
            arrived_s, ended_s, loss, accuracy, *values = (value.numpy() for value in self._queue.dequeue())
            values, outputs = values[: len(self._recorded)], values[len(self._recorded) :]
            arrived_ns = max(start_ns, _ns(arrived_s) + shift_ns)
            ended_ns = max(arrived_ns, _ns(ended_s) + shift_ns)
            result, batch = (loss, accuracy, *outputs), self._named(values)
            taken.append(TakenStep(start_ns, arrived_ns, ended_ns, ended_ns, result, batch))
            start_ns = ended_ns
        return taken

    def _joined(self, outputs: Any) -> Any:
        """Return the outputs of all replicas, shape (batch, classes)."""
        parts = [tf.cast(part, tf.float32) for part in self._trainer.parts(outputs)]
        return tf.concat([tf.reshape(part, [tf.shape(part)[0], -1]) for part in parts], 0)

    def _entries(self, batch: Batch) -> list[Any]:
        """Return the recorded entries of a batch, each as one vector."""
        counted = count_elements(batch) if self._recorded else batch
        return [self._whole(counted, name) for name in self._recorded]

    def _named(self, values: Sequence[Any]) -> Batch:
        return {name: value for name, value in zip(self._recorded, values, strict=True) if len(value)}

    def _whole(self, batch: Batch, name: str) -> Any:
        """Return an entry of a batch as one vector, empty without the entry."""
        kind = self._recorded[name]
        if name not in batch:
            return tf.zeros([0], kind)
        return tf.concat([tf.cast(tf.reshape(part, [-1]), kind) for part in self._trainer.parts(batch[name])], 0)


class GraphSteps:
    """A loop inside a ``tf.function`` requests batches and takes steps; Python calls it once for several.

    Args:
        trainer: The step.
        clock: The job's.
        per_call: Steps of a call.
        notes: Of each step.
        is_asynchronous: The device works beside the host: a call does not wait for its last step, so that Python between two
            calls does not leave the device idle.
    """

    def __init__(
        self, trainer: Trainer, clock: Clock, per_call: int, notes: StepNotes, *, is_asynchronous: bool = False
    ) -> None:
        self.per_call = per_call
        self._trainer, self._clock, self._notes = trainer, clock, notes
        self._take = tf.function(self._take_ahead_in_graph if is_asynchronous else self._take_in_graph)
        self._repeat = tf.function(self._repeat_in_graph)

    def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
        start_ns, ahead = self._clock.now_ns(), None
        with contextlib.suppress(tf.errors.OutOfRangeError):  # the data has ended; earlier steps are in the notes
            ahead = self._take(batches, _on_host(most))
        taken = self._notes.read(start_ns)
        if ahead is not None:
            taken.append(self._notes.read_ahead(taken[-1].returned_ns if taken else start_ns, ahead))
        return taken

    def repeat(self, batch: Batch, times: int) -> Any:
        return self._repeat(batch, _on_host(times))

    def _take_in_graph(self, batches: Any, steps: Any) -> None:
        for _ in tf.range(steps):
            self._notes.step(batches.get_next())

    def _take_ahead_in_graph(self, batches: Any, steps: Any) -> Any:
        for _ in tf.range(steps - 1):
            self._notes.step(batches.get_next())
        return self._notes.step_ahead(batches.get_next())

    def _repeat_in_graph(self, batch: Batch, times: Any) -> Any:
        loss, accuracy = tf.constant(np.nan), tf.constant(np.nan)
        for _ in tf.range(times):
            loss, accuracy, *_ = self._trainer.step(batch)
        return loss, accuracy


def _on_host(number: int) -> Any:
    """Return a number for a graph; one in the memory of a GPU would have to wait for it to be read."""
    with tf.device("/CPU:0"):
        return tf.constant(number)


def _arrival_s(batch: Batch) -> Any:
    """Add to a graph the time when a batch has arrived."""
    with tf.device("/CPU:0"), tf.control_dependencies(tf.nest.flatten(batch, expand_composites=True)):
        return tf.timestamp()


def _held_until(event: Any, batch: Batch) -> Batch:
    """Return a batch in a graph whose entries wait for an event where they are, so that no signal has to reach the device."""

    def held(value: Any) -> Any:
        with tf.compat.v1.colocate_with(value), tf.control_dependencies([event]):
            return tf.identity(value)

    return cast(Batch, tf.nest.map_structure(held, batch, expand_composites=True))


def _ns(seconds: float) -> int:
    return round(float(seconds) * NS_PER_S)
