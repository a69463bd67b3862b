"""One look for every chart: colors by meaning, light and dark templates, titles, notes.

A category keeps its color on every page and in every report. The colors stay apart for color-blind eyes (a test
simulates three kinds) and stand out from the background with a contrast of at least 3 to 1; the capture gap alone is
faint on purpose, because nothing was measured there.
"""

import math
import textwrap
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, Literal

import plotly.graph_objects as go

from pipeline_lab.analysis.causes import GapCause, Work
from pipeline_lab.data_classes import dataclass
from pipeline_lab.figures.aggregate import FloatArray, IntArray, break_between, group_percentile, group_size, outline
from pipeline_lab.units import keep_together

Mode = Literal["light", "dark"]

FONT = "'Source Sans', 'Source Sans Pro', 'Segoe UI', system-ui, sans-serif"
HEIGHT = 340
NOTE_WIDTH = 62
"""Characters of a note's line: what fits on a screen of 400 pixels."""
LINE_HEIGHT = 16
LETTER_WIDTH, LABEL_MARGIN = 7, 10
"""Pixels of a letter of a label beside a bar, on average, and around the label."""
BARE_TOP = 14
"""Pixels above the marks of a chart whose title stands above it."""
FEW = 20
"""Fewer values than this are drawn one by one: as dots, not as a line, and not joined in a histogram."""


@dataclass(frozen=True)
class Theme:
    """Colors of one mode.

    Attributes:
        paper: Background, the same as the page's.
        ink, muted, grid: Text, secondary text, grid lines.
        shade: Translucent gray behind stretches that stand apart (warm-up, profile windows).
        scale: From nothing to much, for heat maps.
        categories: Color of each thing that charts show.
    """

    paper: str
    ink: str
    muted: str
    grid: str
    shade: str
    scale: tuple[str, ...]
    categories: dict[str, str]


THEMES: dict[Mode, Theme] = {
    "light": Theme(
        paper="#ffffff",
        ink="#10161f",
        muted="#5b6470",
        grid="#e6e8ec",
        shade="rgba(110,120,135,0.16)",
        scale=("#f3f5f9", "#b9cbe6", "#7698cc", "#3f63a6", "#16305f"),
        categories={
            **{cause.value: cause.light for cause in GapCause},
            **{work.value: work.light for work in Work if work.light},
            "expected": "#5b6470",
        },
    ),
    "dark": Theme(
        paper="#12161c",
        ink="#e8ebf0",
        muted="#a3abb7",
        grid="#2a313b",
        shade="rgba(150,160,175,0.18)",
        scale=("#1a2029", "#23406a", "#3068ae", "#4b8bd6", "#86bdf4"),
        categories={
            **{cause.value: cause.dark for cause in GapCause},
            **{work.value: work.dark for work in Work if work.dark},
            "expected": "#a3abb7",
        },
    ),
}


def color(category: str, mode: Mode) -> str:
    """Return the color of a category; an unknown one is a programming error."""
    return THEMES[mode].categories[category]


