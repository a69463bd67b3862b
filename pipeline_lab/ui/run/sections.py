"""The tabs of a run: numbers, charts, the chosen stage, the longest gaps and waits, tables."""

from collections.abc import Callable, Mapping
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages, stage_labels
from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.analysis.metrics.metric_rows import topic_rows
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import charts_of
from pipeline_lab.figures.marks import event_place
from pipeline_lab.report.subjects.run_report import section_tables
from pipeline_lab.report.subjects.run_report_tables import stage_blocks
from pipeline_lab.report.user_source import source_blocks
from pipeline_lab.ui.shared import contents, state
from pipeline_lab.ui.timeline import jump
from pipeline_lab.units import format_duration

ANATOMY = "step-parts"
"""The chart of a step to scale, which belongs to the answer."""


def show_section(section: Topic, diagnosis: Diagnosis, below: Mapping[str, Callable[[], None]]) -> None:
    """Show all charts of one section, then why others are missing.

    Args:
        section: Whose charts.
        diagnosis: What they show.
        below: What to show right below a chart, by its name.
    """
    missing: dict[str, str] = {}  # the chart by its reason: several may lack the same thing
    drawn = 0
    for chart in charts_of(section):
        if chart.name == ANATOMY:  # stands above all sections
            continue
        drawing = chart.draw(diagnosis)
        if isinstance(drawing, Unavailable):
            missing.setdefault(drawing.reason, chart.name)
        else:
            _show_leading(drawing, chart.name, chart.description)
            if chart.name in below:
                below[chart.name]()
            drawn += 1
    contents.show_missing(missing, is_folded=drawn > 0)


def _show_leading(figure: go.Figure, name: str, description: str) -> None:
    """Show a figure of one run; marks that stand for a place in the timeline or for a stage link to it."""
    places = [trace.ids if hasattr(trace, "ids") else None for trace in figure.data]
    contents.show_figure(figure, name, description, on_click=partial(jump.from_chart, places))


def show_numbers(section: Topic, diagnosis: Diagnosis) -> None:
    """Show the numbers of a section side by side."""
    contents.show_numbers(section.name, topic_rows(section, diagnosis))


def show_tables(section: Topic, diagnosis: Diagnosis) -> None:
    """Show the folded tables of a section; the others are in the reports."""
    for number, table in enumerate(section_tables(section, diagnosis)):
        if table.folded:
            contents.show_block(table, f"{section.name}-{number}")


STAGE_CHART = "pipeline-stages"
"""The chart whose rows are the stages."""


def show_stage(diagnosis: Diagnosis) -> None:
    """Show the list and the chosen stage; nothing where no stage is known."""
    stages = join_stages(diagnosis.tf_data, diagnosis.live_model, diagnosis.written)
    if isinstance(stages, Unavailable):
        return
    labels = stage_labels(stages)
    names = [f"{number}. {labels[stage.path]}" for number, stage in enumerate(stages, 1)]
    asked = jump.asked_stage(len(stages))
    state.choose(jump.STAGE, _costliest(stages) if asked is None else asked)  # the list may still hold another run's
    chosen = st.selectbox(
        "Stage details: choose a stage here or in the chart",
        range(len(stages)),
        format_func=names.__getitem__,
        key=jump.STAGE,
        on_change=_choose_listed,
        help="Starts with the stage that the device waited for most.",
        width=460,
    )
    path = diagnosis.tf_data if isinstance(diagnosis.tf_data, Unavailable) else diagnosis.tf_data.critical_path
    source = source_blocks(diagnosis.source.path, stages[chosen].written)
    for number, block in enumerate((*source, *stage_blocks(stages[chosen], path))):
        contents.show_block(block, f"stage-{number}")


def _choose_listed() -> None:
    jump.to_stage(state.widget_value(jump.STAGE))


def _costliest(stages: tuple[PipelineStage, ...]) -> int:
    """Return the number of the stage that caused most of the wait, or took most time where no wait is known."""
    return max(range(len(stages)), key=lambda number: (stages[number].exposed_ns or 0, stages[number].work_ns))


MAX_ROWS = 10
QUANTITIES = {"Starts", "Length", "Device idle"}


def show_longest(section: Topic, diagnosis: Diagnosis) -> None:
    """Show the table that belongs to a section, if there is one and something to show."""
    if section is Topic.GAPS and not isinstance(diagnosis.idle_gaps, Unavailable):
        longest = diagnosis.idle_gaps.inside.sort_by([("duration_ns", "descending")]).slice(0, MAX_ROWS)
        rows = longest.to_pylist()
        columns = {
            "Length": [format_duration(row["duration_ns"]) for row in rows],
            "Cause": [GapCause(row["cause"]).label for row in rows],
            "Host operation": [row["host_operation"] or "–" for row in rows],
            "Device": [row["device"] for row in rows],
        }
        _show_rows("gap", "The longest idle gaps", columns, [row["start_ns"] for row in rows])
    elif section is Topic.STALLS and not isinstance(diagnosis.input_stalls, Unavailable):
        waits = diagnosis.input_stalls.table
        length = tables.ints(waits, "end_ns") - tables.ints(waits, "start_ns")
        rows = tables.take(waits, (-length).argsort(kind="stable")[:MAX_ROWS]).to_pylist()
        columns = {
            "Length": [format_duration(row["end_ns"] - row["start_ns"]) for row in rows],
            "Device idle": [format_duration(row["exposed_ns"]) for row in rows],
            "Step": ["–" if row["step"] is None else str(row["step"]) for row in rows],
        }
        _show_rows("wait", "The longest input waits", columns, [row["start_ns"] for row in rows])


def _show_rows(kind: str, title: str, columns: dict[str, list[str]], starts_ns: list[int]) -> None:
    if not starts_ns:
        return
    st.markdown(f"**{title}** — choose a row, or a bar in the charts above, to open it in the timeline.")
    shown = {"Starts": [format_duration(start) for start in starts_ns], **columns}
    key = f"longest-{kind}"
    st.dataframe(
        shown,
        column_config={name: st.column_config.Column(alignment="right") for name in QUANTITIES & shown.keys()},
        hide_index=True,
        lazy=False,
        key=key,
        on_select=partial(_open, key, kind, starts_ns),
        selection_mode="single-row",
        alt=title,
    )


def _open(key: str, kind: str, starts_ns: list[int]) -> None:
    """Open the timeline at the chosen row (a callback)."""
    rows = state.chosen_rows(key)
    if rows and rows[0] < len(starts_ns):
        jump.to_place(event_place(kind, starts_ns[rows[0]]))
