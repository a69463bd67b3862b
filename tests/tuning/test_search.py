from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipeline_lab.errors import RunFailedError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.stages.functions import MapStage
from pipeline_lab.tuning.contest import Contest
from pipeline_lab.tuning.executors.executor import Finished, SearchStoppedError
from pipeline_lab.tuning.history import History, Profiled, Proposed, Raced
from pipeline_lab.tuning.outlook import SearchModel
from pipeline_lab.tuning.search import search
from pipeline_lab.tuning.search_result import Tuning, read_tuning
from pipeline_lab.tuning.trials import TrialLedger, Trials
from tests.support.presets import BASELINE, VIEWS_APART
from tests.support.true_times import NAIVE, STEP_MS, true_ms
from tests.support.worlds import KilledError, World, blind, predicted, tune_options
from tests.tuning.test_space import at


class Lab:
    """A store, and searches in it."""

    def __init__(self, root: Path) -> None:
        self.store = RunStore(root)

    def begin(self, options: TuneOptions) -> RunFolder:
        return self.store.create(options, render_source(options.start))

    def search(
        self, options: TuneOptions, world: World, model: SearchModel | None = None, folder: RunFolder | None = None
    ) -> Tuning:
        folder = folder or self.begin(options)
        search(folder, options, self.store, world, lambda: False, model or predicted(true_ms))
        return read_tuning(folder)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def best_ms() -> float:
    return STEP_MS


def races(world: World) -> Iterator[RaceOptions]:
    return (each for each in world.measured if isinstance(each, RaceOptions))


def test_a_search_finds_what_is_fastest_and_measures_its_gain(lab: Lab) -> None:
    world = World(lab.store)
    found = lab.search(tune_options(), world)
    assert true_ms(found.winner) == best_ms()
    assert found.ended is not None
    assert found.ended.ratio == pytest.approx(best_ms() / true_ms(NAIVE), rel=0.02)
    assert found.ended.predicted == pytest.approx(best_ms() / true_ms(NAIVE))
    assert found.ended.low is not None
    assert found.ended.high is not None
    assert found.ended.low < found.ended.ratio < found.ended.high < 1
    assert "as fast as its input can make it" in found.sentence
    last = list(races(world))[-1]
    assert [arm.name for arm in last.arms] == ["naive", found.winner_name]
    assert found.source == render_source(found.winner)


def test_of_what_is_equally_fast_the_cheapest_wins(lab: Lab) -> None:
    found = lab.search(tune_options(), World(lab.store))
    assert found.winner.pipeline.private_threadpool_size == 4
    assert found.winner_name == "map calls 4, pool threads 4, prefetch 2"


def test_few_configurations_are_measured(lab: Lab) -> None:
    world = World(lab.store)
    found = lab.search(tune_options(max_configurations=5), world)
    names = {arm.name for race in races(world) for arm in race.arms}
    assert len(names) == 5
    assert found.ended is not None
    assert found.ended.configurations == 5


def test_races_overrule_a_model_that_is_wrong_about_the_best(lab: Lab) -> None:
    def truth(options: RunOptions) -> float:  # eight threads are too many for this machine
        return true_ms(options) * (1.5 if options.pipeline.private_threadpool_size == 8 else 1.0)

    def belief(options: RunOptions) -> float:
        return true_ms(options) * (0.97 if options.pipeline.private_threadpool_size == 8 else 1.0)

    found = lab.search(tune_options(), World(lab.store, truth), predicted(belief))
    assert truth(found.winner) == best_ms()


def test_a_winner_that_is_not_faster_than_the_start_is_none(lab: Lab) -> None:
    found = lab.search(tune_options(), World(lab.store, lambda _: 20.0))
    assert found.winner_name == "start"
    assert found.winner == NAIVE
    assert found.sentence.startswith("The start stays")
    document = found.to_json()
    assert document["gain"] is None
    assert document["challenger"]["configuration"] != "start"
    assert document["challenger"]["met"]["ratio"] == pytest.approx(1.0, rel=0.05)


