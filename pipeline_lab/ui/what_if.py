"""The tab *What if* of a run: what other options would bring, answered at once, and how often such answers were right."""

import streamlit as st

from pipeline_lab.advice.forecasts import Forecast, plan_race, read_forecasts, score
from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import find_settings, source_diff, write_command
from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.advice.what_if import Prediction, measure, predict
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import OptionsError, PipelineLabError, Unavailable
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.report.content import Table
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.store import RunFolder, RunStore, name_of
from pipeline_lab.ui import contents, leave, links, what_if_form
from pipeline_lab.ui.text import escape, prose
from pipeline_lab.ui.verdict import weighed
from pipeline_lab.units import NS_PER_MS, format_bytes, format_count, format_duration, format_percent

TITLE = "What if"
HELP = (
    "Each as one change, the most gain per risk first. Risk is what has to be thought over: memory or disk, and more than "
    "those what the model learns from."
)


def show(store: RunStore, folder: RunFolder, diagnosis: Diagnosis) -> None:
    """Show the tab for a run that is over."""
    told = options_of(folder)
    measured = told if isinstance(told, Unavailable) else measure(diagnosis, told)
    if isinstance(measured, Unavailable):
        st.info(prose(f"Nothing can be predicted from this run. {measured.reason}"))
    else:
        _show_prediction(store, folder, measured)
        _show_suggestions(store, measured, diagnosis.verdict.suggestions)
    _show_forecasts(store)


@st.fragment
def _show_prediction(store: RunStore, folder: RunFolder, measured: Measured) -> None:
    chosen_side, answer_side = st.columns([3, 2], gap="large")
    with chosen_side:
        st.subheader("Change", anchor=False)
        try:
            chosen = what_if_form.choose(measured.options, f"what-if.{folder.id}")
        except OptionsError as error:
            st.error(escape(str(error)))
            return
    prediction = predict(measured, chosen)
    with answer_side:
        st.subheader("Prediction", anchor=False)
        if isinstance(prediction, Unavailable):
            st.info(escape(prediction.reason))
        else:
            _show_answer(measured, prediction)
        changed = find_settings(measured.options, chosen)
        _show_buttons(store, measured, chosen, bool(changed), f"what-if.{folder.id}.own")
    if changed:
        with chosen_side, st.expander("The change"):
            st.code(write_command(name_of(folder.path), changed), language="shell", wrap_lines=True)
            st.code(source_diff(measured.options, chosen), language="diff")


def _show_answer(measured: Measured, prediction: Prediction) -> None:
    gain = prediction.gain_percent(measured)
    is_same = abs(gain) < 0.1
    with st.grid("auto", min_column_width=150, gap="small"):
        st.metric(
            "Predicted step",
            _ms(prediction.step_ms),
            None if is_same else f"{format_percent(abs(gain))} {'less' if gain > 0 else 'more'} per example",
            delta_color="off" if is_same else "normal" if gain > 0 else "inverse",
            border=True,
            height="stretch",
            help="What a step takes on average outside profile windows, single long ones left out.",
        )
        st.metric(
            "If input were free",
            _ms(prediction.ceiling_ms),
            border=True,
            height="stretch",
            help="The training step and Python around it: no pipeline makes a step shorter than this.",
        )
    binding, *others = prediction.terms
    behind = f" Next behind it: {others[0].name}, {_ms(others[0].ms)}." if others else ""
    st.markdown(escape(f"Limited by {binding.name}, {_ms(binding.ms)}.{behind}"))
    rows = tuple((term.name, _ms(term.ms)) for term in prediction.terms)
    st.markdown(contents.write_table(Table("Terms", ("A step takes the longest of", "Time"), rows, numeric=(1,))))
    memory = prediction.memory_bytes
    held = f"unknown ({memory.reason})" if isinstance(memory, Unavailable) else format_bytes(memory)
    st.caption(escape(f"Buffers and caches: {held}. Threads: {format_count(prediction.threads)}."))
    for note in prediction.notes:
        st.caption(f":material/info: {escape(note)}")


def _show_buttons(store: RunStore, measured: Measured, chosen: RunOptions, is_changed: bool, key: str) -> None:
    with st.container(horizontal=True):
        if st.button(
            "Race it",
            key=f"{key}.race",
            icon=":material/flag:",
            disabled=not is_changed,
            help="The run's options against these; the prediction is kept with the race.",
        ):
            try:
                race = launch(store, plan_race(measured, [leave.check(chosen)]))
            except PipelineLabError as error:
                st.error(escape(str(error)))
            else:
                links.open_run(race.id)
        if st.button("Open in New run", key=f"{key}.form", disabled=not is_changed):
            links.open_new_run(chosen, "link:")


def _show_suggestions(store: RunStore, measured: Measured, suggestions: tuple[Suggestion, ...]) -> None:
    changes = [each for each in suggestions if each.options is not None]
    if not changes:
        return
    st.subheader("Suggestions", anchor=False, help=HELP)
    for number, suggestion in enumerate(changes):
        st.markdown(f"**{escape(suggestion.change)}**{weighed(suggestion)}  \n{escape(suggestion.why)}")
        for effect in suggestion.side_effects:
            st.caption(escape(effect))
        with st.expander("The change"):
            st.code(suggestion.command, language="shell", wrap_lines=True)
            st.code(suggestion.source_diff, language="diff")
        _show_buttons(store, measured, read_options(suggestion.options or {}), True, f"what-if.suggestion.{number}")


def _show_forecasts(store: RunStore) -> None:
    forecasts = read_forecasts(store)
    st.subheader("Predicted against measured", anchor=False)
    if not forecasts:
        st.caption("No race of this store has answered a prediction yet.")
        return
    st.markdown(score(forecasts).sentence)
    heads = ("Race", "Candidate", "Predicted", "Raced", "Interval", "Beyond it")
    rows = tuple(_row(forecast) for forecast in forecasts)
    st.markdown(contents.write_table(Table("Predictions", heads, rows, numeric=(2, 3, 4, 5))))


def _row(forecast: Forecast) -> tuple[str, ...]:
    return (
        forecast.race,
        forecast.name,
        f"{forecast.predicted:.2f}",
        f"{forecast.ratio:.2f}",
        f"{forecast.low:.2f} to {forecast.high:.2f}",
        format_percent(forecast.error_percent),
    )


def _ms(value: float) -> str:
    return format_duration(value * NS_PER_MS)
