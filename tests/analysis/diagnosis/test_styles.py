"""Training styles of TensorFlow 2.21, as recorded by ``python -m benchmarks.styles``."""

import json
from pathlib import Path

import pytest

from benchmarks.styles import STYLES
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, TfData
from pipeline_lab.units import NS_PER_MS

RECORDED = Path(__file__).parents[2] / "data" / "styles"
TRUTH = json.loads((RECORDED / "truth.json").read_text())
MARKERS = {
    "custom_loop": "Trace 'train' (step_num)",
    "range_inside": "Trace 'train' (step_num)",
    "dataset_inside": "rhythm of a loop in tf.function",
    "map_fn_inside": "Trace 'train' (step_num)",
    "keras_tensorboard": "Keras 'Profiled batch' (step_num)",
    "keras_tensorboard_4_per_execution": "Keras 'Profiled batch' (step_num)",
    "keras_fit": "Keras 'multi_step_on_iterator'",
    "keras_fit_4_per_execution": "Keras 'multi_step_on_iterator'",
    "mirrored": "Trace 'train' (step_num)",
    "mirrored_without_markers": "rhythm of IteratorGetNextAsOptionalOp::DoCompute",
    "no_markers": "rhythm of IteratorGetNextOp::DoCompute",
}


def read(style: str) -> tuple[Steps, InputStalls]:
    diagnosis = diagnose(RECORDED / f"{style}.xplane.pb")
    assert isinstance(diagnosis.steps, Steps)
    assert isinstance(diagnosis.input_stalls, InputStalls)
    return diagnosis.steps, diagnosis.input_stalls


@pytest.mark.parametrize("style", STYLES)
def test_steps_and_marker_of_every_style(style: str) -> None:
    steps, stalls = read(style)
    taken = TRUTH[style]["steps"] // TRUTH[style]["steps_per_execution"]
    is_open = MARKERS[style].startswith("rhythm of Iterator")  # the last step has no end then
    assert steps.marker == MARKERS[style]
    assert steps.count == taken - is_open
    assert steps.steps_per_marker == TRUTH[style]["steps_per_execution"]
    assert stalls.wait_ns > 0


def test_what_a_loop_inside_of_a_function_waits_for_is_followed_into_its_pipeline() -> None:
    diagnosis = diagnose(RECORDED / "dataset_inside.xplane.pb")
    assert isinstance(diagnosis.tf_data, TfData)
    path = diagnosis.tf_data.critical_path
    assert isinstance(path, CriticalPath)
    assert path.wait_ns == read("dataset_inside")[1].wait_ns
    assert diagnosis.verdict.stage == "Generator"


@pytest.mark.parametrize("style", [style for style in STYLES if "mirrored" not in style])  # it prefetches
def test_a_step_waits_as_long_as_its_batches_take(style: str) -> None:
    steps, _ = read(style)
    known_ms = TRUTH[style]["batch_ms"] * TRUTH[style]["steps_per_execution"]
    waits_ms = steps.table.column("wait_ns").to_numpy() / NS_PER_MS
    assert (waits_ms >= known_ms).all()
    assert (waits_ms <= steps.length_ns / NS_PER_MS).all()
