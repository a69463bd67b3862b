"""What limits jobs on the pretend GPU: steps of 20 ms that are held up in six known ways, and every preset.

    python -m benchmarks.gpu_verdicts [--only NAME …] [--steps N]

Presets with XLA, and with more replicas than GPUs, cannot run on it. Each job is a fork of one process that has TensorFlow
loaded; times are those of the presets, so nothing else should run on the machine.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.presets import PRESETS, find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import FailureEvent, read_events
from pipeline_lab.runs.run_folder import end_run
from pipeline_lab.runs.store import RunStore
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


def make_cases(steps: int | None) -> Iterator[Case]:
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
        yield Case(preset.name, set_options(preset.options, shorter))


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
    is_right = case.limit in (None, verdict.verdict_class)
    wrong = "" if is_right else f" WRONG, it is {case.limit}:"
    print(f"{case.name:22}{wrong} {verdict.verdict_class} ({verdict.confidence}): {verdict.sentence}", flush=True)
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="some of the jobs")
    parser.add_argument("--steps", type=int, help="of each preset, after its warm-up; its own if left out")
    chosen = parser.parse_args()
    cases = [case for case in make_cases(chosen.steps) if not chosen.only or case.name in chosen.only]
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
