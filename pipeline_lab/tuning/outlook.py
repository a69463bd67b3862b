"""What the model says of a space: what every configuration would cost, which are allowed, and which are worth a race."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.what_if import Prediction, measure_run, predict
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, TraceReadError, Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.predicted_order import order_steps, predict_order
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.statistics.mixing import Mixing, measure_mixing
from pipeline_lab.statistics.reading_steps import OrderStep
from pipeline_lab.statistics.sampling import FloatArray
from pipeline_lab.statistics.streams import IntArray
from pipeline_lab.tuning.space import Configuration, Space

BATCHES = 60
"""Batches whose mixing is compared; of a smaller data set, two epochs."""
SEEDS = range(8)
SLACK = 0.02
"""Mixing that is worse by no more than this is not worse to train on."""
ERRORS = 2.0
"""Standard errors of the difference, over the seeds, that do not count as a difference."""


@dataclass(frozen=True)
class Limits:
    """What must be respected.

    Attributes:
        memory_bytes: Buffers and caches may hold this much; None if unknown.
        threads: Most that may read and map at once; None for any number.
    """

    memory_bytes: int | None = None
    threads: int | None = None

    def refuse(self, memory_bytes: int, threads: int) -> str | None:
        """Return which limit a configuration breaks, in a few words, or None."""
        if self.memory_bytes is not None and memory_bytes > self.memory_bytes:
            return "needs too much memory"
        if self.threads is not None and threads > self.threads:
            return "needs too many threads"
        return None


class SamplingLimit:
    """Says whether the model would see its examples less well mixed than at the start."""

    def __init__(self, start: RunOptions, records: IntArray | None, cores: int) -> None:
        """Look at the start.

        Args:
            start: What nothing may be worse than.
            records: Records of each file, shape (files,); None if they are unknown.
            cores: Of the machine that reads: by default tf.data chooses from them how many files to open.
        """
        self._records, self._cores = records, cores
        self._start_steps = self._steps(start.pipeline)
        self._start = self._mixing(start)
        self._known: dict[tuple[tuple[OrderStep, ...], int], bool] = {}

    def is_worse(self, options: RunOptions) -> bool:
        """Say whether a pipeline mixes worse; one that reads in another order counts as worse if its mixing is unknown."""
        steps = self._steps(options.pipeline)
        if steps == self._start_steps:
            return False
        key = (steps, options.pipeline.batch_size)
        if key not in self._known:
            self._known[key] = self._compare(options)
        return self._known[key]

    def _compare(self, options: RunOptions) -> bool:
        mixing = self._mixing(options)
        return mixing is None or self._start is None or mixes_worse(self._start, mixing)

    def _steps(self, pipeline: PipelineOptions) -> tuple[OrderStep, ...]:
        return order_steps(pipeline, 0 if self._records is None else len(self._records), self._cores)

    def _mixing(self, options: RunOptions) -> FloatArray | None:
        """Return how badly a pipeline mixes, shape (seeds, numbers); None if unknown.

        Each number is 0 at its best, and NaN where too few examples are read to say.
        """
        if self._records is None:
            return None
        pipeline, buckets = options.pipeline, options.workload.buckets(options.pipeline, options.file_sizes)
        total = int(self._records.sum()) * pipeline.views
        batches = max(1, min(BATCHES, 2 * total // pipeline.batch_size))
        orders = [
            predict_order(pipeline, self._records, batches, cores=self._cores, seed=seed, buckets=buckets)
            for seed in SEEDS
        ]
        found = [
            _badness(measure_mixing(each.batch, each.file, each.record, each.records))
            for each in orders
            if each is not None and len(each.batch)
        ]
        return np.array(found) if len(found) == len(SEEDS) else None


def mixes_worse(start: FloatArray, other: FloatArray) -> bool:
    """Say whether one pipeline mixes worse than another, by what is known of both.

    Args:
        start, other: How badly each mixes, shape (seeds, numbers); NaN where the data are too few to say. What is known of
            one of them only counts as worse.
    """
    known = np.isfinite(start).all(axis=0)
    if (known != np.isfinite(other).all(axis=0)).any():
        return True
    beyond = other[:, known] - start[:, known]
    error = beyond.std(axis=0, ddof=1) / len(beyond) ** 0.5
    return bool(np.any(beyond.mean(axis=0) > SLACK + ERRORS * error))


def _badness(mixing: Mixing) -> list[float]:
    correlation = mixing.order_correlation
    numbers = (
        mixing.batch_total_variation,
        mixing.worst_tenth,
        mixing.drift,
        None if correlation is None else abs(correlation),
        max(0.0, 1.0 - mixing.displacement),
    )
    return [math.nan if number is None else number for number in numbers]


NEAR_BEST = 0.10
"""The model is off by about this share, so configurations within it of the best prediction are as good as tied."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """A configuration with what it is expected to cost.

    Attributes:
        configuration: Which one.
        step_ns: Time of a step.
        memory_bytes: What its buffers and caches hold.
        threads: Threads that read and map at the same time.
    """

    configuration: Configuration
    step_ns: float
    memory_bytes: int
    threads: int

    def dominates(self, other: "Predicted") -> bool:
        """Say whether it is nowhere worse than another one, and better somewhere."""
        mine, its = self.costs, other.costs
        return mine != its and all(one <= another for one, another in zip(mine, its, strict=True))

    @property
    def costs(self) -> tuple[float, int, int]:
        return (self.step_ns, self.memory_bytes, self.threads)


def pareto_set(predicted: Sequence[Predicted]) -> list[Predicted]:
    """Return those that no other one dominates, the fastest first; of equals the first."""
    front: list[Predicted] = []
    for one in sorted(predicted, key=lambda each: each.costs):
        if not any(other.dominates(one) or other.costs == one.costs for other in front):
            front.append(one)
    return front


def pick(predicted: Sequence[Predicted], count: int) -> list[Predicted]:
    """Choose what is raced, the best prediction first.

    Among those that are near the best come first the ones that trade time, memory and threads in the best way, then
    those that differ most from what is already chosen: what the model thinks equal may differ in truth, and a race of
    near twins would not show it.

    Args:
        predicted: Everything that is allowed.
        count: How many to choose.
    """
    if not predicted or count < 1:
        return []
    best_ns = min(one.step_ns for one in predicted)
    near = [one for one in predicted if one.step_ns <= best_ns * (1 + NEAR_BEST)]
    chosen = pareto_set(near)[:count]
    rest = [one for one in near if one not in chosen]
    while rest and len(chosen) < count:
        farthest = max(rest, key=lambda one: (_distance(one, chosen), -one.step_ns))
        chosen.append(farthest)
        rest.remove(farthest)
    return chosen


def _distance(one: Predicted, chosen: Sequence[Predicted]) -> int:
    return min(one.configuration.distance(other.configuration) for other in chosen)


WORSE_SAMPLING = "would mix the examples less well"
NOT_KNOWN = "the model cannot tell"
NO_SIZE = "their memory is not known"


def measure_recorded(folder: RunFolder) -> Measured | Unavailable:
    """Return what a run measured, or why it cannot be predicted from; a run without a readable trace is one reason."""
    try:
        return measure_run(folder)
    except (TraceReadError, TraceIncompleteError) as error:
        return Unavailable(str(error))


@dataclass(frozen=True)
class SearchModel:
    """How to measure and to predict; tests replace it."""

    measure: Callable[[RunFolder], Measured | Unavailable] = measure_recorded
    predict: Callable[[Measured, RunOptions], Prediction | Unavailable] = predict


@dataclass(frozen=True)
class Outlook:
    """What the model says of a whole space.

    Attributes:
        allowed: Configurations that keep all limits.
        refused: How many others there are, by the reason.
    """

    allowed: tuple[Predicted, ...]
    refused: dict[str, int]

    @property
    def looked_at(self) -> int:
        return len(self.allowed) + sum(self.refused.values())


def look_ahead(
    space: Space, measured: Measured, model: SearchModel, limits: Limits, sampling: SamplingLimit
) -> Outlook:
    """Predict every configuration of a space and leave out those that break a limit."""
    allowed: list[Predicted] = []
    refused: dict[str, int] = {}
    for found in _predictions(space, measured, model, limits, sampling):
        if isinstance(found, Predicted):
            allowed.append(found)
        else:
            refused[found] = refused.get(found, 0) + 1
    return Outlook(tuple(allowed), refused)


def _predictions(
    space: Space, measured: Measured, model: SearchModel, limits: Limits, sampling: SamplingLimit
) -> Iterator[Predicted | str]:
    for configuration in space.configurations():
        if sampling.is_worse(configuration.options):
            yield WORSE_SAMPLING
            continue
        found = _predict(configuration, measured, model)
        if isinstance(found, Predicted):
            yield limits.refuse(found.memory_bytes, found.threads) or found
        else:
            yield found


def _predict(configuration: Configuration, measured: Measured, model: SearchModel) -> Predicted | str:
    prediction = model.predict(measured, configuration.options)
    if isinstance(prediction, Unavailable):
        return NOT_KNOWN
    if isinstance(prediction.memory_bytes, Unavailable):
        return NO_SIZE
    return Predicted(configuration, prediction.step_ns, prediction.memory_bytes, prediction.threads)
