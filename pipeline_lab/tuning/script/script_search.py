"""A search for better input of a script: record it, prove changes on its own data, race what is proved, keep what helps.

Arms are combinations of the proved changes, the most promising of the model first. Every race includes the script as it is
written, inside whose training they take turns; what decides is the same as for searches around options.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_lab.advice.analyzing import analyze_path
from pipeline_lab.advice.script.script_forecasts import measure_script
from pipeline_lab.advice.script.script_model import predict_change
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError, RunFailedError, Unavailable
from pipeline_lab.options.race_options import ScriptRaceOptions, read_script_race
from pipeline_lab.options.tune_options import ScriptTuneOptions
from pipeline_lab.pipeline.changes import Change
from pipeline_lab.pipeline.recipe import read_recipe
from pipeline_lab.runs.run_events import PhaseEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record, write_whole
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.runs.store import RunStore, name_of
from pipeline_lab.tuning.deciding import MOST_CANDIDATES, Deciding
from pipeline_lab.tuning.executors.executor import ScriptFiles, SearchStoppedError
from pipeline_lab.tuning.halving import Fate
from pipeline_lab.tuning.history import History, Pick, Profiled, Proposed, Raced, SearchEnded
from pipeline_lab.tuning.script.fix import LEAST_PERCENT, Fix, describe_gain, to_json
from pipeline_lab.tuning.script.fixing import Wishes, find_fix
from pipeline_lab.tuning.script.proof import HowFar
from pipeline_lab.tuning.script.proving import Effort, LeftAlone
from pipeline_lab.tuning.script.recorded_script import record_script
from pipeline_lab.tuning.script.sample_process import Script
from pipeline_lab.tuning.script.script_result import CHANGED, of_changed
from pipeline_lab.tuning.space import START
from pipeline_lab.tuning.trials import TrialCosts, Trials
from pipeline_lab.units import NS_PER_MS, NS_PER_S, format_duration, format_percent

RECORD_S, RECORD_SHARE, MOST_RECORD_SHARE = 60.0, 0.2, 0.5
"""What a recording may take: so long, or the first share of the budget if that is less; up to the second, until it trains."""
READING_SHARE, PROVED_SHARE = 0.1, 0.5
"""What one reading of the script's data may take, and up to where proofs go on once there is something to race, parts of the budget."""
ARM_S = 2.0
"""To make a pipeline again and to fill its buffers, before a race of this script has told."""
SCREENING = (10,)
"""Rounds of the race that chooses among several; starting the script again for another one would cost more than it says."""
SPEND_ALL = "All that is proved was raced."
PROMISES_NOTHING = "It did not race, and the model expects no gain from it; give the search a longer --budget, or name it with --change."
UNDECIDED = "Whether it adds anything is not decided, after too few rounds; give the search a longer --budget."
NEVER_TRAINED = "In {seconds} of recording the script did not come to its training; give the search {budget} or more."
NOT_RACEABLE = Unavailable("Not raced: pipelines that race share one training, and cannot differ in this.")
UNRACED = "What is proved is proposed without a race."
BESIDE = "What changes the training itself is not in it."
ALONE = "The race is between the script as it is and all that is proved."


@dataclass(frozen=True)
class ScriptArm:
    """The script with some of the proved changes.

    Attributes:
        name: What is asked for in a race; ``start`` as it is written.
        changes: Made in it.
    """

    name: str
    changes: tuple[Change, ...]


AS_IT_IS = ScriptArm(START, ())


class ScriptContest(Deciding[ScriptArm, str]):
    """The arms of one search inside a script."""

    reference = START
    in_words = CHANGED

    def __init__(self, options: ScriptTuneOptions, trials: Trials, history: History, store: RunStore) -> None:
        self.options = options
        super().__init__(options, trials, history, store, AS_IT_IS)

    def make_race(self, leader: str, challengers: Sequence[str], rules: dict[str, Any]) -> ScriptRaceOptions:
        assert leader == START
        names = ("script", "is_module", "arguments", "folder")
        start = {name: getattr(self.options, name) for name in names}
        return read_script_race({**rules, **start, "changes": list(challengers)})

    def runs(self, arm: ScriptArm) -> str:
        return arm.name

    def cost(self, name: str) -> tuple[float, ...]:
        """Return how much is changed."""
        return (float(len(self._known[name].changes)),)

    def learn_costs(self) -> None:
        """Take from the last race what starting the script and warming up an arm takes."""
        races = [trial for trial in self.trials.known() if trial.run and not trial.failure]
        if races:
            self.budget.costs = read_script_costs(self.store.folder(races[-1].run), self.budget.costs)


