"""Captures of an H200, beside what a stopwatch said while they were recorded."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from pipeline_lab.advice.advising import advise
from pipeline_lab.analysis.activity.step_spans import StepRule
from pipeline_lab.analysis.causes import GapCause, StepPart, VerdictClass
from pipeline_lab.analysis.diagnosis.diagnose import Diagnosis, diagnose
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.verdict.judged_parts import judged_parts_ns
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS

RECORDED = Path(__file__).parents[2] / "data" / "gpu"
TRUTH: dict[str, dict[str, Any]] = json.loads((RECORDED / "truth.json").read_text())
LAYING_OUT_MS = 10.5
"""What a batch takes the host before it is copied: the step on a new batch takes that longer than on one that the device holds."""


def read(name: str) -> Diagnosis:
    return advise(diagnose(RECORDED / f"{name}.xplane.pb.gz"))


def steps_of(found: Diagnosis) -> Steps:
    assert not isinstance(found.steps, Unavailable)
    return found.steps


def parts_ms(found: Diagnosis) -> dict[StepPart, float]:
    parts = judged_parts_ns(found)
    assert not isinstance(parts, Unavailable)
    return {part: length / NS_PER_MS for part, length in parts.items()}


@pytest.mark.parametrize(
    ("name", "marker", "count"),
    [
        ("jax_stalls", "Trace 'train' (step_num)", 30),
        ("jax_fed", "Trace 'train' (step_num)", 30),
        ("jax_no_marks", "rhythm of PjitFunction(train_step)", 11),  # the last call has no next one
    ],
)
def test_steps_in_jax_are_as_long_as_the_stopwatch_says(name: str, marker: str, count: int):
    steps = steps_of(read(name))
    assert (steps.marker, steps.count) == (marker, count)
    assert float(steps.length_ns.mean()) / NS_PER_MS == pytest.approx(mean(TRUTH[name]["step_ms"]), rel=0.015)


@pytest.mark.parametrize("name", ["jax_stalls", "jax_fed", "jax_no_marks"])
def test_parts_of_a_step_in_jax_are_what_the_stopwatch_says(name: str):
    parts, truth = parts_ms(read(name)), TRUTH[name]
    assert parts[StepPart.DEVICE_COMPUTE] == pytest.approx(truth["compute_alone_ms"], rel=0.06)
    assert parts[StepPart.PYTHON] == pytest.approx(mean(truth["wait_ms"]), abs=1.1)
    assert parts[StepPart.HOST_TO_DEVICE] == pytest.approx(LAYING_OUT_MS, abs=2.1)


def test_a_loop_in_jax_that_reads_no_result_waits_for_what_the_device_does_not_hide():
    found, truth = read("jax_unread"), TRUTH["jax_unread"]
    steps, parts = steps_of(found), parts_ms(found)
    assert (steps.count, steps.rule) == (30, StepRule.DEVICE_WORK)
    assert float(steps.length_ns.mean()) / NS_PER_MS == pytest.approx(truth["loop_ms"] / 30, rel=0.015)
    computes_ms = parts[StepPart.DEVICE_COMPUTE]
    assert computes_ms == pytest.approx(truth["compute_alone_ms"], rel=0.06)
    unhidden_ms = mean(max(0.0, wait_ms - computes_ms) for wait_ms in truth["wait_ms"])
    assert parts[StepPart.PYTHON] == pytest.approx(unhidden_ms, abs=1.1)
    assert found.verdict.verdict_class is VerdictClass.HOST_TO_DEVICE_BOUND


def test_a_batch_that_has_to_be_laid_out_for_its_copy_is_no_dispatch():
    found = read("jax_fed")
    assert found.verdict.verdict_class is VerdictClass.HOST_TO_DEVICE_BOUND
    assert found.verdict.suggestions[0].change.startswith("Keep images as uint8")
    assert "jax.device_put" in found.verdict.suggestions[0].change
    assert parts_ms(found)[StepPart.DISPATCH] < 0.5
    assert found.verdict.step is not None
    assert isinstance(found.verdict.step.input_percent, Unavailable), "not measured is never zero"


def test_a_generator_between_steps_in_jax_is_python_with_advice_for_jax():
    found = read("jax_stalls").verdict
    assert (found.verdict_class, found.cause) == (VerdictClass.IDLE_OTHER, GapCause.PYTHON)
    assert found.sentence.startswith("Python code between JAX's calls")
    assert "make them ahead" in found.suggestions[0].change
    assert not found.suggestions[0].command, "watch and fix are for TensorFlow"


def test_the_function_that_holds_the_device_up_is_named_where_python_was_traced():
    python = read("jax_no_marks").idle_python
    assert not isinstance(python, Unavailable)
    first, *_ = python.functions
    assert first.place == "batches (jax_capture.py:10)", "the generator, and not the loop that takes its batches"
    waited_ms = sum(
        TRUTH["jax_no_marks"]["wait_ms"][1:]
    )  # each step lasts from a call to the next, so the first wait is in none
    assert first.idle_ns / NS_PER_MS == pytest.approx(waited_ms, rel=0.02)
    assert python.total_ns == pytest.approx(first.idle_ns, rel=0.1)
    assert isinstance(read("jax_stalls").idle_python, Unavailable)
    (said,) = (each.sentence for each in read("jax_no_marks").findings if each.kind == "idle-python")
    assert said.startswith("For 37 % of the time of recorded steps the device waits for Python")
    assert said.endswith("of that in batches (jax_capture.py:10).")


def test_python_between_the_steps_of_tensorflow_on_a_gpu():
    found = read("tensorflow_python")
    assert (found.verdict.verdict_class, found.verdict.cause) == (VerdictClass.IDLE_OTHER, GapCause.PYTHON)
    assert found.verdict.sentence.startswith("Python code between TensorFlow's calls")
    parts = parts_ms(found)
    assert parts[StepPart.PYTHON] == pytest.approx(10.0 - 3.2, abs=0.5)  # the device works on for 3 ms of the pause
    assert parts[StepPart.DEVICE_COMPUTE] == pytest.approx(7.4, abs=0.1)
