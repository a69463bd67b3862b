"""What is worth knowing beside the verdict: one small rule per kind."""

from collections.abc import Callable

from pipeline_lab.analysis import step_findings
from pipeline_lab.analysis.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.sampling_findings import (
    duplicates,
    low_coverage,
    padding_waste,
    same_source,
    sampling_skew,
    weak_shuffle,
)
from pipeline_lab.analysis.step_findings import BUSY_MACHINE_PERCENT
from pipeline_lab.analysis.verdict import Evidence, Finding
from pipeline_lab.errors import Unavailable
from pipeline_lab.trace.stored_analysis import WAIT_CAVEAT
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

PROFILER_SLOWDOWN_PERCENT = 10.0
SLOWED_PERCENT = 5.0
"""Of the time in which a GPU held itself back, from which it is worth a finding."""


def find_all(results: Results) -> tuple[Finding, ...]:
    """Return every finding that applies, in the order of :data:`RULES`."""
    return tuple(found for rule in RULES if (found := rule(results)) is not None)


def _salvaged(results: Results) -> Finding | None:
    salvage = results.source.salvaged
    if salvage is None:
        return None
    return Finding(
        "salvaged",
        f"Part of the capture is damaged: {salvage.reason} What could be read was analysed.",
        (
            Evidence("bytes lost", format_bytes(salvage.bytes_lost)),
            Evidence("events kept", format_count(salvage.events_kept)),
        ),
    )


def _unreadable(results: Results) -> Finding | None:
    if not results.source.unreadable:
        return None
    count = len(results.source.unreadable)
    return Finding(
        "unreadable",
        f"{count} trace {'file was' if count == 1 else 'files were'} left out: {results.source.unreadable[0]}",
    )


def _device_plane_missing(results: Results) -> Finding | None:
    if not results.source.unseen_device:
        return None
    return Finding(
        "device-plane-missing",
        "The job used an accelerator, but the capture holds nothing of it, so host compute stands in for the device; "
        "let the profiler use CUPTI (run as root, or set NVreg_RestrictProfilingToAdminUsers=0).",
    )


def _stored_analysis(results: Results) -> Finding | None:
    if results.source.kind != "derived":
        return None
    return Finding(
        "stored-analysis",
        f"The log holds no trace, only the step table that TensorFlow made from it. {WAIT_CAVEAT}",
    )


def _first_step_only(results: Results) -> Finding | None:
    steps = results.steps
    if isinstance(steps, Unavailable) or steps.count > 1:
        return None
    length = Evidence("step", format_duration(float(steps.length_ns[0])))
    if steps.first_step_only:
        return Finding(
            "first-step-only",
            "The capture holds one step and it is the job's first: tracing, compiling and buffer filling are in it, so "
            "its times say little about the others; record a few steps later on.",
            (length,),
        )
    return Finding(
        "one-step", "The capture holds a single step, so nothing can be said about how steps vary.", (length,)
    )


def _kept_apart(results: Results) -> Finding | None:
    if not results.source.kept_apart:
        return None
    return Finding(
        "kept-apart",
        "Not all captures say when they were made, so windows and hosts are shown one after another instead of on one "
        "time axis, and the time between them is unknown.",
    )


def _shortened_windows(results: Results) -> Finding | None:
    cost = results.profiler_cost
    if isinstance(cost, Unavailable):
        return None
    shortened = sum(cost.windows.column("shortened").to_pylist())
    if not shortened:
        return None
    return Finding(
        "shortened-windows",
        f"{shortened} of {cost.windows.num_rows} profile windows were closed early because they came near the memory "
        "ceiling; raise profiling.memory_ceiling_mb or record fewer steps per window.",
    )


def _profiler_overhead(results: Results) -> Finding | None:
    cost = results.profiler_cost
    if isinstance(cost, Unavailable):
        return None
    percent = _slowdown_percent(cost)
    if percent is None or percent < PROFILER_SLOWDOWN_PERCENT:
        return None
    assert cost.profiled_step_ns is not None
    assert cost.plain_step_ns is not None
    return Finding(
        "profiler-overhead",
        f"Steps take {format_percent(percent)} longer while they are recorded, so the charts of the windows show "
        "somewhat more time than the job normally needs.",
        (
            Evidence("recorded step", format_duration(cost.profiled_step_ns)),
            Evidence("plain step", format_duration(cost.plain_step_ns)),
        ),
    )


def _busy_machine(results: Results) -> Finding | None:
    if results.other_cpu_percent is None or results.other_cpu_percent < BUSY_MACHINE_PERCENT:
        return None
    return Finding(
        "busy-machine",
        "Other processes used the processor while the job ran, so its times are longer and less sure than on a quiet "
        "machine.",
        (Evidence("processor used by others", f"{results.other_cpu_percent / 100:.2g} cores"),),
    )


def _slowed_gpu(results: Results) -> Finding | None:
    clocks = results.gpu_clocks
    if isinstance(clocks, Unavailable) or clocks.slowed_percent is None or clocks.slowed_percent < SLOWED_PERCENT:
        return None
    return Finding(
        "gpu-slowed",
        f"The GPU held itself back because of heat or power for {format_percent(clocks.slowed_percent)} of the time: its "
        "steps are slower than they could be, and unevenly so; cool it, or leave it more power.",
        (
            Evidence("median clock", f"{clocks.median_mhz:,} MHz"),
            Evidence("lowest and highest", f"{clocks.lowest_mhz:,} and {clocks.highest_mhz:,} MHz"),
        ),
    )


def _slowdown_percent(cost: ProfilerCost) -> float | None:
    if cost.profiled_step_ns is None or not cost.plain_step_ns:
        return None
    return 100.0 * (cost.profiled_step_ns / cost.plain_step_ns - 1.0)


RULES: tuple[Callable[[Results], Finding | None], ...] = (
    _salvaged,
    _unreadable,
    _device_plane_missing,
    _stored_analysis,
    _first_step_only,
    _kept_apart,
    sampling_skew,
    weak_shuffle,
    same_source,
    low_coverage,
    duplicates,
    padding_waste,
    step_findings.retracing,
    step_findings.outlier_steps,
    step_findings.checkpoint_stall,
    step_findings.stragglers,
    step_findings.collectives,
    step_findings.hidden_contention,
    _shortened_windows,
    _profiler_overhead,
    _busy_machine,
    _slowed_gpu,
)
"""Every rule, in the order in which findings are shown."""
