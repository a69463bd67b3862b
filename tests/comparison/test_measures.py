import pytest

from pipeline_lab.comparison.measures import read_measures
from pipeline_lab.errors import Unavailable
from tests.support import results

FULL, BARE = results.diagnosis(), results.bare_diagnosis()


def values_of(*diagnoses) -> dict[str, tuple]:
    return {each.key: each.values for each in read_measures(diagnoses)}


def test_numbers_are_those_of_the_story() -> None:
    found = {name: values[0] for name, values in values_of(FULL).items()}
    assert found["median_step_ms"] == pytest.approx(50)
    assert found["wait_ms"] == 30
    assert found["exposed_ms"] == 25
    assert found["wait_percent"] == 60
    assert found["idle_percent"] == pytest.approx(70)
    assert found["idle_input_wait_ms"] == 30
    assert found["idle_python_ms"] == 2
    assert found["idle_host_operation_ms"] == 3
    assert found["peak_memory_bytes"] == 940_000_000
    assert found["utilisation_percent"] == 32
    assert found["coverage_percent"] == 84


def test_idle_time_of_the_causes_adds_up_to_all_of_it() -> None:
    found = {name: values[0] for name, values in values_of(FULL).items()}
    causes = sum(value for name, value in found.items() if name.startswith("idle_") and name.endswith("_ms"))
    assert causes == pytest.approx(found["idle_percent"] / 100 * 50)


def test_what_one_run_lacks_has_its_reason_there_and_its_number_elsewhere() -> None:
    full, bare = values_of(FULL, BARE)["wait_ms"]
    assert full == 30
    assert isinstance(bare, Unavailable)
    assert "run it again" in bare.reason


def test_what_no_run_measured_is_left_out() -> None:
    assert values_of(BARE, BARE) == {}


def test_a_difference_needs_both_numbers() -> None:
    (each,) = [each for each in read_measures((FULL, FULL, BARE)) if each.key == "wait_ms"]
    assert (each.difference(1), each.difference(2)) == (0, None)


def test_a_log_without_the_job_s_own_steps_is_measured_by_its_trace() -> None:
    log = results.diagnosis(job_steps=Unavailable("no job"))
    assert values_of(log)["median_step_ms"] == (50,)
    assert values_of(log)["mean_step_ms"] == (50,)


def test_a_marker_around_several_steps_counts_as_several() -> None:
    from dataclasses import replace

    steps = replace(results.steps(), steps_per_marker=5.0)
    log = results.diagnosis(job_steps=Unavailable("no job"), steps=steps)
    assert values_of(log)["median_step_ms"] == (10,)
    assert values_of(log)["wait_ms"] == (6,)


def test_loss_is_the_mean_of_the_last_tenth() -> None:
    loss = FULL.job_steps.table.column("loss").to_numpy()[results.WARMUP :]
    assert values_of(FULL)["last_loss"][0] == pytest.approx(loss[-20:].mean())


def test_a_workload_without_accuracy_has_none() -> None:
    (value,) = values_of(results.diagnosis(job_steps=results.job_steps(accuracy=False))).get(
        "last_accuracy_percent", (None,)
    )
    assert value is None
