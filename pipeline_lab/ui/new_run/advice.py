"""Next to the form, before anything runs: the predicted step time, advice on the stages, and its predicted effect."""

from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError, Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.record import ListedRun, RunKind, RunState
from pipeline_lab.runs.store import RunStore
from pipeline_lab.stages.stage_values import Remark, Weight
from pipeline_lab.ui.shared import links, state
from pipeline_lab.ui.shared.choices import labels_of
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.units import format_duration, format_percent, keep_together

if TYPE_CHECKING:
    from pipeline_lab.advice.measured_run import Measured
    from pipeline_lab.advice.what_if import Prediction

SAME_PERCENT = 0.1
FEWEST_CORES = 0.05
"""Of other programs that are named."""
MOST_RUNS = 5
"""Runs to try before giving up; each new one has to be loaded."""
MOST_READ = 200
"""Runs whose options are read before giving up."""


@dataclass(frozen=True)
class KnownRun:
    """What a run measured, and how busy others kept its machine meanwhile.

    Attributes:
        measured: What predictions are made from.
        other_cores: That other programs used; None where it is not known.
        is_busy: They used too many for its times to mean much; it predicts only when asked.
    """

    measured: "Measured"
    other_cores: float | None
    is_busy: bool


@dataclass(frozen=True)
class FormForecast:
    """A prediction, and the run that it was made from."""

    run: ListedRun
    known: KnownRun
    prediction: "Prediction"

    @property
    def measured(self) -> "Measured":
        return self.known.measured


@dataclass(frozen=True)
class FormSources:
    """The runs that may predict the form, the latest first, and the prediction of the one that was chosen or comes first, or why none can."""

    runs: tuple[ListedRun, ...]
    forecast: FormForecast | Unavailable


_CHOSEN, _SOURCE = "forecast-chosen", "forecast-source"


def show_source(sources: FormSources) -> None:
    """Name the run that predicts, or say why none does, and let the user choose another."""
    names = {run.id: run for run in sources.runs}
    if isinstance(sources.forecast, Unavailable):
        found = None
        st.caption(f"Not predicted. {prose(sources.forecast.reason)}")
    else:
        found = sources.forecast
        st.caption(f"From run {escape(found.run.name)}{_others(found.known.other_cores)}.")
    if len(names) > (found is not None):
        labels = labels_of(names)
        st.selectbox(
            "Predict from",
            list(names),
            None if found is None else list(names).index(found.run.id),
            format_func=labels.__getitem__,
            key=f"{_SOURCE}-{'' if found is None else found.run.id}",
            on_change=_choose_source,
            args=(f"{_SOURCE}-{'' if found is None else found.run.id}",),
            placeholder="a run",
            width=460,
        )


def _choose_source(key: str) -> None:
    """Predict from the run that the list shows (a callback)."""
    state.choose(_CHOSEN, state.widget_value(key))


def _others(cores: float | None) -> str:
    if cores is None or cores < FEWEST_CORES:
        return ""
    return f"; other programs used {cores:.2g} cores meanwhile"


def show_forecast(store: RunStore, found: FormForecast, options: RunOptions) -> None:
    """Show a prediction of the form with a button to race it."""
    binding, *others = found.prediction.terms
    gain = found.prediction.gain_percent(found.measured)
    than = f"{format_percent(abs(gain))} {'less' if gain > 0 else 'more'} time per example than"
    where = f"{found.run.name}{'' if found.measured.from_step is None else ' after its first epoch'}"
    against = f"{'the same time per example as' if abs(gain) < SAME_PERCENT else than} in {where}"
    second = f", then by {others[0].name} ({format_duration(others[0].time_ns)})" if others else ""
    st.markdown(
        f":violet-badge[predicted] **{keep_together(format_duration(found.prediction.step_ns))}** a step, {escape(against)}; limited by "
        f"{escape(binding.name)}{escape(second)}."
    )
    recorded = found.measured.options
    if (options.pipeline, options.workload) == (recorded.pipeline, recorded.workload):
        return
    if st.button(
        f"Race it against {escape(found.run.name)}", key="forecast-race", help="The prediction is saved with the race."
    ):
        from pipeline_lab.advice.forecasts import plan_race

        with state.show_problem():
            links.open_run(launch(store, plan_race(found.measured, [options])).id)


