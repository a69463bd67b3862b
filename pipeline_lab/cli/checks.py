"""What ``pipeline-lab doctor`` concludes from what TensorFlow and the driver answer, and from a short job on the GPU."""

import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError, Unavailable
from pipeline_lab.units import NS_PER_MS, format_bytes, format_duration

if TYPE_CHECKING:
    from pipeline_lab.runs.machine.nvidia import Gpu

PROBE = (sys.executable, "-m", "pipeline_lab.worker.probe")
BRIEF_TIMEOUT_S, GPU_TIMEOUT_S = 180, 600
JOB_STEPS = 60
HIDDEN_SHARE = 0.5
"""Launches are asynchronous if at least this share of the Python time disappears behind the device."""
LOOP_RATIO = 1.05
"""A loop that hides 10 ms of Python behind steps of 20 ms keeps within this of a step alone; it is measured to ±3 %."""
_REINSTALL = (
    "If this machine is busy, try again later; otherwise reinstall it: pip install --force-reinstall tensorflow."
)

Answers: TypeAlias = dict[str, dict[str, Any] | str]
"""What ``pipeline_lab.worker.probe`` measured, by name; a text says why it could not."""
Gpus: TypeAlias = "list[Gpu] | Unavailable"


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report.

    Attributes:
        name: What was looked at.
        works: Whether it does.
        found: What was found, in words.
        advice: What to do if it does not work; empty if it does.
        needed: Whether jobs or analyses fail without it.
        measured: The numbers behind it.
    """

    name: str
    works: bool
    found: str
    advice: str = ""
    needed: bool = True
    measured: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def ask_tensorflow(*, on_gpu: bool = False) -> Answers:
    """Let a process with TensorFlow measure; one that crashes or hangs leaves what it has answered.

    Returns:
        Its answers, and under ``end`` why it did not get to the end.
    """
    from pipeline_lab.runs.launch.runtime import child_environment

    environment = child_environment() | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [*PROBE, *(["--gpu"] if on_gpu else [])]
    timeout_s = GPU_TIMEOUT_S if on_gpu else BRIEF_TIMEOUT_S
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process,
    ):
        assert process.stdout is not None
        timed_out = threading.Event()

        def give_up() -> None:
            timed_out.set()  # before the process ends, which is noticed at once
            process.kill()

        timer = threading.Timer(timeout_s, give_up)
        timer.start()
        answers: Answers = {}
        for line in process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # other output
                answer = json.loads(line)
                answers[answer["name"]] = answer.get("found") or answer["error"]
        code = process.wait()
        timer.cancel()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["without a message"])[-1]
    if timed_out.is_set():
        answers["end"] = f"it did not end within {timeout_s:g} s"
    elif code:
        answers["end"] = f"it ended with exit code {code}: {last[:300]}"
    return answers


def tensorflow_checks(answers: Answers, gpus: Gpus) -> Iterator[Check]:
    """Check that TensorFlow starts, sees the GPU, and that its profiler records.

    Args:
        answers: From :func:`ask_tensorflow`.
        gpus: Of the driver (:func:`pipeline_lab.runs.machine.nvidia.find_gpus`).
    """
    devices, trace = answers.get("devices"), answers.get("profile")
    if not isinstance(devices, dict):
        yield Check("TensorFlow starts", False, devices or str(answers["end"]), _REINSTALL)
        return
    yield Check("TensorFlow starts", True, f"devices {', '.join(devices['devices'])}")
    yield _check_gpu(devices, gpus)
    if not isinstance(trace, dict):
        why = trace or str(answers.get("end", "it did not answer"))
        yield Check("Profiler", False, why, "Another profiler may be attached to the process; end it.")
        return
    has_host = "/host:CPU" in trace["planes"]
    yield Check(
        "Profiler",
        has_host,
        "a test recording contains host events" if has_host else "a test recording is empty",
        "" if has_host else "Another profiler may be attached to the process; end it.",
    )
    if has_gpu(answers):
        yield _check_cupti(trace)


def _check_gpu(devices: dict[str, Any], gpus: Gpus) -> Check:
    shown = [gpu.name or "a GPU without a name" for gpu in gpus] if isinstance(gpus, list) else []
    if names := devices["names"]:
        return Check("GPU", True, ", ".join(shown or names), needed=False)
    if not shown:
        return Check("GPU", True, "none; jobs run on the CPU", needed=False)
    advice = (
        "Its CUDA libraries do not load; run with TF_CPP_MIN_LOG_LEVEL=0 to see which is missing."
        if devices["cuda"]
        else "This TensorFlow has no CUDA support; install requirements-gpu.txt."
    )
    if devices["cuda"] and importlib.util.find_spec("nvidia") is None:
        advice = "Install the CUDA libraries: pip install 'tensorflow[and-cuda]' (requirements-gpu.txt)."
    return Check("GPU", False, f"{', '.join(shown)}, but TensorFlow does not see it", advice, needed=False)


def _check_cupti(trace: dict[str, Any]) -> Check:
    from pipeline_lab.analysis.verdict.recording_effects import ALLOW_CUPTI, find_remedy

    events, complaints = trace["gpu_events"], [*trace["errors"], *trace["warnings"]]
    found = (
        f"a test recording contains {events} GPU events"
        if events
        else "a test recording contains no GPU events, so nothing is known of the device's work"
    )
    advice = list(dict.fromkeys(filter(None, map(find_remedy, complaints))))
    if not events and not advice:
        advice = [
            f"Check that libcupti loads, and that no other profiler holds the GPU; let the profiler use CUPTI: {ALLOW_CUPTI}."
        ]
    told = "".join(f"; the profiler says: {complaint.rstrip('.')}" for complaint in complaints)
    return Check("CUPTI", bool(events) and not complaints, found + told, " ".join(advice), needed=False, measured=trace)


def has_gpu(answers: Answers) -> bool:
    """Say whether TensorFlow sees a GPU."""
    devices = answers.get("devices")
    return isinstance(devices, dict) and bool(devices["names"])


def gpu_checks(answers: Answers, gpus: Gpus) -> Iterator[Check]:
    """Check what only a real GPU shows: the driver, copies, overlap, precision, XLA, and several GPUs."""
    yield from _check_driver(gpus)
    for name, (title, judge) in _JUDGES.items():
        answer = answers.get(name)
        if isinstance(answer, dict):
            works, found, advice = judge(answer)
            yield Check(title, works, found, "" if works else advice, needed=False, measured=answer)
        else:
            why = answer or f"not measured: {answers.get('end', 'there is no GPU')}"
            yield Check(title, False, why, _JUDGES_FAIL.get(name, ""), needed=False)


def _check_driver(gpus: Gpus) -> Iterator[Check]:
    if isinstance(gpus, Unavailable):
        advice = (
            "Memory, load and clocks cannot be sampled. NVML comes with the driver; in a container, set "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility."
        )
        yield Check("Driver (NVML)", False, gpus.reason.rstrip("."), advice, needed=False)
        return
    for number, gpu in enumerate(gpus):
        reading, total_bytes = gpu.read(), gpu.total_bytes
        memory = f"{_bytes(reading.memory_bytes)} of {_bytes(total_bytes)} in use"
        clock = f"{_number(reading.clock_mhz)} of {_number(gpu.highest_mhz)} MHz"
        slowed = f", lowered by {', '.join(gpu.slowed_by() or [])}" if reading.is_slowed else ""
        measured = {**asdict(reading), "total_bytes": total_bytes, "highest_mhz": gpu.highest_mhz}
        known = None not in (reading.memory_bytes, reading.clock_mhz, reading.is_slowed)
        yield Check(
            f"GPU {number} (NVML)",
            known,
            f"{gpu.name or 'no name'}, {memory}, {clock}{slowed}",
            "" if known else "The driver does not report all of this, so a run's charts will lack it.",
            needed=False,
            measured=measured,
        )


def _bytes(size_bytes: int | None) -> str:
    return "?" if size_bytes is None else format_bytes(size_bytes)


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


Judgment: TypeAlias = tuple[bool, str, str]
"""Whether it works, what was found, and what to do if it does not."""


def _judge_copies(found: dict[str, Any]) -> Judgment:
    to_device, to_host = (found["bytes"] / 1e6 / found[name] for name in ("to_device_ms", "to_host_ms"))
    return True, f"{to_device:.3g} GB/s to the device, {to_host:.3g} GB/s back (pageable memory)", ""


def _judge_overlap(found: dict[str, Any]) -> Judgment:
    step_ms, python_ms, both_ms = found["step_ms"], found["python_ms"], found["never_read_ms"]
    hidden = step_ms + python_ms - both_ms
    told = (
        f"a step of {step_ms:.3g} ms and {python_ms:.3g} ms of Python take {both_ms:.3g} ms together, and "
        f"{found['read_at_once_ms']:.3g} ms where each result is read at once"
    )
    advice = "Launches wait for the device; unset CUDA_LAUNCH_BLOCKING."
    return hidden >= HIDDEN_SHARE * min(step_ms, python_ms), told, advice


def _judge_precision(found: dict[str, Any]) -> Judgment:
    half, brain = (found["float32_ms"] / found[name] for name in ("float16_ms", "bfloat16_ms"))
    trains = found["weight_after_scaled_step"] == 0.5
    told = f"products are {half:.3g} times as fast in float16 and {brain:.3g} times in bfloat16 as in float32"
    scaled = (
        "; a step with a scaled loss trains" if trains else "; a step with a scaled loss does not train as it should"
    )
    return trains, told + scaled, "Report it, with this output."


def _judge_xla(found: dict[str, Any]) -> Judgment:
    agrees = abs(found["difference"]) < 1.0
    return agrees, f"compiles; its result differs by {found['difference']:.2g}", "Report it, with this output."


def _judge_gpus(found: dict[str, Any]) -> Judgment:
    if found["gpus"] < 2:
        return True, "there is only one", ""
    speed = found["bytes"] / 1e6 / found["reduce_ms"]
    right = found["sum"] == found["gpus"]
    told = (
        f"{found['gpus']} GPUs add up {format_bytes(found['bytes'])} in {found['reduce_ms']:.3g} ms ({speed:.3g} GB/s)"
    )
    return right, told, f"The sum is {found['sum']:g} instead of {found['gpus']}; look at NCCL_DEBUG=INFO."


_JUDGES = {
    "copies": ("Copies", _judge_copies),
    "overlap": ("Asynchrony", _judge_overlap),
    "precision": ("Mixed precision", _judge_precision),
    "xla": ("XLA", _judge_xla),
    "gpus": ("Several GPUs", _judge_gpus),
}
_JUDGES_FAIL = {
    "xla": "training.xla and Keras' jit_compile do not work here.",
    "gpus": "training.replicas above 1 does not work here; look at NCCL_DEBUG=INFO.",
}


_JOB = (
    "workload.map_ms=0",
    "workload.compute_ms=20",
    "workload.python_ms=10",
    "training.device=gpu",
    f"training.steps={JOB_STEPS}",
)
"""Changes to the preset ``synthetic``: steps of 20 ms on the device, and 10 ms of Python between them."""


def job_checks() -> Iterator[Check]:
    """Run a short job on the GPU and judge it: its device hides the Python between the steps, and is what limits it."""
    from pipeline_lab.advice.analyzing import analyze_path
    from pipeline_lab.cli.arguments import apply_settings
    from pipeline_lab.options.presets import find_preset
    from pipeline_lab.runs.launch.launcher import launch, wait_for_end
    from pipeline_lab.runs.store import RunStore

    options = apply_settings(find_preset("synthetic").options, list(_JOB))
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = launch(RunStore(Path(folder)), options)
            wait_for_end(run, "Run")
            diagnosis = analyze_path(run.path)
        except PipelineLabError as error:
            yield Check("Short job", False, str(error).rstrip("."), "Report it, with this output.", needed=False)
            return
    verdict, calibration = diagnosis.verdict, diagnosis.calibration
    measured = {"class": verdict.verdict_class, "confidence": verdict.confidence}
    told = f"{verdict.sentence.rstrip('.')} ({verdict.verdict_class}, {verdict.confidence})"
    yield Check("Short job", True, told, needed=False, measured=measured)
    if isinstance(calibration, Unavailable):
        yield Check("Training loop", False, calibration.reason.rstrip("."), needed=False)
        return
    alone_ns, step_ns = calibration.device_only_ns, calibration.step_ns
    yield Check(
        "Training loop",
        step_ns <= LOOP_RATIO * alone_ns,
        f"a step with 10 ms of Python after it takes {format_duration(step_ns)}, and {format_duration(alone_ns)} alone",
        ""
        if step_ns <= LOOP_RATIO * alone_ns
        else "The loop does not keep the device busy; report it, with this output.",
        needed=False,
        measured={"step_ms": step_ns / NS_PER_MS, "step_alone_ms": alone_ns / NS_PER_MS},
    )
