"""The blocks of a report on a page: the answer, tables, sources and charts, worded as in every export."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, assert_never

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.theme import take_heading
from pipeline_lab.report.content import Answer, Block, CodeBlock, Content, Picture, Section, Table, Text
from pipeline_lab.report.plain_text import plain_line
from pipeline_lab.ui.shared.chart import DrawnChart, show_chart, show_drawn
from pipeline_lab.ui.shared.glossary import define
from pipeline_lab.ui.shared.text import escape, prose, sentence
from pipeline_lab.units import NO_BREAK_SPACE

MAX_CELL = 200
MAX_SENTENCES = 4
"""With more sentences than this, besides the first, an answer is folded."""
READ_AT_ONCE = ("diff", "shell")
"""Languages of short texts that are read, or pasted; others are opened by who wants them."""
TALL_ROWS = 12
TALL_PX = 460
"""A table of more rows scrolls in a box of this height."""
_TONES = {"good": "green", "bad": "red", "neutral": "gray"}


def show_answer(answer: Answer, picture: Picture | None = None) -> None:
    """Show the label, the sentences, the picture that says it, and the numbers behind them."""
    first, *more = answer.sentences
    shown = more if len(more) <= MAX_SENTENCES else []
    with st.container(border=True, key="verdict"):
        color = _TONES.get(answer.tone, "gray")
        st.markdown(f":{color}-badge[{escape(answer.label)}] :gray-badge[{escape(answer.certainty)}]")
        st.header(escape(first), anchor=False)
        if picture is not None:
            show_picture(picture)
        for sentence in shown:
            st.markdown(escape(sentence))
        if len(shown) < len(more):
            with st.expander(f"Each of the {len(more)} candidates"):
                st.markdown("\n".join(f"- {escape(sentence)}" for sentence in more))
        if answer.evidence:
            show_numbers("answer", [(one.name, one.value) for one in answer.evidence])


def show_warnings(content: Content) -> None:
    """Show warnings folded into one notice, most important first."""
    count = len(content.warnings)
    if not count:
        return
    title = f"Before you rely on it ({count})"
    with st.expander(title, icon=":material/warning:", key="warnings"):
        st.markdown("\n".join(f"- {escape(warning)}" for warning in content.warnings))


def take_picture(sections: tuple[Section, ...], name: str) -> tuple[Picture | None, tuple[Section, ...]]:
    """Return the picture of that name, and the sections without it."""
    found = [block for each in sections for block in each.blocks if isinstance(block, Picture) and block.name == name]
    rest = (replace(each, blocks=tuple(block for block in each.blocks if block not in found)) for each in sections)
    return next(iter(found), None), tuple(rest)


def show_about(content: Content) -> None:
    """Show the subject of the report in one line."""
    st.caption(" · ".join(f"{escape(name)}: {escape(plain_line(value))}" for name, value in content.about))


def show_tabs(sections: tuple[Section, ...], key: str) -> None:
    """Show one tab per section; only the open one is built."""
    tabs = st.tabs([escape(plain_line(each.title, 60)) for each in sections], on_change="rerun", key=key)
    for number, (section, tab) in enumerate(zip(sections, tabs, strict=True)):
        if tab.open:
            with tab:
                show_section(section, f"{key}-{number}")


def show_section(section: Section, key: str) -> None:
    """Show all blocks of a section, then what is missing; ``key`` tells equal blocks of other sections apart."""
    missing: dict[str, str] = {}
    for number, block in enumerate(section.blocks):
        if isinstance(block, Picture) and isinstance(drawing := _drawn(block), Unavailable):
            missing.setdefault(drawing.reason, f"{key}-{number}")
        elif isinstance(block, Text) and block.missing:
            missing.setdefault(block.sentence, f"{key}-{number}")
        else:
            show_block(block, f"{key}-{number}")
    show_missing(missing, is_folded=len(missing) < len(section.blocks))


def show_missing(reasons: dict[str, str], *, is_folded: bool) -> None:
    """Say what was not measured.

    Args:
        reasons: Why, each with a name that tells it apart from others on the page: several charts may lack the same thing.
        is_folded: Something else is shown.
    """
    if reasons and is_folded:
        with st.expander(f"Not measured ({len(reasons)})"):
            show_missing(reasons, is_folded=False)
        return
    for reason, name in reasons.items():
        with st.container(key=f"missing-{name}"):
            st.markdown(f":gray-badge[not measured] {prose(reason)}")


def show_block(block: Block, key: str) -> None:
    """Show a sentence, table, source or chart."""
    match block:
        case Text():
            st.markdown((":gray-badge[not measured] " if block.missing else "") + prose(block.sentence))
        case Picture():
            show_picture(block)
        case CodeBlock() if block.folded or block.language not in READ_AT_ONCE:
            with st.expander(escape(block.title)):
                st.code(block.text, language=block.language, height=520)
        case CodeBlock():
            st.markdown(f"**{escape(block.title)}**")
            st.code(block.text, language=block.language, wrap_lines=True)
        case Table() if block.folded:
            with st.expander(escape(block.title)):
                _show_table(block, key)
        case Table():
            st.markdown(f"**{escape(block.title)}**")
            _show_table(block, key)
        case _:
            assert_never(block)


def show_picture(picture: Picture) -> None:
    """Show a chart, or say why there is none."""
    drawing = _drawn(picture)
    if isinstance(drawing, Unavailable):
        st.markdown(f":gray-badge[not measured] {prose(drawing.reason)}")
    else:
        _write(drawing.title, drawing.caption, drawing.notes)
        description = f"{drawing.title}. {picture.description}"
        show_drawn(DrawnChart(picture.name, drawing.figure, description, drawing.height))


class _Drawn(NamedTuple):
    """A chart whose heading stands above it; ``figure`` is JSON."""

    title: str
    caption: str
    notes: list[str]
    figure: str
    height: float


@lru_cache(maxsize=32)  # drawing one takes as long as the rest of its page; a report keeps its pictures
def _drawn(picture: Picture) -> _Drawn | Unavailable:
    drawing = picture.draw("light")
    if isinstance(drawing, Unavailable):
        return drawing
    heading = take_heading(drawing)
    return _Drawn(*heading, drawing.to_json(), drawing.layout.height)


def show_figure(
    figure: go.Figure,
    name: str,
    description: str,
    *,
    is_told: bool = False,
    on_click: Callable[[int, int], None] | None = None,
) -> None:
    """Show a chart below its heading; ``is_told`` leaves its caption out where a sentence above says the same."""
    title = show_heading(figure, is_told=is_told)
    show_chart(figure, name, f"{title}. {description}", on_click)


def show_heading(figure: go.Figure, *, is_told: bool = False) -> str:
    """Show a chart's title and caption as text above it, and take them off the chart; return the title."""
    title, caption, notes = take_heading(figure)
    if is_told:
        st.markdown(f"**{escape(title)}** :gray[:small[{escape(' '.join(notes))}]]")
        return title
    _write(title, caption, notes)
    return title


