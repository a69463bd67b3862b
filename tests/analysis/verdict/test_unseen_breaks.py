"""What lies between epochs that no profile window saw; steps as in ``test_verdict_rules``."""

from dataclasses import replace

import pytest

from pipeline_lab.analysis.causes import StepPart, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.checkpoints import Checkpoints
from pipeline_lab.analysis.steps.iterator_ends import IteratorEnds
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.verdict.judged_parts import judged_parts_ns, name_parts_basis
from pipeline_lab.analysis.verdict.losses import measure_losses
from pipeline_lab.analysis.verdict.unseen_breaks import find_unseen_percent
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_duration
from tests.analysis.verdict.test_verdict_rules import NO_CALIBRATION, NO_STARTS, divided, judged
from tests.support import results


def test_ends_of_iterators_that_no_window_saw_are_lost_time():
    """All 100 steps take five thirds of the recorded ones on average, whose device always works; ends of iterators take 30 % of them."""
    recorded_ns = float(results.steps().training_step_ns.mean())
    total_ns = round(100 * recorded_ns * 5 / 3)
    job = replace(results.job_steps(), count=100, total_ns=total_ns, wait_total_ns=0)
    changes = {
        "job_steps": job,
        "iterator_starts": NO_STARTS,
        "checkpoints": Unavailable("none"),
        "calibration": Unavailable("not timed"),
    }
    some, most = (IteratorEnds(5, round(share * total_ns), 10**8, total_ns) for share in (0.3, 0.9))
    verdict = judged(divided(device_compute=100), iterator_ends=some, **changes)
    assert (verdict.verdict_class, verdict.cause) == (VerdictClass.IDLE_OTHER, "iterator_end")
    assert verdict.lost_percent == pytest.approx(30)
    assert f"of each {format_duration(recorded_ns * 5 / 3)} step (30 %)" in verdict.sentence
    whole = results.diagnosis(step_breakdown=divided(device_compute=100), iterator_ends=some, **changes)
    parts = judged_parts_ns(whole)
    assert not isinstance(parts, Unavailable), "the picture shows what the sentence speaks of"
    assert parts[StepPart.ITERATOR_END] == pytest.approx(0.3 * recorded_ns * 5 / 3)
    assert "and of the iterator setup and teardown between all steps" in name_parts_basis(whole, verdict.step)
    capped = judged(divided(device_compute=100), iterator_ends=most, **changes)
    assert capped.lost_percent == pytest.approx(40), "the recorded steps hold none of them"
    seen = judged(divided(device_compute=80, iterator_end=20), iterator_ends=some, **changes)
    assert seen.lost_percent == pytest.approx(30), "a fifth of the recorded steps is part of it"
    assert judged(divided(device_compute=100), **changes).verdict_class is VerdictClass.DEVICE_BOUND


def test_what_lies_between_epochs_and_no_window_saw_is_no_competition():
    """Steps of 14 ms on average, 6 usually: 1 waiting, 2.5 alone, 2.5 slowed by the pipeline, and 8 between epochs."""
    job = replace(
        results.job_steps(), count=100, total_ns=1400 * results.MS, wait_total_ns=100 * results.MS, call_total_ns=None
    )
    job = replace(job, break_total_ns=820 * results.MS)
    calibration = Calibration(2.5e6, 9e6, 6e6)
    unseen = {"steps": Unavailable("none"), "step_breakdown": Unavailable("none"), "input_stalls": Unavailable("none")}
    found = results.diagnosis(job_steps=job, calibration=calibration, iterator_starts=NO_STARTS, **unseen)
    losses = measure_losses(found)
    assert losses is not None
    ms = {kind: percent / 100 * 14 for kind, percent in losses.by_class.items()}
    assert ms[VerdictClass.INPUT_BOUND] == pytest.approx(1.0)
    assert ms[VerdictClass.HOST_CONTENTION] == pytest.approx(2.5)
    assert ms[VerdictClass.IDLE_OTHER] == pytest.approx(8.0), "the last calls' work goes on for 0.2 ms of each break"
    verdict = reach_verdict(found)
    assert (verdict.verdict_class, verdict.cause) == (VerdictClass.IDLE_OTHER, "python")
    assert verdict.sentence.startswith("Between its epochs the job stands still for 7.86 ms of each 14 ms step")
    assert verdict.break_percent == pytest.approx(100 * 7.86 / 14, abs=0.01), "the rest of it are ends of iterators"
    ends = replace(found, iterator_ends=IteratorEnds(9, 500 * results.MS, 100 * results.MS, 1400 * results.MS))
    verdict = reach_verdict(ends)
    assert (verdict.cause, verdict.lost_percent) == ("iterator_end", pytest.approx(100 * 5 / 14))
    assert verdict.break_percent == pytest.approx(100 * 3 / 14)
    less = reach_verdict(replace(found, job_steps=replace(job, break_total_ns=0)))
    assert less.verdict_class is VerdictClass.HOST_CONTENTION
    assert less.lost_percent == pytest.approx(100 * 2.5 / 14)


