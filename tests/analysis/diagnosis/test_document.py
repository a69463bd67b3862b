import json

from pipeline_lab.analysis.diagnosis.document import write_document
from tests.support import results


def test_times_are_ms_and_shares_percent():
    document = write_document(results.diagnosis())
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
    document = write_document(results.diagnosis())
    waits = [row["wait_ms"] for row in document["input_stalls"]["longest"]]
    gaps = [row["duration_ms"] for row in document["idle_gaps"]["longest"]]
    assert waits == sorted(waits, reverse=True)
    assert gaps == sorted(gaps, reverse=True)
    assert len(waits) == 20


def test_what_was_not_measured_stands_in_its_place_with_the_reason():
    document = write_document(results.bare_diagnosis())
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
