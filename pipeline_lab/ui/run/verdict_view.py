"""The answer first: the verdict with its evidence, how sure it is, and what to try."""

import streamlit as st

from pipeline_lab.analysis.metrics.metrics import headline_of
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.written_words import name_stage
from pipeline_lab.analysis.verdict.verdict import Suggestion, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import find_chart
from pipeline_lab.report.user_source import source_blocks
from pipeline_lab.ui.run.sections import ANATOMY
from pipeline_lab.ui.shared import contents, state
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.ui.timeline import jump

PICTURES = (ANATOMY, "device-timeline")
"""What stands under the sentence: the first that can be drawn; without steps it is when the device worked."""
SHOWN_SUGGESTIONS = 3
"""Including the first one, which stands by itself; the others are folded."""


def show_verdict(diagnosis: Diagnosis, *, changes_in: str = "") -> None:
    """Show the answer at a glance: the sentence, the step to scale, and the first thing to try.

    Args:
        diagnosis: Of the run.
        changes_in: The tab that shows the suggested changes; empty if there is none.
    """
    verdict = diagnosis.verdict
    with st.container(border=True, key="verdict"):
        kind = verdict.verdict_class
        st.markdown(f":{kind.badge}-badge[{kind.label}] :gray-badge[confidence: {verdict.confidence.value}]")
        st.header(escape(verdict.sentence), anchor=False)
        _show_source(diagnosis.source.path, verdict)
        for chart in map(find_chart, PICTURES):
            drawing = chart.draw(diagnosis, state.mode())
            if not isinstance(drawing, Unavailable):
                contents.show_figure(drawing, f"verdict-{chart.name}", chart.description)
                break
        if verdict.suggestions:
            st.markdown(f"**Try first:** {_suggestion(verdict.suggestions[0])}")
        if changes_in and any(one.options is not None for one in verdict.suggestions):
            st.button(
                "View and race each change",
                key="try-suggestions",
                icon=":material/flag:",
                on_click=jump.to_tab,
                args=(changes_in,),
            )


def show_more(diagnosis: Diagnosis) -> None:
    """Show, folded, what else could be tried, the numbers behind the verdict, and what else is worth knowing."""
    suggestions, evidence = diagnosis.verdict.suggestions[1:], diagnosis.verdict.evidence
    if suggestions:
        order = "Highest gain per risk first.\n\n" if suggestions[0].risk else ""
        shown, folded = suggestions[: SHOWN_SUGGESTIONS - 1], suggestions[SHOWN_SUGGESTIONS - 1 :]
        with st.expander(f"More to try ({len(suggestions)})", key="more-suggestions"):
            st.markdown(order + "\n".join(f"- {_suggestion(one)}" for one in shown))
            if folded and st.toggle(f"Show {len(folded)} more", key="all-suggestions"):
                st.markdown("\n".join(f"- {_suggestion(one)}" for one in folded))
    if evidence:
        with st.expander(f"Evidence ({len(evidence)})", key="more-evidence"):
            contents.show_numbers("evidence", [(one.name, one.value) for one in evidence])
    show_findings(diagnosis)


def _show_source(path: str, verdict: Verdict) -> None:
    """Show the lines of the user's that the sentence names, once asked."""
    blocks = source_blocks(path, verdict.calls) if path and any(call.place for call in verdict.calls) else ()
    if blocks:
        with st.expander(f"Show {escape(name_stage(verdict.calls, ''))}", icon=":material/code:", key="verdict-source"):
            for block in blocks:
                st.caption(escape(block.title))
                st.code(block.text, language=None)


def show_findings(diagnosis: Diagnosis) -> None:
    """Show what else is worth knowing, each with its numbers."""
    if not diagnosis.findings:
        return
    with st.expander(f"Also worth knowing ({len(diagnosis.findings)})", key="findings"):
        for finding in diagnosis.findings:
            evidence = " · ".join(f"{escape(one.name)} {escape(one.value)}" for one in finding.evidence)
            kind = finding.kind.replace("-", " ")
            st.markdown(
                f":blue-badge[{kind}] {prose(finding.sentence)}" + (f"  \n:gray[{evidence}]" if evidence else "")
            )


def show_metrics(diagnosis: Diagnosis) -> None:
    """Show the headline numbers; what was not measured says so and why."""
    shown = headline_of(diagnosis)
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
    for metric in headline_of(diagnosis):
        over = metric.over.words(diagnosis)
        if over is not None and not isinstance(metric.read(diagnosis), Unavailable):
            names.setdefault(over, []).append(metric.title)
    return ". ".join(f"{_list(labels)}: {over}" for over, labels in names.items())


def _list(labels: list[str]) -> str:
    """Write labels as the beginning of a sentence."""
    first, *others = [label.lower() for label in labels]
    return " and ".join([", ".join([first, *others[:-1]]), *others[-1:]]).capitalize()


def _suggestion(suggestion: Suggestion) -> str:
    edit = f"  \n  `{suggestion.edit.replace('`', '')}`" if suggestion.edit else ""
    return f"**{escape(suggestion.change)}**{weighed(suggestion)}{edit}  \n  {prose(suggestion.reasons)}"


def weighed(suggestion: Suggestion) -> str:
    """Return a suggestion's gain and risk, which give it its place among the others, as badges in Markdown."""
    gain = f" :green-badge[{suggestion.prediction}]" if suggestion.prediction else ""
    risk = f" :gray-badge[{suggestion.risk}]" if suggestion.risk else ""
    return gain + risk
