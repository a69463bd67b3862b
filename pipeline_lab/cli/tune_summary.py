"""A search for a terminal: who won and by how much, then what was raced, predicted beside measured."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline_lab.tuning.history import Raced, Standing
from pipeline_lab.tuning.result import Tuning


def summarise_tuning(found: Tuning) -> RenderableType:
    """Put a search into words and tables."""
    return Group(*_lines(found))


def _lines(found: Tuning) -> Iterator[RenderableType]:
    yield Text(found.sentence, style="bold")
    for step in found.steps:
        if isinstance(step, Raced):
            yield Text(f"\nRound {step.round}, against {step.leader}")
            yield _table(step)


def _table(step: Raced) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("", "", "predicted", "measured", "interval"):
        table.add_column(title, justify="left" if not title else "right")
    for each in step.standings:
        table.add_row(Text(each.configuration), each.fate, *_numbers(each))
    return table


def _numbers(standing: Standing) -> tuple[str, str, str]:
    predicted, ratio = ("–" if value is None else f"{value:.2f}" for value in (standing.predicted, standing.ratio))
    low, high = standing.low, standing.high
    interval = "–" if low is None or high is None else f"{low:.2f} to {high:.2f}"
    return predicted, ratio, interval
