"""Wait for the results of steps beside the training thread, which must not wait for the device.

A copy to the host waits for everything that the device has been given by then. So each result is copied on a thread of its
own as soon as its step has been launched: a copy that is requested a step later would wait for that step too, and leave the
device idle until the next launch.
"""

import functools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from pipeline_lab.data_classes import dataclass
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.train.training_steps import Batch, Trainer

STEPS_AHEAD = 4
"""Most steps that are launched and not done. It bounds the memory that they hold; two would suffice for a steady host."""
LENGTH = "length"
"""Entry of a batch: the lengths of its examples."""
READ_ENTRIES = ("id", "label", "name", LENGTH)
"""Entries of a batch that are recorded."""
Read = TypeVar("Read")


@dataclass(frozen=True)
class StepResult:
    """What a step returned.

    Attributes:
        loss, accuracy: NaN where the workload has none.
        ready_ns: When it was on the host, ns since the epoch.
    """

    loss: float
    accuracy: float
    ready_ns: int


class ResultReader:
    """Reads results, on the calling thread or on others."""

    def __init__(self, trainer: Trainer, clock: Clock) -> None:
        self._trainer, self._clock = trainer, clock
        self._threads = ThreadPoolExecutor(
            2 * STEPS_AHEAD, thread_name_prefix="result"
        )  # of a result, and of its batch

    def read(self, result: Any) -> StepResult:
        """Wait for a result."""
        numbers = _numbers(result)
        on_device = [value for value in numbers if is_on_device(value)]
        ready_ns = None
        if on_device:
            result, ready_ns = self._copy(numbers, on_device)
        elif all(number is None for number in numbers):
            from pipeline_lab.worker.record.profiler import wait_for_devices  # TensorFlow is not needed elsewhere

            wait_for_devices()
        loss, accuracy = self._trainer.read(result)
        ended_ns = self._trainer.ended_ns(result)
        return StepResult(loss, accuracy, ended_ns or ready_ns or self._clock.now_ns())

    def request(self, result: Any) -> "Future[StepResult]":
        """Read a result on another thread."""
        return self._threads.submit(self.read, result)

    def beside(self, read: Callable[[Batch], Read], batch: Batch) -> "Future[Read]":
        """Read a batch on another thread, with its :data:`READ_ENTRIES` on the host."""
        return self._threads.submit(lambda: read(_read_entries_on_host(batch)))

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _copy(self, numbers: Sequence[Any], on_device: list[Any]) -> tuple[list[Any], int]:
        """Return the numbers on the host, and when they were there."""
        *copies, seconds = _numbers_on_host()(on_device).numpy().tolist()
        copied = iter(copies)
        on_host = [next(copied) if is_on_device(value) else value for value in numbers]
        shift_ns = self._clock.now_ns() - time.time_ns()
        return on_host, round(seconds * NS_PER_S) + shift_ns


class ResultsAhead:
    """Loss and accuracy of steps that follow each other, read as the training reads them.

    Args:
        is_asynchronous: The device works beside the host, which may be :data:`STEPS_AHEAD` steps ahead.
    """

    def __init__(self, trainer: Trainer, *, is_asynchronous: bool) -> None:
        self._trainer, self._is_asynchronous = trainer, is_asynchronous
        self._reader = ResultReader(trainer, Clock())
        self._pending: deque[Future[StepResult]] = deque()
        self._arrived: list[tuple[float, float]] = []

    def add(self, result: Any) -> None:
        """Take the result of a step that has been launched; wait while the device is too far behind."""
        if self._is_asynchronous:
            self._pending.append(self._reader.request(result))
            self._take(STEPS_AHEAD - 1)
        else:
            self._arrived.append(self._trainer.read(result))

    def beside(self, read: Callable[[Batch], Read], batch: Batch) -> "Future[Read]":
        """Read a batch on another thread, as :meth:`ResultReader.beside` does; wait for it before :meth:`finish`."""
        return self._reader.beside(read, batch)

    def catch_up(self) -> None:
        """Wait for all results so far."""
        self._take(0)

    def finish(self) -> list[tuple[float, float]]:
        """Wait for all results and return them."""
        self.catch_up()
        self._reader.close()
        return self._arrived

    def _take(self, most_pending: int) -> None:
        while len(self._pending) > most_pending:
            result = self._pending.popleft().result()
            self._arrived.append((result.loss, result.accuracy))


def is_on_device(value: Any) -> bool:
    """Say whether a tensor, or a part of a batch on several replicas, is in the memory of an accelerator."""
    parts = getattr(value, "values", ())
    parts = parts if isinstance(parts, tuple) else ()
    return any(is_on_device(part) for part in parts) or "CPU" not in getattr(value, "backing_device", "CPU")


def has_entries_on_device(batch: Batch) -> bool:
    """Say whether any of a batch's :data:`READ_ENTRIES` is in the memory of an accelerator."""
    return any(is_on_device(batch[name]) for name in READ_ENTRIES if name in batch)


def _read_entries_on_host(batch: Batch) -> Batch:
    """Return the batch with its :data:`READ_ENTRIES` on the host; ``numpy()`` would hold Python's lock while it waits."""
    import tensorflow as tf  # loaded where there is a device

    entries = {name: batch[name] for name in READ_ENTRIES if name in batch}
    copies = _tensors_on_host()(tf.nest.flatten(entries, expand_composites=True))
    return {**batch, **tf.nest.pack_sequence_as(entries, copies, expand_composites=True)}


def _numbers(result: Any) -> Sequence[Any]:
    """Return loss and accuracy of what a step returned."""
    if isinstance(result, Mapping):
        return result.get("loss"), result.get("accuracy")
    return result[:2] if isinstance(result, tuple | list) else (result,)


@functools.cache
def _numbers_on_host() -> Any:
    """Return a function that copies numbers, or their means, and then reads the clock: float64, the clock last, in s.

    It waits without Python's lock. All come in one tensor: copies that are returned beside a clock which waits for them arrive
    only once the device has done all that it was given meanwhile (TensorFlow 2.21).
    """
    import tensorflow as tf  # loaded where there is a device

    def copy(values: Any) -> Any:
        with tf.device("/CPU:0"):
            copies = [tf.reduce_mean(tf.cast(value, tf.float64)) for value in values]
            with tf.control_dependencies(copies):
                return tf.stack([*copies, tf.timestamp()])

    return tf.function(copy, reduce_retracing=True)


@functools.cache
def _tensors_on_host() -> Any:
    """Return a function that copies tensors, all without Python's lock."""
    import tensorflow as tf  # loaded where there is a device

    def copy(values: Any) -> Any:
        with tf.device("/CPU:0"):
            return [tf.identity(value) for value in values]

    return tf.function(copy, reduce_retracing=True)
