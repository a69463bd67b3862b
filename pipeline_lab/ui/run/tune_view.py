"""A search on the run page: what was tried so far, then the winner and how it was found."""

from functools import partial
from pathlib import Path

import streamlit as st

from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparing.chart_lists import RACED_STEPS, SEARCH_HISTORY, TUNE_CHARTS
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.history import Raced
from pipeline_lab.tuning.opened_search import AnyTuning, read_search
from pipeline_lab.tuning.script.script_result import ScriptTuning, read_fix, write_fix_command
from pipeline_lab.tuning.search_launch import resume_tune
from pipeline_lab.tuning.search_result import RecordedSearch, Tuning, describe_step
from pipeline_lab.tuning.space import START
from pipeline_lab.ui.run import header, live
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import contents, links, reports, state
from pipeline_lab.ui.shared.chart import DrawnChart, show_drawn
from pipeline_lab.ui.shared.one_look import REDRAW_S, look, paced
from pipeline_lab.ui.shared.text import escape
from pipeline_lab.units import NS_PER_S, format_duration, keep_together

SO_FAR = (SEARCH_HISTORY, "search-places")
"""Charts of a search under way."""


def show(store: RunStore, record: RunRecord, folder: RunFolder) -> None:
    """Show a search in whatever state it is."""
    if record.status.state.is_live:
        live.show_progress(folder, record.status.state)
        st.fragment(_show_so_far, run_every=paced(REDRAW_S))(folder)
        return
    live.show_ending(record, folder)
    found, content = read_search(folder), reports.open_content(store, [folder])
    is_history = any(isinstance(step, Raced) for step in found.steps)
    picture, sections = contents.take_picture(content.sections, SEARCH_HISTORY if is_history else RACED_STEPS)
    contents.show_answer(content.answer, picture)
    measured = [trial.run for trial in found.trials]
    if len(measured) == 1 and st.button("Open the run that was measured", key="tune-measured"):
        links.open_run(Path(measured[0]).name)
    if isinstance(found, ScriptTuning):
        _offer_to_go_on(store, found)
    else:
        _show_command(found)
        _show_actions(store, found)
    contents.show_tabs(sections, "tune-section")
    contents.show_about(content)
    reports.show_exports([record.id])
    header.edit_notes(store, record)


def link_fix(store: RunStore, record: RunRecord, folder: RunFolder) -> None:
    """Link a watched script to the change that was proved and raced for it, if one was."""
    if not _watched_script(record, folder):
        return
    found = next((each for each in fixes_of(store, record.id)), None)
    if found is not None and st.button("Open its diff, proof and race", key="open-fix", icon=":material/difference:"):
        links.open_run(found)


def show_fix_command(record: RunRecord, folder: RunFolder) -> None:
    """Say how the lines of a watched script are changed; of other runs nothing."""
    if script := _watched_script(record, folder):
        st.markdown("A diff of the script, proved on its own data and raced inside its training:")
        st.code(write_fix_command(script, folder.path), language="shell", wrap_lines=True)


def _watched_script(record: RunRecord, folder: RunFolder) -> str:
    """Return the command line of a watched script whose calls are known; empty for other runs."""
    is_known = "watched" in record.tags and folder.recipe.is_file()
    return str(record.environment.get("command") or "") if is_known else ""


def fixes_of(store: RunStore, run_id: str) -> list[str]:
    """Return the searches that were made from a watched run, or recorded it, the newest first."""
    fixes = ((each.id, read_fix(store.folder(each.id))) for each in store.runs() if each.kind is RunKind.TUNE)
    return [search for search, fix in fixes if fix is not None and Path(fix.run).name == run_id]


def _show_so_far(folder: RunFolder) -> None:
    found, charts = look(folder, "search", partial(_draw_so_far, folder))
    spent, budget = (format_duration(seconds * NS_PER_S) for seconds in (found.spent_s, found.rules.budget_s))
    st.caption(keep_together(f"{spent} of {budget} spent on {len(found.trials)} runs and races."))
    under_way = [trial.run for trial in found.trials if trial.seconds is None]
    if under_way and st.button("Open the current measurement", key="tune-watch"):
        links.open_run(under_way[-1])
    for chart in charts:
        show_drawn(chart)
    if not any(isinstance(step, Raced) for step in found.steps):
        st.caption("The charts begin with the first race.")
    for step in reversed(found.steps):
        st.markdown(f"- {escape(describe_step(step))}")


def _draw_so_far(folder: RunFolder) -> tuple[AnyTuning, list[DrawnChart]]:
    found = read_search(folder)
    drawings = [(chart, chart.draw(found)) for chart in TUNE_CHARTS if chart.name in SO_FAR]
    return found, [
        live.draw_live_chart(drawing, chart.name, chart.description)
        for chart, drawing in drawings
        if not isinstance(drawing, Unavailable)
    ]


def _show_command(found: Tuning) -> None:
    if found.race_command is not None:
        st.markdown("To measure the gain, search again with a larger budget, or race it against the start:")
        st.code(found.race_command, language="shell", wrap_lines=True)


def _show_actions(store: RunStore, found: Tuning) -> None:
    with st.container(horizontal=True):
        who = "the winner" if found.winner_was_raced else "the model's choice"
        has_found = found.winner_name != START
        if has_found and st.button(f"Open {who} in the form", key="tune-winner", type="primary"):
            links.open_new_run(found.winner, f"run:{found.id}")
        _offer_to_go_on(store, found)


def _offer_to_go_on(store: RunStore, found: RecordedSearch) -> None:
    if found.state is not RunState.DONE and st.button("Continue the search", key="tune-resume"):
        _resume(store, found)


def _resume(store: RunStore, found: RecordedSearch) -> None:
    with state.keep_problem():
        if isinstance(found, Tuning):
            access.check_launch(found.options.start)
        resume_tune(store, found.id)
    st.rerun()
