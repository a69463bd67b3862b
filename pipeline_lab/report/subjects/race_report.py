"""The report of a race: the answer that an interval earned, what speaks against a faster arm, and what was raced."""

from typing import Any

import pyarrow as pa

from pipeline_lab.comparison.differences import find_differences, flatten, flatten_options
from pipeline_lab.comparison.race_arms import ArmResult, describe_alike
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparing.chart_lists import RACE_CHARTS
from pipeline_lab.options.race_options import CHANGES, ScriptRaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.report.content import Answer, Block, CodeBlock, Content, Section, Table, picture_of
from pipeline_lab.report.plain_text import slug
from pipeline_lab.report.subjects.comparison_report import difference_table, label_outcomes, source_blocks
from pipeline_lab.report.subjects.comparison_tables import build_table
from pipeline_lab.report.subjects.run_report import moment, notes_of, pairs_block
from pipeline_lab.statistics.sequential import SequentialResult
from pipeline_lab.units import format_duration, format_percent

ARM_TABLE = pa.schema(
    [
        ("arm", pa.string()),
        ("steps", pa.int64()),
        ("step_ns", pa.float64()),
        ("wait_ns", pa.float64()),  # null where a script waits inside a graph
        ("cpu_s_per_1000_examples", pa.float64()),
        ("loss", pa.float64()),  # null where the workload has none
        ("accuracy", pa.float64()),  # likewise
        ("total_variation", pa.float64()),  # of the files' shares; null if they are unknown
        ("idle_percent", pa.float64()),  # of the device, in the window after the blocks; null without one
        ("idle_cause", pa.string()),  # what most of it was for
    ]
)
"""One row per arm, baseline first."""

CANDIDATE_TABLE = pa.schema(
    [
        ("arm", pa.string()),
        ("outcome", pa.string()),
        ("pairs", pa.int64()),
        ("ratio", pa.float64()),  # candidate over baseline; null before the first look
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("p_value", pa.float64()),
        ("alpha", pa.float64()),
        ("smallest_effect", pa.float64()),
    ]
)
"""One row per candidate."""


@dataclass(frozen=True)
class RaceReport:
    """A report of a race.

    Attributes:
        race: What is reported on.
        notes: Words of the report's author, beside the race's own notes.
    """

    race: Race
    notes: str = ""

    @property
    def slug(self) -> str:
        return slug(self.race.id or self.race.name)

    def content(self) -> Content:
        race = self.race
        pictures = (picture_of(chart, race) for chart in RACE_CHARTS)
        return Content(
            title=race.name,
            about=_about(race),
            answer=_answer(race),
            warnings=_warnings(race),
            notes=notes_of(race, self.notes),
            sections=(
                Section("The race", (*pictures, _candidate_rows(race), _arm_rows(race)), in_short=True),
                Section("What differs", _differences(race), in_short=True),
                *_arm_sections(race),
                Section("Environment", (pairs_block("Environment", flatten(race.environment)),)),
            ),
        )

    def document(self) -> dict[str, Any]:
        return self.race.to_json()

    def tables(self) -> dict[str, pa.Table]:
        candidates = [{"arm": candidate.name, **candidate.to_json()} for candidate in self.race.candidates]
        return {
            "arms": build_table([_arm_numbers(arm) for arm in self.race.arms], ARM_TABLE),
            "candidates": build_table(candidates, CANDIDATE_TABLE),
        }


def _about(race: Race) -> tuple[tuple[str, str], ...]:
    load = race.other_load_percent
    return (
        ("Race", race.id),
        ("Recorded", moment(race.created_s)),
        ("Baseline", race.arms[0].name),
        ("Rounds that counted", f"{race.kept_rounds} of {race.rounds}"),
        ("Steps per block", str(race.options.block_steps)),
        ("Compared", _compared(race)),
        ("Other programs' load", "not measured" if load is None else format_percent(load)),
        ("Smallest difference that matters", format_percent(race.options.margin_percent)),
    )


def _warnings(race: Race) -> tuple[str, ...]:
    alike = describe_alike(race.options)
    found = tuple(warning for candidate in race.candidates for warning in candidate.warnings)
    return (alike, *found) if alike else found


def _compared(race: Race) -> str:
    sizes = race.options.examples_per_step
    if sizes is None:
        return "the time per step"
    return f"the time per example, for a step trains on {', '.join(map(str, sizes))} of them"


def _answer(race: Race) -> Answer:
    label, tone = label_outcomes([candidate.standing.outcome for candidate in race.candidates])
    gate = race.gate
    sentences = tuple(candidate.sentence for candidate in race.candidates)
    return Answer(label, tone, (*sentences, *(() if gate is None else (gate.sentence,))), "raced in paired blocks")


