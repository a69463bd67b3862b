import json
from dataclasses import replace

import pytest

from pipeline_lab.comparison.recorded_runs import DRIFT_WARNING, compare_runs, with_distinct_names
from pipeline_lab.comparison.step_time_ratio import StepTimeRatio
from pipeline_lab.errors import ComparisonError, Unavailable
from tests.support import results
from tests.support.recorded import ENVIRONMENT, job_steps, recorded

BASELINE, OPTIMISED = recorded(), recorded("optimised", 0.6)


def test_the_answer_is_one_sentence_with_its_interval() -> None:
    comparison = compare_runs(BASELINE, OPTIMISED)
    (sentence,) = comparison.sentences
    assert sentence.startswith("optimised took 40 % less time per step than baseline (95 % interval ")
    assert sentence.endswith(" less).")


def test_runs_recorded_apart_always_carry_the_warning_about_drift() -> None:
    assert compare_runs(BASELINE, BASELINE).warnings[0] == DRIFT_WARNING


def test_another_environment_is_warned_of() -> None:
    other = replace(OPTIMISED, environment={**ENVIRONMENT, "cores": 4.0})
    assert "The runs did not have the same environment (cores)." in compare_runs(BASELINE, other).warnings


def test_other_work_is_warned_of() -> None:
    other = replace(OPTIMISED, options={**OPTIMISED.options, "training": {"steps": 7}})
    assert any("did not do the same work" in warning for warning in compare_runs(BASELINE, other).warnings)


def test_a_run_that_did_not_end_is_warned_of() -> None:
    lost = replace(OPTIMISED, state="failed", reason="The worker ran out of memory.")
    assert compare_runs(BASELINE, lost).warnings[-1] == (
        "optimised did not run to its end (failed): The worker ran out of memory."
    )


def test_other_batch_sizes_are_warned_of_and_compared_per_example() -> None:
    options = json.loads(json.dumps(BASELINE.options))
    (batch,) = (stage for stage in options["pipeline"]["stages"] if stage["stage"] == "batch")
    batch["size"] = 64
    comparison = compare_runs(BASELINE, replace(BASELINE, name="half", options=options))
    (ratio,) = comparison.step_time
    assert isinstance(ratio, StepTimeRatio)
    assert (ratio.per, ratio.ratio) == ("example", pytest.approx(2))
    assert any("per example" in warning for warning in comparison.warnings)


@pytest.mark.parametrize(
    ("behind", "size"),
    [(({"stage": "rebatch", "size": 32},), 32), (({"stage": "unbatch"}, {"stage": "batch", "size": 16}), 16)],
)
def test_the_batch_size_is_that_of_the_last_stage_that_makes_batches(
    behind: tuple[dict[str, object], ...], size: int
) -> None:
    options = json.loads(json.dumps(BASELINE.options))
    options["pipeline"]["stages"] += behind
    assert (BASELINE.batch_size, replace(BASELINE, options=options).batch_size) == (128, size)


def test_options_of_another_version_hold_no_batch_size() -> None:
    assert replace(BASELINE, options={**BASELINE.options, "schema_version": 99}).batch_size is None


@pytest.mark.slow
def test_many_candidates_share_the_error_so_that_all_intervals_hold_together() -> None:
    candidates = [recorded("optimised", 1.0, name=f"run {index}") for index in range(19)]
    ratio = compare_runs(BASELINE, *candidates).step_time[0]
    assert isinstance(ratio, StepTimeRatio)
    assert ratio.confidence == pytest.approx(1 - 0.05 / 19)


@pytest.mark.parametrize("count", [0, 20])
def test_none_or_too_many_candidates_are_one_sentence(count: int) -> None:
    with pytest.raises(ComparisonError, match=f"1 to 19 candidates, got {count}"):
        compare_runs(BASELINE, *[OPTIMISED] * count)


def test_equal_names_are_told_apart() -> None:
    names = [
        run.name for run in with_distinct_names([BASELINE, OPTIMISED, BASELINE, replace(BASELINE, name="baseline (1)")])
    ]
    assert names == ["baseline (2)", "optimised", "baseline (3)", "baseline (1)"]


def test_what_cannot_be_compared_keeps_its_reason() -> None:
    bare = recorded("optimised", diagnosis=results.bare_diagnosis())
    comparison = compare_runs(BASELINE, bare)
    assert isinstance(comparison.step_time[0], Unavailable)
    assert comparison.sentences[0].startswith("optimised cannot be compared with baseline: ")


def test_the_document_is_json_and_says_that_the_runs_were_recorded_apart() -> None:
    document = json.loads(json.dumps(compare_runs(BASELINE, OPTIMISED).to_json(), allow_nan=False))
    assert document["schema_version"] == 3
    assert document["recorded"] == "apart"
    assert [run["name"] for run in document["runs"]] == ["baseline", "optimised"]
    assert document["step_time"][0]["outcome"] == "faster"
    assert {"path": "pipeline.read.mode", "values": ["sequential", "interleave"]} in document["differences"]["options"]
    wait = next(each for each in document["measures"] if each["name"] == "wait_ms")
    assert wait == {"name": "wait_ms", "unit": "ms", "better": "lower", "values": [30.0, 30.0]}


def test_a_document_never_holds_a_number_that_was_not_measured() -> None:
    document = compare_runs(BASELINE, recorded("optimised", diagnosis=results.bare_diagnosis())).to_json()
    assert all("unavailable" in each["values"][1] for each in document["measures"])


def test_noise_alone_is_called_no_difference() -> None:
    noisy = [
        recorded(name=f"n{seed}", diagnosis=results.diagnosis(job_steps=job_steps(1.0, 400, 0.05, seed)))
        for seed in (1, 2)
    ]
    (ratio,) = compare_runs(*noisy).step_time
    assert isinstance(ratio, StepTimeRatio)
    assert ratio.outcome.value in ("equivalent", "undecided")
