"""Verdicts of steps whose division is given; 100 steps of 10 ms unless said otherwise."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline_lab.analysis.causes import Busy, GapCause, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.calibration import Calibration, without_first_pace
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.step_phases import Phase, PhaseTimes
from pipeline_lab.analysis.steps.stragglers import compare_hosts
from pipeline_lab.analysis.verdict.losses import Losses, choose_class, measure_losses
from pipeline_lab.analysis.verdict.verdict import Blame, Confidence, Verdict
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict, write_sentence
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import PythonPart, SourcePlace, UserFunction
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.trace.schema import Salvage
from pipeline_lab.units import format_duration
from tests.analysis.steps.test_stragglers import breakdown
from tests.support import results

NO_PIPELINE = Unavailable("No stages.")
NO_STARTS = Unavailable("No iterator took time to make.")
NO_CALIBRATION = Unavailable("Not calibrated.")
NOTHING = dict.fromkeys(
    (
        "input_wait_ns",
        "host_to_device_ns",
        "device_compute_ns",
        "device_copy_ns",
        "collective_ns",
        "compile_ns",
        "dispatch_ns",
        "host_compute_ns",
        "other_ns",
    ),
    0,
)


def divided(**percent: int) -> StepBreakdown:
    """Return a breakdown given in percent of the step."""
    return StepBreakdown(**{**NOTHING, **{f"{name}_ns": share * 10**7 for name, share in percent.items()}})


def judged(breakdown: StepBreakdown, calibration: object = NO_CALIBRATION, **changes: object) -> Verdict:
    changes = {"tf_data": NO_PIPELINE, "live_model": NO_PIPELINE, "iterator_starts": NO_STARTS, **changes}
    return reach_verdict(results.diagnosis(step_breakdown=breakdown, calibration=calibration, **changes))


@pytest.mark.parametrize(
    ("breakdown", "expected"),
    [
        (divided(input_wait=60, device_compute=40), VerdictClass.INPUT_BOUND),
        (divided(input_wait=6, device_compute=94), VerdictClass.INPUT_BOUND),
        (divided(input_wait=4, device_compute=96), VerdictClass.DEVICE_BOUND),
        (divided(host_to_device=30, device_compute=70), VerdictClass.HOST_TO_DEVICE_BOUND),
        (divided(compile=50, device_compute=50), VerdictClass.COMPILE_BOUND),
        (divided(dispatch=40, device_compute=60), VerdictClass.DISPATCH_BOUND),
        (divided(dispatch=19, device_compute=81), VerdictClass.DEVICE_BOUND),
        (divided(python=60, host_compute=40), VerdictClass.IDLE_OTHER),
        (divided(host_compute=60, device_compute=40), VerdictClass.IDLE_OTHER),  # the host holds up a device
        (divided(host_compute=100), VerdictClass.DEVICE_BOUND),  # the host is the device
        (divided(input_wait=30, dispatch=40, device_compute=30), VerdictClass.DISPATCH_BOUND),
    ],
)
def test_the_largest_loss_names_the_run(breakdown: StepBreakdown, expected: VerdictClass):
    verdict = judged(breakdown)
    assert verdict.verdict_class is expected
    assert verdict.sentence.endswith(".")


def test_a_device_that_is_filled_with_copies_is_told_from_one_that_computes():
    verdict = judged(divided(device_copy=70, device_compute=30))
    assert verdict.verdict_class is VerdictClass.DEVICE_BOUND
    assert "the device, mostly with copies, is busy for 100 %" in verdict.sentence
    assert "copies" not in judged(divided(device_copy=30, device_compute=70)).sentence


def all_steps(waiting: float, calling: float | None = None) -> JobSteps:
    """Return what a job noted of all its steps: percent spent waiting for input, and in calls for a batch."""
    job = results.job_steps()
    calls = None if calling is None else round(job.total_ns * calling / 100)
    return replace(job, wait_total_ns=round(job.total_ns * waiting / 100), call_total_ns=calls)


def in_windows(waiting: float, calling: float) -> InputStalls:
    stalls = results.input_stalls()
    wait_ns, call_ns = (round(stalls.step_ns * percent / 100) for percent in (waiting, calling))
    return replace(stalls, wait_ns=wait_ns, call_ns=call_ns)


def test_calls_for_a_batch_that_wait_for_the_device_are_not_lost_to_input():
    # prefetch_to_device: a script's next() takes 77 % of its steps, of which input is late for next to nothing
    busy = divided(input_wait=1, device_compute=99)
    verdict = judged(busy, job_steps=all_steps(77), input_stalls=in_windows(waiting=1, calling=77))
    assert verdict.verdict_class is VerdictClass.DEVICE_BOUND


def test_what_the_device_hides_of_a_wait_is_left_out_once():
    late = divided(input_wait=65, device_compute=35)
    stalls = in_windows(waiting=90, calling=90)
    verdict = judged(late, job_steps=all_steps(65, calling=90), input_stalls=stalls)
    assert verdict.lost_percent == pytest.approx(65)
    beyond = judged(late, job_steps=all_steps(40, calling=90), input_stalls=stalls)  # the windows are no fair sample
    assert beyond.lost_percent == pytest.approx(40)


@pytest.mark.parametrize(
    ("breakdown", "expected"),
    [
        (divided(python=13, iterator_end=10, host_compute=77), VerdictClass.DEVICE_BOUND),
        (divided(python=21, iterator_end=2, host_compute=77), VerdictClass.IDLE_OTHER),
        (divided(python=15, iterator_end=15, checkpoint=15, host_compute=55), VerdictClass.IDLE_OTHER),
        (divided(python=13, iterator_end=10, input_wait=12, host_compute=65), VerdictClass.INPUT_BOUND),
    ],
)
def test_idle_time_of_several_small_causes_is_no_verdict_unless_it_is_much(
    breakdown: StepBreakdown, expected: VerdictClass
) -> None:
    assert (
        judged(breakdown, job_steps=Unavailable("A log."), input_stalls=Unavailable("None.")).verdict_class is expected
    )


def test_where_no_trace_tells_the_function_the_place_where_python_was_seen_is_named() -> None:
    job = replace(results.job_steps(), own_python="Monitor.on_train_batch_end (train.py:35)")
    verdict = judged(divided(python=60, host_compute=40), job_steps=job, idle_python=Unavailable("Not traced."))
    assert verdict.sentence.startswith(
        "Python code between TensorFlow's calls, mostly Monitor.on_train_batch_end (train.py:35), leaves "
    )


@pytest.mark.parametrize(("waits", "beside"), [(2.0, "without waiting"), (20.0, "besides 10 ms of waiting for input")])
def test_a_sentence_about_competition_does_not_deny_what_waits_beside_it(waits: float, beside: str) -> None:
    losses = Losses({VerdictClass.INPUT_BOUND: waits, VerdictClass.HOST_CONTENTION: 30.0}, 50e6, Busy.HOST_COMPUTE)
    sentence = write_sentence(VerdictClass.HOST_CONTENTION, None, Blame(), losses)
    assert sentence.startswith(
        f"The end-to-end step takes 15 ms of 50 ms (30 %) longer than the compute-only step, {beside}:"
    )
    estimated = write_sentence(VerdictClass.HOST_CONTENTION, None, Blame(), replace(losses, is_estimated=True))
    assert f"from the training computation, {beside}: both need" in estimated


def test_the_sentence_says_how_much_of_each_step_is_lost():
    verdict = judged(divided(input_wait=60, device_compute=40))
    assert (
        verdict.sentence
        == "The job is input-bound: 30 ms of each 50 ms step (60 %) is spent waiting for the next batch."
    )


def test_the_wait_the_step_and_the_share_of_the_sentence_agree_where_steps_differ_in_length():
    # of four steps three take 10 ms and one 70: the median is 10 ms, and 60 % of all 100 ms are 15 of the mean step's 25
    found = results.steps()
    end = tables.ints(found.table, "start_ns") + np.tile([10, 10, 10, 70], found.count // 4) * results.MS
    uneven = replace(found, table=tables.replace_column(found.table, "end_ns", end))
    told = judged(divided(input_wait=60, device_compute=40), steps=uneven, job_steps=Unavailable("A log."))
    assert told.sentence.startswith("The job is input-bound: 15 ms of each 25 ms step (60 %) is")
    missing = Unavailable("No window.")
    job = replace(
        results.job_steps(), count=4, median_ns=10e6, total_ns=100 * results.MS, wait_total_ns=60 * results.MS
    )
    untraced = reach_verdict(results.diagnosis(steps=missing, step_breakdown=missing, job_steps=job))
    assert "The job is input-bound: 15 ms of each 25 ms step (60 %) is" in untraced.sentence


def test_taking_turns_is_told_from_a_slow_pipeline():
    # alone 20 and 30 ms, together 50: they take turns, and the slower one would remain
    turns = judged(divided(input_wait=60, device_compute=40), Calibration(20e6, 30e6, 50e6))
    assert turns.cause == "no-overlap"
    slow = judged(divided(input_wait=60, device_compute=40), Calibration(20e6, 49e6, 50e6))
    assert slow.cause is None


def test_python_between_steps_is_the_cause():
    verdict = judged(divided(python=66, host_compute=34))
    assert (verdict.verdict_class, verdict.cause) == (VerdictClass.IDLE_OTHER, "python")
    assert verdict.sentence.startswith("Python code between TensorFlow's calls")


def test_idle_time_is_said_of_its_cause_alone():
    verdict = judged(divided(python=50, host_operation=11, host_compute=39))
    assert "(50 %); other causes add" in verdict.sentence, "as the picture shows it"
    assert verdict.lost_percent == pytest.approx(50)
    assert "other causes" not in judged(divided(python=50, host_operation=1, host_compute=49)).sentence


def several_hosts(**hosts: dict[str, int]) -> Verdict:
    """Judge ten steps of each host, given by their parts in ms."""
    steps = breakdown(**{name: [parts] * 10 for name, parts in hosts.items()})
    return judged(steps, hosts=compare_hosts(steps), steps=results.steps())


def test_a_host_that_waits_for_input_makes_the_job_wait_though_the_others_spend_it_in_collectives():
    # per step of 40 ms: worker_0 computes 10 and waits 30 for worker_1, which waits 25 for its input
    waits = {"device_compute": 10, "collective": 5, "input_wait": 25}
    found = several_hosts(worker_0={"device_compute": 10, "collective": 30}, worker_1=waits)
    assert found.verdict_class is VerdictClass.INPUT_BOUND
    assert found.sentence.endswith("; worker_1 is the straggler, and the other hosts wait for it.")
    assert "(62.5 %)" in found.sentence
    shown = {one.name: one.value for one in found.evidence}
    assert shown["collectives"] == "43.8 % of all hosts' steps"  # 35 of 80
    assert shown["comes last"] == "worker_1, in 10 of 10 steps of all hosts"
    assert shown["input wait of worker_1"] == "25 ms per step, of the other hosts 0 ns"


def test_a_host_that_computes_longer_is_named():
    found = several_hosts(
        worker_0={"device_compute": 10, "collective": 30}, worker_1={"device_compute": 36, "collective": 4}
    )
    assert found.verdict_class is VerdictClass.DEVICE_BOUND
    assert found.sentence == (
        "Input is not the limit: the device is busy for 90 % of each 50 ms step; worker_1 is the straggler, and the other "
        "hosts wait for it."
    )


def test_hosts_that_all_spend_their_steps_exchanging_values_are_not_bound_by_their_devices():
    even = {"device_compute": 10, "collective": 30}
    found = several_hosts(worker_0=even, worker_1=even)
    assert (found.verdict_class, found.cause) == (VerdictClass.IDLE_OTHER, "collective")
    assert found.sentence == (
        "Collectives, and waiting for other devices or workers in them, keep the device from computing for "
        "37.5 ms of each 50 ms step (75 %)."
    )


def test_one_recorded_worker_that_waits_for_the_others_is_not_bound_by_its_device():
    found = judged(divided(collective=70, device_compute=30), hosts=Unavailable("One host."))
    assert (found.verdict_class, found.cause) == (VerdictClass.IDLE_OTHER, "collective")
    assert {one.name: one.value for one in found.evidence}["collectives"] == "70 % of the steps"


def test_hidden_contention_is_work_beyond_the_held_batch_that_the_pipeline_explains():
    busy = divided(host_compute=98, input_wait=2)
    assert judged(busy, Calibration(30e6, 25e6, 50e6)).verdict_class is VerdictClass.HOST_CONTENTION
    # a pipeline of 4 ms cannot slow a step by 20
    assert judged(busy, Calibration(30e6, 4e6, 50e6)).verdict_class is VerdictClass.DEVICE_BOUND
    # nor is it blamed where others use the machine
    others = judged(busy, Calibration(30e6, 25e6, 50e6), other_cpu_percent=80.0)
    assert others.verdict_class is VerdictClass.DEVICE_BOUND


def test_the_jobs_own_times_show_competition_that_breaks_in_the_windows_hide():
    # in training the function takes 47 of 50 ms, alone 40; windows hold an epoch's end, which makes its part of them small
    seen = divided(host_compute=77, dispatch=8, python=13, input_wait=2)
    shown = judged(seen, Calibration(40e6, 15e6, 50e6, busy_ns=47e6))
    assert (shown.verdict_class, shown.lost_percent) == (VerdictClass.HOST_CONTENTION, pytest.approx(14.0))
    assert judged(seen, Calibration(40e6, 15e6, 50e6)).verdict_class is VerdictClass.DEVICE_BOUND
    # on a device the windows tell what works
    on_device = divided(device_compute=77, dispatch=8, python=13, input_wait=2)
    assert judged(on_device, Calibration(40e6, 15e6, 50e6, busy_ns=47e6)).verdict_class is VerdictClass.DEVICE_BOUND


def test_waits_and_competition_that_are_large_together_make_it_competition():
    # of 50 ms each step waits 2 ms (4 %) and computes 4 ms (8 %) longer than alone: neither is enough by itself
    verdict = judged(divided(host_compute=96, input_wait=4), Calibration(44e6, 25e6, 50e6))
    assert verdict.verdict_class is VerdictClass.HOST_CONTENTION
    assert verdict.lost_percent == pytest.approx(8.0)
    assert judged(divided(host_compute=96, input_wait=4), Calibration(46e6, 25e6, 50e6)).lost_percent is None


def test_a_pipeline_that_sets_the_pace_is_blamed_though_the_step_hardly_waits():
    # alone the pipeline takes 48 of 50 ms and the step 20: without its input's slowness the job would save 28 ms, 56 %
    verdict = judged(divided(input_wait=10, dispatch=30, host_compute=60), Calibration(20e6, 48e6, 50e6))
    assert verdict.verdict_class is VerdictClass.INPUT_BOUND
    assert verdict.sentence == (
        "The job is limited by input throughput: the pipeline alone takes 48 ms per batch, the compute-only step 20 ms."
    )
    losses = measure_losses(
        results.diagnosis(
            step_breakdown=divided(input_wait=10, dispatch=30, host_compute=60),
            calibration=Calibration(20e6, 48e6, 50e6),
        )
    )
    assert losses is not None
    assert losses.by_class[VerdictClass.INPUT_BOUND] == pytest.approx(56.0)
    assert sum(losses.by_class.values()) + losses.device_percent == pytest.approx(100.0)


def test_the_pace_of_usual_steps_is_not_the_jobs_where_a_few_long_ones_take_most_of_its_time():
    # a usual step takes 17 ms, of which the pipeline alone would need 16; the mean of all is 50 ms, most of it Python's
    between = divided(input_wait=2, python=60, host_compute=38)
    assert judged(between, Calibration(6e6, 16e6, 17e6)).verdict_class is VerdictClass.IDLE_OTHER
    assert judged(between, Calibration(6e6, 44e6, 45e6)).verdict_class is VerdictClass.INPUT_BOUND


def test_a_somewhat_faster_pipeline_is_blamed_where_the_job_waits_and_most_is_lost_to_it():
    # the step alone takes 10 of 50 ms; the pipeline 35: 25 ms are lost to it, 15 to both being at work on the same cores
    waits, hardly = divided(input_wait=20, host_compute=80), divided(input_wait=2, host_compute=98)
    found = judged(waits, Calibration(10e6, 35e6, 50e6))
    assert (found.verdict_class, found.lost_percent) == (VerdictClass.INPUT_BOUND, pytest.approx(50))
    for parts, pipeline_ns in ((hardly, 35e6), (waits, 28e6)):
        assert judged(parts, Calibration(10e6, pipeline_ns, 50e6)).verdict_class is VerdictClass.HOST_CONTENTION


@pytest.mark.parametrize("part", ["python", "compile", "host_to_device", "checkpoint"])
@pytest.mark.parametrize("computes", ["host_compute", "device_compute"])
def test_a_somewhat_faster_pipeline_is_not_blamed_for_what_else_fills_the_step(part: str, computes: str):
    parts = divided(**{"input_wait": 6, part: 84, computes: 10})
    assert judged(parts, Calibration(5e6, 27e6, 50e6)).lost_percent == pytest.approx(84)


def test_what_a_slow_pipeline_takes_beyond_the_wait_is_told_apart_from_it_and_stays_busy():
    # alone 45 of 50 ms; the step alone 10: 70 % lost, of which 60 show as waiting. The device works for 30, as in the picture
    verdict = judged(divided(input_wait=60, dispatch=10, host_compute=30), Calibration(10e6, 45e6, 50e6))
    assert verdict.sentence == (
        "The job is input-bound: 35 ms of each 50 ms step (70 %) is lost to input, 30 ms of it waiting for the next batch, "
        "because input and compute do not overlap."
    )
    assert verdict.step is not None
    assert verdict.step.input_percent == pytest.approx(70.0)
    assert verdict.step.busy_percent == pytest.approx(30.0)


def test_the_cause_is_that_of_the_steps_not_of_the_whole_window():
    gaps = results.idle_gaps()
    more = 10**12 - gaps.by_cause_ns[GapCause.UNKNOWN]
    unknown_outside = replace(
        gaps,
        by_cause_ns={**gaps.by_cause_ns, GapCause.UNKNOWN: 10**12},
        devices=(replace(gaps.devices[0], idle_ns=gaps.devices[0].idle_ns + more), *gaps.devices[1:]),
    )
    verdict = judged(divided(checkpoint=66, device_compute=34), idle_gaps=unknown_outside)
    assert (verdict.verdict_class, verdict.cause) == (VerdictClass.IDLE_OTHER, "checkpoint")


def full_cores(work_ms: float, *, other_cores: float = 0.0) -> Verdict:
    """Judge a watched job that fills what others leave of two cores with a step of 50 ms, and whose pipeline works so long for a batch."""
    cores = 1.9 - other_cores
    job = replace(results.job_steps(), total_ns=195 * 50 * results.MS, wait_total_ns=0)
    stages = (
        replace(results.live_model().stages[-1], parent=None, visits_per_batch=1.0, self_ns=work_ms * results.MS),
    )
    return judged(
        divided(host_compute=100),
        job_steps=job,
        input_stalls=replace(results.input_stalls(), wait_ns=0, exposed_ns=0),
        live_model=replace(results.live_model(), stages=stages),
        job_load=JobLoad(2.0, 2, cores, cores * 50 * results.MS, other_cores),
        other_cpu_percent=100 * other_cores,
    )


def test_a_watched_job_whose_input_takes_cores_from_its_step_is_not_told_to_look_at_the_model() -> None:
    verdict = full_cores(work_ms=57)
    assert verdict.verdict_class is VerdictClass.HOST_CONTENTION
    assert verdict.sentence.startswith(
        "The input pipeline takes about 30 ms of each 50 ms step (60 %) from the training"
    )
    assert verdict.stage == results.live_model().stages[-1].name
    assert verdict.sentence.endswith(f"both need the same full cores, most of all {verdict.stage}.")
    assert verdict.confidence is not Confidence.HIGH


def test_a_light_pipeline_or_a_machine_that_others_fill_is_not_blamed_for_contention() -> None:
    assert full_cores(work_ms=3).verdict_class is VerdictClass.DEVICE_BOUND
    assert full_cores(work_ms=57, other_cores=1.4).verdict_class is VerdictClass.DEVICE_BOUND


def test_contention_is_seen_where_the_job_takes_most_of_a_machine_that_others_use_too() -> None:
    # 57 ms of threads that get 1.3 of 2 cores are 37 ms of work, of 1.2 cores × 50 ms: 62 %
    verdict = full_cores(work_ms=57, other_cores=0.7)
    assert verdict.verdict_class is VerdictClass.HOST_CONTENTION
    assert "(61.8 %)" in verdict.sentence
    assert verdict.confidence is not Confidence.HIGH


def test_dispatch_beyond_the_whole_step_on_a_held_batch_is_contention():
    slow = divided(host_compute=40, dispatch=60)
    # alone the step takes 10 of its 50 ms, dispatch included; the pipeline's 38 ms explain the rest
    assert judged(slow, Calibration(10e6, 38e6, 50e6)).verdict_class is VerdictClass.HOST_CONTENTION
    assert judged(slow, Calibration(40e6, 5e6, 50e6)).verdict_class is VerdictClass.DISPATCH_BOUND


def test_launching_that_takes_longer_beside_the_pipeline_is_contention_and_the_device_keeps_its_share():
    # alone the step takes 29 ms, 25 of them on the device; beside the pipeline 39, and it waits for nothing
    unhurried = in_windows(waiting=0, calling=0)
    ran, slow = Calibration(29e6, 13e6, 39e6), divided(dispatch=36, device_compute=64)
    verdict = judged(slow, ran, job_steps=all_steps(0), input_stalls=unhurried)
    assert verdict.verdict_class is VerdictClass.HOST_CONTENTION
    assert verdict.lost_percent == pytest.approx(100 * 10 / 39, abs=0.1)
    assert verdict.step is not None
    assert verdict.step.busy_percent == pytest.approx(64)
    light = judged(slow, replace(ran, pipeline_only_ns=2e6), job_steps=all_steps(0), input_stalls=unhurried)
    assert light.verdict_class is VerdictClass.DISPATCH_BOUND  # 2 ms explain no more than 2
    assert light.lost_percent == pytest.approx(36 - 100 * 2 / 39, abs=0.1)


def test_contention_is_less_sure_where_the_pipelines_pace_may_be_the_limit():
    slow = divided(host_compute=40, dispatch=60)
    assert judged(slow, Calibration(10e6, 38e6, 50e6)).confidence is Confidence.MEDIUM
    assert judged(divided(host_compute=98, input_wait=2), Calibration(30e6, 25e6, 50e6)).confidence is Confidence.HIGH


def test_a_device_is_blamed_less_surely_where_competition_takes_half_of_what_would_give_the_run_its_name():
    busy = divided(host_compute=98, input_wait=2)
    for alone_ms, expected in ((46e6, Confidence.MEDIUM), (48e6, Confidence.HIGH)):
        found = judged(busy, Calibration(alone_ms, 25e6, 50e6))
        assert (found.verdict_class, found.confidence) == (VerdictClass.DEVICE_BOUND, expected)


@pytest.mark.parametrize(
    ("pipeline_cpu_ms", "cores_used", "expected"),
    [(12, 1.8, Confidence.MEDIUM), (8, 1.8, Confidence.HIGH), (12, 1.5, Confidence.HIGH)],
    ids=["a tenth of full cores and more", "less", "cores to spare"],
)
def test_a_device_is_blamed_less_surely_where_the_pipeline_works_on_the_same_full_cores(
    pipeline_cpu_ms: float, cores_used: float, expected: Confidence
):
    calibration = Calibration(49e6, 6e6, 50e6, pipeline_only_cpu_ns=pipeline_cpu_ms * 1e6)
    load = JobLoad(2.0, 2, cores_used, cores_used * 50e6, 0.0)
    found = judged(divided(host_compute=98, input_wait=2), calibration, job_load=load)
    assert (found.verdict_class, found.confidence) == (VerdictClass.DEVICE_BOUND, expected)


@pytest.mark.parametrize(
    ("alone_ms", "waited_first_percent", "is_kept"),
    [(5, 2, True), (5, 40, False), (40, 2, False)],
    ids=["alike", "waits less now", "faster than it now"],
)
def test_the_pipeline_alone_is_forgotten_where_it_has_changed(
    alone_ms: float, waited_first_percent: int, is_kept: bool
):
    first = PhaseTimes(Phase.FIRST_EPOCH, 20, 0, 28e6, 30e6, 100, waited_first_percent)
    later = PhaseTimes(Phase.LATER_EPOCHS, 60, 20, 22e6, 25e6, 100, 2)
    kept = without_first_pace(Calibration(18e6, alone_ms * 1e6, 22e6), first, later).pipeline_only_ns
    assert kept == (alone_ms * 1e6 if is_kept else None)


def test_a_pipeline_that_was_timed_after_the_last_epoch_is_that_of_later_epochs() -> None:
    # the first epoch waited, as all data were read; steps of 22 ms take 30 on average, with the beginnings of their epochs
    first = PhaseTimes(Phase.FIRST_EPOCH, 20, 0, 28e6, 30e6, 100, 40)
    later = PhaseTimes(Phase.LATER_EPOCHS, 60, 20, 22e6, 25e6, 60 * 30 * 10**6, 2)
    for alone_ms, kept_ms in ((5, 5), (28, 28), (31, None)):
        timed = Calibration(18e6, alone_ms * 1e6, 22e6, is_of_end=True)
        assert without_first_pace(timed, first, later).pipeline_only_ns == (kept_ms and kept_ms * 1e6)


def test_without_traced_steps_the_jobs_own_waits_speak():
    missing = Unavailable("No window.")
    verdict = reach_verdict(results.diagnosis(steps=missing, step_breakdown=missing))
    assert (verdict.verdict_class, verdict.confidence) == (VerdictClass.INPUT_BOUND, Confidence.MEDIUM)
    assert "no recorded steps" in verdict.doubts
    first = PhaseTimes(Phase.FIRST_EPOCH, 20, 0, 28e6, 30e6, 100, 40)
    of_later = reach_verdict(results.diagnosis(steps=missing, step_breakdown=missing), first)
    assert "no recorded steps of the later epochs" in of_later.doubts


def no_waits_recorded() -> JobSteps:
    """Return steps that wait, but for the recorded ones."""
    job = results.job_steps()
    waits = np.where(tables.bools(job.table, "profiled"), 0, tables.ints(job.table, "wait_ns"))
    return replace(job, table=tables.replace_column(job.table, "wait_ns", waits))


def test_where_windows_miss_the_beginnings_of_epochs_all_steps_give_the_number() -> None:
    """Shuffle buffers fill between the windows: the steps in them wait for 10 %, all steps for 64 %."""
    job = replace(no_waits_recorded(), total_ns=195 * 75 * results.MS, wait_total_ns=195 * 48 * results.MS)
    stalls = replace(results.input_stalls(), wait_ns=40 * 5 * results.MS, exposed_ns=40 * 5 * results.MS)
    part = divided(input_wait=10, device_compute=90)
    verdict = judged(part, job_steps=job, input_stalls=stalls)
    assert verdict.verdict_class is VerdictClass.INPUT_BOUND
    assert verdict.lost_percent == pytest.approx(64)
    assert verdict.sentence.startswith("The job is input-bound: 48 ms of each 75 ms step (64 %)")


@pytest.mark.parametrize(("waits", "lost"), [("all", 20.0), ("one", 39.6)])
def test_the_device_hides_no_more_of_a_wait_than_it_works_in_a_step(waits: str, lost: float) -> None:
    """In windows half of each wait is hidden. All steps wait for 40 %: each for 30 of 75 ms, or one of them for all."""
    job = results.job_steps()
    plain = ~tables.bools(job.table, "warmup")
    each = np.where(plain, 30 * results.MS, 0)
    one = np.where(np.cumsum(plain) == 1, each.sum(), 0) * plain
    table = tables.replace_column(job.table, "wait_ns", {"all": each, "one": one}[waits])
    job = replace(job, table=table, total_ns=75 * results.MS * int(plain.sum()), wait_total_ns=int(each.sum()))
    verdict = judged(
        divided(input_wait=5, host_compute=95), job_steps=job, input_stalls=in_windows(waiting=5, calling=10)
    )
    assert verdict.lost_percent == pytest.approx(lost, abs=0.5)


def test_python_that_takes_cores_from_the_step_is_named_with_its_line() -> None:
    python = PythonPart("PyDataset", UserFunction("Pets.__getitem__", "__main__", "/home/me/train.py", 89, 99))
    call = WrittenCall("model.fit(pets)", SourcePlace("/home/me/train.py", 215, 215, 0, 9, 215), (python,))
    losses = Losses({VerdictClass.HOST_CONTENTION: 27.0}, 50e6, Busy.HOST_COMPUTE)
    said = write_sentence(VerdictClass.HOST_CONTENTION, None, Blame(stage="Generator", calls=(call,)), losses)
    assert said.endswith(
        "most of all train.py:215 model.fit(pets), which runs Python in Pets.__getitem__ (train.py:89)."
    )


def test_calls_for_a_batch_that_are_filled_with_ops_are_no_wait_in_windows_that_are_a_fair_sample() -> None:
    """A distributed iterator that unpacks sparse tensors: its calls take 60 % of all steps, recorded or not; tf.data 2 %."""
    job, stalls = results.job_steps(), in_windows(waiting=2, calling=2)
    assert job.wait_percent == pytest.approx(60, abs=2)
    verdict = judged(divided(input_wait=2, dispatch=90, device_compute=8), job_steps=job, input_stalls=stalls)
    assert verdict.verdict_class is VerdictClass.DISPATCH_BOUND
    verdict = judged(
        divided(input_wait=2, dispatch=90, device_compute=8), job_steps=no_waits_recorded(), input_stalls=stalls
    )
    assert verdict.verdict_class is VerdictClass.INPUT_BOUND


def test_without_any_steps_nothing_is_claimed():
    missing = Unavailable("No steps in this trace: record more.")
    verdict = reach_verdict(results.diagnosis(steps=missing, step_breakdown=missing, job_steps=missing))
    assert (verdict.verdict_class, verdict.confidence) == (VerdictClass.UNKNOWN, Confidence.LOW)
    assert "No steps in this trace" in verdict.sentence


STRONG = divided(input_wait=60, device_compute=40)
CALIBRATED = Calibration(20e6, 49e6, 50e6)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Confidence.HIGH),
        ({"calibration": NO_CALIBRATION}, Confidence.MEDIUM),
        ({"other_cpu_percent": 90.0}, Confidence.MEDIUM),
        ({"steps": replace(results.steps(), table=results.steps().table.slice(0, 5))}, Confidence.MEDIUM),
        ({"steps": replace(results.steps(), table=results.steps().table.slice(0, 1))}, Confidence.LOW),
        ({"steps": replace(results.steps(), first_step_only=True)}, Confidence.LOW),
        (
            {"source": replace(results.diagnosis().source, salvaged=Salvage(10, 5, "Cut off."))},
            Confidence.MEDIUM,
        ),
    ],
)
def test_every_weakness_lowers_the_confidence(changes: dict[str, object], expected: Confidence):
    whole: Diagnosis = results.diagnosis(**{"step_breakdown": STRONG, "calibration": CALIBRATED, **changes})
    assert reach_verdict(whole).confidence is expected


def test_a_low_confidence_says_why_and_a_higher_one_needs_no_words():
    few = replace(results.steps(), table=results.steps().table.slice(0, 2))
    found = reach_verdict(results.diagnosis(step_breakdown=STRONG, calibration=CALIBRATED, steps=few))
    assert found.certainty == "confidence: low (only 2 recorded steps)"
    many = {"steps": replace(few, table=results.steps().table.slice(0, 5)), "other_cpu_percent": 90.0}
    doubtful = reach_verdict(results.diagnosis(step_breakdown=STRONG, calibration=NO_CALIBRATION, **many))
    assert doubtful.certainty == "confidence: low (only 5 recorded steps, other programs on the machine)"
    assert doubtful.to_json()["doubts"] == [
        "only 5 recorded steps",
        "other programs on the machine",
        "compute-only step not timed",
    ]
    sure = reach_verdict(results.diagnosis(step_breakdown=STRONG, calibration=CALIBRATED))
    assert (sure.certainty, sure.doubts) == ("confidence: high", ())


def test_idle_time_is_called_by_its_cause():
    assert judged(divided(python=66, host_compute=34)).label == "idle: Python"
    assert judged(divided(other=66, host_compute=34)).label == "idle: cause unknown"
    assert judged(divided(other=66, host_compute=34)).to_json()["class"] == "idle-other"


def test_a_narrow_margin_lowers_the_confidence():
    assert (
        judged(divided(input_wait=7, device_compute=93), Calibration(46e6, 5e6, 50e6)).confidence is Confidence.MEDIUM
    )


def test_a_wait_worth_acting_on_is_not_hidden_by_larger_losses_that_are_not():
    shares = {VerdictClass.INPUT_BOUND: 18.0, VerdictClass.DISPATCH_BOUND: 19.0, VerdictClass.IDLE_OTHER: 19.0}
    assert choose_class(Losses(shares, 1e6, Busy.DEVICE)) is VerdictClass.INPUT_BOUND


def test_several_steps_per_execution_are_judged_by_the_training_step():
    four_in_one = replace(results.steps(100), steps_per_marker=4.0)
    verdict = judged(divided(input_wait=60, device_compute=40), steps=four_in_one, job_steps=Unavailable("A log."))
    assert verdict.evidence[0].value == format_duration(results.STEP_NS / 4)
    assert format_duration(results.STEP_NS * 0.6 / 4) in verdict.sentence


def test_times_that_cannot_be_true_together_get_no_verdict():
    gaps, whole = results.idle_gaps(), divided(checkpoint=66, device_compute=34)
    damaged = [
        {"idle_gaps": replace(gaps, by_cause_ns={**gaps.by_cause_ns, GapCause.UNKNOWN: 10**12})},
        {"idle_gaps": replace(gaps, devices=(replace(gaps.devices[0], busy_ns=-1), *gaps.devices[1:]))},
    ]
    verdicts = [*(judged(whole, **changed) for changed in damaged), judged(replace(whole, adds_up=False))]
    for verdict in verdicts:
        assert (verdict.verdict_class, verdict.confidence) == (VerdictClass.UNKNOWN, Confidence.LOW)
        assert "The trace contradicts itself: " in verdict.sentence
