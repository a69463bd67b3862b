"""What a mark on a chart stands for, kept as the mark's id, so that a page can lead there: a place in the run's timeline, or a
stage of its pipeline. Rows of stages can be clicked as a whole, for the bar of one that took little is a pixel wide.
"""

from collections.abc import Iterable

import plotly.graph_objects as go

_STAGE = "stage#"


def event_place(kind: str, start_ns: int) -> str:
    """Name one event; ``kind`` is ``gap``, ``wait`` or ``step``."""
    return f"{kind}@{start_ns}"


def event_places(kind: str, starts_ns: Iterable[int]) -> list[str]:
    """Name several events of a kind."""
    return [event_place(kind, int(start_ns)) for start_ns in starts_ns]


def stretch_place(start_ns: int, end_ns: int) -> str:
    """Name a stretch of time."""
    return f"{start_ns}-{end_ns}"


def stage_place(number: int) -> str:
    """Name a stage of the pipeline, the consumer being 0."""
    return f"{_STAGE}{number}"


def stage_at(place: str) -> int | None:
    """Return the number of the stage that a place names; None if it lies in the timeline."""
    return int(place.removeprefix(_STAGE)) if place.startswith(_STAGE) else None


INVISIBLE = "rgba(0,0,0,0)"


def add_row_targets(figure: go.Figure) -> None:
    """Fill what the bar of every stage leaves of its row with an invisible one that says and leads to the same.

    For pages that can be clicked; a chart whose marks are no stages stays as it is.
    """
    for bars in figure.data:
        if bars.type == "bar" and bars.ids and stage_at(bars.ids[0]) is not None:
            end = figure.layout.xaxis.range[1]
            figure.add_bar(
                y=bars.y,
                ids=bars.ids,
                base=end,
                x=[length - end for length in bars.x],  # from the right, so that what it says stands at the bar's end
                orientation="h",
                offset=-0.5,  # given, it leaves the width of the other bars alone
                width=1,
                marker={"color": INVISIBLE, "line": {"width": 0}},
                unselected={"marker": {"opacity": 1}},
                hovertext=bars.hovertext,
                hovertemplate=bars.hovertemplate,
                hoverlabel={"bgcolor": bars.marker.color},
                showlegend=False,
            )
