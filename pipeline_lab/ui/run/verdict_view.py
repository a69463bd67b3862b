"""The answer first: the verdict with its evidence, how sure it is, and what to try."""

from collections.abc import Callable, Sequence

import streamlit as st

from pipeline_lab.analysis.metrics.metric import Over, say_bases
from pipeline_lab.analysis.metrics.metric_rows import headline_of
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.written_words import name_stage
from pipeline_lab.analysis.verdict.verdict import Suggestion, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.anatomy_chart import PREDICTED
from pipeline_lab.figures.chart_list import find_chart
from pipeline_lab.figures.theme import notes_of
from pipeline_lab.report.overview import warn_of_damage
from pipeline_lab.report.user_source import source_blocks
from pipeline_lab.runs.record import EMULATED_NOTE
from pipeline_lab.ui.run.sections import ANATOMY
from pipeline_lab.ui.shared import contents
from pipeline_lab.ui.shared.text import escape, prose, split_sentences
from pipeline_lab.ui.timeline import jump
from pipeline_lab.units import keep_together

NARROWEST_PX = 104
"""Of a number at the top: three beside each other on a phone."""
MOST_PX = 420
"""Of the picture, captions included: many devices are drawn as narrower rows."""
_SAID = (Over.JUDGED_STEPS, Over.STEPS, Over.WINDOWS)
SHOWN_SUGGESTIONS = 3
"""The others are folded."""


def show_verdict(diagnosis: Diagnosis, *, changes_in: str = "", show_how: Callable[[], None] = lambda: None) -> None:
    """Show the answer at a glance: the sentence, the step to scale, and the first thing to try.

    Args:
        diagnosis: Of the run.
        changes_in: The tab that shows the suggested changes; empty if there is none.
        show_how: Shows how a change that no tab shows is carried out.
    """
    verdict = diagnosis.verdict
    with st.container(border=True, key="verdict"):
        st.markdown(_badges(diagnosis))
        first, more = split_sentences(verdict.sentence)
        st.header(escape(first), anchor=False)
        if more := more.removesuffix(EMULATED_NOTE).strip():  # a badge says that
            st.markdown(escape(more))
        _show_damage(diagnosis)
        told = _show_picture(diagnosis)
        if verdict.suggestions:
            _show_first(verdict, told, changes_in, show_how)
        if changes_in and not _is_button(verdict.suggestions[:1]) and _is_button(verdict.suggestions):
            other = "" if verdict.has_nothing_to_fix else "the other "
            _show_button(f"View and race {other}changes", changes_in, is_first=False)


def _badges(diagnosis: Diagnosis) -> str:
    verdict = diagnosis.verdict
    emulated = " :gray-badge[emulated accelerator]" if diagnosis.source.is_emulated else ""
    kind = f":{verdict.verdict_class.badge}-badge[{escape(verdict.label)}]"
    return f"{kind} :gray-badge[{escape(verdict.certainty)}]{emulated}"


def _show_damage(diagnosis: Diagnosis) -> None:
    """Warn of damage that the sentence above does not explain itself."""
    salvage = diagnosis.source.salvaged
    for damage in warn_of_damage(diagnosis.source):
        if salvage is None or salvage.reason not in damage or salvage.reason not in diagnosis.verdict.sentence:
            st.warning(escape(damage), icon=":material/warning:")


def _show_picture(diagnosis: Diagnosis) -> str:
    """Draw the step to scale, and return its notes; the sentence above says what to see in it, and what stands below names its
    first change.
    """
    verdict = diagnosis.verdict
    for chart in map(find_chart, _pictures(diagnosis)):
        figure = chart.drawing(diagnosis, "light")
        if not isinstance(figure, Unavailable):
            if verdict.suggestions and verdict.predicted is verdict.suggestions[0]:
                for words in figure.select_annotations({"name": PREDICTED}):
                    words.text = words.text[words.text.rindex("<b>") :]
            notes = " ".join(notes_of(figure))
            figure.update_layout(height=min(figure.layout.height, MOST_PX))
            contents.show_figure(figure, f"verdict-{chart.name}", chart.description, is_told=chart.name == ANATOMY)
            return notes
    return ""


