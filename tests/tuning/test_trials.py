"""A search keeps its budget: it begins nothing that does not fit, by what its trials took beside what they were asked for."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline_lab.cli.arguments import apply_settings
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.run_events import CalibrationEvent, PhaseEvent, format_event
from pipeline_lab.runs.run_folder import read_record, update_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning import deciding
from pipeline_lab.tuning.executors.executor import Finished
from pipeline_lab.tuning.halving import Ratio
from pipeline_lab.tuning.history import Raced
from pipeline_lab.tuning.search import search
from pipeline_lab.tuning.search_result import Tuning, read_tuning
from pipeline_lab.tuning.trials import TimeBudget, TrialCosts, TrialLedger, Trials, read_costs
from pipeline_lab.units import NS_PER_S
from tests.support.run_folders import set_state
from tests.support.true_times import true_ms
from tests.support.worlds import World, blind, predicted, tune_options

BEGUN_S = 1_700_000_000.0
ONCE_S, EACH_S = 6.0, 3.0


@dataclass
class CostlyWorld(World):
    """A world whose trials take as long as real ones: a process to start, each arm to build, and all that they may use.

    Attributes:
        spent_s: Time of each trial.
    """

    spent_s: list[float] = field(default_factory=list)

    def _measure(self, options: RunOptions | RaceOptions) -> Finished:
        finished = super()._measure(options)
        if isinstance(options, RaceOptions):
            used_s = len(options.arms) * (EACH_S + options.warmup_seconds) + options.max_seconds
        else:
            used_s = EACH_S + (options.training.seconds or 0.0)
            self._note_phases(finished.run_id, ONCE_S + used_s)
        self.spent_s.append(ONCE_S + used_s)
        return replace(finished, seconds=self.spent_s[-1])

    def _note_phases(self, run_id: str, seconds: float) -> None:
        folder = self.store.folder(run_id)
        times = {"building": ONCE_S, "training": ONCE_S + EACH_S, "finishing": seconds}
        events = [PhaseEvent(phase, time_ns=round((BEGUN_S + at) * NS_PER_S)) for phase, at in times.items()]
        folder.events.write_text("".join(map(format_event, events)))
        update_record(
            folder,
            lambda record: replace(record, status=replace(record.status, started_s=BEGUN_S, ended_s=BEGUN_S + seconds)),
        )


def conduct(root: Path, budget_s: float) -> tuple[CostlyWorld, Tuning]:
    options, store = tune_options(budget_s=budget_s, max_configurations=30), RunStore(root)
    world, folder = CostlyWorld(store), store.create(options, render_source(options.start))
    search(folder, options, store, world, lambda: False, predicted(lambda each: 3 * true_ms(each)))
    set_state(folder, RunState.DONE)
    return world, read_tuning(folder)


def rounds(found: Tuning) -> Sequence[Raced]:
    return [step for step in found.steps if isinstance(step, Raced)]


@pytest.mark.slow
@pytest.mark.parametrize("budget_s", [45.0, 60.0, 90.0, 200.0, 900.0, 3600.0])
def test_no_search_takes_longer_than_its_budget(tmp_path: Path, budget_s: float):
    world, found = conduct(tmp_path, budget_s)
    assert sum(world.spent_s) <= budget_s
    assert found.ended is not None
    assert found.ended.spent_s == pytest.approx(sum(world.spent_s))
    assert found.ended.race  # the gain is measured
    assert found.winner_name != "start"


@pytest.mark.slow
def test_a_small_budget_lets_the_first_choice_of_the_model_meet_the_start(tmp_path: Path):
    world, found = conduct(tmp_path, 60.0)
    assert rounds(found) == []
    assert [len(each.arms) for each in world.measured if isinstance(each, RaceOptions)] == [2]


def test_a_budget_without_room_for_a_race_says_how_much_would_have_room(tmp_path: Path):
    world, found = conduct(tmp_path, 20.0)
    assert len(world.measured) == 1
    assert found.sentence.startswith("“map calls")
    assert "is only the model's choice: it did not race, so its gain is not measured" in found.sentence
    assert not found.winner_was_raced
    assert found.ended is not None
    assert found.ended.configurations == 1
    # 6 + 3 + 1 s for the start, then 6 s, two arms of 3 s with a second to warm up, and 15 s of rounds; a tenth more
    assert "give the search 50 s or more" in found.sentence


@pytest.mark.slow
def test_exploring_without_room_for_a_race_says_so_and_how_much_would_have_room(tmp_path: Path):
    def explore(budget_s: float) -> Tuning:
        options, store = tune_options(budget_s=budget_s), RunStore(tmp_path / f"{budget_s}")
        world, folder = CostlyWorld(store), store.create(options, render_source(options.start))
        search(folder, options, store, world, lambda: False, blind())
        return read_tuning(folder)

    found = explore(20.0)
    assert found.sentence.startswith("Nothing was raced. A race, and one of its winner against the start, takes longer")
    assert not found.had_time
    # 10 s for the start, and two races of two, each 6 s, two arms of 3 s with a second to warm up, and 15 s of rounds; a tenth more
    assert "give the search 80 s or more" in found.sentence
    assert rounds(explore(80.0)), "that much does suffice"


def test_a_choice_of_the_model_that_was_not_raced_comes_with_the_race_to_paste(tmp_path: Path):
    world, found = conduct(tmp_path, 20.0)
    assert found.race_command is not None
    (start,) = (record for record in world.store.runs() if record.kind is RunKind.RUN)
    words = shlex.split(found.race_command)
    assert words[:4] == ["pipeline-lab", "what-if", str(tmp_path / start.id), "--race"]
    told = read_options(read_record(world.store.folder(start.id)).options or {})
    raced = apply_settings(told, [words[at + 1] for at, word in enumerate(words) if word == "--set"])
    assert raced.pipeline == found.winner.pipeline
    assert found.to_json()["race_command"] == found.race_command


def test_costs_are_what_a_run_took_beside_training(tmp_path: Path):
    world = CostlyWorld(RunStore(tmp_path))
    finished = world._measure(tune_options().start)
    assert read_costs(world.store.folder(finished.run_id)) == TrialCosts(ONCE_S, EACH_S)


def test_a_first_batch_that_comes_twice_in_a_run_costs_once(tmp_path: Path):
    """Calibration and warm-up each wait 1 s for a full shuffle buffer; an arm of a race does so in its warm-up only."""
    world = CostlyWorld(RunStore(tmp_path))
    folder = world.store.folder(world._measure(tune_options().start).run_id)
    calibrated = CalibrationEvent(1e7, 20, 1e7, 20, first_batch_ns=1e9)
    folder.events.write_text(folder.events.read_text() + format_event(calibrated))
    assert read_costs(folder) == TrialCosts(ONCE_S, EACH_S - 1.0)


def test_a_race_is_over_after_its_time(tmp_path: Path):
    budget = TimeBudget(600.0, Trials(TrialLedger(tmp_path / "trials.jsonl"), World(RunStore(tmp_path)), lambda: False))
    budget.costs = TrialCosts(ONCE_S, EACH_S)
    time = budget.divide(4, 100.0)
    assert ONCE_S + 4 * (EACH_S + time.warmup_s) + time.rounds_s == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("kept_rounds", "bounds", "missing_s"),
    [
        (4, (0.0, math.inf), 24.0),  # before the first look, as many again as there were: 4 of 10 rounds of 6 s
        (2, (0.0, math.inf), 24.0),  # up to the first look
        (10, (0.0, math.inf), 60.0),  # looks have found no bounds: as much again
        (10, (0.8, 0.9), 0.0),
    ],
)
def test_a_race_without_bounds_lacks_as_much_time_again(
    kept_rounds: int, bounds: tuple[float, float], missing_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    race = SimpleNamespace(kept_rounds=kept_rounds, rounds=10, options=SimpleNamespace(max_seconds=60.0))
    monkeypatch.setattr(deciding, "plan_looks", lambda _options: SimpleNamespace(first_look=6))
    monkeypatch.setattr(deciding, "_ratios", lambda _race: [Ratio(0.87, *bounds)])
    assert deciding._missing_s(race) == pytest.approx(missing_s)  # type: ignore[arg-type]
