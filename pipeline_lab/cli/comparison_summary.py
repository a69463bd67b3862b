"""A comparison for a terminal: the answer, what differs, then the numbers."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline_lab.comparison.differences import Difference
from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.errors import Unavailable
from pipeline_lab.report import content
from pipeline_lab.report.comparison_report import stage_table

MAX_RUN_COLUMNS = 4


def summarise_comparison(comparison: Comparison) -> RenderableType:
    """Put a comparison into words and tables."""
    return Group(*_lines(comparison))


def _lines(comparison: Comparison) -> Iterator[RenderableType]:
    for sentence in comparison.sentences:
        yield Text(sentence, style="bold")
    for warning in comparison.warnings:
        yield Text(f"! {warning}", style="yellow")
    names = [run.name for run in comparison.runs]
    for title, found in (
        ("Options that differ", comparison.differences.options),
        ("Environment that differs", comparison.differences.environment),
    ):
        if found:
            yield Text(f"\n{title}", style="bold")
            yield from _differences(found, names)
    yield Text("\nNumbers", style="bold")
    yield _numbers(comparison, names)
    if not isinstance(comparison.stages, Unavailable):
        yield from _stages(stage_table(comparison.stages, comparison.runs))


def _differences(found: tuple[Difference, ...], names: list[str]) -> Iterator[RenderableType]:
    """Show a table, or for many runs one line per value with the runs that have it."""
    if len(names) <= MAX_RUN_COLUMNS:
        table = _table("", *names)
        for each in found:
            table.add_row(Text(each.path), *(Text("–" if value is None else value) for value in each.values))
        yield table
        return
    for each in found:
        yield Text(each.path)
        for value in dict.fromkeys(each.values):
            holders = [name for name, mine in zip(names, each.values, strict=True) if mine == value]
            yield Padding(Text(f"{'–' if value is None else value}: {', '.join(holders)}"), (0, 0, 0, 2))


def _numbers(comparison: Comparison, names: list[str]) -> Table:
    """Show numbers down and runs across for a few runs; for many, the main numbers across and runs down."""
    if len(names) > MAX_RUN_COLUMNS:
        main = [each for each in comparison.measures if each.key in _MAIN]
        table = _table("", *(each.title for each in main))
        for number, name in enumerate(names):
            table.add_row(Text(name), *(each.texts[number] for each in main))
        return table
    table = _table("", *names, *(["difference"] if len(names) == 2 else []))
    for each in comparison.measures:
        if each.is_worth_a_row:
            table.add_row(each.title, *each.texts, *([each.difference_text(1)] if len(names) == 2 else []))
    return table


def _stages(found: content.Table) -> Iterator[RenderableType]:
    yield Text(f"\n{found.title}", style="bold")
    table = _table(*found.columns)
    for row in found.rows:
        table.add_row(*map(Text, row))
    yield table
    yield Text(found.note, style="dim")


_MAIN = frozenset({"median_step_ms", "wait_ms", "exposed_ms", "idle_percent", "peak_memory_bytes"})


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in headings:
        table.add_column(Text(heading), overflow="fold")
    return table
