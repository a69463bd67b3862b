"""Jobs on a GPU that are recorded by the user: a script that never waits for it, and Keras' ``fit``; on the pretend one."""

import json
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab import analyze
from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.runs.run_events import WindowEvent, read_events
from pipeline_lab.runs.store import RunStore
from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu
from tests.support.patience import unless_late

STEP_NS = 100_000_000
"""Long beside what the host needs for a step."""
PYTHON_S = 0.05
"""The device works meanwhile."""
EVERY_S = 0.5
SCRIPT = f"""
import json, time
import tensorflow as tf
from tensorflow.python.eager import context

time.sleep({2 * EVERY_S})
uses_devices = context.context()._initialized
chosen_ns = time.time_ns()
factors = tf.Variable(tf.ones([8, 8]))

@tf.function
def step(batch):
    factors.assign(0.1 * tf.linalg.matmul(batch, factors))

batches = tf.data.Dataset.from_tensors(tf.ones([8, 8])).repeat().prefetch(2)
for batch, _ in zip(batches, range(40)):
    step(batch)
    time.sleep({PYTHON_S})
json.dump({{"used_devices": uses_devices, "chosen_ns": chosen_ns}}, open("noted.json", "w"))
"""


@unless_late
def test_a_loop_that_never_waits_for_its_gpu_is_told_by_what_the_gpu_does(ask_gpu: AskGpu, tmp_path: Path) -> None:
    """NVML is silent, so that only TensorFlow tells that there is a GPU."""
    (tmp_path / "train.py").write_text(SCRIPT)
    gpu = PretendGpu(op_us={"MatMul": STEP_NS / 1e3}, nvml_errors={"nvmlInitWithFlags": 9})
    ask_gpu("tests.capture.gpu_tasks:watch", gpu=gpu, folder=str(tmp_path), every_s=EVERY_S, window_s=0.6)
    store = RunStore(tmp_path / "store")
    (run,) = store.runs()
    folder = store.folder(run.id)
    noted = json.loads((tmp_path / "noted.json").read_text())
    windows = [event for event in read_events(folder.events) if isinstance(event, WindowEvent)]
    assert not noted["used_devices"], "the profiler would have chosen devices before the script did"
    assert min(window.started_ns for window in windows) > noted["chosen_ns"]
    assert store.read(run.id).environment["device"] == "GPU 0: PRETEND_GPU"
    diagnosis = analyze(folder.path)
    assert isinstance(diagnosis.steps, Steps)
    assert np.median(diagnosis.steps.length_ns) == pytest.approx(STEP_NS, rel=0.1)
    assert diagnosis.verdict.verdict_class is VerdictClass.DEVICE_BOUND


def test_a_gpu_that_the_profiler_may_not_look_at_is_told_with_the_profilers_own_words(
    ask_gpu: AskGpu, tmp_path: Path
) -> None:
    refused = "Insufficient privilege to run libcupti (you need root permission)."
    gpu = PretendGpu(has_trace=False, profiler_error=refused, profiler_warning="GPU events dropped: 7")
    assert not any(ask_gpu("tests.worker.train.gpu_training:products_in_windows", gpu=gpu, store=str(tmp_path)))
    (record,) = RunStore(tmp_path).runs()
    told = {one.kind: one.sentence for one in analyze(RunStore(tmp_path).folder(record.id).path).findings}
    assert "holds nothing of its work" in told["device-plane-missing"]
    assert told["profiler-error"].startswith(f"The profiler reports an error: {refused} Let the profiler use CUPTI:")
    assert "GPU events dropped" in told["profiler-warning"]


def test_between_windows_fit_waits_for_its_gpu_as_often_as_without_them(ask_gpu: AskGpu, tmp_path: Path) -> None:
    plain, with_windows = ask_gpu("tests.capture.gpu_tasks:copies_of_fit", store=str(tmp_path))
    assert plain > 0
    assert with_windows == plain


def test_the_recipe_is_written_beside_the_training(ask_gpu: AskGpu, tmp_path: Path) -> None:
    assert set(ask_gpu("tests.capture.gpu_tasks:recipe_written_by", store=str(tmp_path))) == {"recipe"}


@unless_late
def test_a_checkpoint_of_a_script_does_not_count_the_steps_that_it_waits_for(ask_gpu: AskGpu, tmp_path: Path) -> None:
    gpu = PretendGpu(op_us={"MatMul": STEP_NS / 1e3})
    found = ask_gpu("tests.capture.gpu_tasks:save_while_working", gpu=gpu, folder=str(tmp_path))
    (begun, ended), (noted, noted_end) = found["called"], found["noted"]
    assert ended - begun > 2 * STEP_NS, "the weights are there when their steps are done"
    assert noted - begun > 2 * STEP_NS
    assert noted - found["launched"][0] >= 4 * STEP_NS, "it waits for all of them first"
    assert noted_end - noted < STEP_NS
