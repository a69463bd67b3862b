"""The report of recorded runs side by side: what differs in their options, then in what was measured."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline_lab.analysis.metrics.metric import Over, Topic, Unit, say_bases
from pipeline_lab.analysis.verdict.verdict import Evidence
from pipeline_lab.comparison.compared_stages import ComparedStages, StageRow, StageUse
from pipeline_lab.comparison.differences import Difference
from pipeline_lab.comparison.measures import Measure
from pipeline_lab.comparison.recorded_runs import Comparison, RecordedRun
from pipeline_lab.comparison.step_time_ratio import StepTimeRatio
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparing.chart_lists import COMPARISON_CHARTS
from pipeline_lab.report.content import Answer, AuthorNote, Block, CodeBlock, Content, Section, Table, Text, picture_of
from pipeline_lab.report.plain_text import slug
from pipeline_lab.report.subjects import comparison_tables
from pipeline_lab.report.subjects.run_report import identify_run, notes_of, told_blocks
from pipeline_lab.statistics.outcome import Outcome
from pipeline_lab.units import format_count, format_duration

_NOTE = "Thread time that one batch takes of the stage. –: the pipeline has no such stage."


def stage_table(stages: ComparedStages, runs: Sequence[RecordedRun]) -> Table:
    """Write all that is known of a pair of pipelines, and the thread times of more."""
    note = " ".join((_NOTE, *stages.notes))
    if len(runs) > 2:
        rows = tuple(
            (run.name, *(_duration(stages.work_ns(row, number) if row.uses[number] else None) for row in stages.rows))
            for number, run in enumerate(runs)
        )
        columns = ("Run", *(row.name for row in stages.rows))
        return Table("Thread time of the stages", columns, rows, tuple(range(1, len(columns))), note)
    names = [run.name for run in runs]
    columns = ("Stage", *(f"Ran in {name}" for name in names), *names, "Difference", "Parallel calls", "Buffered")
    return Table("Stages", columns, tuple(_pair(stages, row) for row in stages.rows), (3, 4, 5, 6, 7), note)


def _pair(stages: ComparedStages, row: StageRow) -> tuple[str, ...]:
    return (
        row.name,
        *(" + ".join(use.ran) if use else "–" for use in row.uses),
        *(_duration(use.work_ns if use else None) for use in row.uses),
        _difference(stages.difference_ns(row, 1)),
        _change(_calls(row)),
        _change([_buffer(use) for use in row.uses]),
    )


def _duration(ns: float | None) -> str:
    return "–" if ns is None else format_duration(ns)


def _difference(ns: float | None) -> str:
    if not ns:
        return "–" if ns is None else "±0"
    return f"{'+' if ns > 0 else '−'}{format_duration(abs(ns))}"


def _calls(row: StageRow) -> list[str]:
    """Return how many calls each run makes at once, of a stage that makes several in one of them."""
    if all(use is None or use.parallelism is None for use in row.uses):
        return ["–"] * len(row.uses)
    return ["–" if use is None else "1" if use.parallelism is None else f"{use.parallelism:.3g}" for use in row.uses]


def _buffer(use: StageUse | None) -> str:
    if use is None or use.buffered_elements is None:
        return "–"
    return f"{use.buffered_elements:.4g}" + ("" if use.buffer_limit is None else f" of {use.buffer_limit:.4g}")


def _change(values: Sequence[str]) -> str:
    return "–" if set(values) == {"–"} else " → ".join(values)


MAX_RUN_COLUMNS = 4
"""With more runs than this, tables have a row per run."""

_OUTCOME_WORDS = {
    Outcome.FASTER: "faster",
    Outcome.SLOWER: "slower",
    Outcome.EQUIVALENT: "practically the same",
    Outcome.UNDECIDED: "cannot be determined",
}

_ORDER = (
    Topic.STEPS,
    Topic.STALLS,
    Topic.PIPELINE,
    Topic.GAPS,
    Topic.SAMPLING,
    Topic.MEMORY,
)


@dataclass(frozen=True)
class ComparisonReport:
    """A report of a baseline and its candidates.

    Attributes:
        comparison: What is reported on.
        notes: Words of the report's author, beside the runs' own notes.
    """

    comparison: Comparison
    notes: str = ""

    @property
    def slug(self) -> str:
        return slug(f"{self._title}")

    def content(self) -> Content:
        runs = self.comparison.runs
        return Content(
            title=self._title,
            about=(("Baseline", runs[0].name), ("Candidates", _few_names(runs[1:]))),
            answer=_answer(self.comparison),
            warnings=self.comparison.warnings,
            notes=self._notes(),
            sections=(
                Section("What differs", _difference_blocks(self.comparison), in_short=True),
                *(Section(topic.value, _section_blocks(topic, self.comparison), in_short=True) for topic in _ORDER),
                Section("The runs", (_verdicts(self.comparison),)),
                *(
                    Section(f"What ran: {', '.join(run.name for run in same)}", told_blocks(same[0]))
                    for same in _told_alike(runs)
                ),
            ),
        )

    def document(self) -> dict[str, Any]:
        return self.comparison.to_json()

    def tables(self) -> dict[str, pa.Table]:
        return comparison_tables.data_tables(self.comparison)

    @property
    def _title(self) -> str:
        candidates = self.comparison.candidates
        what = candidates[0].name if len(candidates) == 1 else f"{len(candidates)} runs"
        return f"{what} against {self.comparison.baseline.name}"

    def _notes(self) -> tuple[AuthorNote, ...]:
        own = (AuthorNote("Notes", self.notes),) if self.notes.strip() else ()
        return (*own, *(note for run in self.comparison.runs for note in notes_of(run, "")))


def _told_alike(runs: tuple[RecordedRun, ...]) -> list[list[RecordedRun]]:
    """Group the runs of the same options and environment, in the order of their first."""
    groups: list[list[RecordedRun]] = []
    for run in runs:
        same = next((group for group in groups if told_blocks(group[0]) == told_blocks(run)), None)
        if same is None:
            groups.append([run])
        else:
            same.append(run)
    return groups


def _answer(comparison: Comparison) -> Answer:
    label, tone = label_outcomes(
        [ratio.outcome if isinstance(ratio, StepTimeRatio) else Outcome.UNDECIDED for ratio in comparison.step_time]
    )
    sentences = comparison.sentences
    if len(sentences) > 1:
        sentences = (_count_outcomes(comparison), *sentences)
    measures = _headline(comparison)
    bases = (basis,) if (basis := _say_bases(measures, comparison.runs)) else ()
    evidence = tuple(Evidence(each.title, " → ".join(each.texts)) for each in measures)
    return Answer(label, tone, (*sentences, *bases), "recorded separately", evidence)


def label_outcomes(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Return one label for the outcomes of all candidates, and its tone."""
    if len(set(outcomes)) > 1:
        return "mixed", "neutral"
    return outcomes[0].value, {Outcome.FASTER: "good", Outcome.SLOWER: "bad"}.get(outcomes[0], "neutral")


