"""A race on the run page: first its narrowing intervals, then the answer and the arms."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from pipeline_lab.comparison.race_arms import describe_alike, name_arms
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.figures.comparing.chart_lists import RACED_STEPS
from pipeline_lab.figures.comparing.race_charts import closing_intervals
from pipeline_lab.options.race_options import AnyRace, read_recorded_race
from pipeline_lab.report.content import Picture, Table
from pipeline_lab.runs.race_standings import FloatArray, Rounds, counted_ns, read_rounds
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.run_events import RaceEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import BLOCKS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.run import details, header, live
from pipeline_lab.ui.shared import analyses, contents, reports
from pipeline_lab.ui.shared.chart import DrawnChart, show_drawn
from pipeline_lab.ui.shared.one_look import REDRAW_S, look, paced
from pipeline_lab.ui.shared.text import escape, prose


def show(store: RunStore, record: RunRecord, folder: RunFolder) -> None:
    """Show a race in whatever state it is."""
    if record.status.state.is_live:
        live.show_progress(folder, record.status.state)
        standing = st.fragment(_show_standing, run_every=paced(REDRAW_S))
        standing(folder, read_recorded_race(record.options or {}))
        return
    live.show_ending(record, folder)
    unread = _unread_window(record, folder)
    if unread is not None and analyses.wait_for(unread, is_sample=False) is None and not analyses.has_failed(unread):
        return
    try:
        content = reports.open_content(store, [folder])
    except TraceIncompleteError as error:
        st.info(prose(str(error)))
        details.show(record, folder)
        return
    steps, (first, *others) = contents.take_picture(content.sections, RACED_STEPS)
    contents.show_answer(content.answer, steps)
    contents.show_warnings(content)
    closing = _closing(folder, _race_events(folder), read_recorded_race(record.options or {}))
    contents.show_tabs((replace(first, blocks=(closing, *first.blocks)), *others), "race-section")
    contents.show_about(content)
    reports.show_exports([record.id])
    header.edit_notes(store, record)
    details.show_files(folder)


def _unread_window(record: RunRecord, folder: RunFolder) -> RunFolder | None:
    """Return the first arm's window that is not analyzed yet; the app itself parses no trace."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    arms = read_recorded_race(record.options or {}).arm_count
    windows = [window for arm in range(arms) for window in folder.arm(arm).windows()[-1:]]
    return next((RunFolder(window) for window in windows if not SavedDiagnosis(window).is_fresh), None)


def _show_standing(folder: RunFolder, options: AnyRace) -> None:
    if alike := describe_alike(options):
        st.caption(escape(alike))
    standing = look(folder, "standing", partial(_draw_standing, folder, options))
    if standing is None:
        st.caption("The first round starts when every arm has warmed up.")
        return
    drawing, table = standing
    if isinstance(drawing, Unavailable):
        st.markdown(f":gray-badge[not measured] {prose(drawing.reason)}")
    else:
        show_drawn(drawing)
    st.markdown(table)


def _draw_standing(folder: RunFolder, options: AnyRace) -> tuple[DrawnChart | Unavailable, str] | None:
    """Return the chart and the table of a race under way; None before its first round."""
    events = _race_events(folder)
    if not events:
        return None
    picture = _closing(folder, events, options)
    figure = picture.draw("light")
    drawing = (
        figure if isinstance(figure, Unavailable) else live.draw_live_chart(figure, picture.name, picture.description)
    )
    return drawing, contents.write_table(standing_table(events[-1], options, _rounds(folder, options)))


def _closing(folder: RunFolder, events: list[RaceEvent], options: AnyRace) -> Picture:
    meaning = "Each candidate's difference from the baseline in every round, and its interval closing in."
    return Picture(
        "race-closing", meaning, partial(closing_intervals, _rounds(folder, options), events, options), wide=True
    )


def _rounds(folder: RunFolder, options: AnyRace) -> Rounds:
    return read_rounds(read_table(folder.blocks, BLOCKS), options.arm_count)


def standing_table(event: RaceEvent, options: AnyRace, rounds: Rounds) -> Table:
    """Return the current result of every candidate; before the first look, what its rounds measured so far."""
    names, times_ns = name_arms(options), counted_ns(rounds, options)
    rows = tuple(
        (
            names[one["arm"]],
            one["outcome"] if one["pairs"] else "too early to tell",
            _ratio(one["ratio"], times_ns, one["arm"]),
            _interval(one["low"], one["high"]),
            str(one["pairs"] or len(times_ns)),
        )
        for one in event.standings
    )
    heads = (f"Against {names[0]}", "Answer so far", f"Ratio per {options.per}", "Interval", "Pairs")
    return Table("Standing", heads, rows, numeric=(2, 3, 4))


def _ratio(ratio: float | None, times_ns: FloatArray, arm: int) -> str:
    if ratio is None and not len(times_ns):
        return "–"
    return f"{np.median(times_ns[:, arm] / times_ns[:, 0]) if ratio is None else ratio:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "in a few rounds"
    return f"{0 if low is None else low:.3f} to {'∞' if high is None else f'{high:.3f}'}"


def _race_events(folder: RunFolder) -> list[RaceEvent]:
    return [event for event in read_events(folder.events) if isinstance(event, RaceEvent)]
