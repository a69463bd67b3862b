"""Times the training of a script from outside, independently of what is judged: hooks in Keras' ``fit`` and in the iterator.

The compute-only step is the same training on one batch that is held; the input-only time is the same dataset, iterated.
"""

import linecache
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer, TFEpochIterator
from tensorflow.python.data.ops.dataset_ops import DatasetV2
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

ALONE_S = 4.0
"""How long a pipeline or a step is timed alone."""
MOST_PASSES = 40


@dataclass
class Pass:
    """One pass over the training data.

    Attributes:
        begun_s: Its iterator was asked for.
        asked_s: A batch was asked for, and the end.
        arrived_s: It was there.
        ended_s: The last batch was done, or the end was found.
    """

    begun_s: float
    asked_s: list[float] = field(default_factory=list)
    arrived_s: list[float] = field(default_factory=list)
    ended_s: float = 0.0


@dataclass
class Meter:
    """What was seen of one run of the script.

    Attributes:
        file: The script.
        loop: Text of the line whose loop trains; ``fit`` where Keras trains.
        passes: Over its training data.
        dataset: What was iterated.
        held: The batch to hand out instead of reading; None reads.
        hold: Whether to hold the first batch.
        steps: Of a pass, while it is held.
        model: That ``fit`` was last called on.
        ends_s: When giving up an iterator began and ended, of each.
    """

    file: str
    loop: str
    hold: bool = False
    steps: int = 1
    passes: list[Pass] = field(default_factory=list)
    dataset: Any = None
    held: Any = None
    model: Any = None
    ends_s: list[tuple[float, float]] = field(default_factory=list)


def step_ms(passes: list[Pass], most: int | None = None) -> float | None:
    """Return the time of a step in the later passes, from asking for the first batch to the pass' end, ms.

    The first pass is left out where there are others (it traces, and fills caches); where it is the only one, its first
    third is.

    Args:
        passes: Of the training.
        most: Steps of a pass; Keras counts those of a last call of several steps in full.
    """
    if len(passes) > 1:
        later = passes[1:]
        steps = sum(min(len(one.arrived_s), most or len(one.arrived_s)) for one in later)
        return 1e3 * sum(one.ended_s - one.begun_s for one in later) / steps if steps else None
    if not passes or len(passes[0].arrived_s) < 6:
        return None
    one = passes[0]
    first = len(one.arrived_s) // 3
    return 1e3 * (one.arrived_s[-1] - one.arrived_s[first]) / (len(one.arrived_s) - 1 - first)


def wait_ms(passes: list[Pass]) -> float | None:
    """Return the wait for a batch in the same passes, ms; None where Keras takes them inside its function."""
    later = passes[1:] or passes
    pairs = [pair for one in later for pair in zip(one.asked_s, one.arrived_s, strict=False)]
    return 1e3 * sum(arrived - asked for asked, arrived in pairs) / len(pairs) if pairs else None


def ends_ms(meter: Meter, most: int | None = None) -> float:
    """Return what giving up iterators takes per step of the same passes, ms; ``most`` as for :func:`step_ms`."""
    later = meter.passes[1:]
    steps = sum(min(len(one.arrived_s), most or len(one.arrived_s)) for one in later)
    if not steps:
        return 0.0
    within = [
        end - begin
        for begin, end in meter.ends_s
        if any(one.begun_s <= begin and end <= one.ended_s for one in later)  # not between them, as of a validation
    ]
    return 1e3 * sum(within) / steps


_now = time.perf_counter


class _Clock(keras.callbacks.Callback):
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        del epoch, logs
        self.meter.passes.append(Pass(_now()))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del logs
        one, now_s = self.meter.passes[-1], _now()
        ended = batch + 1 - len(one.arrived_s)  # several with steps_per_execution
        one.arrived_s += [now_s] * ended
        one.ended_s = now_s