def _pictures(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Name what may stand under the sentence: the first that can be drawn.

    Without steps it is when the device worked; but where the job timed its steps and no window holds one, windows show what it
    did besides training.
    """
    is_beside = isinstance(diagnosis.steps, Unavailable) and not isinstance(diagnosis.job_steps, Unavailable)
    return (ANATOMY, "stall-over-time" if is_beside else "device-timeline")


def _is_button(suggestions: Sequence[Suggestion]) -> bool:
    """Say whether a tab shows what one of the suggestions would change."""
    return any(one.options is not None for one in suggestions)


def _show_first(verdict: Verdict, told: str, changes_in: str, show_how: Callable[[], None]) -> None:
    """Show what to try first, what it is against, and how: a button that leads to the change, or opens how it is made."""
    suggestion = verdict.suggestions[0]
    if verdict.has_nothing_to_fix:
        st.markdown(f"**{prose(suggestion.why)}**")
        st.markdown(f"To shorten the step itself: {prose(suggestion.change)}")
        return
    gain = f" ({suggestion.prediction})" if suggestion.prediction else ""
    label = f"Try first: {escape(suggestion.headline)}{escape(gain)}"
    if changes_in and _is_button([suggestion]):
        _show_button(label, changes_in, is_first=True)
    else:
        with st.popover(label, key="try-first", type="primary", icon=":material/flag:"):
            st.markdown(_suggestion(suggestion))
            if suggestion.command:
                st.markdown(suggestion.command_does)
                st.code(suggestion.command, language="shell", wrap_lines=True)
            show_how()
    if suggestion.is_snippet:
        st.code(suggestion.after, language="python", wrap_lines=True)
    elif suggestion.edit:
        st.markdown(f"`{suggestion.edit.replace('`', '')}`")
    elif why := suggestion.why_beside(f"{verdict.sentence} {told}"):
        st.caption(escape(why))


def _show_button(label: str, changes_in: str, *, is_first: bool) -> None:
    """Show the button that leads to the changes; only one that makes the first of them stands out."""
    st.button(
        label,
        key="try-suggestions",
        type="primary" if is_first else "secondary",
        icon=":material/flag:" if is_first else None,
        on_click=jump.to_tab,
        args=(changes_in,),
    )


def show_more(diagnosis: Diagnosis) -> None:
    """Show, folded, the user's lines, what to try in full, the numbers behind the verdict, and what else is worth knowing."""
    _show_source(diagnosis.source.path, diagnosis.verdict)
    suggestions, evidence = diagnosis.verdict.suggestions, diagnosis.verdict.evidence
    if suggestions:
        order = "Highest gain per risk first.\n\n" if suggestions[0].risk else ""
        shown, folded = suggestions[:SHOWN_SUGGESTIONS], suggestions[SHOWN_SUGGESTIONS:]
        with st.expander(f"What to try, and why ({len(suggestions)})", key="more-suggestions"):
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
    """Show the headline numbers; what the verdict speaks of says why where it was not measured, the others are left out."""
    shown = [
        each
        for each in headline_of(diagnosis)
        if each.over in _SAID or not isinstance(each.read(diagnosis), Unavailable)
    ]
    with st.grid(len(shown), min_column_width=NARROWEST_PX, gap="small", key="headline"):
        for metric in shown:
            text = metric.write(diagnosis)
            if isinstance(text, Unavailable):
                st.metric(metric.title, "–", border=True, help=prose(f"Not measured: {text.reason}"), height="stretch")
            else:
                help_ = f"{metric.explanation} Over {metric.over}."
                st.metric(metric.title, text, border=True, help=prose(help_), height="stretch")
    if over := basis(diagnosis):
        st.caption(escape(over))


def basis(diagnosis: Diagnosis) -> str:
    """Say over which steps or stretches of time the headline numbers were measured; the picture says so of its own."""
    step, names = diagnosis.verdict.step, dict[str, list[str]]()
    has_picture = not isinstance(diagnosis.step_breakdown, Unavailable) and not diagnosis.source.unseen_device
    is_drawn = step is not None and step.are_recorded and has_picture
    for metric in headline_of(diagnosis):
        over = metric.over.words(diagnosis)
        if metric.over is Over.RUN or (is_drawn and metric.over is Over.JUDGED_STEPS):
            continue
        if over is not None and not isinstance(metric.read(diagnosis), Unavailable):
            names.setdefault(over, []).append(metric.title)
    return say_bases(names)


def _suggestion(suggestion: Suggestion) -> str:
    edit = f"  \n  `{suggestion.edit.replace('`', '')}`" if suggestion.edit else ""
    return f"**{escape(suggestion.change)}**{weighed(suggestion)}{edit}  \n  {prose(suggestion.reasons)}"


def weighed(suggestion: Suggestion) -> str:
    """Return a suggestion's gain and risk, which give it its place among the others, as badges in Markdown."""
    gain = f" :green-badge[{suggestion.prediction}]" if suggestion.prediction else ""
    risk = f" :gray-badge[{suggestion.risk}]" if suggestion.risk else ""
    return keep_together(gain + risk)