def test_a_winner_whose_last_race_did_not_run_is_none(lab: Lab) -> None:
    def breaks(options: RunOptions) -> bool:  # the last race has the profile windows that the others leave out
        return options.profiling.enabled and options.training.seconds is None and options.pipeline != NAIVE.pipeline

    found = lab.search(tune_options(), World(lab.store, breaks=breaks))
    assert found.winner_name == "start"
    assert found.sentence.startswith("The start stays: “map calls 4, pool threads 4, prefetch 2” led, but")


def test_a_race_of_one_round_leaves_the_others_undecided_and_its_best_meets_the_start(lab: Lab) -> None:
    world = World(lab.store, rounds_of=lambda race: 1 if len(race.arms) > 2 else race.pairs)
    found = lab.search(tune_options(), world)
    (first, *_) = [step for step in found.steps if isinstance(step, Raced)]
    assert {each.fate for each in first.standings} <= {"leads", "kept", "undecided"}
    assert "costs more" not in found.sentence
    assert found.ended is not None
    assert found.ended.race
    assert found.ended.low is not None
    assert true_ms(found.winner) == best_ms()


def test_a_search_whose_races_are_all_too_short_says_which_budget_would_do(lab: Lab) -> None:
    found = lab.search(tune_options(), World(lab.store, rounds_of=lambda _: 2))
    assert "after too few rounds for an interval; whether it is faster is undecided" in found.sentence
    assert "give the search" in found.sentence


def test_an_undecided_race_that_the_start_leads_goes_on_while_there_is_budget(lab: Lab) -> None:
    world = World(lab.store, lambda options: 20.0 if options == NAIVE else 21.0, rounds_of=lambda _: 1, noise=0.0)
    found = lab.search(tune_options(), world)
    assert found.winner_name == "start"
    assert found.ended is not None
    assert found.ended.race, "what raced too briefly meets the start once more"
    assert "too few rounds" in found.sentence


def test_a_start_at_its_ceiling_is_not_raced(lab: Lab) -> None:
    world = World(lab.store)
    found = lab.search(tune_options(), world, predicted(lambda _: STEP_MS))
    assert not list(races(world))
    assert found.winner_name == "start"
    assert "as fast as its input can make it" in found.sentence


def test_where_nothing_is_predicted_to_be_faster_the_search_says_what_binds(lab: Lab) -> None:
    found = lab.search(tune_options(), World(lab.store), predicted(lambda _: 2 * STEP_MS))
    assert "No allowed change is predicted to be faster; the step is limited by: map." in found.sentence


def test_threads_memory_and_sampling_limit_what_is_tried(lab: Lab) -> None:
    found = lab.search(tune_options(max_threads=2, max_memory_mb=4), World(lab.store))
    (proposed, *_) = [step for step in found.steps if isinstance(step, Proposed)]
    assert proposed.refused["needs too many threads"] == 16
    assert proposed.refused["needs too much memory"] == 12
    assert all(pick.threads == 2 for pick in proposed.picks)


def test_the_budget_ends_a_search_with_its_best_and_leaves_time_for_the_last_race(lab: Lab) -> None:
    def ceiling_is_far(options: RunOptions) -> float:
        return 3 * true_ms(options)

    world = World(lab.store, seconds=100.0)
    found = lab.search(tune_options(max_configurations=30), world, predicted(ceiling_is_far))
    assert "would not have fitted into the budget" in found.sentence
    assert found.ended is not None
    assert found.ended.race
    assert found.ended.spent_s == 100.0 * len(world.measured)
    assert true_ms(found.winner) == best_ms()


def test_a_configuration_that_breaks_does_not_take_the_others_with_it(lab: Lab) -> None:
    def breaks(options: RunOptions) -> bool:
        stage = options.pipeline.find("map")
        return isinstance(stage, MapStage) and stage.num_parallel_calls == 8

    found = lab.search(tune_options(), World(lab.store, breaks=breaks))
    fates = {
        each.configuration: each.fate for step in found.steps if isinstance(step, Raced) for each in step.standings
    }
    assert {name for name, fate in fates.items() if fate == "failed"} == {
        name for name in fates if "map calls 8" in name
    }
    assert true_ms(found.winner) == best_ms()


