"""What a search inside a script races, and what it proposes then; what it proves is tested beside TensorFlow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pipeline_lab.advice.script.script_model import ScriptPrediction
from pipeline_lab.errors import OptionsError, PipelineLabError, RunFailedError, StoreError, Unavailable
from pipeline_lab.figures.comparing.chart_lists import RACED_STEPS
from pipeline_lab.options.race_options import ScriptRaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.tune_options import ScriptTuneOptions, read_script_tune
from pipeline_lab.pipeline.changes import Change
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.samples import Proof, ProofOutcome
from pipeline_lab.pipeline.source_edits import Edited
from pipeline_lab.report.content import Picture, Text
from pipeline_lab.report.report_on import report_on
from pipeline_lab.runs import run_tables
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import PhaseEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import Finished, ScriptFiles, Trial, Watch
from pipeline_lab.tuning.history import Raced
from pipeline_lab.tuning.opened_search import read_search
from pipeline_lab.tuning.script import script_search
from pipeline_lab.tuning.script.fix import NOT_PREDICTED, NOT_RACED, CallTimes, Fix
from pipeline_lab.tuning.script.fixing import Wishes
from pipeline_lab.tuning.script.script_result import ScriptTuning
from pipeline_lab.tuning.script.script_search import PROMISES_NOTHING, ScriptSearch, are_proofs_over, combine
from pipeline_lab.tuning.search_result import read_tuning
from pipeline_lab.tuning.trials import TrialLedger, TrialLine, Trials
from pipeline_lab.units import NS_PER_S
from tests.support.races import PlantedArm, fill_race
from tests.support.run_folders import set_state
from tests.support.written_recipe import PATH, written_recipe

TEXT = "ds = tf.data.Dataset.range(8).map(f).batch(2)\nmodel.compile()\nmodel.fit(ds)\n"
RECIPE = written_recipe(TEXT)
CHANGES = {change.rewrite: change for change in find_changes(RECIPE)}
PREFETCH, MAP, CACHE = CHANGES["prefetch"], CHANGES["parallel-map"], CHANGES["cache"]
STEPS = CHANGES["steps-per-execution"]
TIMES_MS = {PREFETCH.request: 0.9, MAP.request: 0.5, CACHE.request: 1.0}


def planted_ms(request: str) -> float:
    """Return the step of an arm whose changes each do what they do alone."""
    factor = 1.0
    for part in request.split("; "):
        factor *= TIMES_MS[part]
    return 100.0 * factor


@dataclass
class ScriptWorld:
    """An executor that writes races inside a script as planted times would have made them."""

    store: RunStore
    step_ms: Callable[[str], float] = planted_ms
    rounds: int = 30
    machines: int = 1
    races: list[ScriptRaceOptions] = field(default_factory=list)
    checked: list[RunOptions | ScriptFiles] = field(default_factory=list)

    def check(self, needed: RunOptions | ScriptFiles) -> None:
        self.checked.append(needed)

    def close(self) -> None:
        pass

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        for trial in trials:
            options = trial.options
            assert isinstance(options, ScriptRaceOptions)
            self.races.append(options)
            folder = self.store.create(options, "")
            rounds = min(self.rounds, options.pairs)
            times = [100.0, *map(self.step_ms, options.changes)]
            arms = [
                PlantedArm([time_ms * (1 + 0.01 * ((7 * number + place) % 5 - 2)) for number in range(rounds)])
                for place, time_ms in enumerate(times)
            ]
            fill_race(folder, *arms, block_steps=options.block_steps)
            set_state(folder, RunState.DONE)
            watch.ended(trial, Finished(folder.id, "here", 30.0))


Searching = Callable[..., tuple[ScriptTuning, ScriptWorld]]


@pytest.fixture(name="searching")
def _searching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Searching:
    def not_analyzed(_path: Path) -> None:
        raise PipelineLabError("Not analyzed.")

    def run(
        applies: Sequence[Change],
        world: ScriptWorld | None = None,
        predicted: ScriptPrediction | Unavailable = NOT_PREDICTED,
        gain: CallTimes | Unavailable = NOT_RACED,
        recipe: Recipe | None = None,
        **wanted: object,
    ) -> tuple[ScriptTuning, ScriptWorld]:
        def find(_folder: RunFolder, _script: object, wishes: Wishes, *_: object, **__: object) -> Fix:
            kept = tuple(each for each in applies if not wishes.changes or each.request in wishes.changes)
            if not kept:
                return Fix((), None, None, (), note="Nothing is proposed: no change could be proved.")
            edited = Edited({PATH: TEXT}, {PATH: TEXT + "#" * len(kept)}, kept, ())
            return Fix(kept, edited, Proof(ProofOutcome.EQUAL, f"Equal with {len(kept)} changes."), (), predicted, gain)

        monkeypatch.setattr(script_search, "find_fix", find)
        monkeypatch.setattr(script_search, "analyze_path", not_analyzed)
        store = RunStore(tmp_path / "store")
        world = world or ScriptWorld(store)
        recorded = store.create(options_of(tmp_path), "")
        if recipe is not None:
            recorded.recipe.write_text(recipe.to_json())
        options = options_of(tmp_path, run=str(recorded.path), **wanted)
        folder = store.create(options, "")
        trials = Trials(TrialLedger(folder.trials), world, lambda: False)
        ScriptSearch(folder, options, trials, store).run()
        set_state(folder, RunState.DONE)
        found = read_search(folder)
        assert isinstance(found, ScriptTuning)
        return found, world

    return run


def options_of(folder: Path, **wanted: object) -> ScriptTuneOptions:
    return read_script_tune({"script": "train.py", "folder": str(folder), "budget_s": 600.0, **wanted})


@pytest.mark.parametrize(
    ("spent_s", "race_s", "over"),
    [(49, 40, False), (51, 40, True), (61, 40, False), (51, 60, False), (99, 60, False), (101, 60, True)],
)
def test_proofs_leave_half_of_the_budget_to_a_race_as_long_as_there_is_time_for_one(
    spent_s: float, race_s: float, *, over: bool
) -> None:
    assert are_proofs_over(spent_s, 100, race_s, [CACHE, STEPS]) is over


def test_proofs_take_the_whole_budget_where_nothing_that_is_proved_can_race() -> None:
    assert not are_proofs_over(99, 100, 1, [STEPS])
    assert are_proofs_over(101, 100, 1, [STEPS])


def test_all_proved_changes_race_first_then_fewer_of_them() -> None:
    arms = combine([PREFETCH, MAP, CACHE], None, 7)
    assert arms[0].changes == (PREFETCH, MAP, CACHE)
    assert len({frozenset(each.rewrite for each in arm.changes) for arm in arms}) == len(arms)
    assert {arm.name for arm in arms if len(arm.changes) == 1} == {each.request for each in (PREFETCH, MAP, CACHE)}
    assert combine([PREFETCH, MAP, CACHE], None, 2) == arms[:2]
    assert combine([], None, 7) == []


@pytest.mark.slow
def test_what_the_race_decides_is_proposed_with_the_rest_left_alone(searching: Searching) -> None:
    found, world = searching([PREFETCH, MAP, CACHE])
    assert found.fix is not None
    assert {each.rewrite for each in found.fix.changes} == {"prefetch", "parallel-map"}, "a cache adds nothing"
    assert {each.rewrite: each.reason for each in found.fix.left} == {"cache": "The races found nothing that it adds."}
    assert found.fix.proof == "Equal with 2 changes.", "what is proposed is proved as it is proposed"
    assert found.fix.is_sure
    assert found.ended is not None
    assert found.ended.is_faster
    assert [len(race.changes) for race in world.races] == [5, 1], "one race chooses, one measures the gain"


def test_what_raced_too_few_rounds_beside_the_best_is_not_called_useless(searching: Searching, tmp_path: Path) -> None:
    world = ScriptWorld(
        RunStore(tmp_path / "store"), lambda request: planted_ms(request) * (1.2 if CACHE.request in request else 1.0)
    )

    def run(trials: Sequence[Trial], watch: Watch, plain: Callable[..., None] = world.run) -> None:
        world.rounds = 30 if world.races else 2
        plain(trials, watch)

    world.run = run
    found, _ = searching([PREFETCH, MAP, CACHE], world)
    assert found.fix is not None
    reasons = {each.rewrite: each.reason for each in found.fix.left}
    assert reasons == {"cache": script_search.UNDECIDED}


def test_a_script_that_does_not_come_to_its_training_in_time_says_which_budget_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path / "store")
    monkeypatch.setattr(script_search, "record_script", lambda *_, **__: store.create(options_of(tmp_path), ""))
    options = options_of(tmp_path, budget_s=30.0)
    folder = store.create(options, "")
    trials = Trials(TrialLedger(folder.trials), ScriptWorld(store), lambda: False)
    monkeypatch.setattr(trials, "measure", lambda key, record: TrialLine(key, record().id, "here", 15.0))
    with pytest.raises(RunFailedError, match=r"In 15 s of recording .* give the search 60 s or more"):
        ScriptSearch(folder, options, trials, store).run()


@pytest.mark.slow
def test_machines_of_a_cluster_that_have_the_script_share_the_arms(searching: Searching, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("fit()")
    recipe = replace(RECIPE, files={str(script): "0-train.py", str(tmp_path / "gone.py"): "1-gone.py"})
    found, world = searching(
        [PREFETCH, MAP, CACHE], ScriptWorld(RunStore(tmp_path / "store"), machines=2), recipe=recipe, ray="auto"
    )
    assert found.fix is not None
    assert {each.rewrite for each in found.fix.changes} == {"prefetch", "parallel-map"}
    assert world.checked == [ScriptFiles.here([str(script)])]
    assert len(world.checked[0].digests) == 1
    assert [len(race.changes) for race in world.races] == [3, 2, 1], "two choose at once, one measures the gain"
    assert len({change for race in world.races[:2] for change in race.changes}) == 5


def test_one_change_races_once(searching: Searching) -> None:
    found, world = searching([MAP])
    assert [race.changes for race in world.races] == [(MAP.request,)]
    assert found.fix is not None
    assert found.fix.is_sure
    assert "less time per step" in found.sentence


def test_what_does_not_help_is_not_proposed(searching: Searching) -> None:
    found, _ = searching([CACHE])
    assert found.fix is not None
    assert found.fix.changes == ()
    assert found.fix.diff == ""
    assert [each.reason for each in found.fix.left] == ["The race found no gain."]
    assert found.winner_name == "start"


def test_what_cannot_race_stays_where_the_race_finds_no_gain(searching: Searching) -> None:
    found, _ = searching([CACHE, STEPS])
    assert found.fix is not None
    assert [each.rewrite for each in found.fix.changes] == ["steps-per-execution"]
    assert [(each.rewrite, each.reason) for each in found.fix.left] == [("cache", "The race found no gain.")]
    assert found.fix.gain.startswith("Not raced: pipelines that race share one training")
    assert found.fix.is_sure, "no budget would let it race"


def test_calls_that_were_made_both_ways_need_no_race(searching: Searching) -> None:
    found, world = searching([STEPS], gain=CallTimes(40.0, 1.0, 80.0))
    assert world.races == []
    assert found.fix is not None
    assert found.fix.is_sure
    assert "40 ms as they are, 1 ms as they would be" in found.fix.gain
    assert "a step should take 78 % less time" in found.sentence


def test_too_few_rounds_decide_nothing_and_say_which_budget_would_do(searching: Searching, tmp_path: Path) -> None:
    found, _ = searching([MAP], ScriptWorld(RunStore(tmp_path / "store"), rounds=2))
    assert found.fix is not None
    assert not found.fix.is_sure
    assert "not decided" in found.fix.note
    assert "give the search" in found.sentence


@pytest.mark.parametrize(("step_ms", "proposed"), [(98.0, ("prefetch",)), (103.0, ())])
def test_a_race_without_an_interval_speaks_against_a_change_only_where_it_seemed_slower(
    searching: Searching, tmp_path: Path, step_ms: float, proposed: tuple[str, ...]
) -> None:
    world = ScriptWorld(RunStore(tmp_path / "store"), lambda _: step_ms, rounds=2)
    found, _ = searching([PREFETCH], world)
    assert found.fix is not None
    assert not found.fix.is_sure
    assert tuple(each.rewrite for each in found.fix.changes) == proposed


def test_a_budget_that_has_no_room_for_a_race_says_which_has(searching: Searching) -> None:
    found, world = searching([MAP], budget_s=20.0)
    assert world.races == []
    assert found.fix is not None
    assert not found.fix.is_sure
    assert "give the search" in found.sentence


@pytest.mark.parametrize(("percent", "proposed"), [(20.0, ["parallel-map"]), (0.1, [])])
def test_what_did_not_race_is_proposed_only_where_the_model_expects_a_gain(
    searching: Searching, percent: float, proposed: list[str]
) -> None:
    predicted = ScriptPrediction(1e6, (), percent, percent - 2.0, percent + 2.0, percent)
    found, _ = searching([MAP], predicted=predicted, budget_s=20.0)
    assert found.fix is not None
    assert [each.rewrite for each in found.fix.changes] == proposed
    assert [each.reason for each in found.fix.left] == [PROMISES_NOTHING] * (not proposed)
    assert found.fix.note.startswith("Nothing is proposed.") == (not proposed)
    asked, _ = searching([MAP], predicted=predicted, budget_s=20.0, changes=[MAP.request])
    assert asked.fix is not None
    assert asked.fix.changes, "whoever asks for a change gets it"


def test_a_change_of_the_training_is_proposed_without_a_race(searching: Searching) -> None:
    found, world = searching([STEPS], changes=["steps-per-execution"])
    assert world.races == []
    assert found.fix is not None
    assert [each.rewrite for each in found.fix.changes] == ["steps-per-execution"]
    assert "share one training" in found.fix.gain


def test_without_races_all_that_is_proved_is_proposed(searching: Searching) -> None:
    found, world = searching([PREFETCH, CACHE], races=False)
    assert world.races == []
    assert found.fix is not None
    assert len(found.fix.changes) == 2
    assert found.fix.is_sure


def test_nothing_proved_is_nothing_proposed(searching: Searching) -> None:
    found, world = searching([])
    assert world.races == []
    assert found.sentence == "Nothing is proposed: no change could be proved."
    assert report_on([found]).content().answer.label == "nothing proposed"


@pytest.mark.slow
def test_the_report_shows_diff_proof_and_race(searching: Searching) -> None:
    found, _ = searching([PREFETCH, MAP, CACHE])
    content = report_on([found]).content()
    text = str(content.sections)
    assert "+++ b" in text
    assert "Equal with 2 changes." in text
    assert "race-intervals" in text
    assert found.fix_command in text
    document = found.to_json()
    assert document["fix"]["diff"] == found.fix.diff if found.fix else False


def test_one_race_is_the_picture_of_the_answer_and_its_sentences_name_the_changed_script(searching: Searching) -> None:
    found, _ = searching([MAP])
    content = report_on([found]).content()
    assert content.answer.sentences[0].startswith("The changed script takes 49.5 % less time per step than the start")
    race = next(section for section in content.sections if section.title == "The race")
    told = [block.sentence for block in race.blocks if isinstance(block, Text)]
    assert told[0].startswith("The changed script is faster than as written")
    steps = next(block for block in race.blocks if isinstance(block, Picture) and block.name == RACED_STEPS)
    assert list(steps.draw("light").data[0].y) == ["as written", "the changed script"]
    assert not any(
        isinstance(block, Text) and block.sentence.startswith("Gain:") for block in content.sections[0].blocks
    )


def test_a_search_of_a_script_is_not_one_around_options(searching: Searching) -> None:
    found, _ = searching([])
    with pytest.raises(StoreError, match="not a search around options"):
        read_tuning(RunFolder(found.path))


def test_the_options_of_a_search_of_a_script_are_checked(tmp_path: Path) -> None:
    assert options_of(tmp_path).label == "tune train.py"
    with pytest.raises(OptionsError, match="preset"):
        options_of(tmp_path, preset="baseline")


def test_every_race_has_the_reference_in_it(searching: Searching) -> None:
    found, _ = searching([PREFETCH, MAP])
    raced = [step for step in found.steps if isinstance(step, Raced)]
    assert all(step.leader == "start" for step in raced)


def test_a_race_is_expected_to_start_about_as_fast_as_the_recording_did_whatever_that_timed_at_its_end(
    tmp_path: Path,
) -> None:
    store = RunStore(tmp_path)
    recorded = store.create(options_of(tmp_path), "")
    assert script_search._first_costs(recorded).once_s == script_search.STARTING_S
    steps = run_tables.TableWriter(recorded.steps, run_tables.STEPS)
    for step in range(3):
        steps.append(step, False, (1_008 + step) * NS_PER_S, 0, (1_009 + step) * NS_PER_S, None, None, -1, 0, 0)
    steps.close()
    recorded.events.write_text(format_event(PhaseEvent("calibrating", time_ns=1_030 * NS_PER_S)))
    status = replace(read_record(recorded).status, started_s=1_000.0)
    recorded.record.write_text(replace(read_record(recorded), status=status).to_json())
    assert script_search._first_costs(recorded).once_s == pytest.approx(12.0)
