"""The host stays ahead of a device that works beside it, and each step's row holds its own time; on the pretend GPU."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.checkpoints import measure_checkpoints
from pipeline_lab.analysis.steps.step_rows import divide_time
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs.run_events import CheckpointEvent, EvaluationEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, read_table
from pipeline_lab.worker.race.resting import LEAD_STEPS
from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu, read_ledger
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


def test_replicas_train_on_two_gpus_and_their_batches_are_recorded_in_order(ask_gpu: AskGpu, tmp_path: Path) -> None:
    gpu = PretendGpu(count=2, ledger=tmp_path / "ledger")
    folder = _train(ask_gpu, tmp_path, gpu=gpu, is_mirrored=True)
    assert {context.device for context in read_ledger(tmp_path / "ledger") if context.peak_bytes} == {0, 1}
    steps = read_table(folder.steps, STEPS)
    assert read_table(folder.samples, SAMPLES)["record"].to_pylist() == list(range(24))
    assert steps["loss"].to_pylist() == [8] * 6


@unless_late
def test_checkpoints_and_evaluations_begin_when_the_device_is_done_and_are_no_part_of_a_step(
    ask_gpu: AskGpu, tmp_path: Path
) -> None:
    settings = {"checkpoint_every": 3, "evaluate_every": 5, "evaluate_steps": 2, "evaluation": "keep"}
    folder = _train(ask_gpu, tmp_path, *((f"training.{name}", str(value)) for name, value in settings.items()))
    steps, events = read_table(folder.steps, STEPS), list(read_events(folder.events))
    (evaluated,) = (event for event in events if isinstance(event, EvaluationEvent))
    rows, ready = divide_time(steps), steps["ready_ns"].to_numpy()
    assert ready[4] <= evaluated.started_ns
    assert evaluated.ended_ns <= rows.start_ns[5]
    assert np.mean(rows.step_ns[1:]) == pytest.approx(STEP_NS, rel=0.5), "the pass lies between the rows"
    called = next(event for event in events if isinstance(event, CheckpointEvent))
    assert called.ended_ns - called.started_ns > STEP_NS / 2, "the weights are there when their steps are done"
    written_ns = called.ended_ns - ready[ready < called.ended_ns].max()
    assert measure_checkpoints(JobEvents(events), steps).total_ns == written_ns, "not the steps that it waits for"


@unless_late
def test_a_block_of_a_race_holds_its_own_steps_and_no_others(ask_gpu: AskGpu, tmp_path: Path) -> None:
    options = set_options(SYNTHETIC.options, SHORT).model_dump_json()
    block = ask_gpu(f"{TASKS}:run_block", gpu=SLOW, folder=str(tmp_path), options=options, steps=4)
    steps = read_table(RunFolder(Path(block["folder"])).steps, STEPS)
    request, ready = (steps[name].to_numpy() for name in ("start_ns", "ready_ns"))
    assert ready[LEAD_STEPS - 1] <= block["start_ns"] <= request[LEAD_STEPS]
    assert ready[-1] <= block["end_ns"]
    assert (request[LEAD_STEPS + 1 :] < ready[LEAD_STEPS:-1]).any(), "inside, the host is ahead of the device"
    assert block["end_ns"] - block["start_ns"] == pytest.approx(4 * STEP_NS, rel=0.4)


@unless_late
def test_calibration_times_the_step_as_training_does(ask_gpu: AskGpu) -> None:
    assert ask_gpu(f"{TASKS}:time_steps", gpu=SLOW) == pytest.approx(STEP_NS, rel=0.5)


def test_windows_of_a_loop_that_never_waits_hold_whole_steps(ask_gpu: AskGpu, tmp_path: Path) -> None:
    products = ask_gpu(f"{TASKS}:products_in_windows", gpu=PretendGpu(op_us={"MatMul": 100_000}), store=str(tmp_path))
    assert products
    assert set(products) == {2}


def test_settling_before_the_script_uses_devices_touches_none(ask_gpu: AskGpu) -> None:
    assert ask_gpu(f"{TASKS}:use_devices") == [False, False, True]


@unless_late
def test_fit_has_launched_its_step_when_the_step_before_is_written(ask_gpu: AskGpu, tmp_path: Path) -> None:
    options = set_options(SYNTHETIC.options, [*SHORT, ("training.loop", "keras_fit")]).model_dump_json()
    found = ask_gpu(f"{TASKS}:fit", gpu=SLOW, folder=str(tmp_path), options=options)
    folder, written = RunFolder(Path(found["folder"])), np.array(found["written_ns"])
    steps = read_table(folder.steps, STEPS)
    request, ready = (steps[name].to_numpy() for name in ("start_ns", "ready_ns"))
    assert (request[2:] < written[1:-1]).all()
    assert (written[1:-1] < ready[2:]).all(), "the device works meanwhile"
    assert steps["loss"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert read_table(folder.samples, SAMPLES)["record"].to_pylist() == list(range(24))
    rows = divide_time(steps)
    assert np.mean(rows.compute_ns[2:]) == pytest.approx(STEP_NS, rel=0.5)