def test_a_start_that_does_not_run_ends_the_search_with_the_reason(lab: Lab) -> None:
    with pytest.raises(RunFailedError, match=r"The pipeline did not run \(start\): Out of memory"):
        lab.search(tune_options(), World(lab.store, breaks=lambda _: True))


def test_a_winner_that_does_not_run_by_itself_still_meets_the_start(lab: Lab) -> None:
    def breaks(options: RunOptions) -> bool:
        return options.training.seconds is not None and options.pipeline != NAIVE.pipeline

    found = lab.search(tune_options(), World(lab.store, breaks=breaks), predicted(lambda options: 2 * true_ms(options)))
    assert found.ended is not None
    assert found.ended.race
    assert found.winner_name != "start"
    assert "The model cannot predict from the winner: The pipeline did not run (" in found.sentence


def test_a_start_that_the_model_does_not_understand_is_explored(lab: Lab) -> None:
    found = lab.search(tune_options(), World(lab.store), blind())
    profiled, proposed = found.steps[:2]
    assert isinstance(profiled, Profiled)
    assert profiled.sentence == "The step holds Python's lock."
    assert isinstance(proposed, Proposed)
    assert proposed.sentence == "3 proposed by Optuna, from what raced so far."
    assert true_ms(found.winner) < true_ms(NAIVE)


@pytest.mark.parametrize("trials", [1, 3])
def test_a_search_that_is_killed_goes_on_where_it_was(lab: Lab, trials: int) -> None:
    options = tune_options()
    whole = lab.search(options, World(lab.store))
    folder = lab.begin(options)
    with pytest.raises(KilledError):
        lab.search(options, World(lab.store, dies_after=trials), folder=folder)
    again = World(lab.store)
    resumed = lab.search(options, again, folder=folder)
    assert len(again.measured) == len(whole.trials) - trials
    assert _decisions(resumed) == _decisions(whole)
    assert resumed.ended is not None
    assert whole.ended is not None
    assert resumed.ended.spent_s == whole.ended.spent_s


def _decisions(found: Tuning) -> list[object]:
    """Return what a search did, without the names of the runs that it made."""
    blank = {Profiled: {"run": ""}, Proposed: {}, Raced: {"races": ()}}
    return [replace(step, **blank.get(type(step), {"race": ""})) for step in found.steps]


@pytest.mark.parametrize(
    ("trials", "words"),
    [(1, "is only the model's choice: it did not race"), (2, "leads, but it did not race the start")],
)
def test_a_search_that_is_stopped_keeps_its_best(lab: Lab, trials: int, words: str) -> None:
    options = tune_options()
    folder = lab.begin(options)
    with pytest.raises(SearchStoppedError):
        lab.search(options, World(lab.store, stops_after=trials), folder=folder)
    found = read_tuning(folder)
    assert found.winner_name != "start"
    assert f"“{found.winner_name}” {words}, so its gain is not measured" in found.sentence
    assert found.winner_was_raced == (trials > 1)


def test_one_that_is_left_as_all_others_break_was_not_raced(lab: Lab) -> None:
    found = lab.search(tune_options(), World(lab.store, breaks=lambda options: options.pipeline != NAIVE.pipeline))
    assert found.winner_name == "start"
    assert "was the model's choice, but the race between the two did not run. Out of memory" in found.sentence


def test_machines_share_the_candidates_and_each_race_has_the_leader(lab: Lab) -> None:
    world = World(lab.store, machines=3)
    found = lab.search(tune_options(), world)
    (first, *_) = [step for step in found.steps if isinstance(step, Raced)]
    assert len(first.races) == 3
    assert len({race.arms[0].name for race in list(races(world))[:3]}) == 1
    assert true_ms(found.winner) == best_ms()
    assert found.ended is not None
    assert found.to_json()["spent_s"] == found.ended.spent_s < 10.0 * len(world.measured)  # side by side


