"""What limits jobs on the pretend GPU: steps of 20 ms that are held up in six known ways, and every preset.

    python -m benchmarks.gpu_verdicts [--only NAME …] [--steps N] [--kernel-us T]

Beside each verdict stands what a stopwatch says: the end-to-end step, the compute-only step, the pipeline alone, and the
device's work by the device's own clock. It records nothing and uses nothing of the analysis, so it tells whether the verdict is
right. The device computes while an op is launched, so the steps of most networks are limited by that: true here, unlike on a
real GPU. With kernels of ``--kernel-us 500`` they are limited by the device instead.

Presets with XLA, and with more replicas than GPUs, cannot run on it. Each job is a fork of one process that has TensorFlow
loaded; times are those of the presets, so nothing else should run on the machine.
"""

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.steps.job_steps import MODERATE_PERCENT
from pipeline_lab.analysis.verdict.losses import STRONG_PERCENT
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.presets import PRESETS, find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import FailureEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, end_run
from pipeline_lab.runs.store import RunStore
from pipeline_lab.units import NS_PER_MS
from tests.pretend_gpu import PretendGpu, build
from tests.support.warm_worker import Ask, warm_worker

Settings = list[tuple[str, str]]


@dataclass(frozen=True)
class Case:
    """A job, the GPU that it runs on, and what limits it, where that is known."""

    name: str
    options: RunOptions
    limit: VerdictClass | None = None
    gpu: PretendGpu = field(default_factory=lambda: PretendGpu(op_us={"MatMul": 2000}))


def make_cases(steps: int | None, kernel_us: float) -> Iterator[Case]:
    step_ms = {"workload.compute_ms": 20, "workload.map_ms": 0, "training.steps": 60, "profiling.steps_per_window": 10}
    slow_copies = PretendGpu(op_us={"MatMul": 2000}, copy_gbps=0.2)
    for name, limit, changes, gpu in (
        ("a map of 3 ms", VerdictClass.INPUT_BOUND, {"workload.map_ms": 3}, None),
        ("a fast map", VerdictClass.DEVICE_BOUND, {"workload.map_ms": 0.1}, None),
        ("10 ms of Python", VerdictClass.DEVICE_BOUND, {"workload.python_ms": 10}, None),
        ("40 ms of Python", VerdictClass.IDLE_OTHER, {"workload.python_ms": 40}, None),
        (
            "copies of 16 MB",
            VerdictClass.HOST_TO_DEVICE_BOUND,
            {"workload.element_bytes": 1_000_000, "workload.examples_per_file": "4x100"},
            slow_copies,
        ),
        (
            "600 tiny operations",
            VerdictClass.DISPATCH_BOUND,
            {"workload.tiny_ops": 600, "workload.compute_ms": 2},
            None,
        ),
    ):
        settings = [(key, str(value)) for key, value in (step_ms | changes).items()]
        options = set_options(find_preset("synthetic").options, settings)
        yield Case(name, options, limit, gpu or PretendGpu(op_us={"MatMul": 2000}))
    shorter: Settings = [] if steps is None else [("training.steps", str(steps))]
    for preset in PRESETS:
        gpu = PretendGpu(
            op_us={"MatMul": 2000} if preset.options.workload.kind == "synthetic" else {}, kernel_us=kernel_us
        )
        yield Case(preset.name, set_options(preset.options, shorter), gpu=gpu)


MARGIN_PERCENT = 5.0
"""Of the step: what is this close to a threshold, or to the largest loss, may be told either way."""


