"""What the profiler could not record, and what recording adds to the steps of a job."""

import re
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.results import Results, Source
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.verdict.verdict import Evidence, Finding
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count

ALLOW_CUPTI = (
    "run as root, or have an administrator set the driver's option NVreg_RestrictProfilingToAdminUsers=0 and restart; "
    "start a container with --cap-add=SYS_ADMIN (docs/gpu.md)"
)
"""Since driver 418.43 NVIDIA lets only administrators profile a GPU."""

_MAY_USE_CUPTI = f"Let the profiler use CUPTI: {ALLOW_CUPTI}."
_COPY_WHOLE = "It may be in what is missing of the damaged file; copy the whole file, or record again."


def why_no_device(source: Source) -> str:
    """Say that nothing of the accelerator's work is there, and what to do: a damaged file says nothing about permissions."""
    return f"The captures hold nothing of what the job's accelerator did. {_find_device(source)}"


def _find_device(source: Source) -> str:
    return _MAY_USE_CUPTI if source.salvaged is None else _COPY_WHOLE


_REMEDIES = (
    (re.compile(r"privilege|permission", re.I), _MAY_USE_CUPTI),
    (re.compile(r"subscriber|already.*(?:active|initiali|in use)", re.I), "Another profiler holds the GPU; stop it."),
    (re.compile(r"drop|exceed|too many", re.I), "Record shorter windows: what was dropped is missing from all times."),
    (
        re.compile(r"libcupti|CUPTI", re.I),
        "Make sure that libcupti of the CUDA that TensorFlow uses can be loaded (docs/gpu.md).",
    ),
)


def find_remedy(message: str) -> str:
    """Return what to do about something that the profiler complains about, empty where that is not known.

    Args:
        message: One of a trace's ``errors`` or ``warnings``.
    """
    return next((remedy for pattern, remedy in _REMEDIES if pattern.search(message)), "")


def device_plane_missing(results: Results) -> Finding | None:
    """A job on an accelerator of which nothing was recorded."""
    if not results.source.unseen_device:
        return None
    return Finding(
        "device-plane-missing",
        "The job used an accelerator, but the capture holds nothing of its work, so only waits for input can be judged. "
        + _find_device(results.source),
    )


def profiler_errors(results: Results) -> Finding | None:
    """What the profiler says it could not do."""
    return _complaint("profiler-error", "The profiler reports an error", results.source.errors)


def profiler_warnings(results: Results) -> Finding | None:
    """What the profiler says it left out."""
    return _complaint("profiler-warning", "The profiler warns", results.source.warnings)


def cut_off_steps(results: Results) -> Finding | None:
    """Steps that the device had not ended when the profiler stopped."""
    steps = results.steps
    if isinstance(steps, Unavailable) or not steps.cut_off:
        return None
    count = f"{format_count(steps.cut_off)} step{'s' if steps.cut_off > 1 else ''}"
    if steps.count == steps.cut_off == 1:
        sentence = (
            "The device still worked on the only step when the profiler stopped, so it took longer than is shown."
        )
    else:
        sentence = f"{count} that began in the windows had not ended on the device when the profiler stopped, and are left out."
    return Finding(
        "cut-off-steps",
        f"{sentence} Read a result (such as the loss) right before the profiler starts and before it stops.",
    )


def _complaint(kind: str, introduction: str, messages: tuple[str, ...]) -> Finding | None:
    if not messages:
        return None
    first = " ".join(messages[0].split())
    remedy = next(filter(None, map(find_remedy, messages)), "")
    end = "" if first.endswith((".", "!", "?")) else "."
    others = tuple(Evidence("also", " ".join(message.split())) for message in messages[1:])
    return Finding(kind, f"{introduction}: {first}{end} {remedy}".rstrip(), others)


PROFILER_SLOWDOWN_PERCENT = 10.0
"""Recorded steps that are longer than others by less are taken as they are."""
FEWEST_STEPS = 10
"""With fewer recorded steps, or fewer others, their quartiles are not compared."""
QUARTERS = (0.25, 0.5, 0.75)
"""Of steps of several kinds, a few recorded ones may have another median by chance; recording slows each kind."""


@dataclass(frozen=True)
class RecordingCost:
    """What recording does to the steps of a job.

    Attributes:
        share: Of a recorded step, what it takes longer than others, waits for input aside.
        plain_ns: Mean of the steps that were not recorded.
    """

    share: float
    plain_ns: float

    def take_off(self, breakdown: StepBreakdown) -> StepBreakdown:
        """Return the recorded steps without what recording adds: at most the parts that it can lengthen.

        The profiler works on the host, for each op that is launched or run there. Beside a device that time looks like dispatch.
        Where the host computes, its ops take longer too; how much of it they take is not known, so both parts shrink alike.
        """
        computes_ns = 0 if has_device_work(breakdown) else breakdown.host_compute_ns
        slowed_ns = breakdown.dispatch_ns + computes_ns
        left = max(0.0, 1.0 - self.share * breakdown.total_ns / max(1, slowed_ns))
        return replace(
            breakdown,
            dispatch_ns=round(left * breakdown.dispatch_ns),
            host_compute_ns=breakdown.host_compute_ns - computes_ns + round(left * computes_ns),
        )