def faint(shade: str) -> str:
    """Return a color as a background that text can be read on."""
    red, green, blue = (int(shade[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"


def dark_colors() -> dict[str, str]:
    """Return what each color of light charts is in dark ones, so that a chart can follow its page without being drawn again."""
    light, dark = (
        [*(value for value in vars(theme).values() if isinstance(value, str)), *theme.scale, *theme.categories.values()]
        for theme in THEMES.values()
    )
    pairs = dict(zip(light, dark, strict=True))
    return pairs | {faint(one): faint(other) for one, other in pairs.items() if one.startswith("#")}


def new_figure(title: str, mode: Mode, x_title: str, y_title: str, *, height: int = HEIGHT) -> go.Figure:
    """Return an empty chart in the lab's look.

    Args:
        title: What the chart answers, at most about 45 characters.
        mode: Light or dark.
        x_title, y_title: Axis titles with their units.
        height: Pixels.
    """
    import_module("pandas")  # Plotly takes what another thread has loaded half of it for the whole, and fails
    return go.Figure(
        layout={
            "template": _template(mode),
            "title": {"text": title},
            "height": height,
            "meta": {"caption": "", "notes": []},
            "xaxis": {"title": {"text": x_title}},
            "yaxis": {"title": {"text": y_title}},
        }
    )


def say(figure: go.Figure, sentence: str) -> None:
    """Write under the title what there is to see in these data; every chart has one such sentence."""
    _write_subtitle(figure, sentence.replace("….", "…"), notes_of(figure))  # a name that was cut, at the end


def caption_of(figure: go.Figure) -> str:
    """Return what :func:`say` wrote."""
    return str(figure.layout.meta["caption"])


def add_note(figure: go.Figure, sentence: str) -> None:
    """Write a sentence below the caption: what was joined, left out or stands in for something."""
    _write_subtitle(figure, caption_of(figure), [*notes_of(figure), sentence])


def _write_subtitle(figure: go.Figure, caption: str, notes: list[str]) -> None:
    """Write caption and notes; the chart grows by their lines, so that its marks keep their room."""
    layout = figure.layout  # set part by part: update_layout takes three times as long
    subtitle, before = layout.title.subtitle, layout.title.subtitle.text
    ink = layout.template.layout.font.color
    said = [f'<span style="color:{ink}">{line}</span>' for line in _wrap(caption)]
    lines = [*said, *_wrap(" ".join(notes))]
    layout.meta = {"caption": caption, "notes": notes}
    subtitle.text = "<br>".join(lines)
    layout.margin.t = 48 + LINE_HEIGHT * len(lines)
    layout.height += LINE_HEIGHT * (len(lines) - (before.count("<br>") + 1 if before else 0))


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(keep_together(text), NOTE_WIDTH)


def take_heading(figure: go.Figure) -> tuple[str, str, list[str]]:
    """Take title, caption and notes off a chart, for a page that shows them as text above it, which breaks where its lines end."""
    heading = (str(figure.layout.title.text), caption_of(figure), notes_of(figure))
    spare = figure.layout.margin.t if figure.layout.margin.t is not None else figure.layout.template.layout.margin.t
    figure.update_layout(title_text="", title_subtitle_text="")
    figure.update_layout(margin_t=BARE_TOP, height=figure.layout.height - (spare - BARE_TOP))
    return heading


def notes_of(figure: go.Figure) -> list[str]:
    """Return the sentences written on a chart."""
    return list(figure.layout.meta["notes"])


def end_axis(
    figure: go.Figure, end: float, labels: Iterable[str] = (), room: float = 1.0, axis: str = "xaxis", ticks: int = 4
) -> None:
    """Let an axis that begins at 0 end where its data do.

    Args:
        figure: Has that axis.
        end: The largest value.
        labels: Written beside the bars; those of the longest stand in the chart's margin, which has room for each.
        room: As many times the largest value is for labels where the axis has no margin of its own beside it.
        axis: Name in the layout.
        ticks: About as many.
    """
    rough = end / ticks
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    marks = [step * number for number in range(int(end / step * (1 + 1e-9)) + 1)]
    figure.update_layout(
        {axis: {"range": [0, end * room or 1], "tickvals": marks, "ticktext": [f"{mark:.6g}" for mark in marks]}}
    )
    if longest := max(map(len, labels), default=0):
        figure.update_layout(margin_r=LABEL_MARGIN + LETTER_WIDTH * longest)


def row_height(labels: Iterable[str], least: int) -> int:
    """Return the pixels of a row whose label has room for its lines, at least so many."""
    lines = max((label.count("<br>") + 1 for label in labels), default=1)
    return max(least, LINE_HEIGHT * (lines + 1))


def dots_or_line(count: int) -> Literal["markers", "lines"]:
    """Return how to draw this number of values in the order of time."""
    return "markers" if count < FEW else "lines"


def shade(figure: go.Figure, mode: Mode, spans: list[tuple[float, float]], *, cap: int = 100) -> None:
    """Put a gray band behind each span of the x axis; more than ``cap`` spans are thinned evenly."""
    step = -(-len(spans) // cap) or 1
    figure.update_layout(
        shapes=[
            {
                "type": "rect",
                "xref": "x",
                "yref": "paper",
                "x0": start,
                "x1": end,
                "y0": 0,
                "y1": 1,
                "fillcolor": THEMES[mode].shade,
                "line": {"width": 0},
                "layer": "below",
            }
            for start, end in spans[::step]
        ]
        + list(figure.layout.shapes)
    )


def add_medians(
    figure: go.Figure,
    x: FloatArray,
    values: FloatArray,
    starts: IntArray,
    shade: str,
    mode: Mode,
    members: str,
    parts: FloatArray | None = None,
    **shown: Any,
) -> None:
    """Draw values as a line; of groups their medians, above a band from the 5th to the 95th percentile.

    Args:
        figure: To draw on.
        x: Place of each group, shape (groups,).
        values: All of them.
        starts: Of :func:`~pipeline_lab.figures.aggregate.group_starts`.
        shade: Color of the line.
        mode: Light or dark.
        members: What is grouped, for the note: ``steps``.
        parts: Number of the part that each group belongs to, shape (groups,); the line stops between parts.
        **shown: Name, text on pointing at it, and the like.
    """
    if group_size(starts) > 1:
        add_note(figure, f"Line: median of {group_size(starts)} neighboring {members}; band: 5th to 95th percentile.")
        low, high = (group_percentile(values, starts, percent) for percent in (5, 95))
        around_x, around_y = outline(x, low, high, parts)
        hidden = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        figure.add_scatter(x=around_x, y=around_y, fill="toself", fillcolor=THEMES[mode].shade, **hidden)
    medians = group_percentile(values, starts, 50)
    line_x, line_y = (x, medians) if parts is None else break_between(x, medians, parts)
    figure.add_scatter(
        x=line_x,
        y=line_y,
        mode=dots_or_line(len(values)),
        line={"color": shade, "width": 1.6},
        marker={"color": shade, "size": 8},
        **shown,
    )


def add_key(figure: go.Figure, name: str, mode: Mode) -> None:
    """Add a legend entry for the gray bands."""
    marker = {"symbol": "square", "size": 12, "color": THEMES[mode].shade, "line": {"width": 0}}
    figure.add_scatter(x=[None], y=[None], mode="markers", name=name, marker=marker)


@cache  # a figure copies it
def _template(mode: Mode) -> go.layout.Template:
    theme = THEMES[mode]
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.grid,
        "zerolinecolor": theme.grid,
        "title": {"font": {"size": 12, "color": theme.muted}, "standoff": 8},
        "tickfont": {"size": 12, "color": theme.muted},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": theme.paper,
            "plot_bgcolor": theme.paper,
            "font": {"family": FONT, "size": 13, "color": theme.ink},
            "colorway": [theme.categories["busy"], theme.categories["input_wait"], theme.muted],
            "title": {
                "x": 0,
                "xanchor": "left",
                "xref": "container",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 8, "l": 4},
                "font": {"size": 16, "color": theme.ink},
                "subtitle": {"font": {"size": 12, "color": theme.muted}},
            },
            "margin": {"l": 8, "r": 16, "t": 48, "b": 8},
            "legend": {
                "orientation": "h",
                "yref": "container",
                "y": 0,
                "yanchor": "bottom",
                "x": 0,
                "xanchor": "left",
                "font": {"size": 12, "color": theme.ink},
                "bgcolor": "rgba(0,0,0,0)",
                "itemclick": False,
                "itemdoubleclick": False,
            },
            "hoverlabel": {"font": {"family": FONT, "size": 12}},
            "xaxis": axis,
            "yaxis": {**axis, "rangemode": "tozero", "fixedrange": True},
            "dragmode": "zoom",
            "bargap": 0.15,
        }
    )
