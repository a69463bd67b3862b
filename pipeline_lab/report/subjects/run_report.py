"""The report of one run: the verdict, what it rests on, every chart, and the options of the run."""

from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Protocol, assert_never

import pyarrow as pa

from pipeline_lab.analysis.input.pipeline_stages import join_stages
from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.differences import flatten, flatten_options
from pipeline_lab.comparison.recorded_runs import RecordedRun
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import charts_of
from pipeline_lab.report.content import AuthorNote, Block, CodeBlock, Content, Section, Table, Text, picture_of
from pipeline_lab.report.overview import answer_of, describe_trace, first_sections, warn_of_damage
from pipeline_lab.report.plain_text import slug
from pipeline_lab.report.subjects import run_report_tables
from pipeline_lab.report.user_source import datasets_read, source_blocks

NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class RunReport:
    """A report of one run or log.

    Attributes:
        run: What is reported on.
        notes: Words of the report's author, beside the run's own notes.
    """

    run: RecordedRun
    notes: str = ""

    @property
    def slug(self) -> str:
        return slug(self.run.id or self.run.name)

    def content(self) -> Content:
        diagnosis = self.run.diagnosis
        return Content(
            title=self.run.name,
            about=identify_run(self.run),
            answer=answer_of(diagnosis),
            warnings=_warnings(self.run),
            notes=notes_of(self.run, self.notes),
            sections=(
                *first_sections(diagnosis),
                *(
                    Section(topic.value, _chart_blocks(topic, diagnosis), topic in (Topic.PIPELINE, Topic.STEPS))
                    for topic in Topic
                ),
                Section("What ran", told_blocks(self.run)),
            ),
        )

    def document(self) -> dict[str, Any]:
        return self.run.diagnosis.to_json()

    def tables(self) -> dict[str, pa.Table]:
        return run_report_tables.data_tables(self.run.diagnosis)


def identify_run(run: RecordedRun) -> tuple[tuple[str, str], ...]:
    """Return what identifies a run: name and value pairs, those that are known."""
    source, environment = run.diagnosis.source, run.environment
    recorded = "" if run.created_s is None else moment(run.created_s)
    rows = (
        ("Run", run.id),
        ("Log", "" if run.id else PurePath(source.path).name),
        ("Recorded", recorded),
        ("State", f"{run.state}: {run.reason}" if run.reason else run.state),
        ("Host", environment.get("host") or ", ".join(source.hosts)),
        ("Device", environment.get("device", "")),
        ("Processor", environment.get("cpu", "")),
        ("TensorFlow", environment.get("tensorflow", "")),
        *describe_trace(source),
        ("Tags", ", ".join(run.tags)),
    )
    return tuple((name, str(value)) for name, value in rows if value)


def moment(seconds: float) -> str:
    """Write seconds since the epoch as a date and time that read the same everywhere."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


class Noted(Protocol):
    """What has a name and the user's notes: a run, a race, a search."""

    @property
    def name(self) -> str: ...

    @property
    def notes(self) -> str: ...


def notes_of(subject: Noted, notes: str) -> tuple[AuthorNote, ...]:
    """Return the author's words: those of the report and those kept with the run or race."""
    both = (("Notes", notes), (f"Notes kept with {subject.name}", subject.notes))
    return tuple(AuthorNote(about, text) for about, text in both if text.strip())


def told_blocks(run: RecordedRun) -> tuple[Block, ...]:
    """Return the pipeline's source, the options and the environment of a run."""
    verdict = run.diagnosis.verdict
    source: tuple[Block, ...] = source_blocks(run.diagnosis.source.path, verdict.calls)
    if run.source is not None:
        source = (CodeBlock("Pipeline source", run.source, "python", folded=True),)
    return (
        *datasets_read(run.diagnosis.source.path),
        *(source or (Text(f"Pipeline source: {NOT_RECORDED}.", missing=True),)),
        pairs_block("Options", flatten_options(run.options or {})),
        pairs_block("Environment", flatten(run.environment)),
    )


def pairs_block(title: str, flat: dict[str, str]) -> Table | Text:
    """Return a folded table of names and values, or the sentence that they were not recorded."""
    if not flat:
        return Text(f"{title}: {NOT_RECORDED}.", missing=True)
    return Table(title, ("Name", "Value"), tuple(flat.items()), folded=True)


def _warnings(run: RecordedRun) -> tuple[str, ...]:
    unfinished = f"The run did not come to its end ({run.state}). {run.reason}".strip()
    return (*((unfinished,) if run.state not in ("", "done") else ()), *warn_of_damage(run.diagnosis.source))


def _chart_blocks(section: Topic, diagnosis: Diagnosis) -> tuple[Block, ...]:
    pictures = tuple(picture_of(chart, diagnosis) for chart in charts_of(section))
    return (*pictures, *section_tables(section, diagnosis))


def section_tables(topic: Topic, diagnosis: Diagnosis) -> list[Table]:
    """Return the tables that stand below the charts of a topic."""
    match topic:
        case Topic.STALLS:
            stalls = diagnosis.input_stalls
            return [] if isinstance(stalls, Unavailable) else [run_report_tables.longest_waits(stalls)]
        case Topic.PIPELINE:
            stages = join_stages(diagnosis.tf_data, diagnosis.live_model, diagnosis.written)
            return [] if isinstance(stages, Unavailable) else [run_report_tables.stages(stages)]
        case Topic.GAPS:
            gaps = diagnosis.idle_gaps
            return (
                []
                if isinstance(gaps, Unavailable)
                else [run_report_tables.idle_causes(gaps), run_report_tables.longest_gaps(gaps)]
            )
        case Topic.SAMPLING:
            sampling = diagnosis.file_sampling
            return [] if isinstance(sampling, Unavailable) else [run_report_tables.files(sampling)]
        case Topic.MEMORY:
            stages = join_stages(diagnosis.tf_data, diagnosis.live_model, diagnosis.written)
            held = [] if isinstance(stages, Unavailable) else [run_report_tables.buffers(stages)]
            cost = diagnosis.profiler_cost
            return held if isinstance(cost, Unavailable) else [*held, run_report_tables.windows(cost)]
        case Topic.STEPS:
            kept = diagnosis.kept_outputs
            return [] if isinstance(kept, Unavailable) else [run_report_tables.outputs(kept)]
        case _:
            assert_never(topic)