def _candidate_rows(race: Race) -> Table:
    rows = tuple(
        (
            candidate.name,
            candidate.standing.outcome.value,
            *_result_cells(candidate.standing.result),
            "–" if candidate.smallest_effect is None else format_percent(100 * abs(candidate.smallest_effect - 1)),
        )
        for candidate in race.candidates
    )
    return Table(
        "Candidates",
        ("Candidate", "Answer", "Ratio", "Interval", "p", "Pairs", "Would have shown"),
        rows,
        numeric=(2, 3, 4, 5, 6),
        note="The interval holds at whatever moment the race stopped. Last column: the smallest difference that this "
        "race would have found four times out of five.",
    )


def _result_cells(result: SequentialResult | None) -> tuple[str, ...]:
    if result is None:
        return ("–",) * 4
    return (f"{result.ratio:.3f}", f"{result.low:.3f} to {result.high:.3f}", f"{result.p_value:.2g}", str(result.pairs))


def _arm_rows(race: Race) -> Table:
    rows = tuple(
        (
            arm.name,
            format_duration(arm.step_ns),
            "–" if isinstance(arm.wait_ns, Unavailable) else format_duration(arm.wait_ns),
            _idle(arm),
            "–" if isinstance(arm.cpu_s_per_1000, Unavailable) else f"{arm.cpu_s_per_1000:.3g} s",
            _number(arm.loss),
            _number(arm.accuracy, percent=True),
            "–" if _beyond_share(arm) is None else format_percent(100 * (_beyond_share(arm) or 0)),
        )
        for arm in race.arms
    )
    return Table(
        "Arms",
        (
            "Arm",
            "Step",
            "Wait",
            "Device idle",
            "CPU time per 1000 examples",
            "Loss",
            "Accuracy",
            "Sampling skew",
        ),
        rows,
        numeric=(1, 2, 4, 5, 6, 7),
        note=next(
            (arm.idle.reason for arm in race.arms if isinstance(arm.idle, Unavailable)),
            "Device idle is the share of a profile window recorded after the arm's blocks, and what most of it was for.",
        ),
    )


def _idle(arm: ArmResult) -> str:
    if isinstance(arm.idle, Unavailable):
        return "–"
    share = format_percent(arm.idle.idle_percent)
    return share if arm.idle.cause is None else f"{share}, {arm.idle.cause.label}"


def _number(value: float | Unavailable, *, percent: bool = False) -> str:
    if isinstance(value, Unavailable):
        return "–"
    return format_percent(100 * value) if percent else f"{value:.3g}"


def _beyond_share(arm: ArmResult) -> float | None:
    return None if isinstance(arm.sampling, Unavailable) else arm.sampling.total_variation


def _differences(race: Race) -> tuple[Block, ...]:
    if isinstance(race.options, ScriptRaceOptions):
        return (_changes(race.options, race.environment),)
    names = [arm.name for arm in race.arms]
    arms = race.options.arms
    found = find_differences(
        [arm.model_dump(mode="json") for arm in arms], [{}] * len(arms), [render_source(arm) for arm in arms]
    )
    table = difference_table("Options that differ", found.options, (), names)
    return (table, *source_blocks(names[1:], found.sources))


def _changes(options: ScriptRaceOptions, environment: dict[str, Any]) -> Table:
    """Return what each candidate changes, in the words that the race has found for it."""
    words = environment.get(CHANGES) or {}
    rows = tuple((change, str(words.get(change, "–"))) for change in options.changes)
    return Table(f"Changes to {options.command}", ("Candidate", "What it changes"), rows)


def _arm_sections(race: Race) -> tuple[Section, ...]:
    if isinstance(race.options, ScriptRaceOptions):
        return ()
    return tuple(_arm_section(race, number, options) for number, options in enumerate(race.options.arms))


def _arm_section(race: Race, number: int, options: RunOptions) -> Section:
    return Section(
        f"What ran: {race.arms[number].name}",
        (
            CodeBlock("Pipeline source", render_source(options), "python", folded=True),
            pairs_block("Options", flatten_options(options.model_dump(mode="json"))),
        ),
    )


def _arm_numbers(arm: ArmResult) -> dict[str, Any]:
    loss, accuracy = arm.loss, arm.accuracy
    return {
        "arm": arm.name,
        "steps": arm.steps,
        "step_ns": arm.step_ns,
        "wait_ns": None if isinstance(arm.wait_ns, Unavailable) else arm.wait_ns,
        "cpu_s_per_1000_examples": None if isinstance(arm.cpu_s_per_1000, Unavailable) else arm.cpu_s_per_1000,
        "loss": None if isinstance(loss, Unavailable) else loss,
        "accuracy": None if isinstance(accuracy, Unavailable) else accuracy,
        "total_variation": _beyond_share(arm),
        "idle_percent": None if isinstance(arm.idle, Unavailable) else arm.idle.idle_percent,
        "idle_cause": None if isinstance(arm.idle, Unavailable) else arm.idle.cause,
    }