def test_exploring_finds_the_best_without_a_model(lab: Lab) -> None:
    world = World(lab.store, seconds=1.0)
    found = lab.search(tune_options(explore=True, max_configurations=20), world, blind())
    assert true_ms(found.winner) <= 1.2 * best_ms()
    assert found.ended is not None
    assert found.ended.configurations <= 20


def test_exploring_begins_with_what_the_model_proposes(lab: Lab) -> None:
    found = lab.search(tune_options(explore=True, max_configurations=4), World(lab.store))
    first, second = [step for step in found.steps if isinstance(step, Proposed)][:2]
    assert [pick.configuration for pick in second.picks] == [pick.configuration for pick in first.picks][:3]
    assert true_ms(found.winner) == best_ms()


def test_exploring_resumes_with_the_same_proposals(lab: Lab) -> None:
    options = tune_options(explore=True, max_configurations=8)
    whole = lab.search(options, World(lab.store))
    folder = lab.begin(options)
    with pytest.raises(KilledError):
        lab.search(options, World(lab.store, dies_after=2), folder=folder)
    again = World(lab.store)
    assert _decisions(lab.search(options, again, folder=folder)) == _decisions(whole)
    assert len(again.measured) == len(whole.trials) - 2


def test_races_keep_what_was_predicted_of_them(lab: Lab) -> None:
    world = World(lab.store)
    lab.search(tune_options(), world)
    first, *_, last = races(world)
    assert first.predicted_ratios == pytest.approx([1.0] * (len(first.arms) - 1), rel=0.1)
    assert last.predicted_ratios == pytest.approx((best_ms() / true_ms(NAIVE),))


def test_exploring_keeps_the_mixing_and_tries_no_cache(lab: Lab) -> None:
    options = tune_options(explore=True, max_configurations=5, only={})
    world = World(lab.store, seconds=1.0)
    lab.search(options, world, blind())
    arms = {arm.name: arm for race in races(world) for arm in race.arms}
    assert len(arms) == 5
    assert not any(
        "cache" in name or "files at once" in name for name in arms
    )  # the lengths of the files are not known


@dataclass
class CountedWorld(World):
    """A world whose runs say how many examples each file gave."""

    examples: Sequence[int] = ()

    def _measure(self, options: RunOptions | RaceOptions) -> Finished:
        finished = super()._measure(options)
        files = [DataFile(f"/data/{number}", examples, 1) for number, examples in enumerate(self.examples)]
        write_files(self.store.folder(finished.run_id).files, files)
        return finished


def looked_at(lab: Lab, tmp_path: Path, start: RunOptions, examples: Sequence[int]) -> Contest:
    """Return a contest after its start has run."""
    trials = Trials(TrialLedger(tmp_path / "trials.jsonl"), CountedWorld(lab.store, examples=examples), lambda: False)
    contest = Contest(TuneOptions(start=start), trials, History(tmp_path / "history.jsonl"), lab.store)
    contest.run_alone(contest.space.start)
    return contest


def test_a_shuffle_that_covers_all_views_makes_the_reading_order_indifferent(lab: Lab, tmp_path: Path) -> None:
    sizes, views = VIEWS_APART.options.file_sizes or (), VIEWS_APART.options.pipeline.views
    examples = [size * views for size in sizes]
    start = set_options(VIEWS_APART.options, [("pipeline.shuffle.buffer_size", str(sum(examples)))])
    sampling = looked_at(lab, tmp_path, start, examples).sampling
    assert sampling is not None
    assert not sampling.is_worse(at(start, files_at_once="1"))


def test_an_empty_file_is_no_file_that_was_not_counted(lab: Lab, tmp_path: Path) -> None:
    start = BASELINE.options
    sampling = looked_at(lab, tmp_path, start, [0, *(start.file_sizes or ())]).sampling
    assert sampling is not None
    assert not sampling.is_worse(at(start, files_at_once="4"))
