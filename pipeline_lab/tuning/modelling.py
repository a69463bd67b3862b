"""The model as a search asks it: what a configuration measured, and what every other one would cost."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.what_if import Prediction, measure_run, predict
from pipeline_lab.errors import TraceIncompleteError, TraceReadError, Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.tuning.limits import Limits, Sampling
from pipeline_lab.tuning.picking import Predicted
from pipeline_lab.tuning.space import Configuration, Space

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
class Model:
    """How to measure and to predict; tests put a world of their own here."""

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


def look_ahead(space: Space, measured: Measured, model: Model, limits: Limits, sampling: Sampling) -> Outlook:
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
    space: Space, measured: Measured, model: Model, limits: Limits, sampling: Sampling
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


def _predict(configuration: Configuration, measured: Measured, model: Model) -> Predicted | str:
    prediction = model.predict(measured, configuration.options)
    if isinstance(prediction, Unavailable):
        return NOT_KNOWN
    if isinstance(prediction.memory_bytes, Unavailable):
        return NO_SIZE
    return Predicted(configuration, prediction.step_ms, prediction.memory_bytes, prediction.threads)
