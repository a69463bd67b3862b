"""The answer first: the verdict with its evidence, how sure it is, and what to try."""

from collections.abc import Sequence

import streamlit as st

from pipeline_lab.analysis.metrics import headline
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.written_words import name_stage
from pipeline_lab.analysis.verdict.verdict import Evidence, Suggestion, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.user_source import source_blocks
from pipeline_lab.ui.shared import contents
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.ui.timeline import jump

SHOWN_EVIDENCE = 6
"""Numbers next to the sentence; the others are folded."""


def show_verdict(verdict: Verdict, *, changes_in: str = "", path: str = "") -> None:
    """Show the sentence, the numbers behind it and the next things to try.

    Args:
        verdict: Of the run.
        changes_in: The tab that shows the suggested changes; empty if there is none.
        path: Of the run, which keeps the source of a script; empty if it keeps none.
    """
    with st.container(border=True, key="verdict"):
        kind = verdict.verdict_class
        st.markdown(f":{kind.badge}-badge[{kind.label}] :gray-badge[confidence: {verdict.confidence.value}]")
        st.header(escape(verdict.sentence), anchor=False)
        _show_source(path, verdict)
        _show_evidence("evidence", verdict.evidence[:SHOWN_EVIDENCE])
        if verdict.suggestions:
            order = (
                ", highest gain per risk first" if len(verdict.suggestions) > 1 and verdict.suggestions[0].risk else ""
            )
            st.markdown(f"**What to try**{order}\n" + "\n".join(_suggestion(one) for one in verdict.suggestions))
        if changes_in and any(one.options is not None for one in verdict.suggestions):
            st.button(
                "View and race each change",
                key="try-suggestions",
                icon=":material/flag:",
                on_click=jump.to_tab,
                args=(changes_in,),
            )
        if folded := verdict.evidence[SHOWN_EVIDENCE:]:
            with st.expander(f"More evidence ({len(folded)})"):
                _show_evidence("more-evidence", folded)


def _show_source(path: str, verdict: Verdict) -> None:
    """Show the lines of the user's that the sentence names, once asked."""
    blocks = source_blocks(path, verdict.calls) if path and any(call.place for call in verdict.calls) else ()
    if blocks:
        with st.expander(f"Show {escape(name_stage(verdict.calls, ''))}", icon=":material/code:", key="verdict-source"):
            for block in blocks:
                st.caption(escape(block.title))
                st.code(block.text, language=None)


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
    shown = headline()
    with st.grid(len(shown), min_column_width=128, gap="small"):
        for metric in shown:
            text = metric.write(diagnosis)
            if isinstance(text, Unavailable):
                st.metric(metric.title, "–", border=True, help=prose(f"Not measured: {text.reason}"), height="stretch")
            else:
                help_ = f"{metric.explanation} Over {metric.over}."
                st.metric(metric.title, text, border=True, help=prose(help_), height="stretch")
    if over := basis(diagnosis):
        st.caption(f"What each is measured over. {escape(over)}.")


def basis(diagnosis: Diagnosis) -> str:
    """Say over which steps or stretches of time the headline numbers were measured; they differ."""
    names: dict[str, list[str]] = {}
    for metric in headline():
        over = metric.over.words(diagnosis)
        if over is not None and not isinstance(metric.read(diagnosis), Unavailable):
            names.setdefault(over, []).append(metric.title)
    return ". ".join(f"{_list(labels)}: {over}" for over, labels in names.items())


def _list(labels: list[str]) -> str:
    """Write labels as the beginning of a sentence."""
    first, *others = [label.lower() for label in labels]
    return " and ".join([", ".join([first, *others[:-1]]), *others[-1:]]).capitalize()


def _suggestion(suggestion: Suggestion) -> str:
    words = " ".join((suggestion.why, *suggestion.side_effects))
    return f"- **{escape(suggestion.change)}**{weighed(suggestion)}  \n  {prose(words)}"


def weighed(suggestion: Suggestion) -> str:
    """Return a suggestion's gain and risk, which give it its place among the others, as badges in Markdown."""
    gain = f" :green-badge[{suggestion.prediction}]" if suggestion.prediction else ""
    risk = f" :gray-badge[{suggestion.risk}]" if suggestion.risk else ""
    return gain + risk
