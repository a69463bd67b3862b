"""Where steps end when a device works on after the host is through with them; times in µs."""

from pathlib import Path

import pytest

from pipeline_lab.analysis.activity.activity import UNFINISHED, Activity
from pipeline_lab.analysis.activity.step_spans import StepRule
from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps, find_gaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.recorded_steps import Steps, find_steps
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from tests.support.traces import WAIT, Event, gpu, host, line, trace

RECORDED = Path(__file__).parents[2] / "data" / "device_steps"
STEP_MS = 20.0
"""What every recorded step takes of the device."""


def spans_us(found: Steps) -> list[tuple[float, float]]:
    return [(start / 1000, end / 1000) for start, end in tables.intervals(found.table).tolist()]


def step(number: int, start: float, duration: float) -> Event:
    return "train", start, duration, {"step_num": number, "_r": 1}


def launch(correlation: int, start: float) -> Event:
    return "cuLaunchKernel", start, 1, {"correlation_id": correlation}


def kernel(correlation: int, start: float, duration: float) -> Event:
    return "kernel", start, duration, {"correlation_id": correlation}


def activity(*on_host: Event, work: tuple[Event, ...] = (), profiled_us: tuple[float, float] | None = None) -> Activity:
    planes = [gpu(line("Stream #1(Compute)", *work))] if work else []
    return Activity(trace(host(line("python", *on_host)), *planes, profiled_us=profiled_us))


def test_a_step_ends_with_the_work_that_was_launched_in_it():
    seen = activity(
        step(0, 0, 100),
        launch(1, 10),
        step(1, 200, 100),
        launch(2, 210),
        work=(kernel(1, 20, 150), kernel(2, 220, 130)),
    )
    found = find_steps(seen)
    assert found.rule is StepRule.DEVICE_WORK
    assert spans_us(found) == [(0, 170), (170, 350)]


def test_the_first_step_of_a_loop_that_runs_ahead_is_left_out_as_it_alone_begins_on_an_idle_device():
    def one_ahead(steps: int) -> Activity:
        # the host is through with a step when the one before it ends on the device; 40 µs of launching are hidden but once
        on_host = [each for n in range(steps) for each in (step(n, 100 * n, 90), launch(n + 1, 100 * n + 40))]
        return activity(*on_host, work=tuple(kernel(n + 1, 50 + 100 * n, 100) for n in range(steps)))

    assert spans_us(find_steps(one_ahead(4))) == [(150, 250), (250, 350), (350, 450)]
    assert find_gaps(one_ahead(4)).idle_ns == 0
    assert spans_us(find_steps(one_ahead(3))) == [(0, 150), (150, 250), (250, 350)]


def test_a_stray_kernel_that_was_launched_after_the_step_does_not_stretch_it():
    seen = activity(step(0, 0, 100), launch(1, 10), launch(2, 150), work=(kernel(1, 20, 100), kernel(2, 6_000, 4)))
    assert spans_us(find_steps(seen)) == [(0, 120)]


def test_a_step_that_waits_for_its_result_ends_on_the_host():
    seen = activity(step(0, 0, 100), launch(1, 10), work=(kernel(1, 20, 50),))
    found = find_steps(seen)
    assert (found.rule, spans_us(found)) == (StepRule.HOST_SPAN, [(0, 100)])


def ahead(done: int, profiled_us: tuple[float, float] = (0, 9_000)) -> Activity:
    """Return a loop of four steps of 10 µs whose work takes the device 1 ms each; ``done`` of them are recorded."""
    on_host = [event for n in range(4) for event in (step(n, 20 * n, 10), launch(n + 1, 20 * n + 1))]
    work = tuple(kernel(n + 1, 5 + 1_000 * n, 1_000) for n in range(done))
    return activity(*on_host, work=work, profiled_us=profiled_us)


def test_a_loop_that_never_waits_has_the_cadence_of_the_device():
    seen = ahead(done=4)
    found = find_steps(seen)
    assert found.rule is StepRule.DEVICE_CADENCE
    assert spans_us(found) == [(0, 1_005), (1_005, 2_005), (2_005, 3_005), (3_005, 4_005)]
    assert seen.extent == (0, 4_005_000)  # what comes after the last step is the profiler's end, not idle time
    assert found.cut_off == 0


def test_steps_under_way_on_the_device_when_the_capture_ends_are_left_out():
    seen = ahead(done=2)
    found = find_steps(seen)
    assert (found.rule, found.cut_off) == (StepRule.DEVICE_CADENCE, 2)
    assert spans_us(found) == [(0, 1_005), (1_005, 2_005)]
    assert find_gaps(seen).idle_ns == 5_000


def test_nothing_is_said_of_steps_of_which_the_device_ended_none():
    seen = ahead(done=0)
    for analysis in (find_steps, find_gaps):
        with pytest.raises(TraceIncompleteError, match="What the device did is unknown"):
            analysis(seen)


def test_more_launches_than_can_wait_for_a_device_mean_that_its_work_could_not_be_recorded():
    on_host = [event for n in range(1_100) for event in (step(n, 20 * n, 10), launch(n + 1, 20 * n + 1))]
    seen = activity(*on_host)
    assert seen.has_unseen_work
    assert find_steps(seen).rule is StepRule.HOST_SPAN
    assert not activity(*on_host[:200]).has_unseen_work