class ScriptSearch:
    """One search for better input of a script, from its recording to its last race.

    Args:
        folder: The search's own run.
        options: What to search.
        trials: Measures.
        store: Takes what is recorded and raced.
    """

    def __init__(self, folder: RunFolder, options: ScriptTuneOptions, trials: Trials, store: RunStore) -> None:
        self._folder, self._options, self._trials, self._store = folder, options, trials, store
        self._contest = ScriptContest(options, trials, History(folder.history), store)
        self._script = Script(options.script, options.arguments, options.is_module)
        self._diagnosis: Diagnosis | Unavailable = Unavailable("Not analyzed.")

    def run(self) -> None:
        """Search; what is found is in the folder.

        Raises:
            PipelineLabError: The script does not run, or does not come to its training.
            SearchStoppedError: It was asked to stop.
        """
        recorded = self._record()
        if self._options.ray is not None:
            recipe = read_recipe(recorded.recipe)
            self._trials.check(ScriptFiles.here(() if recipe is None else recipe.files))
        self._contest.budget.costs = _first_costs(recorded)
        begun_s = time.monotonic()
        found = self._find(recorded, Wishes(self._options.changes, self._options.may_reorder))
        self._trials.spend(time.monotonic() - begun_s)
        raceable = [] if found.is_faster else [each for each in found.changes if not each.cannot_race]
        arms = self._propose(found, raceable, recorded)
        if not arms:
            self._end_unraced(found, recorded)
            return
        contest = self._contest
        if len(arms) > 1:
            contest.race(1, [AS_IT_IS, *arms], SCREENING)
            contest.learn_costs()
        else:
            contest.race(1, arms)
        beside = f" {BESIDE}" if len(raceable) < len(found.changes) else ""
        contest.meet_the_start(f"{SPEND_ALL if len(arms) > 1 else ALONE}{beside}")
        self._keep(self._judge(found, recorded), recorded)

    def _record(self) -> RunFolder:
        """Return a run of the script: the one that was named, or a new one."""
        if self._options.run is not None:
            return RunFolder(Path(self._options.run))
        seconds = min(RECORD_S, RECORD_SHARE * self._options.budget_s)
        most_s = MOST_RECORD_SHARE * self._options.budget_s

        def record() -> RunFolder:
            return record_script(self._script, self._store, seconds, self._trials.should_stop, most_s=most_s)

        line = self._trials.measure("recording", record)
        if line.failure:
            raise RunFailedError(line.failure)
        folder = self._store.folder(line.run)
        recipe = read_recipe(folder.recipe)
        if (recipe is None or recipe.trained is None) and (line.seconds or 0.0) >= most_s:
            spent, enough = (format_duration(each * NS_PER_S) for each in (most_s, 2 * self._options.budget_s))
            raise RunFailedError(NEVER_TRAINED.format(seconds=spent, budget=enough))
        return folder

    def _find(self, recorded: RunFolder, wishes: Wishes) -> Fix:
        try:
            self._diagnosis = analyze_path(recorded.path)
        except PipelineLabError as error:
            self._diagnosis = Unavailable(str(error))
        if not self._contest.history.steps:
            self._contest.history.add(_profiled(recorded, self._diagnosis))
        begun_s, budget_s = time.monotonic() - self._trials.spent_s, self._options.budget_s

        def is_spent(kept: Sequence[Change]) -> bool:
            race_s = self._contest.budget.race_s(2) if self._options.races else math.inf
            return not wishes.changes and are_proofs_over(time.monotonic() - begun_s, budget_s, race_s, kept)

        how_far = HowFar(seconds=min(HowFar.seconds, READING_SHARE * budget_s))
        keras = str(read_record(recorded).environment.get("keras"))
        script = replace(self._script, is_of_keras_2=keras.startswith("2."))
        return find_fix(recorded, script, wishes, self._diagnosis, Effort(how_far, self._check_stop, is_spent))

    def _check_stop(self) -> None:
        if self._trials.should_stop():
            raise SearchStoppedError("The search was asked to stop; what it found so far is kept.")

    def _propose(self, found: Fix, raceable: Sequence[Change], recorded: RunFolder) -> list[ScriptArm]:
        """Return what is to race, the most promising first; nothing where nothing can or may."""
        contest, run = self._contest, None
        recipe = read_recipe(recorded.recipe)
        if recipe is not None and not isinstance(self._diagnosis, Unavailable):
            measured = measure_script(self._diagnosis, recipe)
            run = None if isinstance(measured, Unavailable) else measured
        most = min(MOST_CANDIDATES, self._options.max_configurations - 1)
        arms = combine(raceable, run, 1 if self._options.changes else most)
        if not arms or not self._options.races:
            return []
        fitting = max(0, contest.budget.most_arms - 1)
        if fitting < len(arms):
            arms = [arms[0]] if fitting < 2 else arms[:fitting]
        for arm in arms:
            ratio = _expected(arm.changes, run)
            if ratio is not None:
                contest.promised[arm.name] = ratio
        best = min((contest.promised[arm.name] for arm in arms if arm.name in contest.promised), default=None)
        said = "" if best is None else f"; the model expects {_less_time(100 * (1 - best))}"
        sentence = (
            f"Of {len(found.changes) + len(found.left)} changes that apply {len(found.changes)} "
            f"{'is' if len(found.changes) == 1 else 'are'} proved; "
            f"{'the changed script races' if len(arms) == 1 else f'{len(arms)} changed scripts race'} the one as it is{said}."
        )
        picks = tuple(Pick(arm.name, {"changes": [each.words for each in arm.changes]}) for arm in arms)
        contest.history.add(Proposed(1, len(found.changes) + len(found.left), _refused(found), picks, sentence))
        return arms

    def _judge(self, found: Fix, recorded: RunFolder) -> Fix:
        """Return what is proposed after the races, proved as it is proposed."""
        ended = next(step for step in reversed(self._contest.history.steps) if isinstance(step, SearchEnded))
        raced = Unavailable("Not raced: the gain is not measured.")
        gain = read_race(self._store.folder(ended.race)).candidates[0] if ended.race and ended.ratio else raced
        arm = self._contest.arm(ended.challenger)
        unraced = [each for each in found.changes if each.cannot_race]
        if not isinstance(gain, Unavailable) and ended.winner == START and _found_nothing(ended):
            useless = [LeftAlone(each, "The race found no gain.") for each in arm.changes]
            left = (*found.left, *useless, *_beside(found, arm, "It was not in what raced best."))
            said = of_changed(gain.sentence, gain.name)
            if unraced:
                alone = self._prove_again(recorded, unraced)
                left = (*left, *alone.left)
                if alone.changes:
                    return replace(alone, left=left, gain=NOT_RACEABLE, note=said)
            return replace(
                found,
                changes=(),
                edited=None,
                left=left,
                gain=gain,
                note=f"Nothing is proposed. {said}{found.otherwise}",
            )
        if isinstance(gain, Unavailable) and not self._options.changes and _promises_nothing(found):
            left = (*found.left, *(LeftAlone(each, PROMISES_NOTHING) for each in found.changes))
            note = f"Nothing is proposed. {ended.sentence}{found.otherwise}"
            return replace(found, changes=(), edited=None, left=left, gain=gain, note=note)
        if len(arm.changes) + len(unraced) < len(found.changes):
            chosen = [each for each in found.changes if each in arm.changes or each in unraced]
            proved = self._prove_again(recorded, chosen)
            others = [replace(each, reason=self._why_not(each.change)) for each in _beside(found, arm, "")]
            found = replace(proved, left=(*found.left, *proved.left, *others))
        note = found.note or (
            "" if replace(found, gain=gain).is_faster else f"Whether it helps is not decided. {ended.sentence}"
        )
        return replace(found, gain=gain, note=note)

    def _prove_again(self, recorded: RunFolder, chosen: Sequence[Change]) -> Fix:
        """Prove what is left of the changes as it is proposed."""
        return self._find(recorded, Wishes(tuple(each.request for each in chosen), self._options.may_reorder))

    def _why_not(self, change: Change) -> str:
        """Say why a change is not among those that raced best: nobody knows of one whose arms all had too few rounds."""
        raced = (each for step in self._contest.history.steps if isinstance(step, Raced) for each in step.standings)
        fates = [each.fate for each in raced if change in self._contest.arm(each.configuration).changes]
        return UNDECIDED if fates and set(fates) == {Fate.UNDECIDED} else "The races found nothing that it adds."

    def _end_unraced(self, found: Fix, recorded: RunFolder) -> None:
        """End where there is nothing to race, or nothing may."""
        contest = self._contest
        if found.changes and self._options.races and not found.is_faster:
            found = replace(found, gain=NOT_RACEABLE)
        named = "; ".join(each.request for each in found.changes)
        sentence = found.note or (describe_gain(found) if found.is_faster else UNRACED)
        winner = named or START
        contest.history.add(SearchEnded(winner, None, None, None, "", None, 1, self._trials.spent_s, sentence, winner))
        self._keep(found, recorded)

    def _keep(self, found: Fix, recorded: RunFolder) -> None:
        """Write down what was found."""
        no_race_tells = all(each.cannot_race for each in found.changes)
        is_asked = not self._options.races or bool(self._options.changes)
        is_sure = bool(found.changes) and (is_asked or found.is_faster or no_race_tells)
        document = {**to_json(found, Path(self._options.folder)), "run": name_of(recorded.path), "is_sure": is_sure}
        write_whole(self._folder.fix, json.dumps(document, ensure_ascii=False))


