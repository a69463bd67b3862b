"""The answer first: the verdict with its evidence, how sure it is, and what to try."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.verdict.verdict import Evidence, Suggestion, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.ui.shared import contents
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.ui.timeline import jump
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

SHOWN_EVIDENCE = 6
"""Numbers beside the sentence; a tired person reads no more, the others are folded."""


def show_verdict(verdict: Verdict, *, changes_in: str = "") -> None:
    """Show the sentence, the numbers behind it and the next things to try.

    Args:
        verdict: Of the run.
        changes_in: The tab that shows what is suggested as changes of the options; empty while there is none.
    """
    with st.container(border=True, key="verdict"):
        kind = verdict.verdict_class
        st.markdown(f":{kind.badge}-badge[{kind.label}] :gray-badge[confidence: {verdict.confidence.value}]")
        st.header(escape(verdict.sentence), anchor=False)
        _show_evidence("evidence", verdict.evidence[:SHOWN_EVIDENCE])
        if verdict.suggestions:
            order = (
                ", the most gain per risk first" if len(verdict.suggestions) > 1 and verdict.suggestions[0].risk else ""
            )
            st.markdown(f"**What to try**{order}\n" + "\n".join(_suggestion(one) for one in verdict.suggestions))
        if changes_in and any(one.options is not None for one in verdict.suggestions):
            st.button(
                "See and race each change",
                key="try-suggestions",
                icon=":material/flag:",
                on_click=jump.to_tab,
                args=(changes_in,),
            )
        if folded := verdict.evidence[SHOWN_EVIDENCE:]:
            with st.expander(f"More evidence ({len(folded)})"):
                _show_evidence("more-evidence", folded)


def _show_evidence(key: str, evidence: Sequence[Evidence]) -> None:
    contents.show_numbers(key, [(one.name, one.value) for one in evidence])


def show_findings(diagnosis: Diagnosis) -> None:
    """Show what else is worth knowing, each with its numbers."""
    if not diagnosis.findings:
        return
    with st.container(border=True, gap="small", key="findings"):
        st.markdown("**Also worth knowing**")
        for finding in diagnosis.findings:
            evidence = " · ".join(f"{escape(one.name)} {escape(one.value)}" for one in finding.evidence)
            kind = finding.kind.replace("-", " ")
            st.markdown(
                f":blue-badge[{kind}] {prose(finding.sentence)}" + (f"  \n:gray[{evidence}]" if evidence else "")
            )


def show_metrics(diagnosis: Diagnosis) -> None:
    """Show the headline numbers; what was not measured says so and why."""
    shown = headline(diagnosis)
    with st.grid(len(shown), min_column_width=128, gap="small"):
        for label, value, explanation in shown:
            text = "–" if isinstance(value, Unavailable) else value
            help_ = f"Not measured: {value.reason}" if isinstance(value, Unavailable) else explanation
            st.metric(label, text, border=True, help=prose(help_), height="stretch")
    if over := basis(diagnosis):
        st.caption(f"What each is measured over. {escape(over)}.")


def basis(diagnosis: Diagnosis) -> str:
    """Say over which steps or stretches of time the headline numbers were measured; they differ."""
    job, steps = diagnosis.job_steps, diagnosis.steps
    recorded = None if isinstance(steps, Unavailable) else f"the {format_count(steps.count)} recorded steps"
    measured = recorded if isinstance(job, Unavailable) else f"all {format_count(job.count)} measured steps"
    parts = {
        "Median step and input wait": measured,
        "Exposed stall": None if isinstance(diagnosis.input_stalls, Unavailable) else recorded,
        "Device idle": None if isinstance(diagnosis.idle_gaps, Unavailable) else "the whole profile windows",
        "Utilisation": None
        if isinstance(diagnosis.calibration, Unavailable)
        else "the measured steps and a held batch",
    }
    return ". ".join(f"{name}: {over}" for name, over in parts.items() if over)


def headline(diagnosis: Diagnosis) -> list[tuple[str, str | Unavailable, str]]:
    """Return label, value and explanation of each headline number."""
    job, stalls, gaps = diagnosis.job_steps, diagnosis.input_stalls, diagnosis.idle_gaps
    idle = gaps if isinstance(gaps, Unavailable) else gaps.idle_percent
    calibration, memory = diagnosis.calibration, diagnosis.memory
    return [
        (
            "Median step",
            _median_step(diagnosis),
            "Median of all measured steps, warm-up left out; of a log, of the recorded ones. The verdict speaks of the mean.",
        ),
        (
            "Input wait",
            _input_wait(diagnosis),
            "Share of all measured steps' time spent waiting for the next batch; of a log the recorded steps' time.",
        ),
        (
            "Exposed stall",
            stalls if isinstance(stalls, Unavailable) else format_percent(stalls.exposed_percent),
            "Share of the profiled steps in which the job waited for input and the device had nothing to do.",
        ),
        (
            "Device idle",
            idle if isinstance(idle, Unavailable) else format_percent(idle),
            "Share of the whole profile windows without device work, the time between and around the steps included.",
        ),
        (
            "Utilisation",
            calibration if isinstance(calibration, Unavailable) else format_percent(calibration.utilisation_percent),
            "The step on a held batch over the step as it ran: 100 % means that input costs nothing.",
        ),
        (
            "Throughput",
            _throughput(job),
            "Examples trained per second over the measured steps.",
        ),
        (
            "Peak memory",
            memory if isinstance(memory, Unavailable) else format_bytes(memory.process_peak_bytes),
            "Largest resident size of the job's process.",
        ),
    ]


def _median_step(diagnosis: Diagnosis) -> str | Unavailable:
    job, steps = diagnosis.job_steps, diagnosis.steps
    if not isinstance(job, Unavailable):
        return format_duration(job.median_ns)
    if isinstance(steps, Unavailable) or not steps.count:
        return job
    return format_duration(float(np.median(steps.training_step_ns)))


def _input_wait(diagnosis: Diagnosis) -> str | Unavailable:
    job, stalls = diagnosis.job_steps, diagnosis.input_stalls
    if not isinstance(job, Unavailable):
        return format_percent(100 * job.wait_total_ns / max(1, job.total_ns))
    return job if isinstance(stalls, Unavailable) else format_percent(stalls.wait_percent)


def _throughput(job: JobSteps | Unavailable) -> str | Unavailable:
    if isinstance(job, Unavailable):
        return job
    if job.examples_per_second is None:
        return Unavailable("The job did not note its samples; switch `sample_probe` on to count them.")
    return f"{format_count(job.examples_per_second)}/s"


def _suggestion(suggestion: Suggestion) -> str:
    words = " ".join((suggestion.why, *suggestion.side_effects))
    return f"- **{escape(suggestion.change)}**{weighed(suggestion)}  \n  {prose(words)}"


def weighed(suggestion: Suggestion) -> str:
    """Return a suggestion's gain and risk, which give it its place among the others, as badges in Markdown."""
    gain = f" :green-badge[{suggestion.prediction}]" if suggestion.prediction else ""
    risk = f" :gray-badge[{suggestion.risk}]" if suggestion.risk else ""
    return gain + risk
