"""Verdicts of jobs that call Keras' ``predict`` with a batch at a time."""

from dataclasses import replace

import pytest

from pipeline_lab.analysis.causes import StepPart, VerdictClass
from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.analysis.verdict.judged_parts import judged_parts_ns, name_parts_basis
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_events import PredictEvent
from tests.analysis.verdict.test_verdict_rules import NO_PIPELINE, NO_STARTS, divided, judged
from tests.support import results


@pytest.mark.parametrize(
    ("waits_ms", "calls", "expected"), [(1, 20, VerdictClass.IDLE_OTHER), (60, 20, None), (1, 9, None)]
)
def test_calls_of_predict_between_own_steps_are_no_work_of_the_step(
    waits_ms: int, calls: int, expected: VerdictClass | None
) -> None:
    """Of steps of 75 ms, 30 % wait for the script, and two lines predict for 60 %; nine calls are too few to tell."""
    missing, job = Unavailable("No dataset makes the batches."), results.job_steps()
    lines = [PredictEvent(f"q.predict at train.py:{line}", calls // 2, 30 * 10**6, 10**8) for line in (40, 34)]
    own = replace(
        job,
        own_call="q.train_on_batch at train.py:42",
        predicts=Predicts(tuple(lines)),
        total_ns=job.count * 75 * results.MS,
        wait_total_ns=job.count * waits_ms * results.MS,
    )
    verdict = reach_verdict(
        results.diagnosis(
            steps=missing, step_breakdown=missing, input_stalls=missing, calibration=missing, job_steps=own
        )
    )
    assert (verdict.verdict_class is VerdictClass.IDLE_OTHER) is (expected is not None)
    if expected is not None:
        assert verdict.label == "idle: predictions"
        assert verdict.sentence == (
            "Between its steps the job predicts a batch at a time for 45 ms of each 75 ms step (60 %), in q.predict at "
            "train.py:40, q.predict at train.py:34."
        )


@pytest.mark.parametrize(("percent", "is_said"), [(86, True), (40, False)])
def test_calls_of_predict_that_take_most_of_the_time_are_what_is_said_wherever_they_are(
    percent: int, is_said: bool
) -> None:
    """The loop has no call of its own for a batch; in windows the step seems busy for 80 %."""
    job = replace(
        results.job_steps(),
        predicts=Predicts((PredictEvent("net.predict at train.py:20", 20, percent * 10**6, 10**8),)),
    )
    part = divided(python=20, device_compute=80)
    verdict = judged(part, job_steps=job)
    assert (verdict.label == "idle: predictions") is is_said
    found = results.diagnosis(step_breakdown=part, job_steps=job, iterator_starts=NO_STARTS, tf_data=NO_PIPELINE)
    parts = judged_parts_ns(found)
    assert not isinstance(parts, Unavailable)
    if is_said:
        assert sum(parts.values()) == pytest.approx(job.mean_ns)
        assert parts[StepPart.PYTHON] / job.mean_ns == pytest.approx(0.86 + 0.2 * 0.14)
    assert ("calls of predict count as Python" in name_parts_basis(found, verdict.step)) is is_said
    assert ("(86 %), in net.predict at train.py:20" in verdict.sentence) is is_said
