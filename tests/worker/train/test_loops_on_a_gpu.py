"""The host stays ahead of a device that works beside it, and each step's row holds its own time; on the pretend GPU."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.analysis.steps.job_steps import divide_time
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, read_table
from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu
from tests.support.patience import unless_late
from tests.support.presets import SYNTHETIC

TASKS = "tests.worker.train.gpu_training"
STEP_NS = 300_000_000
"""Long beside what the host needs for a step."""
SLOW = PretendGpu(op_us={"MatMul": STEP_NS / 1e3})
SHORT = [("training.steps", "5"), ("training.warmup_steps", "1"), ("profiling.enabled", "false")]


def _train(ask_gpu: AskGpu, root: Path, *settings: tuple[str, str], gpu: PretendGpu = SLOW, **how: bool) -> RunFolder:
    options = set_options(SYNTHETIC.options, [*SHORT, *settings]).model_dump_json()
    return RunFolder(Path(ask_gpu(f"{TASKS}:train", gpu=gpu, folder=str(root), options=options, **how)))


@unless_late
def test_steps_are_launched_while_the_device_has_earlier_ones_to_do(ask_gpu: AskGpu, tmp_path: Path) -> None:
    steps = read_table(_train(ask_gpu, tmp_path).steps, STEPS)
    request, ready = (steps[name].to_numpy() for name in ("start_ns", "ready_ns"))
    assert (request[2:] < ready[1:-1]).any(), "nobody waits for the result of a step before the next one is launched"
    assert steps["loss"].to_pylist() == [1, 2, 3, 4, 5, 6]
    rows = divide_time(steps)
    assert np.mean(rows.step_ns[1:]) == pytest.approx(STEP_NS, rel=0.5)
    assert np.mean(rows.compute_ns[1:]) == pytest.approx(STEP_NS, rel=0.5)


@unless_late
def test_what_a_step_left_on_the_device_is_read_before_later_steps_are_done(ask_gpu: AskGpu) -> None:
    assert ask_gpu(f"{TASKS}:read_while_working", gpu=SLOW) == {"result": [True, False], "batch": [True, False]}


@unless_late
def test_a_batch_that_comes_with_the_end_of_the_step_before_is_no_wait_for_input(
    ask_gpu: AskGpu, tmp_path: Path
) -> None:
    """prefetch_to_device copies a batch when the device gets to it."""
    folder = _train(ask_gpu, tmp_path, on_device=True)
    steps = read_table(folder.steps, STEPS)
    rows = divide_time(steps)
    assert steps["wait_ns"].to_numpy()[2:].max() > STEP_NS / 2
    assert rows.wait_ns[1:].sum() < STEP_NS / 2
    assert np.mean(rows.step_ns[1:]) == pytest.approx(STEP_NS, rel=0.5)
    assert read_table(folder.samples, SAMPLES)["record"].to_pylist() == list(range(24))


@unless_late
def test_the_synthetic_step_leaves_the_host_free(ask_gpu: AskGpu, tmp_path: Path) -> None:
    gpu = PretendGpu(op_us={"MatMul": 20_000})
    folder = _train(ask_gpu, tmp_path, ("workload.compute_ms", "300"), gpu=gpu, is_synthetic=True)
    steps = read_table(folder.steps, STEPS)
    request, ready = (steps[name].to_numpy() for name in ("start_ns", "ready_ns"))
    assert (request[2:] < ready[1:-1]).any()


@unless_late
def test_python_that_the_device_waits_for_is_time_between_steps(ask_gpu: AskGpu, tmp_path: Path) -> None:
    gpu = PretendGpu(op_us={"MatMul": 50_000})
    rows = divide_time(read_table(_train(ask_gpu, tmp_path, ("workload.python_ms", "300"), gpu=gpu).steps, STEPS))
    assert np.median(rows.between_ns) > 150_000_000


@unless_late
def test_the_next_call_of_a_graph_is_made_while_the_device_has_the_last_step_to_do(
    ask_gpu: AskGpu, tmp_path: Path
) -> None:
    in_graph = (("training.loop", "in_graph"), ("training.steps_per_call", "2"))
    folder = _train(ask_gpu, tmp_path, *in_graph)
    steps = read_table(folder.steps, STEPS)
    request, ready = (steps[name].to_numpy() for name in ("start_ns", "ready_ns"))
    left_ns = ready[[2, 4]] - request[[3, 5]]
    assert left_ns.max() > STEP_NS / 2, "calls end with the steps 0, 2, 4 and 5, and none waits for its last step"
    assert read_table(folder.samples, SAMPLES)["record"].to_pylist() == list(range(24))
    assert steps["loss"].to_pylist() == [1, 2, 3, 4, 5, 6]


@unless_late
def test_calibration_times_the_step_as_training_does(ask_gpu: AskGpu) -> None:
    assert ask_gpu(f"{TASKS}:time_steps", gpu=SLOW) == pytest.approx(STEP_NS, rel=0.5)


def test_windows_of_a_loop_that_never_waits_hold_whole_steps(ask_gpu: AskGpu, tmp_path: Path) -> None:
    products = ask_gpu(f"{TASKS}:products_in_windows", gpu=PretendGpu(op_us={"MatMul": 100_000}), store=str(tmp_path))
    assert products
    assert set(products) == {2}


def test_settling_before_the_script_uses_devices_touches_none(ask_gpu: AskGpu) -> None:
    assert ask_gpu(f"{TASKS}:use_devices") == [False, False, True]
