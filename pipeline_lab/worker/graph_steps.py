"""Several training steps in one call of a graph, each with its own times, result and examples.

A graph cannot hand out a value in the middle, so each step leaves its notes in a queue, which is emptied after the
call. Time is read inside the graph: when a batch has arrived, and when the step's result is on the host.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.padding import ELEMENTS, LENGTH, count_elements
from pipeline_lab.worker.steps import TakenStep
from pipeline_lab.worker.trainer import Batch, Trainer

RECORDED = {"id": tf.int64, "label": tf.int64, LENGTH: tf.int64, ELEMENTS: tf.int64, "name": tf.string}
"""Entries of a batch that are recorded, and as what."""


class StepNotes:
    """Takes steps inside a graph and keeps what is known of each until Python asks for it.

    Args:
        trainer: The step.
        clock: The job's.
        capacity: Steps of one call at most; a graph that takes more would wait for ever.
        recorded: Entries of a batch to keep, and as what; batches of somebody else's making have none.
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

    def step(self, batch: Batch) -> tuple[Any, Any]:
        """Add a training step to the graph that is being traced; return its loss and accuracy."""
        with tf.device("/CPU:0"), tf.control_dependencies(tf.nest.flatten(batch, expand_composites=True)):
            arrived_s = tf.timestamp()
        with tf.control_dependencies([arrived_s]):
            loss, accuracy, *outputs = self._trainer.step(batch)
        with tf.device("/CPU:0"), tf.control_dependencies([loss, accuracy]):
            on_host = [tf.identity(tf.cast(value, tf.float32)) for value in (loss, accuracy)]
            with tf.control_dependencies(on_host):
                ended_s = tf.timestamp()
            counted = count_elements(batch) if self._recorded else batch
            whole = [self._whole(counted, name) for name in self._recorded]
            kept = [self._joined(outputs[0])] if self._keeps_outputs else []
            self._queue.enqueue([arrived_s, ended_s, *on_host, *whole, *kept])
        return loss, accuracy

    def read(self, start_ns: int) -> list[TakenStep]:
        """Return the steps that were taken since the last time.

        Args:
            start_ns: When the call began; a later step begins where the one before it has ended.
        """
        shift_ns = self._clock.now_ns() - time.time_ns()
        taken = []
        for _ in range(int(self._queue.size())):
            arrived_s, ended_s, loss, accuracy, *values = (value.numpy() for value in self._queue.dequeue())
            values, outputs = values[: len(self._recorded)], values[len(self._recorded) :]
            arrived_ns = max(start_ns, _ns(arrived_s) + shift_ns)
            ended_ns = max(arrived_ns, _ns(ended_s) + shift_ns)
            batch = {name: value for name, value in zip(self._recorded, values, strict=True) if len(value)}
            taken.append(TakenStep(start_ns, arrived_ns, ended_ns, (loss, accuracy, *outputs), batch))
            start_ns = ended_ns
        return taken

    def _joined(self, outputs: Any) -> Any:
        """Return the outputs of all replicas, shape (batch, classes)."""
        parts = [tf.cast(part, tf.float32) for part in self._trainer.parts(outputs)]
        return tf.concat([tf.reshape(part, [tf.shape(part)[0], -1]) for part in parts], 0)

    def _whole(self, batch: Batch, name: str) -> Any:
        """Return an entry of a batch as one vector; an empty one where there is none."""
        kind = self._recorded[name]
        if name not in batch:
            return tf.zeros([0], kind)
        return tf.concat([tf.cast(tf.reshape(part, [-1]), kind) for part in self._trainer.parts(batch[name])], 0)


class GraphSteps:
    """A loop inside a ``tf.function`` asks for the batches and takes the steps; Python calls it once for several."""

    def __init__(self, trainer: Trainer, clock: Clock, per_call: int, notes: StepNotes) -> None:
        self.per_call = per_call
        self._trainer, self._clock, self._notes = trainer, clock, notes
        self._take, self._repeat = tf.function(self._take_in_graph), tf.function(self._repeat_in_graph)

    def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
        start_ns = self._clock.now_ns()
        with contextlib.suppress(tf.errors.OutOfRangeError):  # the data has ended; the steps before that are noted
            self._take(batches, tf.constant(most))
        return self._notes.read(start_ns)

    def repeat(self, batch: Batch, times: int) -> Any:
        return self._repeat(batch, tf.constant(times))

    def _take_in_graph(self, batches: Any, steps: Any) -> None:
        for _ in tf.range(steps):
            self._notes.step(batches.get_next())

    def _repeat_in_graph(self, batch: Batch, times: Any) -> Any:
        loss, accuracy = tf.constant(np.nan), tf.constant(np.nan)
        for _ in tf.range(times):
            loss, accuracy, *_ = self._trainer.step(batch)
        return loss, accuracy


def _ns(seconds: float) -> int:
    return round(float(seconds) * NS_PER_S)