BUSY = Unavailable(
    "Other programs kept the machine busy during the runs that could tell; choose one, or record another run."
)


def find_sources(store: RunStore, options: RunOptions) -> FormSources:
    """Return the runs that may predict these options, and the prediction of the chosen one, else of the latest that can tell.

    One whose machine was busy is not used unasked.
    """
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    fitting, why_not = _candidates(store, options)
    saved = [(run, path, SavedDiagnosis(path).saved_ns) for run, path in fitting]
    known = [(run, path, saved_ns) for run, path, saved_ns in saved if saved_ns is not None]  # none is waited for here
    if fitting and not known:
        why_not = Unavailable(f"Run {fitting[0][0].name} is not analyzed yet; open it once.")
    chosen = state.widget_value(_CHOSEN)
    asked = [each for each in known if each[0].id == chosen]
    runs, reasons = tuple(run for run, _, _ in known), list[Unavailable]()
    for each in asked or known:
        forecast = _forecast(*each, options, is_asked=bool(asked))
        if not isinstance(forecast, Unavailable):
            return FormSources(runs, forecast)
        reasons.append(forecast)
    told = [reason for reason in reasons if reason is not BUSY]
    return FormSources(runs, (*told, *reasons, why_not)[0])


def _forecast(
    run: ListedRun, path: Path, saved_ns: int, options: RunOptions, *, is_asked: bool
) -> FormForecast | Unavailable:
    from pipeline_lab.advice.what_if import predict

    known = _measured(path, saved_ns)
    if isinstance(known, Unavailable):
        return known
    if known.is_busy and not is_asked:
        return BUSY
    prediction = predict(known.measured, options)
    return prediction if isinstance(prediction, Unavailable) else FormForecast(run, known, prediction)


def _candidates(store: RunStore, options: RunOptions) -> tuple[list[tuple[ListedRun, Path]], Unavailable]:
    """Return the latest finished runs whose options are close enough, and why there is none if so."""
    from pipeline_lab.advice.workload_changes import find_unknown

    same = (
        run
        for run in store.runs()
        if run.kind is RunKind.RUN and run.status.state is RunState.DONE and run.workload == options.workload.kind
    )
    why_not: Unavailable | None = None
    found: list[tuple[ListedRun, Path]] = []
    for run in islice(same, MOST_READ):
        try:
            folder = store.folder(run.id)
            recorded = _recorded_options(folder.path, folder.record.stat().st_mtime_ns)
        except (StoreError, OSError):  # deleted just now
            continue
        if recorded is None:
            continue
        unknown = find_unknown(recorded, options)
        if unknown is None:
            found.append((run, folder.path))
            if len(found) == MOST_RUNS:
                break
        elif why_not is None:
            why_not = Unavailable(f"Run {run.name} cannot tell. {unknown}")
    kind = options.workload.kind
    return found, why_not or Unavailable(
        f"There is no finished run of the {kind} workload to predict from; launch one, and changes of this form are predicted."
    )


@lru_cache(maxsize=1000)
def _recorded_options(path: Path, _changed_ns: int) -> RunOptions | None:
    """Return a run's options, cached by when its record last changed; None if they are no longer valid."""
    from pipeline_lab.advice.recorded_options import options_of
    from pipeline_lab.runs.run_folder import RunFolder

    recorded = options_of(RunFolder(path))
    return None if isinstance(recorded, Unavailable) else recorded