@dataclass(frozen=True)
class Parts:
    """What a step takes by the stopwatch, ms.

    Attributes:
        step_ms: With its pipeline, and the Python that the job sets between steps.
        held_ms: On a batch that the device holds, with that Python.
        input_ms: The pipeline alone, per batch; None where it yields too few.
        device_ms, copy_ms: The device's work in a step, and its copies of input, by its own clock.
        python_ms: Set between the steps.
    """

    step_ms: float
    held_ms: float
    input_ms: float | None
    device_ms: float
    copy_ms: float
    python_ms: float

    def losses(self) -> dict[VerdictClass, float]:
        """Return what of a step is not the device's work, by what it goes to, percent."""
        fed, launched = max(0.0, self.step_ms - self.held_ms), max(0.0, self.held_ms - self.device_ms)
        copying, python = min(fed, self.copy_ms), min(launched, self.python_ms)
        found = {
            VerdictClass.INPUT_BOUND: fed - copying,
            VerdictClass.HOST_TO_DEVICE_BOUND: copying,
            VerdictClass.IDLE_OTHER: python,
            VerdictClass.DISPATCH_BOUND: launched - python,
        }
        return {kind: 100.0 * lost_ms / self.step_ms for kind, lost_ms in found.items()}

    def limits(self) -> set[VerdictClass]:
        """Return what may be said to limit the step."""
        over = {kind: percent - _needed(kind) for kind, percent in self.losses().items()}
        largest = max(self.losses().values())
        found = {
            kind
            for kind, percent in self.losses().items()
            if over[kind] >= -MARGIN_PERCENT and percent >= largest - 2 * MARGIN_PERCENT
        }
        if VerdictClass.INPUT_BOUND in found:  # the stopwatch cannot tell waiting from competing for the processor
            found.add(VerdictClass.HOST_CONTENTION)
        return found if max(over.values()) >= MARGIN_PERCENT else found | {VerdictClass.DEVICE_BOUND}

    def tell(self) -> str:
        alone = "too few batches" if self.input_ms is None else f"{self.input_ms:.1f}"
        return (
            f"step {self.step_ms:.1f} ms, held {self.held_ms:.1f}, input alone {alone}, device {self.device_ms:.1f}, "
            f"copies {self.copy_ms:.1f}, Python {self.python_ms:g}"
        )


def _needed(kind: VerdictClass) -> float:
    return MODERATE_PERCENT if kind is VerdictClass.INPUT_BOUND else STRONG_PERCENT


LEAST_S, LEAST_STEPS = 1.5, 10
"""Of each measurement, but for data that end."""