def _count_outcomes(comparison: Comparison) -> str:
    counts = Counter(
        "cannot be compared" if isinstance(ratio, Unavailable) else _OUTCOME_WORDS[ratio.outcome]
        for ratio in comparison.step_time
    )
    parts = ", ".join(f"{count} {words}" for words, count in counts.most_common())
    return f"Of {len(comparison.candidates)} candidates against {comparison.baseline.name}: {parts}."


def _few_names(runs: tuple[RecordedRun, ...]) -> str:
    names = [run.name for run in runs[:MAX_RUN_COLUMNS]]
    return ", ".join(names) + (f" and {len(runs) - len(names)} more" if len(runs) > len(names) else "")


def _headline(comparison: Comparison) -> tuple[Measure, ...]:
    """Return the baseline's and the only candidate's headline numbers; with more candidates tables are clearer."""
    if len(comparison.runs) > 2:
        return ()
    found = (
        comparison.find_measure(name)
        for name in ("median_step_ms", "examples_per_second", "exposed_ms", "peak_memory_bytes")
    )
    return tuple(
        each for each in found if each is not None and not any(isinstance(value, Unavailable) for value in each.values)
    )


def _say_bases(measures: Sequence[Measure], runs: Sequence[RecordedRun]) -> str:
    """Say over which steps the numbers were measured; of the whole run goes without saying."""
    titles: dict[str, list[str]] = {}
    for each in measures:
        if each.metric.over is not Over.RUN:
            words = filter(None, (each.metric.over.words(run.diagnosis) for run in runs))
            titles.setdefault(", then ".join(dict.fromkeys(words)), []).append(each.title)
    return say_bases(titles)


def _difference_blocks(comparison: Comparison) -> tuple[Block, ...]:
    differences, names = comparison.differences, [run.name for run in comparison.runs]
    return (
        difference_table("Options that differ", differences.options, differences.unknown_options, names),
        difference_table("Environment that differs", differences.environment, differences.unknown_environment, names),
        *source_blocks([run.name for run in comparison.candidates], differences.sources),
    )


def difference_table(title: str, found: tuple[Difference, ...], unknown: tuple[int, ...], names: list[str]) -> Block:
    known = [number for number in range(len(names)) if number not in unknown]
    if len(known) < 2:
        return Text(f"{title}: not recorded in enough of the runs.", missing=True)
    if not found:
        return Text(f"{title}: none{_but_unknown(unknown, names)}.")
    note = f"Not recorded in {', '.join(names[number] for number in unknown)}." if unknown else ""
    by_path = [["–" if value is None else value for value in each.values] for each in found]
    if len(names) <= MAX_RUN_COLUMNS:
        rows = tuple((each.path, *values) for each, values in zip(found, by_path, strict=True))
        return Table(title, ("Path", *names), rows, note=note)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, *values in zip(names, *by_path, strict=True):
        alike.setdefault(tuple(values), []).append(name)
    rows = tuple((", ".join(same), *values) for values, same in alike.items())
    return Table(title, ("Runs", *(each.path for each in found)), rows, note=note)