@lru_cache(maxsize=32)
def _measured(path: Path, _saved_ns: int) -> KnownRun | Unavailable:
    """Return what a run measured, cached by when its diagnosis was saved."""
    from pipeline_lab.advice.recorded_options import options_of
    from pipeline_lab.advice.what_if import measure_diagnosis
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
    from pipeline_lab.analysis.verdict.findings import is_machine_busy
    from pipeline_lab.runs.run_folder import RunFolder

    diagnosis, options = SavedDiagnosis(path).load_latest(), options_of(RunFolder(path))
    if isinstance(options, Unavailable):
        return options
    if diagnosis is None:
        return Unavailable("The run is not analyzed yet; open it once.")
    measured = measure_diagnosis(diagnosis, options)
    if isinstance(measured, Unavailable):
        return measured
    others = diagnosis.other_cpu_percent
    return KnownRun(measured, None if others is None else others / 100, is_machine_busy(diagnosis))


_COLORS = {Weight.PROBLEM: "orange", Weight.ADVICE: "blue", Weight.FACT: "gray"}
SAME_SHARE = 0.005
"""Relative difference below which two predicted steps count as equal."""


def show_advice(store: RunStore, options: RunOptions, forecast: FormForecast | None) -> None:
    """Show what the order and sizes of the stages are likely to cost; and, folded, what they keep in memory.

    Args:
        store: Where races go.
        options: Of the form.
        forecast: Their prediction; None where no run allows one.
    """
    findings = lint_pipeline(options)
    for finding in findings:
        if finding.weight is not Weight.FACT:
            with st.container(border=True, gap="small"):
                st.markdown(_line(options, finding))
                _show_fix(store, options, finding, forecast)
    facts = [finding for finding in findings if finding.weight is Weight.FACT]
    if facts:
        with st.expander("Memory held by the stages"):
            st.markdown("  \n".join(_line(options, finding) for finding in facts))


def _show_fix(store: RunStore, options: RunOptions, finding: Remark, forecast: FormForecast | None) -> None:
    """Offer to apply or race what a finding advises, with its predicted effect."""
    from pipeline_lab.advice.forecasts import plan_race_of
    from pipeline_lab.advice.option_edits import fix_order

    fixed = fix_order(options, finding)
    if fixed is None:
        return
    key = f"fix.{finding.kind}.{finding.stage}"
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Apply", key=f"{key}.apply", icon=":material/check:", help="Change the form."):
            state.change(fixed)
            st.rerun()
        against = "Race the form against the form with this change."
        if st.button("Race it", key=f"{key}.race", icon=":material/flag:", help=against):
            with state.show_problem():
                measured = None if forecast is None else forecast.measured
                links.open_run(launch(store, plan_race_of(options, [fixed], measured)).id)
        if forecast is not None and (effect := _effect(forecast, options, fixed)):
            st.caption(effect)


def _effect(forecast: FormForecast, options: RunOptions, fixed: RunOptions) -> str:
    """Describe the predicted effect of a change."""
    from pipeline_lab.advice.what_if import Prediction, predict

    before, after = (predict(forecast.measured, each) for each in (options, fixed))
    if not isinstance(before, Prediction) or not isinstance(after, Prediction):
        return ""
    ratio = after.ns_per_example / before.ns_per_example
    if abs(ratio - 1.0) < SAME_SHARE:
        return "Predicted: no change in step time."
    times = f"{format_duration(before.step_ns)} to {format_duration(after.step_ns)}"
    return (
        f"Predicted: step {format_percent(100 * abs(1 - ratio))} {'shorter' if ratio < 1 else 'longer'}, from {times}."
    )


def _line(options: RunOptions, finding: Remark) -> str:
    place = (
        "pipeline" if finding.stage is None else f"{finding.stage + 1} {options.pipeline.stages[finding.stage].stage}"
    )
    return f":{_COLORS[finding.weight]}-badge[{finding.weight.value} · {place}] {prose(finding.sentence)}"