def time_parts(path: str) -> dict[str, Any]:
    """Time the parts of a job's step; see :class:`Parts`. Runs in a process that has TensorFlow loaded."""
    import keras

    from pipeline_lab.options.run_options import read_options
    from pipeline_lab.runs.run_folder import read_record
    from pipeline_lab.worker.job_context import Job, StopRequest
    from pipeline_lab.worker.note.event_log import Clock, EventLog
    from pipeline_lab.worker.prepare.device import choose_device
    from pipeline_lab.worker.prepare.job_pipeline import JobData, find_files, open_pipeline
    from pipeline_lab.worker.race.blocks import count_epoch_batches
    from pipeline_lab.worker.record.profiler import wait_for_devices
    from pipeline_lab.worker.train.loops import make_steps
    from pipeline_lab.worker.workloads.data_and_step import find_tables, make_trainer

    folder = RunFolder(Path(path))
    options = read_options(read_record(folder).options or {})
    job = Job(folder, options, EventLog(folder.events), StopRequest(), Clock())
    device = choose_device(options.training.device, options.training.replicas)
    keras.utils.set_random_seed(options.training.seed)
    library = ctypes.CDLL(os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"])
    clocks = (library.PretendGpuWorkNs, library.PretendGpuCopiesToDeviceNs)
    for clock in clocks:
        clock.restype = ctypes.c_int64

    def time_calls(call: Callable[[], int]) -> tuple[float, list[float]] | None:
        """Return the time of a step, and of its part on each of the device's clocks, ms; None if there is no step."""
        wait_for_devices()
        begun_ns, before, steps = time.perf_counter_ns(), [clock() for clock in clocks], 0
        while steps < LEAST_STEPS or time.perf_counter_ns() - begun_ns < LEAST_S * 1e9:
            if not (taken := call()):
                break
            steps += taken
        wait_for_devices()
        if not steps:
            return None
        lasted_ns = time.perf_counter_ns() - begun_ns
        of_device = [(clock() - earlier) / steps / NS_PER_MS for clock, earlier in zip(clocks, before, strict=True)]
        return lasted_ns / steps / NS_PER_MS, of_device

    with open_pipeline(job) as pipeline:
        files = find_files(job, pipeline)
        data = JobData(job, pipeline, [file.path for file in files])
        tables = find_tables(options.workload, files)
        trainer = make_trainer(options, is_gpu=True, tables=tables, pipeline=pipeline)
        steps = make_steps(job, trainer, is_asynchronous=True)
        batches, alone = (iter(trainer.distribute(made)) for made in (data.training(), data.calibration()))

        def train() -> int:
            taken = len(steps.take(batches, steps.per_call))
            job.pause()
            return taken

        def repeat() -> int:
            steps.repeat(held, steps.per_call)
            job.pause()
            return steps.per_call

        warmed, records = 0, [file.records for file in files]
        first_epoch = count_epoch_batches(options, None if None in records else sum(filter(None, records)))
        while warmed < max(options.training.warmup_steps, first_epoch) and (taken := train()):
            warmed += taken
        fed = time_calls(train)
        held = device.hold(next(alone))
        fetched = time_calls(lambda: next(alone, None) is not None)
        repeat()
        on_held = time_calls(repeat)
    assert fed is not None
    assert on_held is not None
    (step_ms, (device_ms, copy_ms)), pause_ms = fed, (options.workload.pause_ns or 0) / NS_PER_MS
    return asdict(Parts(step_ms, on_held[0], fetched and fetched[0], device_ms, copy_ms, pause_ms))


def run(path: str) -> int:
    """Run a job in a process that has TensorFlow loaded; return its exit code."""
    from pipeline_lab.worker.job_process import run_job

    return run_job(Path(path))


def tell(case: Case, store: RunStore, ask: Ask) -> bool:
    """Run a job and print what limits it; return whether that is right, as far as it is known."""
    folder = store.create(case.options, render_source(case.options))
    if ask("benchmarks.gpu_verdicts:run", gpu=case.gpu.settings(), path=str(folder.path)):
        reasons = [event.sentence for event in read_events(folder.events) if isinstance(event, FailureEvent)]
        print(f"{case.name:22} failed: {' '.join(reasons)}", flush=True)
        return False
    end_run(folder, RunState.DONE)
    try:
        verdict = diagnose(folder.path).verdict
    except PipelineLabError as error:
        print(f"{case.name:22} not analyzed: {error}", flush=True)
        return False
    path = str(store.create(case.options, render_source(case.options)).path)
    parts = Parts(**ask("benchmarks.gpu_verdicts:time_parts", gpu=case.gpu.settings(), path=path))
    limits = parts.limits() if case.limit is None else {case.limit}
    is_right = verdict.verdict_class in limits
    wrong = "" if is_right else f" WRONG, it is {' or '.join(sorted(limits))}:"
    print(f"{case.name:22}{wrong} {verdict.verdict_class} ({verdict.confidence}): {verdict.sentence}")
    print(f"{'':22} {parts.tell()}", flush=True)
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="some of the jobs")
    parser.add_argument("--kernel-us", type=float, default=5, help="time of the shortest kernel of the presets' GPU")
    parser.add_argument("--steps", type=int, help="of each preset, after its warm-up; its own if left out")
    chosen = parser.parse_args()
    cases = [case for case in make_cases(chosen.steps, chosen.kernel_us) if not chosen.only or case.name in chosen.only]
    libraries = build(Path(__file__).resolve().parents[1] / ".pytest_cache" / "pretend_gpu")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PIPELINE_LAB_CACHE"] = f"{scratch}/cache"
        store, log = RunStore(Path(scratch) / "runs"), Path(scratch) / "log"
        with warm_worker("tests.pretend_gpu.worker", PretendGpu().environment(libraries), log) as ask:
            right = [tell(case, store, ask) for case in cases]
    print(f"{sum(right)} of {len(right)} jobs as expected")
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
