"""The numbers of one run, as pages and reports list them."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pipeline_lab.analysis.metrics.metric import Metric, Topic
from pipeline_lab.analysis.metrics.metric_readers import NOT_MEASURED
from pipeline_lab.analysis.metrics.metrics import HEADLINE, METRICS, SECOND_CHOICES, find_metric
from pipeline_lab.analysis.results import Results
from pipeline_lab.errors import Unavailable

Row: TypeAlias = tuple[str, str]


def number_rows(diagnosis: Results) -> tuple[Row, ...]:
    """Return title and text of every number of a run; of a result that was not measured, the reason."""
    return tuple(_rows(diagnosis, METRICS, with_reasons=True))


def topic_rows(topic: Topic, diagnosis: Results) -> tuple[Row, ...]:
    """Return title and text of the measured numbers about something."""
    return tuple(_rows(diagnosis, [each for each in METRICS if each.topic is topic], with_reasons=False))


def headline() -> tuple[Metric, ...]:
    """Return the numbers at the top of a run's page."""
    return tuple(map(find_metric, HEADLINE))


def headline_of(diagnosis: Results) -> tuple[Metric, ...]:
    """Return the numbers at the top of one run's page: one per notion, the second choice where the first was not measured."""
    measured = {each.key for each in headline() if not isinstance(each.read(diagnosis), Unavailable)}
    left_out = {
        first if second in measured and first not in measured else second for second, first in SECOND_CHOICES.items()
    }
    return tuple(each for each in headline() if each.key not in left_out)


def _rows(diagnosis: Results, metrics: Sequence[Metric], *, with_reasons: bool) -> Iterator[Row]:
    told: set[str] = set()
    for each in metrics:
        if each.text is None:
            continue
        result = getattr(diagnosis, each.source)
        if not isinstance(result, Unavailable):
            text = each.text(result)
            if text is not None:
                yield each.title, text
        elif with_reasons and each.source in _RESULT_TITLES and each.source not in told:
            told.add(each.source)
            yield _RESULT_TITLES[each.source], f"{NOT_MEASURED}: {result.reason}"


_RESULT_TITLES = {
    "job_steps": "Measured steps",
    "steps": "Recorded steps",
    "input_stalls": "Input wait",
    "idle_gaps": "Device idle",
    "calibration": "Utilization",
    "file_sampling": "File sampling",
    "memory": "Memory",
}
"""What reports say is missing where a result was not measured; the others are left out."""
