import sys
from pathlib import Path

import psutil
import pytest

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.tune import TuneOptions
from pipeline_lab.runs.launcher import cancel
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.tuning.launching import launch_tune, resume_tune
from pipeline_lab.tuning.result import read_tuning
from tests.support.lab import Lab, until
from tests.support.run_folders import set_state
from tests.support.worlds import tune_options

PLANTED = Path(__file__).parents[1] / "support" / "planted_worker.py"
BLIND = tune_options(explore=True, max_configurations=2)
"""The planted worker leaves nothing for a model, so Optuna proposes."""


@pytest.fixture
def lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {PLANTED}")
    return lab


def has_raced(folder: RunFolder) -> bool:
    return any(trial.seconds is not None for trial in read_tuning(folder).trials)


def test_a_cancelled_search_cancels_its_trial_keeps_its_best_and_can_be_resumed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_SECONDS", "0.5")
    folder = launch_tune(lab.store, BLIND)
    until(lambda: has_raced(folder), "the first trial is over")
    cancel(folder)
    assert "can be resumed" in lab.wait_for(folder, RunState.CANCELLED).status.reason
    before = read_tuning(folder)
    (under_way,) = [trial for trial in before.trials if trial.seconds is None]
    lab.wait_for(lab.store.folder(under_way.run), RunState.CANCELLED)
    assert before.ended is not None
    resume_tune(lab.store, folder.id)
    lab.wait_for(folder, RunState.DONE)
    after = read_tuning(folder)
    assert after.trials[0] == before.trials[0]  # not measured again
    assert len(after.trials) == 3  # the start by itself, a race of two, the last race
    assert folder.source.read_text() == after.source


def test_a_trial_that_outlives_its_killed_search_is_not_measured_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_SECONDS", "1.0")
    folder = launch_tune(lab.store, BLIND)
    until(lambda: any(trial.seconds is None for trial in read_tuning(folder).trials), "a trial is under way")
    owner = read_record(folder).status.supervisor
    assert owner is not None
    psutil.Process(owner.pid).kill()
    lab.wait_for(folder, RunState.LOST)
    (first,) = read_tuning(folder).trials
    resume_tune(lab.store, folder.id)
    lab.wait_for(folder, RunState.DONE)
    assert read_tuning(folder).trials[0].run == first.run


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
    with pytest.raises(StoreError, match="still goes"):
        resume_tune(lab.store, folder.id)
    set_state(folder, RunState.DONE)
    with pytest.raises(OptionsError, match="came to its end"):
        resume_tune(lab.store, folder.id)