def test_breaks_of_a_device_that_may_work_on_are_not_counted_where_the_step_alone_is_not_known():
    job = replace(results.job_steps(), break_total_ns=10**9)
    unknown = None
    hidden = tables.replace_column(job.table, "compute_ns", unknown)
    unseen = {"steps": Unavailable("none"), "step_breakdown": Unavailable("none"), "input_stalls": Unavailable("none")}
    found = results.diagnosis(job_steps=replace(job, table=hidden), calibration=NO_CALIBRATION, **unseen)
    losses = measure_losses(found)
    assert losses is not None
    assert VerdictClass.IDLE_OTHER not in losses.by_class
    losses = measure_losses(replace(found, job_steps=job))
    assert losses is not None
    assert losses.by_class[VerdictClass.IDLE_OTHER] == pytest.approx(100 * 10**9 / job.total_ns)


def test_breaks_between_epochs_that_no_window_saw_are_part_of_the_picture():
    recorded_ns = float(results.steps().training_step_ns.mean())
    total_ns = round(100 * recorded_ns * 2)
    job = replace(
        results.job_steps(), count=100, total_ns=total_ns, wait_total_ns=0, break_total_ns=round(0.4 * total_ns)
    )
    ends = IteratorEnds(5, round(0.1 * total_ns), 10**8, total_ns)
    whole = results.diagnosis(
        step_breakdown=divided(device_compute=100),
        job_steps=job,
        iterator_starts=NO_STARTS,
        iterator_ends=ends,
        checkpoints=Unavailable("none"),
        calibration=NO_CALIBRATION,
    )
    verdict = reach_verdict(whole)
    assert (verdict.verdict_class, verdict.cause) == (VerdictClass.IDLE_OTHER, "python")
    assert verdict.lost_percent == pytest.approx(30)
    assert verdict.sentence.startswith("Between its epochs the job stands still for 30 ms of each 100 ms step (30 %)")
    assert verdict.sentence.endswith("; other causes add 10 ms.")
    parts = judged_parts_ns(whole)
    assert not isinstance(parts, Unavailable)
    assert parts[StepPart.PYTHON] == pytest.approx(0.3 * 2 * recorded_ns)
    assert parts[StepPart.ITERATOR_END] == pytest.approx(0.1 * 2 * recorded_ns)
    assert "and of the time between all epochs" in name_parts_basis(whole, verdict.step)


def with_breaks(
    breakdown: StepBreakdown, *, breaks: float, ends: float = 0.0, waits: float = 0.0, **changes: object
) -> Diagnosis:
    """Return a job all of whose steps take twice as long as the recorded ones: shares of its time between epochs and in waits."""
    recorded_ns = float(results.steps().training_step_ns.mean())
    total_ns = round(100 * recorded_ns * 2)
    job = replace(
        results.job_steps(),
        count=100,
        total_ns=total_ns,
        wait_total_ns=round(waits * total_ns),
        call_total_ns=None,
        break_total_ns=round(breaks * total_ns),
    )
    ended = IteratorEnds(5, round(ends * total_ns), 10**8, total_ns) if ends else Unavailable("none")
    iterators = {"iterator_starts": NO_STARTS, "iterator_ends": ended, "checkpoints": Unavailable("none")}
    parts = {"step_breakdown": breakdown, "job_steps": job, "calibration": NO_CALIBRATION, **iterators}
    return results.diagnosis(**(parts | changes))