@contextmanager
def measuring(meter: Meter) -> Iterator[None]:
    """Meter what a script trains while the context lasts."""
    if meter.loop == "fit":
        with _timed_ends(meter), _replaced(TensorFlowTrainer, "fit", lambda fit: _metered_fit(fit, meter)):
            yield
    else:
        with (
            _timed_ends(meter),
            _replaced(DatasetV2, "__iter__", lambda begin: _metered_iter(begin, meter)),
            _replaced(OwnedIterator, "_next_internal", lambda take: _metered_next(take, meter)),
        ):
            yield


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    original = owner.__dict__[name]
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def _timed_ends(meter: Meter) -> Iterator[None]:
    """Time how long TensorFlow takes to give up each iterator that Python gives up."""

    def give_up(iterator: Any) -> None:
        begun_s = _now()
        iterator.__dict__.pop("_iterator_resource", None)
        meter.ends_s.append((begun_s, _now()))

    OwnedIterator.__del__ = give_up
    try:
        yield
    finally:
        del OwnedIterator.__del__


def _metered_fit(original: Any, meter: Meter) -> Any:
    def fit(self: Any, *arguments: Any, **options: Any) -> Any:
        before, meter.passes, meter.model = meter.passes, [], self
        given = options.pop("callbacks", None) or []
        callbacks = [*(given if isinstance(given, list) else [given]), _Clock(meter)]
        with _replaced(TFEpochIterator, "__init__", lambda begin: _kept_dataset(begin, meter)):
            result = original(self, *arguments, callbacks=callbacks, **options)
        if _length(before) > _length(meter.passes):
            meter.passes = before
        return result

    return fit


def _length(passes: list[Pass]) -> float:
    return sum(one.ended_s - one.begun_s for one in passes)


def _kept_dataset(original: Any, meter: Meter) -> Any:
    meter.dataset = None

    def begin(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        if meter.dataset is None:  # the next one is that of the validation
            meter.dataset = self._distributed_dataset

    return begin


def _metered_iter(original: Any, meter: Meter) -> Any:
    def begin(self: Any) -> Any:
        frame = sys._getframe(1)
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        is_loop = frame.f_code.co_filename == meter.file and meter.loop in line
        begun_s = _now()
        iterator = original(self)
        if is_loop:
            iterator._metered = Pass(begun_s)
            meter.passes.append(iterator._metered)
            meter.dataset = self
        return iterator

    return begin


def _metered_next(original: Any, meter: Meter) -> Any:
    def take(self: Any) -> Any:
        one = self.__dict__.get("_metered")
        if one is None:
            return original(self)
        one.asked_s.append(_now())
        if meter.hold and meter.held is not None and len(one.arrived_s) < meter.steps:
            batch = meter.held
        elif meter.hold and meter.held is not None:
            one.ended_s = _now()
            raise tf.errors.OutOfRangeError(None, None, "held long enough")
        else:
            try:
                batch = original(self)
            except tf.errors.OutOfRangeError:
                one.ended_s = _now()
                raise
        meter.held = batch if meter.hold else None
        one.arrived_s.append(_now())
        one.ended_s = one.arrived_s[-1]
        return batch

    return take


def time_input(dataset: Any, passes: int) -> tuple[float | None, list[float]]:
    """Iterate a dataset as training would, as fast as it goes; return the time of a batch and that of each pass, ms.

    Args:
        dataset: That the script trained on.
        passes: As many as training made, at most.
    """
    times, begun_s = [], _now()
    for _ in range(max(2, min(passes, MOST_PASSES))):
        start_s, batches = _now(), 0
        for _ in dataset:
            batches += 1
            if _now() - start_s > ALONE_S and batches > 20:
                break
        if batches:
            times.append(1e3 * (_now() - start_s) / batches)
        if _now() - begun_s > 2 * ALONE_S:
            break
    later = times[1:] or times
    return (sum(later) / len(later) if later else None), times


def time_held_fit(meter: Meter, steps: int, fit: Any) -> float | None:
    """Train the script's model further on one batch that is held; return the time of a step, ms."""
    batch = next(iter(meter.dataset))
    held = tf.data.Dataset.from_tensors(batch).cache().repeat().prefetch(2)
    clock = Meter("", "fit")
    fit(meter.model, held, epochs=3, steps_per_epoch=steps, verbose=0, callbacks=[_Clock(clock)])
    return step_ms(clock.passes)
