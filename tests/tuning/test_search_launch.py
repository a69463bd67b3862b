import os
import sys
from pathlib import Path

import psutil
import pytest

from pipeline_lab import tune
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import set_options
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.launch import runtime
from pipeline_lab.runs.launch.launcher import cancel
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning import contest, search_launch
from pipeline_lab.tuning.executors.local import LocalExecutor
from pipeline_lab.tuning.history import Profiled, Proposed
from pipeline_lab.tuning.search import search
from pipeline_lab.tuning.search_launch import (
    WRAPPER,
    check_tune,
    find_target,
    launch_tune,
    options_of_function,
    resume_tune,
)
from pipeline_lab.tuning.search_result import read_tuning
from pipeline_lab.tuning.space import make_space
from pipeline_lab.tuning.trials import TrialLedger, TrialLine
from pipeline_lab.worker.own_dataset import OwnDataset
from pipeline_lab.workloads.module import ModuleWorkload
from tests.support.lab import Lab
from tests.support.patience import PATIENCE_S, until
from tests.support.presets import SPARSE
from tests.support.run_folders import set_state
from tests.support.true_times import NAIVE
from tests.support.worlds import make_search, tune_options

PLANTED = Path(__file__).parents[1] / "support" / "planted_worker.py"
BLIND = tune_options(explore=True, max_configurations=2)
"""The planted worker leaves nothing for a model, so Optuna proposes."""


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {PLANTED}")
    return lab


def has_raced(folder: RunFolder) -> bool:
    return any(trial.seconds is not None for trial in read_tuning(folder).trials)


def is_under_way(folder: RunFolder) -> bool:
    return any(trial.seconds is None for trial in read_tuning(folder).trials)


def test_what_cannot_race_is_not_searched() -> None:
    with pytest.raises(OptionsError, match="sparse divides its batches among 4 replicas"):
        check_tune(TuneOptions(start=SPARSE.options))


