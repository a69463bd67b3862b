import json
from dataclasses import replace

from pipeline_lab.analysis.input.live_model import LiveModel
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.analysis.results import LaterEpochs
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.step_phases import Phase, PhaseTimes
from pipeline_lab.errors import Unavailable
from tests.support import results

MS = 1_000_000


def test_times_are_ms_and_shares_percent():
    document = results.diagnosis().to_json()
    # 40 recorded steps of 50 ms, 30 of them waiting
    assert document["steps"]["count"] == 40
    assert document["steps"]["mean_ms"] == 50.0
    assert document["input_stalls"]["wait_ms"] == 40 * 30
    assert document["input_stalls"]["wait_percent"] == 60.0
    assert document["step_breakdown"]["device_compute_ms"] == 40 * 15
    assert document["calibration"]["utilisation_percent"] == 32.0
    shares = [row["expected_share"] for row in document["file_sampling"]["files"]]
    assert abs(sum(shares) - 100) < 1e-9


def test_the_longest_waits_and_gaps_come_first():
    document = results.diagnosis().to_json()
    waits = [row["wait_ms"] for row in document["input_stalls"]["longest"]]
    gaps = [row["duration_ms"] for row in document["idle_gaps"]["longest"]]
    assert waits == sorted(waits, reverse=True)
    assert gaps == sorted(gaps, reverse=True)
    assert len(waits) == 20


def test_what_was_not_measured_stands_in_its_place_with_the_reason():
    document = results.bare_diagnosis().to_json()
    for part in (
        "steps",
        "input_stalls",
        "step_breakdown",
        "calibration",
        "idle_gaps",
        "file_sampling",
        "memory",
        "tf_data",
    ):
        assert list(document[part]) == ["unavailable"]
        assert document[part]["unavailable"].endswith(".")


def test_it_is_json_without_nan():
    for diagnosis in (results.diagnosis(), results.bare_diagnosis()):
        assert json.loads(json.dumps(diagnosis.to_json(), allow_nan=False))["schema_version"] == 1


def test_the_document_holds_everything_that_the_verdict_rests_on():
    whole = results.diagnosis()
    assert isinstance(whole.job_steps, JobSteps)
    first = PhaseTimes(Phase.FIRST_EPOCH, 20, 5, 100 * MS, 120 * MS, 2000 * MS, 500 * MS)
    later = LaterEpochs(
        first_step=25,
        start_ns=1000 * MS,
        first=first,
        job_steps=whole.job_steps,
        iterator_starts=whole.iterator_starts,
        iterator_ends=whole.iterator_ends,
        checkpoints=whole.checkpoints,
        calibration=whole.calibration,
        live_model=Unavailable("It was not sampled."),
        job_load=whole.job_load,
        profiler_cost=whole.profiler_cost,
    )
    suggestion = replace(whole.verdict.suggestions[0], risk="low risk")
    document = replace(
        whole, later_epochs=later, other_cpu_percent=12.5, verdict=replace(whole.verdict, suggestions=(suggestion,))
    ).to_json()
    assert document["later_epochs"]["first_step"] == 25
    assert document["later_epochs"]["start_ms"] == 1000.0
    assert document["later_epochs"]["first_epoch"]["wait_percent"] == 25.0
    assert document["later_epochs"]["job_steps"] == document["job_steps"]
    assert document["later_epochs"]["live_model"] == {"unavailable": "It was not sampled."}
    assert document["other_cpu_percent"] == 12.5
    assert isinstance(whole.job_load, JobLoad)
    assert document["job_load"]["cores"] == whole.job_load.cores
    assert isinstance(whole.live_model, LiveModel)
    assert [stage["path"] for stage in document["live_model"]["stages"]] == [
        one.path for one in whole.live_model.stages
    ]
    assert document["verdict"]["suggestions"][0]["risk"] == "low risk"
    assert results.diagnosis().to_json()["later_epochs"] is None
