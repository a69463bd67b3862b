"""The numbers that runs are compared by: each metric of :mod:`pipeline_lab.analysis.metrics.metrics` that is compared, of every run.

A number that a run did not measure is ``Unavailable`` there and stays a number in the others.
"""

from pipeline_lab.analysis.metrics.metric import Metric, Topic, write_difference, write_value
from pipeline_lab.analysis.metrics.metric_readers import Value
from pipeline_lab.analysis.metrics.metrics import METRICS
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable


@dataclass(frozen=True)
class Measure:
    """One number of every run.

    Attributes:
        metric: What it is.
        values: One per run, baseline first.
    """

    metric: Metric
    values: tuple[Value, ...]

    @property
    def key(self) -> str:
        return self.metric.key

    @property
    def title(self) -> str:
        return self.metric.title

    @property
    def texts(self) -> tuple[str, ...]:
        """Every run's value for people; ``–`` where it was not measured."""
        return tuple(
            "–" if isinstance(value, Unavailable) else write_value(value, self.metric.unit) for value in self.values
        )

    def difference(self, run: int) -> float | None:
        """Return this run's value minus the baseline's; None if either was not measured."""
        baseline, value = self.values[0], self.values[run]
        if isinstance(baseline, Unavailable) or isinstance(value, Unavailable):
            return None
        return value - baseline

    def difference_text(self, run: int) -> str:
        """Write the difference with its sign; ``–`` if either was not measured."""
        difference = self.difference(run)
        return "–" if difference is None else write_difference(difference, self.metric.unit)

    @property
    def is_worth_a_row(self) -> bool:
        """Say whether people want to see it: a cause of idle time that no run has is left out."""
        return self.metric.topic is not Topic.GAPS or any(
            isinstance(value, Unavailable) or value for value in self.values
        )


def read_measures(diagnoses: tuple[Diagnosis, ...]) -> tuple[Measure, ...]:
    """Read every number off every run; a number that no run measured is left out."""
    measures = (Measure(each, tuple(each.read(one) for one in diagnoses)) for each in METRICS if each.is_compared)
    return tuple(each for each in measures if not all(isinstance(value, Unavailable) for value in each.values))
