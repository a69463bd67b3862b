"""``explain`` of a dataset that somebody has at hand."""

import pytest

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore

pytestmark = pytest.mark.tensorflow


def test_a_dataset_is_explained_like_a_run(ask_tensorflow, tmp_path):
    found = ask_tensorflow("tests.capture.recording_tasks:explain_a_dataset", store=str(tmp_path))
    assert found["verdict"]["class"] == "input-bound"
    assert found["verdict"]["sentence"] in found["html"].replace("\xa0", " ")  # numbers stay with their units
    assert found["verdict"]["suggestions"], "what to try comes with it, as with analyze"
    names = [stage["name"] for stage in found["tf_data"]["stages"]]
    assert "Range" in names
    assert any(stage["call"].startswith(".map(") for stage in found["tf_data"]["written"])
    (record,) = RunStore(tmp_path).runs()
    assert (record.status.state, record.tags) == (RunState.DONE, ("explained",))


def test_an_error_comes_through_and_is_kept(ask_tensorflow, tmp_path):
    assert (
        ask_tensorflow("tests.capture.recording_tasks:explain_a_dataset", store=str(tmp_path), fails=True)["raised"]
        == "no memory left for the batch"
    )
    (record,) = RunStore(tmp_path).runs()
    assert record.status.state is RunState.FAILED
    assert "recording_tasks.py, line " in record.status.reason


def test_impossible_settings_are_refused_in_a_sentence(ask_tensorflow):
    refused = ask_tensorflow("tests.capture.recording_tasks:refused_settings")
    assert refused["explain"].startswith("training.steps should be a whole number from 1")
    assert refused["dataset"] == "explain takes a tf.data.Dataset, not an object of type int."
    assert refused["steps"].startswith("training.steps should be a whole number")
    assert refused["step"] == "The step is a function of a batch, not an object of type int."
    assert refused["store"] == "A store is a RunStore or the path of its folder, not an object of type int."
    assert refused["windows"].startswith("steps_per_window should be a whole number from 1")


def test_the_example_of_its_description_runs(ask_tensorflow, tmp_path):
    assert ask_tensorflow("tests.capture.recording_tasks:run_example_of_explain", folder=str(tmp_path)) == ""
