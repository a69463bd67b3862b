"""Advice on a job that is judged by its later epochs: what it measured in these, and nothing of the first one.

The first epoch of 30 steps reads from a cold disk, 40 ms a step; the 30 steps behind it are those of
`tests.support.measured_run`, 20 ms each, of which the step alone takes 5.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.advice.advising import advise
from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.advice.what_if import Prediction, measure_diagnosis, predict
from pipeline_lab.analysis.diagnosis.later_epochs import judged
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, diagnose_saved
from pipeline_lab.analysis.input.live_model import sampled_after
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.support import results
from tests.support.measured import BATCH, MAP_MS, MS, STEP_MS, mapped, options
from tests.support.measured_run import COLD_MS, make_measured_run


def told(folder: RunFolder) -> RunOptions:
    found = options_of(folder)
    assert isinstance(found, RunOptions)
    return found


def measured(diagnosis: Diagnosis, folder: RunFolder) -> Measured:
    found = measure_diagnosis(diagnosis, told(folder))
    assert isinstance(found, Measured), found
    return found


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return make_measured_run(RunStore(tmp_path), cold_steps=30)


def test_a_prediction_is_made_from_the_epochs_that_were_judged(folder: RunFolder):
    found = diagnose_saved(folder.path)
    assert found.later_epochs is not None
    assert "This describes the later epochs; in the first, a step takes 40 ms" in found.verdict.sentence
    run = measured(found, folder)
    assert (run.from_step, run.step_ns / MS, run.waited_ns / MS) == (30, BATCH * MAP_MS, BATCH * MAP_MS - STEP_MS)
    costs = {cost.stage: cost.ns_per_example / MS for cost in run.stages}
    assert (costs["read"], costs["map"]) == (0.0, pytest.approx(MAP_MS))
    twice = predict(run, options(mapped(2)))
    assert isinstance(twice, Prediction)
    assert twice.step_ns / MS == pytest.approx(BATCH * MAP_MS / 2)  # not held up by a reader of 20 ms a batch
    assert twice.notes[0].startswith("The run is used from step 30 on, after its first epoch")


def test_the_whole_job_would_have_told_of_its_reader(folder: RunFolder):
    run = measured(replace(diagnose_saved(folder.path), later_epochs=None), folder)
    assert run.from_step is None
    assert 0.0 < {cost.stage: cost.ns_per_example / MS for cost in run.stages}["read"] < COLD_MS
    assert not any("first epoch" in note for note in found_notes(run))


def found_notes(run: Measured) -> tuple[str, ...]:
    found = predict(run, run.options)
    assert isinstance(found, Prediction)
    return found.notes


def test_what_is_suggested_brings_what_it_brings_to_the_later_epochs(folder: RunFolder):
    first = advise(diagnose_saved(folder.path)).verdict.suggestions[0]
    assert first.change.startswith("Give map")
    assert first.predicted_gain_percent == 75.0  # 20 ms down to the step alone
    assert not any("read" in each.change.lower() for each in advise(diagnose_saved(folder.path)).verdict.suggestions)


def test_a_saved_diagnosis_keeps_them_and_no_table_twice(folder: RunFolder):
    made = diagnose_saved(folder.path)
    kept = SavedDiagnosis(folder.path).load()
    assert kept is not None
    assert kept.later_epochs is not None
    assert measured(kept, folder) == measured(made, folder)
    assert list(folder.analysis.glob("tables-*/result.live_model.timeline.*"))
    assert not list(folder.analysis.glob("tables-*/result.later_epochs.live_model.timeline.*"))
    assert not isinstance(kept.later_epochs.live_model, Unavailable)
    assert not isinstance(kept.live_model, Unavailable)
    assert kept.later_epochs.live_model.timeline.equals(kept.live_model.timeline)


def test_without_later_epochs_all_of_the_job_was_judged():
    found = results.diagnosis()
    assert judged(found) is found


def test_a_model_that_was_not_sampled_in_the_later_epochs_says_nothing_of_them():
    model = results.live_model()  # of what came after 0
    assert sampled_after(model, 0) is model
    with pytest.raises(TraceIncompleteError, match="not sampled twice after the first epoch"):
        sampled_after(model, 1)
