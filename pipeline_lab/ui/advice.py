"""Advice on the pipeline in the form, before anything runs: what it costs, what a cure would bring, a race to see it."""

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.finding import Finding, Weight
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import links, state
from pipeline_lab.ui.forecast import Forecast
from pipeline_lab.ui.text import escape
from pipeline_lab.units import NS_PER_MS, format_duration, format_percent

_COLOURS = {Weight.PROBLEM: "orange", Weight.ADVICE: "blue", Weight.FACT: "gray"}
SAME_SHARE = 0.005
"""Part of a step below which a prediction calls two steps alike."""


def show_advice(store: RunStore, options: RunOptions, forecast: Forecast | None) -> None:
    """Show what the order and sizes of the stages are likely to cost; what they will hold, on request.

    Args:
        store: Where races go.
        options: Of the form.
        forecast: What is predicted of them; None where no run can tell.
    """
    findings = lint_pipeline(options)
    for finding in findings:
        if finding.weight is not Weight.FACT:
            with st.container(border=True, gap="small"):
                st.markdown(_line(options, finding))
                _show_cure(store, options, finding, forecast)
    facts = [finding for finding in findings if finding.weight is Weight.FACT]
    if facts:
        with st.expander("What the stages will hold"):
            st.markdown("  \n".join(_line(options, finding) for finding in facts))


def _show_cure(store: RunStore, options: RunOptions, finding: Finding, forecast: Forecast | None) -> None:
    """Offer what a finding advises: into the form, or into a race, with what is predicted of it."""
    from pipeline_lab.advice.cache_rules import cure

    cured = cure(options, finding)
    if cured is None:
        return
    key = f"cure.{finding.kind}.{finding.stage}"
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Do it", key=f"{key}.apply", icon=":material/check:", help="Change the form."):
            state.change(cured)
            st.rerun()
        against = "The form as it is against the form with this change."
        if st.button("Race it", key=f"{key}.race", icon=":material/flag:", help=against):
            _race(store, options, cured, forecast)
        if forecast is not None and (effect := _effect(forecast, options, cured)):
            st.caption(effect)


def _race(store: RunStore, options: RunOptions, cured: RunOptions, forecast: Forecast | None) -> None:
    from pipeline_lab.advice.forecasts import plan_race_of

    try:
        race = launch(store, plan_race_of(options, [cured], None if forecast is None else forecast.measured))
    except PipelineLabError as error:
        st.error(escape(str(error)))
    else:
        links.open_run(race.id)


def _effect(forecast: Forecast, options: RunOptions, cured: RunOptions) -> str:
    """Say what a cure is predicted to bring."""
    from pipeline_lab.advice.what_if import Prediction, predict

    before, after = (predict(forecast.measured, each) for each in (options, cured))
    if not isinstance(before, Prediction) or not isinstance(after, Prediction):
        return ""
    ratio = after.ms_per_example / before.ms_per_example
    if abs(ratio - 1.0) < SAME_SHARE:
        return "Predicted: the step takes as long as now."
    times = f"{_ms(before.step_ms)} to {_ms(after.step_ms)}"
    return (
        f"Predicted: step {format_percent(100 * abs(1 - ratio))} {'shorter' if ratio < 1 else 'longer'}, from {times}."
    )


def _line(options: RunOptions, finding: Finding) -> str:
    place = (
        "pipeline" if finding.stage is None else f"{finding.stage + 1} {options.pipeline.stages[finding.stage].stage}"
    )
    return f":{_COLOURS[finding.weight]}-badge[{finding.weight.value} · {place}] {escape(finding.sentence)}"


def _ms(value: float) -> str:
    return format_duration(value * NS_PER_MS)