@pytest.mark.parametrize("worker", ["device_compute", "host_compute"])
def test_checkpoints_that_no_window_saw_are_lost_time(worker: str):
    """Checkpoints take 0.35 of all steps, which take twice as long as the recorded ones; what else lies between epochs takes 0.1."""
    total_ns = round(100 * float(results.steps().training_step_ns.mean()) * 2)
    saved = Checkpoints(5, round(0.35 * total_ns), 10**8, total_ns)
    whole = with_breaks(divided(**{worker: 100}), breaks=0.1, checkpoints=saved)
    verdict = reach_verdict(whole)
    assert (verdict.cause, verdict.lost_percent) == ("checkpoint", pytest.approx(35))
    assert verdict.sentence.startswith("Writing checkpoints leaves the")
    parts = judged_parts_ns(whole)
    assert not isinstance(parts, Unavailable)
    assert parts[StepPart.CHECKPOINT] == pytest.approx(0.35 * total_ns / 100)
    assert "and of the checkpoints between all steps" in name_parts_basis(whole, verdict.step)
    seen = reach_verdict(with_breaks(divided(**{worker: 60}, checkpoint=40), breaks=0.1, checkpoints=saved))
    assert seen.lost_percent == pytest.approx(36), "of nine tenths of each step: no more than the windows saw"


def test_a_cause_in_the_windows_keeps_its_own_sentence_beside_smaller_breaks():
    # of all steps: 0.86 x 30 % checkpoints are 25.8 %, breaks 14 %
    verdict = reach_verdict(with_breaks(divided(checkpoint=30, device_compute=70), breaks=0.14))
    assert verdict.cause == "checkpoint"
    assert verdict.sentence.startswith("Writing checkpoints leaves the device idle")
    assert not verdict.is_about_breaks
    ends = reach_verdict(with_breaks(divided(device_compute=100), breaks=0.40, ends=0.21))
    assert ends.cause == "iterator_end"
    assert ends.lost_percent == pytest.approx(21)
    assert ends.sentence.startswith("Setting up and tearing down tf.data iterators")
    mixed = reach_verdict(with_breaks(divided(python=40, device_compute=60), breaks=0.10))
    assert mixed.sentence.startswith("Python code between TensorFlow's calls"), "36 % between steps, 10 between epochs"


def test_waits_at_the_beginning_of_epochs_are_no_breaks():
    """All that steps take beyond the recorded ones are waits; what the device still does in breaks is not lost again."""
    losses = measure_losses(with_breaks(divided(device_compute=100), breaks=0.5, waits=0.5))
    assert losses is not None
    assert losses.breaking_percent == 0
    assert losses.by_class[VerdictClass.IDLE_OTHER] == 0


def test_a_slow_pipeline_and_breaks_share_the_step_between_them():
    """Of steps of 50 ms a pipeline that alone takes 45 makes 20 of 25; as long again lies between epochs."""
    recorded_ns = float(results.steps().training_step_ns.mean())
    slow = Calibration(0.4 * recorded_ns, 0.9 * recorded_ns, recorded_ns)
    losses = measure_losses(with_breaks(divided(host_compute=100), breaks=0.5, calibration=slow))
    assert losses is not None
    assert losses.by_class[VerdictClass.INPUT_BOUND] == pytest.approx(25)
    assert losses.by_class[VerdictClass.IDLE_OTHER] == pytest.approx(50)
    assert losses.breaking_percent == pytest.approx(50)
    assert sum(losses.by_class.values()) <= 100


@pytest.mark.parametrize("breaks", [0.3, 0.4, 0.6])
def test_without_a_device_what_windows_saw_of_iterators_is_not_counted_again(breaks: float):
    """All steps are as long as the recorded ones, whose windows saw the 30 % that the job timed; the rest of the breaks is unknown."""
    found = with_breaks(divided(host_compute=70, iterator_end=30), breaks=breaks, ends=0.3)
    assert not isinstance(found.job_steps, Unavailable)
    recorded_ns = float(results.steps().training_step_ns.mean())
    all_steps = replace(
        found.job_steps, total_ns=round(100 * recorded_ns), break_total_ns=round(breaks * 100 * recorded_ns)
    )
    ends = IteratorEnds(5, round(0.3 * all_steps.total_ns), 10**8, all_steps.total_ns)
    assert find_unseen_percent(replace(found, job_steps=all_steps, iterator_ends=ends)) is None