@pytest.fixture
def gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a trial waits for a file of its kind."""
    (folder := tmp_path / "gates").mkdir()
    monkeypatch.setenv("PLANTED_GATES", str(folder))
    return folder


def test_a_cancelled_search_cancels_its_trial_keeps_its_best_and_can_be_resumed(lab: Lab, gates: Path) -> None:
    (gates / "run").touch()  # the first trial ends, the second is under way when the search is cancelled
    folder = launch_tune(lab.store, BLIND)
    until(lambda: has_raced(folder) and is_under_way(folder), "the first trial is over, the second under way")
    cancel(folder)
    assert "can be resumed" in lab.wait_for(folder, RunState.CANCELLED).status.reason
    before = read_tuning(folder)
    (under_way,) = [trial for trial in before.trials if trial.seconds is None]
    lab.wait_for(lab.store.folder(under_way.run), RunState.CANCELLED)
    assert before.ended is not None
    (gates / "race").touch()
    resume_tune(lab.store, folder.id)
    lab.wait_for(folder, RunState.DONE)
    after = read_tuning(folder)
    assert after.trials[0] == before.trials[0]  # not measured again
    assert len(after.trials) == 3  # the start by itself, a race of two, the last race
    assert folder.source.read_text() == after.source


def test_a_trial_that_outlives_its_killed_search_is_not_measured_again(lab: Lab, gates: Path) -> None:
    folder = launch_tune(lab.store, BLIND)
    until(lambda: is_under_way(folder), "a trial is under way")
    owner = read_record(folder).status.supervisor
    assert owner is not None
    psutil.Process(owner.pid).kill()
    lab.wait_for(folder, RunState.LOST)
    (first,) = read_tuning(folder).trials
    for kind in ("run", "race"):
        (gates / kind).touch()
    resume_tune(lab.store, folder.id)
    lab.wait_for(folder, RunState.DONE)
    assert read_tuning(folder).trials[0].run == first.run


def test_a_resumed_search_measures_again_what_was_cancelled_or_failed_last_and_tells_no_old_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "start_detached", lambda _command, _log: os.getpid())
    monkeypatch.setattr(search_launch, "CLAIM_S", 0.0)
    store = RunStore(tmp_path)
    folder = make_search(store, RunState.CANCELLED, stops_after=2)
    assert read_tuning(folder).ended is not None
    ledger, done = TrialLedger(folder.trials), list(TrialLedger(folder.trials).read().values())
    for state in (RunState.FAILED, RunState.CANCELLED, RunState.LOST, RunState.FAILED):
        run = store.create(BLIND.start, "")
        set_state(run, state)
        ledger.write(TrialLine(f"{state}-{run.id}", run.id, "here", 1.0, "It went wrong."))
    failed = list(ledger.read().values())[len(done)]
    resume_tune(store, folder.id)
    assert list(ledger.read().values()) == [*done, failed]
    assert read_tuning(folder).ended is None


def test_a_torn_line_of_the_ledger_does_not_spoil_the_next(tmp_path: Path) -> None:
    ledger = TrialLedger(tmp_path / "trials.jsonl")
    ledger.write(TrialLine("one", "run-1", "here", 1.0))
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"key": "two", "ru')
    ledger.write(TrialLine("three", "run-3", "here", 3.0))
    assert list(ledger.read()) == ["one", "three"]


def test_what_cannot_be_searched_is_refused_before_there_is_a_run(lab: Lab) -> None:
    ends = tune_options().start.model_dump(mode="json")
    ends["pipeline"]["stages"] = [each for each in ends["pipeline"]["stages"] if each["stage"] != "repeat"]
    with pytest.raises(OptionsError, match="add a repeat stage without a count"):
        launch_tune(lab.store, TuneOptions.model_validate({"start": ends}))
    assert lab.store.runs() == []


def test_only_searches_that_stand_still_are_resumed(lab: Lab) -> None:
    run = lab.store.create(BLIND.start, "")
    with pytest.raises(OptionsError, match="is a run, not a search"):
        resume_tune(lab.store, run.id)
    folder = lab.store.create(BLIND, "")
    with pytest.raises(StoreError, match="is still running"):
        resume_tune(lab.store, folder.id)
    set_state(folder, RunState.DONE)
    with pytest.raises(OptionsError, match="is over"):
        resume_tune(lab.store, folder.id)


ROOT = str(Path(__file__).parents[2])


def make_batches(calls: int = 1, prefetch: int = 0) -> tuple[int, int]:
    return calls, prefetch


class Workload:
    """What ``--workload`` takes."""


def test_a_function_is_named_by_its_module_and_found_from_the_folder_above_its_package() -> None:
    assert find_target(make_batches) == ("tests.tuning.test_search_launch:make_batches", ROOT)
    assert find_target(pytest.raises)[0].endswith(":raises")


def test_a_function_is_called_with_what_is_tried() -> None:
    options = options_of_function(make_batches)
    space = make_space(options, only={"calls": ("1", "4"), "prefetch": ("2",)})
    found = {each.name: each.options.workload for each in space.configurations()}["calls 4, prefetch 2"]
    assert isinstance(found, ModuleWorkload)
    assert found.target == WRAPPER
    assert OwnDataset(**found.arguments).make_dataset() == (4, 2)


def test_texts_that_are_tried_stay_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launched: list[TuneOptions] = []

    class LaunchedError(Exception):
        pass

    def launch(_store: RunStore, options: TuneOptions) -> None:
        launched.append(options)
        raise LaunchedError

    monkeypatch.setattr(search_launch, "launch_tune", launch)
    with pytest.raises(LaunchedError):
        tune(make_batches, store=RunStore(tmp_path), only={"calls": [4, "4", "/a,b", "fast"]})
    assert launched[0].only == {"calls": ("4", '"4"', '"/a,b"', "fast")}
    for values, said in (([Path("/a")], "can be tried with numbers, texts"), (4, "only")):
        with pytest.raises(OptionsError, match=said):
            tune(make_batches, store=RunStore(tmp_path), only={"calls": values})


def test_a_class_is_a_workload_itself() -> None:
    workload = options_of_function(Workload).workload
    assert isinstance(workload, ModuleWorkload)
    assert workload.target == "tests.tuning.test_search_launch:Workload"


def test_what_another_process_cannot_import_is_refused() -> None:
    def inner() -> None: ...

    for function in (inner, lambda: None):
        with pytest.raises(OptionsError, match="put it at the top of a Python file"):
            find_target(function)


BESIDE_OTHERS = {"max_extra_load_percent": 100}
REAL_ONLY = {"map calls": ("1", "8"), "pool threads": ("default", "8"), "prefetch": ("none", "2")}


@pytest.mark.tensorflow  # the real worker and the real model, as small as it gets
def test_a_search_makes_a_slow_pipeline_faster(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} -m tests.support.real_worker")
    monkeypatch.setattr(contest, "PROFILE_S", 3.0)
    races = contest.race_of_options  # in which no round is left out because of the tests that run meanwhile
    monkeypatch.setattr(contest, "race_of_options", lambda *arms: races(*arms[:2], arms[2] | BESIDE_OTHERS))
    start = set_options(NAIVE, [("workload.map_ms", "1.5")])  # 24 ms of waiting and 10 ms of training, in turns
    options = TuneOptions(
        start=start, only=REAL_ONLY, max_configurations=2, budget_s=2.0 * PATIENCE_S, pairs=8, block_steps=4
    )
    folder = lab.store.create(options, "")
    search(folder, options, lab.store, LocalExecutor(lab.store), lambda: False)
    found = read_tuning(folder)
    profiled, proposed = found.steps[:2]
    assert isinstance(profiled, Profiled)
    assert isinstance(proposed, Proposed)
    assert profiled.step_ms is not None
    assert proposed.looked_at == 8
    assert found.winner_name is not None
    assert found.winner_name.startswith("map calls 8"), "what else pays depends on what other programs leave"
    assert found.ended is not None
    assert found.ended.ratio is not None
    assert found.ended.ratio < 0.8
    assert found.ended.predicted is not None
    assert "num_parallel_calls=8" in found.source