def test_what_a_device_does_before_it_begins_with_the_capture_is_not_idle_time():
    # earlier steps, launched before the profiler was on, fill the first 3 ms
    seen = activity(
        step(0, 0, 10),
        launch(1, 5),
        step(1, 20, 10),
        launch(2, 25),
        work=(kernel(1, 3_000, 500), kernel(2, 3_500, 500)),
    )
    assert spans_us(find_steps(seen)) == [(3_000, 3_500), (3_500, 4_000)]
    assert find_gaps(seen).idle_ns == 0


def test_idle_time_after_the_only_step_is_not_the_jobs():
    seen = activity(
        step(0, 0, 100), launch(1, 10), ("stop", 900, 50), work=(kernel(1, 20, 100),), profiled_us=(0, 1_000)
    )
    gaps = find_gaps(seen)
    assert seen.extent == (0, 120_000)
    assert gaps.idle_ns == 20_000


def test_the_only_step_is_shown_as_far_as_it_was_recorded():
    on_host = [step(0, 0, 100), *(launch(n, 10 + n) for n in range(1, 5))]
    found = find_steps(activity(*on_host, work=(kernel(1, 20, 40), kernel(2, 60, 40), kernel(3, 100, 40))))
    assert (found.count, found.cut_off, spans_us(found)) == (1, 1, [(0, 140)])


def test_steps_that_nothing_marks_end_with_their_work_too():
    waits = [(WAIT, 100 * n, 5) for n in range(4)]
    launches = [launch(n + 1, 100 * n + 10) for n in range(4)]
    seen = activity(*waits, *launches, work=tuple(kernel(n + 1, 20 + 150 * n, 150) for n in range(4)))
    assert spans_us(find_steps(seen)) == [(0, 170), (170, 320), (320, 470)]


def test_an_evaluation_between_steps_belongs_to_none():
    seen = activity(
        *(
            event
            for n, at in ((0, 0), (1, 100), (0, 1_000), (1, 1_100))
            for event in (step(n, at, 50), launch(at + 1, at + 5))
        ),
        work=tuple(kernel(at + 1, at + 10, 80) for at in (0, 100, 1_000, 1_100)),
    )
    assert spans_us(find_steps(seen)) == [(0, 90), (90, 190), (1_000, 1_090), (1_090, 1_190)]


def read(name: str) -> tuple[Diagnosis, Steps]:
    diagnosis = diagnose(RECORDED / f"{name}.xplane.pb.gz")
    assert isinstance(diagnosis.steps, Steps)
    return diagnosis, diagnosis.steps


RULES = {
    "reads_each_slow_map": StepRule.HOST_SPAN,
    "reads_one_behind": StepRule.DEVICE_WORK,
    "never_reads": StepRule.DEVICE_CADENCE,
    "never_reads_cut": StepRule.DEVICE_CADENCE,
    "never_reads_unmarked": StepRule.DEVICE_WORK,  # a batch is copied before its step: the host is one step ahead
    "prefetch_to_device": StepRule.DEVICE_CADENCE,
    "keras_fit": StepRule.DEVICE_WORK,
    "two_devices": StepRule.HOST_SPAN,
}


@pytest.mark.parametrize("name", RULES)
def test_recorded_steps_are_as_long_as_their_device_work_at_least(name: str):
    _, steps = read(name)
    lengths = steps.length_ns / 1e6
    assert steps.rule is RULES[name]
    assert (lengths >= STEP_MS).all()
    assert lengths.max() < 1.6 * STEP_MS


@pytest.mark.parametrize("name", [name for name in RULES if name != "reads_each_slow_map"])
def test_a_recorded_job_that_keeps_its_device_busy_is_limited_by_it(name: str):
    diagnosis, _ = read(name)
    assert diagnosis.verdict.verdict_class is VerdictClass.DEVICE_BOUND


def test_a_recorded_job_that_outruns_its_device_is_cut_to_what_is_known():
    diagnosis, steps = read("never_reads_cut")
    assert (steps.count, steps.cut_off) == (3, 9)
    assert isinstance(diagnosis.idle_gaps, IdleGaps)
    assert diagnosis.idle_gaps.by_cause_ns[GapCause.PYTHON] < 1e6  # 5 ms of sleep after each step are hidden


def test_a_recorded_job_whose_batches_are_copied_ahead_does_not_wait_for_input():
    # next() holds the time that the device takes for the steps before: nine tenths of the time on the host
    diagnosis, _ = read("prefetch_to_device")
    assert isinstance(diagnosis.input_stalls, InputStalls)
    assert diagnosis.input_stalls.wait_percent < 1


def test_a_recorded_job_too_far_ahead_of_its_device_is_not_judged():
    diagnosis = diagnose(RECORDED / "never_reads_far_ahead.xplane.pb.gz")
    assert diagnosis.verdict.verdict_class is VerdictClass.UNKNOWN
    assert UNFINISHED in diagnosis.verdict.sentence
    assert isinstance(diagnosis.idle_gaps, Unavailable)


def test_every_rule_is_explained():
    explained = (Path(__file__).parents[3] / "docs" / "numbers.md").read_text()
    assert [rule for rule in StepRule if f"| `{rule.value}` |" not in explained] == []