def are_proofs_over(spent_s: float, budget_s: float, race_s: float, kept: Sequence[Change]) -> bool:
    """Say whether proofs have to end: half of the budget is left to a race, if what is kept can race and there is time for it."""
    leaves_room = budget_s - spent_s >= race_s and not all(each.cannot_race for each in kept)
    return spent_s > (PROVED_SHARE if leaves_room else 1.0) * budget_s


def combine(changes: Sequence[Change], run: ScriptRun | None, most: int) -> list[ScriptArm]:
    """Return combinations of changes that are worth a race: all of them first, then what the model thinks most of.

    Besides all together these are the ones that add the best next one each, and each alone.
    """
    if not changes:
        return []

    def rank(chosen: Sequence[Change]) -> float:
        ratio = _expected(chosen, run)
        return 1.0 if ratio is None else ratio

    order = sorted(changes, key=lambda each: rank([each]))
    chains = [tuple(order[:count]) for count in range(len(order) - 1, 0, -1)]
    sets = [tuple(order), *chains, *((each,) for each in order[1:])]
    arms: dict[frozenset[int], ScriptArm] = {}
    for chosen in sets:
        kept = tuple(each for each in changes if each in chosen)
        arms.setdefault(frozenset(map(id, kept)), ScriptArm("; ".join(each.request for each in kept), kept))
    whole, *others = arms.values()
    others.sort(key=lambda arm: rank(arm.changes))
    return [whole, *others][:most]


