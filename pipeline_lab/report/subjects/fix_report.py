"""The report of a search for better input of a script: the diff, its proof, its race, what was left alone and why."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline_lab.comparison.race_result import Race, read_race
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError, Unavailable
from pipeline_lab.figures.comparing.chart_lists import RACE_CHARTS, TUNE_CHARTS
from pipeline_lab.pipeline.changes import Effect
from pipeline_lab.report.content import Answer, Block, CodeBlock, Content, Section, Table, Text, picture_of
from pipeline_lab.report.subjects.run_report import notes_of
from pipeline_lab.report.subjects.tune_report import (
    SearchReport,
    about_search,
    answer_search,
    trials_table,
    tried_table,
)
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.tuning.script.script_result import CHANGED, ScriptTuning, WrittenFix, of_changed
from pipeline_lab.tuning.search_result import describe_step

OF_SCRIPTS = ("search-places", "search-history")
"""Charts of a search that say something of a script's."""


@dataclass(frozen=True)
class FixReport(SearchReport[ScriptTuning]):
    """A report of a search for better input of a script."""

    def content(self) -> Content:
        tuning = self.tuning
        charts = (picture_of(chart, tuning) for chart in TUNE_CHARTS if chart.name in OF_SCRIPTS)
        return Content(
            title=tuning.name,
            about=about_search(tuning),
            answer=_answer(tuning),
            warnings=(),
            notes=notes_of(tuning, self.notes),
            sections=(
                Section("The change", tuple(_change(tuning)), in_short=True),
                Section("The race", tuple(_race(tuning))),
                Section("Left alone", (_left(tuning.fix),), in_short=True),
                Section("The search", (*charts, *tried_table(tuning))),
                Section("How it went", tuple(Text(describe_step(step)) for step in tuning.steps)),
                Section("Trials", (trials_table(tuning),)),
            ),
        )


def _answer(tuning: ScriptTuning) -> Answer:
    answer, fix = answer_search(tuning), tuning.fix
    if fix is None or tuning.ended is None:
        return answer
    if not fix.changes:
        return replace(answer, label="nothing proposed")
    certainty = f"proved on the script's own data, {answer.certainty}"
    if tuning.ended.ratio is not None:
        return replace(answer, certainty=certainty)
    return replace(answer, label="proved", sentences=(_proposed(fix), *answer.sentences), certainty=certainty)


def _proposed(fix: WrittenFix) -> str:
    count = len(fix.changes)
    what = (
        "script the same predictions"
        if fix.changes[0].effect == Effect.PREDICTIONS.value
        else "model the same examples"
    )
    return f"{count} {'change gives' if count == 1 else 'changes give'} the {what}."


def _change(tuning: ScriptTuning) -> Iterator[Block]:
    fix = tuning.fix
    if fix is None:
        yield Text("The search ended before there was anything to propose.", missing=True)
        return
    if fix.note:
        yield Text(fix.note)
    if not fix.changes:
        return
    yield CodeBlock("Diff of the script", fix.diff, "diff")
    yield Table(
        "What it does",
        ("Change", "Examples", "Risk", "What else changes"),
        tuple((each.words, each.effect, each.risk, " ".join(each.also) or "–") for each in fix.changes),
    )
    yield Text(f"Proof: {fix.proof}")
    if tuning.ended is None or tuning.ended.ratio is None:  # what was raced is the answer
        yield Text(f"Gain: {fix.gain}")
    if fix.is_sure:
        yield CodeBlock("To write it into the files", tuning.fix_command, "shell")


def _race(tuning: ScriptTuning) -> Iterator[Block]:
    race = last_race(tuning)
    if isinstance(race, Unavailable):
        yield Text(race.reason, missing=True)
        return
    for candidate in race.candidates:
        yield Text(candidate.sentence)
    yield from (picture_of(chart, race) for chart in RACE_CHARTS)


def last_race(tuning: ScriptTuning) -> Race | Unavailable:
    """Return the race of what is proposed against the script as it is."""
    name = "" if tuning.ended is None else tuning.ended.race
    if not name:
        return Unavailable("Nothing raced the script as it is.")
    try:
        return _with_short_names(read_race(RunFolder(tuning.path.parent / name)))
    except PipelineLabError as error:
        return Unavailable(f"The race {name} cannot be read: {error}")


def _with_short_names(race: Race) -> Race:
    """Call the only candidate the changed script: what was changed stands in the diff."""
    if len(race.candidates) != 1:
        return race
    (candidate,), (as_it_is, arm) = race.candidates, race.arms
    sentence = of_changed(candidate.sentence, candidate.name)
    return replace(
        race,
        arms=(as_it_is, replace(arm, name=CHANGED)),
        candidates=(replace(candidate, name=CHANGED, sentence=sentence),),
    )


def _left(fix: WrittenFix | None) -> Block:
    if fix is None or not fix.left:
        return Text("Nothing that applies was left alone.")
    rows = tuple((each.words, each.reason) for each in fix.left)
    return Table("Changes that are not proposed", ("Change", "Why not"), rows)
