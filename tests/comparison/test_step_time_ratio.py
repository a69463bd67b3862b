import numpy as np
import pytest

from pipeline_lab.comparison.recorded_runs import describe_ratio
from pipeline_lab.comparison.step_time_ratio import (
    ComparedSteps,
    StepTimeRatio,
    common_basis,
    compare_step_times,
    compared_steps,
)
from pipeline_lab.errors import Unavailable
from pipeline_lab.statistics.outcome import Outcome
from tests.support import results

MS = 1e6


def times(mean_ms: float, count: int = 300, noise: float = 0.1, seed: int = 0) -> ComparedSteps:
    scatter = np.exp(noise * np.random.default_rng(seed).standard_normal(count))
    return ComparedSteps("all", mean_ms * MS * scatter)


def compared(first: ComparedSteps, second: ComparedSteps, **more) -> StepTimeRatio:
    ratio = compare_step_times(first, second, 0.95, **more)
    assert isinstance(ratio, StepTimeRatio)
    return ratio


def test_a_run_takes_exactly_as_long_as_itself() -> None:
    ratio = compared(times(50), times(50))
    assert ratio.ratio == 1
    assert ratio.low < 1 < ratio.high


def test_a_planted_ratio_lies_in_its_interval() -> None:
    ratio = compared(times(50), times(35, seed=1))
    assert ratio.low < 0.7 < ratio.high
    assert ratio.outcome is Outcome.FASTER
    assert compared(times(35, seed=1), times(50)).outcome is Outcome.SLOWER


def test_swapping_the_runs_turns_the_interval_over() -> None:
    there, back = compared(times(50), times(40, seed=1)), compared(times(40, seed=1), times(50))
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low))


def test_a_difference_below_the_practical_threshold_is_called_none() -> None:
    assert compared(times(50, noise=0.01), times(50.5, noise=0.01, seed=1)).outcome is Outcome.EQUIVALENT


def test_a_noisy_difference_cannot_be_told() -> None:
    assert compared(times(50, 40, 0.4), times(51, 40, 0.4, seed=1)).outcome is Outcome.UNDECIDED


def test_other_batch_sizes_are_compared_per_example() -> None:
    ratio = compared(times(50, noise=0.01), times(100, noise=0.01, seed=1), batch_sizes=(32, 64))
    assert ratio.per == "example"
    assert ratio.ratio == pytest.approx(1, abs=0.01)


def drifting(mean_ms: float, count: int = 300) -> ComparedSteps:
    """Return steps that wander by a fifth over the whole run, as on a machine that others use."""
    return ComparedSteps("all", mean_ms * MS * (1 + 0.1 * np.sin(np.linspace(0, 3, count))))


def test_a_gain_that_nobody_can_miss_is_acknowledged_without_an_interval() -> None:
    ratio = compared(drifting(117), drifting(12))
    assert ratio.outcome is Outcome.FASTER
    assert ratio.caveat.startswith("The step times wander so slowly")
    words = describe_ratio("new", "old", ratio)
    assert words.startswith(
        "The time per step of new is about 9.8× shorter than that of old. No interval can be given: the"
    )


def test_a_small_difference_of_drifting_runs_stays_undecided() -> None:
    assert isinstance(compare_step_times(drifting(13), drifting(12), 0.95), Unavailable)


def test_a_clear_gain_needs_few_steps() -> None:
    ratio = compared(times(117, 12), times(12, 300))
    assert ratio.caveat.startswith("Only 12 steps")
    assert ratio.outcome is Outcome.FASTER


def test_few_steps_give_a_reason_instead_of_an_interval() -> None:
    answer = compare_step_times(times(50, 19), times(50), 0.95)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith("Only 19 steps were measured")


def test_drifting_steps_give_a_reason_instead_of_an_interval() -> None:
    drifting = ComparedSteps("all", np.exp(np.linspace(17, 18, 300)))
    answer = compare_step_times(drifting, times(50), 0.95)
    assert isinstance(answer, Unavailable)
    assert "fewer than 5 independent steps" in answer.reason


def test_a_baseline_without_steps_is_named() -> None:
    answer = compare_step_times(Unavailable("No steps."), times(50), 0.95)
    assert answer == Unavailable("The baseline's steps are unknown: No steps.")


def test_profiled_steps_and_the_warm_up_are_left_out_where_enough_remain() -> None:
    diagnosis = results.diagnosis()
    assert common_basis((diagnosis, diagnosis)) == "unprofiled"
    found = compared_steps(diagnosis, "unprofiled")
    assert isinstance(found, ComparedSteps)
    assert len(found.times_ns) == 200 - 5 - 40


def test_short_runs_are_compared_by_all_their_steps_and_logs_by_their_trace() -> None:
    short = results.diagnosis(job_steps=results.job_steps(30))
    assert common_basis((results.diagnosis(), short)) == "all"
    log = results.diagnosis(job_steps=Unavailable("no job"))
    assert common_basis((results.diagnosis(), log)) == "trace"