def _write(title: str, caption: str, notes: list[str]) -> None:
    said = [f":small[{escape(caption)}]"] if caption else []
    said += [f":gray[:small[{escape(' '.join(notes))}]]"] if notes else []
    st.markdown("  \n".join([f"**{escape(title)}**", " ".join(said)]) if said else f"**{escape(title)}**")


def _show_table(table: Table, key: str) -> None:
    is_tall = len(table.rows) > TALL_ROWS
    with st.container(height=TALL_PX if is_tall else "content", border=is_tall, key=f"table-{key}"):
        st.markdown(write_table(table))
    if table.note:
        st.caption(escape(table.note))


def write_table(table: Table) -> str:
    """Write a table in Streamlit's Markdown, quantities right-aligned and unbroken."""
    marks = ["---:" if index in table.numeric else ":---" for index in range(len(table.columns))]
    return "\n".join(
        [
            _row([escape(plain_line(heading, MAX_CELL)) for heading in table.columns]),
            f"|{'|'.join(marks)}|",
            *(_row([_cell(cell, index in table.numeric) for index, cell in enumerate(row)]) for row in table.rows),
        ]
    )


def _cell(text: str, is_quantity: bool) -> str:
    cell = escape(plain_line(text, MAX_CELL))
    return cell.replace(" ", NO_BREAK_SPACE) if is_quantity else cell


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


NUMBERS_IN_A_ROW = 6
"""Per row at most; fewer where they would get narrow."""
NARROWEST_PX = 160


def show_numbers(key: str, numbers: Iterable[tuple[str, str]]) -> None:
    """Show names and values; ``key`` tells them apart from others on the page."""
    shown = list(numbers)
    if not shown:
        return
    with st.grid(min(NUMBERS_IN_A_ROW, len(shown)), min_column_width=NARROWEST_PX, gap="small", key=f"numbers-{key}"):
        for name, value in shown:
            st.metric(escape(sentence(name)), escape(value), help=define(name))
