"""What every format says first of a run: the verdict, its numbers, and what else is worth knowing.

The terminal shows this alone, so it loads no chart and nothing that reads runs.
"""

from typing import TYPE_CHECKING

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.metrics.metric_rows import number_rows
from pipeline_lab.analysis.results import Diagnosis, Source
from pipeline_lab.analysis.verdict.findings import NOT_GIVEN
from pipeline_lab.analysis.verdict.judged_parts import judged_parts_ns, name_parts_basis
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Answer, Content, Findings, Section, Table, Text
from pipeline_lab.units import NS_PER_S, format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck


def overview(diagnosis: Diagnosis) -> Content:
    """Return what is said of a run or log of which nothing but its diagnosis is known."""
    source = diagnosis.source
    return Content(
        title=source.path,
        about=(("Source", source.path), ("Kind", source.kind), *describe_trace(source)),
        answer=answer_of(diagnosis),
        warnings=warn_of_damage(source),
        notes=(),
        sections=first_sections(diagnosis),
    )


def describe_trace(source: Source) -> tuple[tuple[str, str], ...]:
    """Return what was analyzed, as name and value pairs."""
    windows = f"{format_count(source.windows)} window{'s' * (source.windows != 1)}"
    return (
        ("Trace", f"{windows}, {format_count(source.events)} events"),
        ("Size", format_bytes(source.size_bytes)),
    )


def answer_of(diagnosis: Diagnosis) -> Answer:
    """Return the verdict as a report's answer."""
    verdict = diagnosis.verdict
    return Answer(
        label=verdict.label,
        tone=verdict.verdict_class.tone,
        sentences=(verdict.sentence,),
        certainty=verdict.certainty,
        evidence=verdict.evidence,
        suggestions=verdict.suggestions,
        step_parts_ns=_step_parts_ns(diagnosis),
        parts_basis=name_parts_basis(diagnosis, verdict.step, diagnosis.later_epochs),
        predicted=verdict.predicted,
    )


def _step_parts_ns(diagnosis: Diagnosis) -> dict[StepPart, float]:
    parts = judged_parts_ns(diagnosis)
    return {} if isinstance(parts, Unavailable) else parts


def warn_of_damage(source: Source) -> tuple[str, ...]:
    """Return what a reader must know of a damaged trace, and of damaged tables beside it."""
    found, salvage = list[str](), source.salvaged
    if salvage is not None:
        found.append(
            f"The trace is damaged: {format_bytes(salvage.bytes_lost)} were lost, "
            f"{format_count(salvage.events_kept)} events were read all the same. {salvage.reason}"
        )
    if source.damaged_tables:
        found.append(f"{' '.join(source.damaged_tables)} {NOT_GIVEN}")
    return tuple(found)


def first_sections(diagnosis: Diagnosis) -> tuple[Section, ...]:
    """Return the numbers and the findings, which short forms show too."""
    numbers = Table("Numbers", ("Number", "Value"), number_rows(diagnosis))
    rows = tuple(
        (
            finding.kind.replace("-", " "),
            finding.sentence,
            "; ".join(f"{one.name} {one.value}" for one in finding.evidence) or "–",
        )
        for finding in diagnosis.findings
    )
    findings = Findings("Findings", ("Kind", "What", "Evidence"), rows)
    return (
        Section("Numbers", (numbers,), in_short=True),
        *((Section("Findings", (findings,), in_short=True),) if rows else ()),
    )


def xprof_section(check: "CrossCheck") -> Section:
    """Return our numbers beside XProf's, one row per quantity; what agrees needs no reason."""
    table = Table(
        "Beside XProf",
        ("Number", "Pipeline Lab", f"XProf {check.version}".strip(), "Why they differ"),
        tuple((row.quantity, row.ours, row.xprof, " ".join(row.reasons) or "they agree") for row in check.differences),
    )
    if check.seconds is None or check.peak_rss_bytes is None:
        return Section(table.title, (table,), in_short=True)
    took = format_duration(check.seconds * NS_PER_S)
    cost = Text(f"XProf took {took} and {format_bytes(check.peak_rss_bytes)} of memory.")
    return Section(table.title, (table, cost), in_short=True)