def has_device_work(breakdown: StepBreakdown) -> bool:
    """Say whether work of a device was recorded."""
    return breakdown.device_compute_ns + breakdown.device_copy_ns > 0


def like_all_steps(results: Results, breakdown: StepBreakdown) -> StepBreakdown:
    """Return the recorded steps as all steps of the job are: without what recording adds, and with no more compiling than all of them can hold.

    As they are where neither is known to matter.
    """
    return _with_compiling_of_all(results, _without_recording(results, breakdown))


def name_left_out(results: Results, breakdown: StepBreakdown) -> str:
    """Say what :func:`like_all_steps` leaves out of the recorded steps; empty where that is nothing."""
    plain = _without_recording(results, breakdown)
    left_out = {
        "what recording adds": plain.total_ns < breakdown.total_ns,
        "most of the compiling, which few other steps do": _with_compiling_of_all(results, plain).total_ns
        < plain.total_ns,
    }
    return " and ".join(what for what, applies in left_out.items() if applies)


def leaves_recording_out(results: Results) -> bool:
    """Say whether the verdict subtracts the cost of recording."""
    breakdown = results.step_breakdown
    return (
        not isinstance(breakdown, Unavailable) and _without_recording(results, breakdown).total_ns < breakdown.total_ns
    )


def _without_recording(results: Results, breakdown: StepBreakdown) -> StepBreakdown:
    cost = find_recording_cost(results)
    return breakdown if cost is None else cost.take_off(breakdown)


AS_LONG = 0.5
"""Part of the shortest recorded step that compiles which any step takes that may compile, too."""


def _with_compiling_of_all(results: Results, breakdown: StepBreakdown) -> StepBreakdown:
    """Return the recorded steps with compiling as often as steps of the job are as long as those that compile.

    Few steps are recorded: one that begins another training may be among a dozen of them, and be one of thousands.
    """
    job, steps = results.job_steps, results.steps
    if not breakdown.compile_ns:
        return breakdown
    lengths = tables.ints(breakdown.table, "end_ns") - tables.ints(breakdown.table, "start_ns")
    compiling = lengths[2 * tables.ints(breakdown.table, "compile_ns") > lengths]
    if isinstance(job, Unavailable) or isinstance(steps, Unavailable) or not len(compiling):
        return breakdown
    if steps.steps_per_marker != 1.0 or job.count < FEWEST_STEPS:
        return breakdown
    warmup, step_ns = tables.bools(job.table, "warmup"), tables.ints(job.table, "step_ns")
    after = step_ns[np.argmin(warmup) :]  # later models, too, begin with steps that are none of the measured ones
    share = after[after >= AS_LONG * compiling.min()].sum() / max(1, after.sum())
    others_ns = breakdown.total_ns - breakdown.compile_ns
    most_ns = breakdown.compile_ns if share >= 1.0 else round(others_ns * share / (1.0 - share))
    return replace(breakdown, compile_ns=min(breakdown.compile_ns, most_ns))


def find_recording_cost(results: Results) -> RecordingCost | None:
    """Return what recording does to the steps; None where that is little, or not known."""
    job = results.job_steps
    if isinstance(job, Unavailable):
        return None
    if job not in _costs:
        _costs[job] = _measure_cost(job)
    return _costs[job]


_costs: WeakKeyDictionary[JobSteps, RecordingCost | None] = WeakKeyDictionary()


def _measure_cost(job: JobSteps) -> RecordingCost | None:
    step_ns = tables.ints(job.table, "step_ns")
    working_ns = step_ns - tables.or_zero(job.table, "wait_ns")
    measured, recorded = ~tables.bools(job.table, "warmup"), tables.bools(job.table, "profiled")
    plain, recorded = measured & ~recorded, measured & recorded
    if min(plain.sum(), recorded.sum()) < FEWEST_STEPS:
        return None
    longer_ns = [
        np.quantile(each[recorded], QUARTERS) - np.quantile(each[plain], QUARTERS) for each in (working_ns, step_ns)
    ]
    # what a wait for input hides makes no step longer, and chance not all kinds of steps
    added_ns = float(np.min(longer_ns))
    if added_ns <= PROFILER_SLOWDOWN_PERCENT / 100.0 * np.median(step_ns[plain]):
        return None
    return RecordingCost(min(1.0, added_ns / float(step_ns[recorded].mean())), float(step_ns[plain].mean()))