def _but_unknown(unknown: tuple[int, ...], names: list[str]) -> str:
    return f"; not recorded in {', '.join(names[number] for number in unknown)}" if unknown else ""


def source_blocks(names: list[str], diffs: tuple[str | None, ...]) -> list[Block]:
    """Show each different diff once, with all candidates that it holds for."""
    holders: dict[str | None, list[str]] = {}
    for name, diff in zip(names, diffs, strict=True):
        holders.setdefault(diff, []).append(name)
    return [_source_block(", ".join(same), diff) for diff, same in holders.items()]


def _source_block(names: str, diff: str | None) -> Block:
    if diff is None:
        return Text(f"Pipeline source of {names}: not recorded, here or in the baseline.", missing=True)
    if not diff:
        return Text(f"Pipeline source of {names}: the same as the baseline's.")
    return CodeBlock(f"Pipeline source of {names} against the baseline's", diff, "diff", folded=True)


def _section_blocks(section: Topic, comparison: Comparison) -> tuple[Block, ...]:
    pictures = tuple(picture_of(chart, comparison) for chart in COMPARISON_CHARTS if chart.section is section)
    if section is Topic.PIPELINE:
        stages = comparison.stages
        return pictures if isinstance(stages, Unavailable) else (*pictures, stage_table(stages, comparison.runs))
    ratios = (_ratio_table(comparison),) if section is Topic.STEPS else ()
    topics = (section, Topic.PIPELINE) if section is Topic.STEPS else (section,)
    measures = [each for each in comparison.measures if each.metric.topic in topics and each.is_worth_a_row]
    return (*pictures, *ratios, *((_measure_table(measures, comparison),) if measures else ()))


def _ratio_table(comparison: Comparison) -> Table:
    rows = tuple(
        (run.name, *_ratio_cells(ratio)) for run, ratio in zip(comparison.candidates, comparison.step_time, strict=True)
    )
    per = dict.fromkeys(ratio.per for ratio in comparison.step_time if isinstance(ratio, StepTimeRatio))
    return Table(
        f"Time per {' or '.join(per) or 'step'} against {comparison.baseline.name}",
        ("Candidate", "Ratio", "Difference", "Interval", "Answer", "Steps compared", "Effective sample size"),
        rows,
        numeric=(1, 2, 3, 5, 6),
        note="95 % intervals, valid together; drift between the recordings comes on top.",
    )


def _ratio_cells(ratio: StepTimeRatio | Unavailable) -> tuple[str, ...]:
    if isinstance(ratio, Unavailable):
        return ("–", "–", "–", f"cannot be determined: {ratio.reason}", "–", "–")
    low, high = ratio.bounds_percent
    return (
        f"{ratio.ratio:.3f}",
        comparison_tables.signed_percent(ratio.percent),
        "none"
        if ratio.caveat
        else f"{comparison_tables.signed_percent(low)} to {comparison_tables.signed_percent(high)}",
        ratio.outcome.value,
        f"{format_count(ratio.steps[0])} and {format_count(ratio.steps[1])} ({ratio.basis})",
        f"{format_count(ratio.effective_steps[0])} and {format_count(ratio.effective_steps[1])}",
    )


def _measure_table(measures: list[Measure], comparison: Comparison) -> Table:
    """Write one row per measure for a pair, one row per run for more runs."""
    names = [run.name for run in comparison.runs]
    if len(names) == 2:
        rows = tuple((each.title, *each.texts, _difference_cell(each)) for each in measures)
        return Table("Numbers", ("Number", *names, "Difference"), rows, numeric=(1, 2, 3), note=_reasons(measures))
    by_run = zip(*(each.texts for each in measures), strict=True)
    return Table(
        "Numbers",
        ("Run", *(each.title for each in measures)),
        tuple((name, *cells) for name, cells in zip(names, by_run, strict=True)),
        numeric=tuple(range(1, len(measures) + 1)),
        note=_reasons(measures),
    )


def _difference_cell(each: Measure) -> str:
    difference, baseline = each.difference(1), each.values[0]
    if difference is None:
        return "–"
    text = each.difference_text(1)
    if each.metric.unit is Unit.PERCENT or isinstance(baseline, Unavailable) or not baseline or not difference:
        return text
    return f"{text} ({comparison_tables.signed_percent(100 * difference / baseline)})"


def _reasons(measures: list[Measure]) -> str:
    values = [value for each in measures for value in each.values]
    reasons = dict.fromkeys(value.reason for value in values if isinstance(value, Unavailable))
    return f"–: not measured. {' '.join(reasons)}" if reasons else ""


def _verdicts(comparison: Comparison) -> Table:
    shown = ("Recorded", "Host", "Device", "TensorFlow")
    rows = tuple(
        (
            run.name,
            run.diagnosis.verdict.label,
            run.diagnosis.verdict.sentence,
            *(dict(identify_run(run)).get(name, "–") for name in shown),
        )
        for run in comparison.runs
    )
    return Table("Verdict of each run", ("Run", "Verdict", "Why", *shown), rows)
