"""A search for a terminal: who won and by how much, what that changes, what was tried, and how it went."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline_lab.advice.option_changes import option_changes
from pipeline_lab.tuning.halving import Fate
from pipeline_lab.tuning.history import Ended, Ranking, rank_configurations
from pipeline_lab.tuning.search_result import Tuning, describe, place_cells


def summarise_tuning(found: Tuning) -> RenderableType:
    """Put a search into words and one table."""
    return Group(*_lines(found))


def _lines(found: Tuning) -> Iterator[RenderableType]:
    yield Text(found.sentence, style="bold")
    changes = option_changes(found.options.start, found.winner)
    if changes:
        yield Text("\nWhat it changes")
        yield from (Text(f"  {change}") for change in changes)
    if found.race_command is not None:
        yield Text("\nTo measure its gain, race it against the start")
        yield Text(f"  {found.race_command}", no_wrap=True, overflow="ignore")  # to be pasted: no breaks
    places = rank_configurations(found.steps)
    if places.rows:
        yield Text("\nWhat was tried: time per step against " + places.reference)
        yield _table(places, goes_on=found.state.is_live)
    story = [describe(step) for step in found.steps if not isinstance(step, Ended)]
    if story:
        yield Text("\nHow it went")
        yield from (Text(f"  {number}. {sentence}") for number, sentence in enumerate(story, 1))


def _table(places: Ranking, *, goes_on: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("configuration", "raced", "interval", "predicted", ""):
        table.add_column(title, justify="left" if title in ("configuration", "") else "right")
    for place in places.rows:
        style = "bold" if place.fate is Fate.LEADS else ""
        table.add_row(*(Text(cell, style=style) for cell in place_cells(place, places.reference, goes_on=goes_on)))
    return table
