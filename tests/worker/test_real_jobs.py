"""Whole jobs in worker processes of their own, one per workload and way to start or end; short ones."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_documents import read_files
from pipeline_lab.runs.run_events import (
    STOPPED,
    CalibrationEvent,
    FailureEvent,
    PhaseEvent,
    ProgressEvent,
    WindowEvent,
    read_events,
)
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import OUTPUTS, RESOURCES, SAMPLES, STEPS, read_table
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import ParseStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.workloads.images import ImagesWorkload
from tests.worker.fakes import make_folder, supervised

pytestmark = pytest.mark.tensorflow

WORKER = [sys.executable, "-m", "tests.support.real_worker"]
ROOT = Path(__file__).resolve().parents[2]
PROFILING = ProfilingOptions(steps_per_window=3, every_steps=8)
IMAGES = RunOptions(
    name="short images",
    workload=ImagesWorkload(data="digits", image_size=16, examples_per_file=(40, 60)),
    pipeline=PipelineOptions(
        stages=(ReadStage(), ShuffleStage(buffer_size=100), RepeatStage(), ParseStage(), BatchStage(size=10))
    ),
    training=TrainingOptions(steps=12, warmup_steps=2, keep_outputs_of_step=7),
    profiling=PROFILING,
)
SYNTHETIC = find_preset("synthetic").options


def _phases(folder: RunFolder) -> list[str]:
    return [event.phase for event in read_events(folder.events) if isinstance(event, PhaseEvent)]


def _cross_entropy(logits: Any, labels: list[int]) -> float:
    chosen = logits[range(len(labels)), labels]
    return float((np.log(np.exp(logits).sum(axis=1)) - chosen).mean())


def test_an_images_job_leaves_a_whole_run(tmp_path: Path) -> None:
    folder = supervised(make_folder(tmp_path, IMAGES))
    assert subprocess.run([*WORKER, str(folder.path)], cwd=ROOT, check=False).returncode == 0

    events = read_events(folder.events)
    assert _phases(folder) == [
        "importing",
        "data",
        "building",
        "calibrating",
        "warmup",
        "training",
        "finishing",
    ]
    (calibration,) = (event for event in events if isinstance(event, CalibrationEvent))
    assert (calibration.device_only_ns or 0) > 0
    assert (calibration.pipeline_only_ns or 0) > 0
    last = [event for event in events if isinstance(event, ProgressEvent)][-1]
    assert (last.steps, last.total_steps) == (12, 12)

    steps = read_table(folder.steps, STEPS)
    assert steps["step"].to_pylist() == list(range(14))
    assert sum(steps["warmup"].to_pylist()) == 2
    assert all(math.isfinite(loss) for loss in steps["loss"].to_pylist())
    windows = [event for event in events if isinstance(event, WindowEvent)]
    assert (windows[0].first_step, windows[0].last_step) == (2, 4)
    profiled = steps["window"].to_pylist()
    for number, (window, path) in enumerate(zip(windows, folder.windows(), strict=True), start=1):
        assert profiled[window.first_step : window.last_step + 1] == [number] * profiled.count(number)
        (trace,) = path.iterdir()
        assert trace.name.endswith(".xplane.pb")
        assert trace.stat().st_size == window.size_bytes > 10_000
        assert window.started_ns < window.stopped_ns < window.flushed_ns

    samples = read_table(folder.samples, SAMPLES)
    assert samples.num_rows == 14 * 10
    records = list(zip(samples["file"].to_pylist(), samples["record"].to_pylist(), strict=True))
    assert len(set(records[:100])) == 100  # the first epoch: every record once
    assert [file.records for file in read_files(folder.files)] == [40, 60]
    assert read_table(folder.resources, RESOURCES).num_rows >= 0
    assert not folder.scratch.exists()

    kept = read_table(folder.outputs, OUTPUTS)
    assert kept["step"].to_pylist() == [7] * 10
    assert list(zip(kept["file"].to_pylist(), kept["record"].to_pylist(), strict=True)) == records[70:80]
    logits = np.array(kept["outputs"].to_pylist())
    assert logits.shape == (10, 10)
    right = (logits.argmax(axis=1) == np.array(kept["label"].to_pylist())).mean()
    assert steps["accuracy"].to_pylist()[7] == pytest.approx(right)
    assert steps["loss"].to_pylist()[7] == pytest.approx(_cross_entropy(logits, kept["label"].to_pylist()), rel=1e-4)

    record = read_record(folder)
    assert record.status.state is RunState.RUNNING  # the end is the supervisor's to write
    assert record.environment["device"] == "CPU"
    assert record.environment["tensorflow"]


def test_a_waiting_worker_takes_its_job_and_stops_when_asked(tmp_path: Path) -> None:
    training = TrainingOptions(steps=None, seconds=600, warmup_steps=2, calibrate=False)
    options = SYNTHETIC.model_copy(update={"training": training, "profiling": PROFILING})
    folder = supervised(make_folder(tmp_path, options))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [*WORKER, "--wait"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        assert os.getpriority(os.PRIO_PROCESS, worker.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        worker.stdin.write(os.fsencode(folder.path) + b"\n")
        worker.stdin.flush()
        while "training" not in _phases(folder):
            assert worker.poll() is None
            time.sleep(0.05)
        assert list(
            folder.scratch.glob("__autograph_generated_file*")
        )  # where it is deleted even if the worker is killed
        assert not list(temporary.glob("__autograph_generated_file*"))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait() == STOPPED

    assert _phases(folder)[-2:] == ["training", "finishing"]
    steps, samples = read_table(folder.steps, STEPS), read_table(folder.samples, SAMPLES)
    assert steps.num_rows >= 2
    assert samples.num_rows == 16 * steps.num_rows
    assert {math.isnan(loss) for loss in steps["loss"].to_pylist()} == {True}
    windows = [event for event in read_events(folder.events) if isinstance(event, WindowEvent)]
    assert len(windows) == len(folder.windows())
    assert not any(isinstance(event, FailureEvent) for event in read_events(folder.events))


LOADED = """
import runpy, sys, types
sys.modules["pipeline_lab.worker.training_session"] = types.ModuleType("loaded, as far as the worker knows")
runpy.run_module("pipeline_lab.worker", run_name="__main__", alter_sys=True)
"""


def test_a_waiting_worker_leaves_at_the_end_of_its_input() -> None:
    command = [sys.executable, "-c", LOADED, "--wait"]
    worker = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    assert (worker.returncode, worker.stdout) == (0, "ready\n")


def test_a_job_that_fails_leaves_the_reason(tmp_path: Path) -> None:
    workload = ImagesWorkload(data="files", pattern=f"{tmp_path}/*.tfrecord")
    folder = supervised(make_folder(tmp_path / "store", IMAGES.model_copy(update={"workload": workload})))
    assert subprocess.run([*WORKER, str(folder.path)], cwd=ROOT, check=False).returncode == 1
    (failure,) = (event for event in read_events(folder.events) if isinstance(event, FailureEvent))
    assert failure.sentence.startswith("No file matches")
    assert "DataError" in failure.traceback
    assert "DataError" in folder.log.read_text()
