"""The report of a search: who won and by how much, the winner's options and source, what was tried and why."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pipeline_lab.analysis.verdict.verdict import Evidence
from pipeline_lab.comparison.differences import find_differences, flatten_options
from pipeline_lab.data_classes import dataclass
from pipeline_lab.figures.comparing.chart_lists import TUNE_CHARTS
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.report.content import Answer, Block, CodeBlock, Content, Section, Table, Text, picture_of
from pipeline_lab.report.plain_text import slug
from pipeline_lab.report.subjects.comparison_report import difference_table, source_blocks
from pipeline_lab.report.subjects.comparison_tables import build_table
from pipeline_lab.report.subjects.run_report import moment, notes_of, pairs_block
from pipeline_lab.tuning.history import Raced, SearchEnded, rank_configurations
from pipeline_lab.tuning.search_result import (
    RecordedSearch,
    Tuning,
    change_words,
    describe_step,
    interval_words,
    place_cells,
    predicted_words,
)
from pipeline_lab.tuning.space import START
from pipeline_lab.units import NS_PER_S, format_duration

STANDING_TABLE = pa.schema(
    [
        ("round", pa.int64()),
        ("leader", pa.string()),
        ("configuration", pa.string()),
        ("fate", pa.string()),
        ("ratio", pa.float64()),  # of its time to the leader's; null if it did not run
        ("low", pa.float64()),  # null while nothing is excluded
        ("high", pa.float64()),
        ("predicted", pa.float64()),  # null where the model was not asked
    ]
)
"""One row per race and configuration."""

TRIAL_TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("machine", pa.string()),
        ("seconds", pa.float64()),  # null while it is under way
        ("failure", pa.string()),
    ]
)
"""One row per run or race that was measured."""


Search = TypeVar("Search", bound=RecordedSearch)


@dataclass(frozen=True)
class SearchReport(ABC, Generic[Search]):
    """A report of a search, whatever it starts from.

    Attributes:
        tuning: What is reported on.
        notes: Words of the report's author, beside the search's own notes.
    """

    tuning: Search
    notes: str = ""

    @property
    def slug(self) -> str:
        return slug(self.tuning.id or self.tuning.name)

    @abstractmethod
    def content(self) -> Content: ...

    def document(self) -> dict[str, Any]:
        return self.tuning.to_json()

    def tables(self) -> dict[str, pa.Table]:
        """Return what raced and what was measured, a row each."""
        raced = [step for step in self.tuning.steps if isinstance(step, Raced)]
        standings = [
            {"round": step.round, "leader": step.leader, **vars(each)} for step in raced for each in step.standings
        ]
        return {
            "standings": build_table(standings, STANDING_TABLE),
            "trials": build_table([vars(trial) for trial in self.tuning.trials], TRIAL_TABLE),
        }


@dataclass(frozen=True)
class TuneReport(SearchReport[Tuning]):
    """A report of a search that starts from options."""

    def content(self) -> Content:
        tuning = self.tuning
        return Content(
            title=tuning.name,
            about=about_search(tuning),
            answer=answer_search(tuning),
            warnings=(),
            notes=notes_of(tuning, self.notes),
            sections=(
                Section(
                    "The search",
                    (*(picture_of(chart, tuning) for chart in TUNE_CHARTS), *tried_table(tuning)),
                    in_short=True,
                ),
                Section(
                    "The winner" if tuning.winner_was_raced else "The model's choice", _winner(tuning), in_short=True
                ),
                Section("How it went", tuple(Text(describe_step(step)) for step in tuning.steps), in_short=True),
                Section("Trials", (trials_table(tuning),)),
            ),
        )


def about_search(tuning: RecordedSearch) -> tuple[tuple[str, str], ...]:
    rules = tuning.rules
    return (
        ("Search", tuning.id),
        ("Begun", moment(tuning.record.status.created_s)),
        ("Start", rules.start_label),
        ("Spent", f"{format_duration(tuning.spent_s * NS_PER_S)} of {format_duration(rules.budget_s * NS_PER_S)}"),
        ("Smallest difference that matters", f"{rules.margin_percent:g} %"),
    )


def answer_search(tuning: RecordedSearch) -> Answer:
    ended = tuning.ended
    if ended is None:
        return Answer("search", "neutral", (tuning.sentence,), "not over")
    if ended.winner == START:
        if ended.challenger != START:
            label, certainty = "nothing better", _certainty(ended)
        elif tuning.had_time:
            label, certainty = "nothing better", "by the model, not by a race"
        else:
            label, certainty = "nothing raced", "too little time"
        return Answer(label, "neutral", (tuning.sentence,), certainty, _evidence(ended))
    if not tuning.winner_was_raced:
        return Answer("model's choice, not raced", "neutral", (tuning.sentence,), _certainty(ended), _evidence(ended))
    if ended.ratio is None:
        return Answer("leads, not raced", "neutral", (tuning.sentence,), _certainty(ended), _evidence(ended))
    if not ended.is_faster:
        return Answer("undecided", "neutral", (tuning.sentence,), _certainty(ended), _evidence(ended))
    return Answer("faster", "good", (tuning.sentence,), _certainty(ended), _evidence(ended))


def _certainty(ended: SearchEnded) -> str:
    return "raced against the start" if ended.ratio is not None else "not raced against the start"


def _evidence(ended: SearchEnded) -> tuple[Evidence, ...]:
    found = [Evidence("Configurations measured", str(ended.configurations))]
    if ended.ratio is not None:
        found.insert(
            0, Evidence("Time per step", f"{change_words(ended.ratio)} ({interval_words(ended.low, ended.high)})")
        )
    if ended.predicted is not None and ended.challenger != START:
        found.insert(1, Evidence("Predicted", predicted_words(ended.predicted)))
    return tuple(found)


def tried_table(tuning: RecordedSearch) -> tuple[Table, ...]:
    places = rank_configurations(tuning.steps)
    if not places.rows:
        return ()
    return (
        Table(
            f"What was tried: time per step against {places.reference}",
            ("Configuration", "Raced", "Interval", "Predicted", "Outcome"),
            tuple(place_cells(place, places.reference, goes_on=tuning.state.is_live) for place in places.rows),
            numeric=(1, 2, 3),
            note="Each from its last race, through the configurations that led.",
        ),
    )


def _winner(tuning: Tuning) -> tuple[Block, ...]:
    start, winner = tuning.options.start, tuning.winner
    documents = [flattened.model_dump(mode="json") for flattened in (start, winner)]
    found = find_differences(documents, [{}, {}], [render_source(start), tuning.source])
    name = "winner" if tuning.winner_was_raced else "model's choice"
    names = ["start", name]
    return (
        *_command(tuning),
        CodeBlock(f"pipeline.py of the {name}", tuning.source, "python"),
        difference_table("Options that differ from the start's", found.options, (), names),
        *source_blocks(names[1:], found.sources),
        pairs_block(f"All options of the {name}", flatten_options(documents[1])),
        CodeBlock("Options as JSON, for run --options", winner.to_json(), "json", folded=True),
    )


def _command(tuning: Tuning) -> tuple[Block, ...]:
    """Return how to measure what the search did not."""
    if tuning.race_command is None:
        return ()
    return (CodeBlock("To measure its gain, race it against the start", tuning.race_command, "shell"),)


def trials_table(tuning: RecordedSearch) -> Table:
    rows = tuple(
        (
            trial.run or "–",
            trial.machine or "–",
            "under way" if trial.seconds is None else format_duration(trial.seconds * NS_PER_S),
            trial.failure or "–",
        )
        for trial in tuning.trials
    )
    return Table(
        "Runs and races", ("Run", "Machine", "Took", "Failure"), rows, numeric=(2,), note="Each is a run of the store."
    )