def _expected(changes: Sequence[Change], run: ScriptRun | None) -> float | None:
    """Return the time per step over the script's own that the model expects; None where it has no answer."""
    if run is None:
        return None
    found = predict_change(run, [edit for change in changes for edit in change.edits])
    return None if isinstance(found, Unavailable) else max(0.01, 1 - found.gain_percent / 100)


def _promises_nothing(found: Fix) -> bool:
    """Say whether the model knows that all changes together gain next to nothing."""
    return not isinstance(found.predicted, Unavailable) and found.predicted.gain_percent < LEAST_PERCENT


def _less_time(percent: float) -> str:
    return f"up to {format_percent(percent)} less time per step" if percent >= LEAST_PERCENT else "no gain from that"


def _found_nothing(ended: SearchEnded) -> bool:
    """Say whether the last race speaks against a gain; one of too few rounds decides nothing, unless the change seemed slower."""
    return ended.low is not None or (ended.ratio or 1.0) >= 1.0


def _refused(found: Fix) -> dict[str, int]:
    return {"left alone": len(found.left)} if found.left else {}


def _beside(found: Fix, arm: ScriptArm, reason: str) -> list[LeftAlone]:
    """Return the proved changes that are not in an arm."""
    inputs = (each for each in found.changes if not each.cannot_race)
    return [LeftAlone(each, reason) for each in inputs if each not in arm.changes]


def _profiled(recorded: RunFolder, diagnosis: Diagnosis | Unavailable) -> Profiled:
    if isinstance(diagnosis, Unavailable):
        return Profiled(START, recorded.id, None, None, "", diagnosis.reason)
    steps = diagnosis.job_steps
    step_ms = None if isinstance(steps, Unavailable) else steps.median_ns / NS_PER_MS
    return Profiled(
        START, recorded.id, step_ms, None, diagnosis.verdict.verdict_class.value, diagnosis.verdict.sentence
    )


def _first_costs(recorded: RunFolder) -> TrialCosts:
    """Return what a race of the script takes besides its rounds, as far as its recording tells: what it took up to its first step."""
    begun_s = read_record(recorded).status.started_s
    steps_ns = tables.ints(read_table(recorded.steps, STEPS), "start_ns")
    if begun_s is None or not len(steps_ns):
        return TrialCosts(STARTING_S, ARM_S)
    return TrialCosts(SLOWER * (steps_ns[0] / NS_PER_S - begun_s), ARM_S)


STARTING_S = 15.0
"""To load TensorFlow and the script's data, where nothing tells."""
SLOWER = 1.5
"""Times what the recording took to its first step that a race may take."""


def read_script_costs(race: RunFolder, before: TrialCosts) -> TrialCosts:
    """Return what a race took besides its rounds; what was assumed before where it did not get so far."""
    begun_s = read_record(race).status.started_s
    phases = {
        event.phase: event.time_ns / NS_PER_S for event in read_events(race.events) if isinstance(event, PhaseEvent)
    }
    if begun_s is None or not {"warmup", "racing"} <= phases.keys():
        return before
    arms = len((read_record(race).options or {}).get("changes", ())) + 1
    return TrialCosts(phases["warmup"] - begun_s, (phases["racing"] - phases["warmup"]) / arms)
