"""Merge the parts of all traces, add what the job noted itself, and conclude: results, findings, verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline_lab.analysis.diagnosis.fold import Axis, TraceParts, attempt, fold
from pipeline_lab.analysis.diagnosis.later_epochs import ONLY_THE_FIRST, put_in, windows_after
from pipeline_lab.analysis.idle import idle_gaps
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input import input_stalls
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.input.live_model import NO_MODEL, LiveModel
from pipeline_lab.analysis.machine import allocators
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.machine.gpu_clocks import NO_CLOCKS, GpuClocks
from pipeline_lab.analysis.machine.job_load import NO_LOAD, JobLoad
from pipeline_lab.analysis.machine.process_memory import NO_MEMORY, Memory
from pipeline_lab.analysis.machine.profiler_cost import NO_WINDOWS, ProfilerCost
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Results, Source
from pipeline_lab.analysis.sampling.evaluation import NO_EVALUATION, Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import NOT_KEPT, KeptOutputs
from pipeline_lab.analysis.sampling.padding import NO_PADDING, Padding
from pipeline_lab.analysis.steps import outlier_steps, recorded_steps, retracing, step_breakdown, stragglers
from pipeline_lab.analysis.steps.calibration import NOT_CALIBRATED, Calibration
from pipeline_lab.analysis.steps.job_steps import NO_JOB_STEPS, JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.step_phases import NO_EPOCHS, StepPhases
from pipeline_lab.analysis.steps.stragglers import Hosts
from pipeline_lab.analysis.tf_data import traced_pipeline as pipeline_fold
from pipeline_lab.analysis.tf_data.tf_data import TfData
from pipeline_lab.analysis.tf_data.written_words import NOT_WRITTEN
from pipeline_lab.analysis.verdict import findings
from pipeline_lab.analysis.verdict.verdict_rules import judge
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.trace.schema import Salvage

NO_TRACES = "No profile window has been recorded; let the job run until its first window is written, with profiling on."


Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class JobResults:
    """What comes from the job's own notes."""

    file_sampling: FileSampling | Unavailable
    padding: Padding | Unavailable
    kept_outputs: KeptOutputs | Unavailable
    evaluation: Evaluation | Unavailable
    gpu_clocks: GpuClocks | Unavailable
    job_steps: JobSteps | Unavailable
    calibration: Calibration | Unavailable
    memory: Memory | Unavailable
    profiler_cost: ProfilerCost | Unavailable
    live_model: LiveModel | Unavailable
    job_load: JobLoad | Unavailable
    written: WrittenPipeline | Unavailable
    outlier_steps: OutlierSteps | Unavailable
    step_phases: StepPhases | Unavailable
    other_cpu_percent: float | None


def without_job(sampling: FileSampling | Unavailable) -> JobResults:
    """Return what there is for a log that no job of ours stands behind: what its traces say about files."""
    return JobResults(
        file_sampling=sampling,
        padding=Unavailable(NO_PADDING),
        kept_outputs=Unavailable(NOT_KEPT),
        evaluation=Unavailable(NO_EVALUATION),
        gpu_clocks=Unavailable(NO_CLOCKS),
        job_steps=Unavailable(NO_JOB_STEPS),
        calibration=Unavailable(NOT_CALIBRATED),
        memory=Unavailable(NO_MEMORY),
        profiler_cost=Unavailable(NO_WINDOWS),
        live_model=Unavailable(NO_MODEL),
        job_load=Unavailable(NO_LOAD),
        written=Unavailable(NOT_WRITTEN),
        outlier_steps=Unavailable(NO_JOB_STEPS),
        step_phases=Unavailable(NO_EPOCHS),
        other_cpu_percent=None,
    )


def describe(path: Path, kind: str, axis: Axis, unreadable: tuple[str, ...] = ()) -> Source:
    """Say what was analysed."""
    return Source(
        path=str(path),
        kind=kind,
        hosts=tuple(sorted({part.host for part in axis.parts})),
        windows=axis.windows,
        size_bytes=sum(part.size_bytes for part in axis.parts),
        events=sum(part.events for part in axis.parts),
        salvaged=_add_salvage([part.salvage for part in axis.parts if part.salvage is not None]),
        kept_apart=axis.kept_apart,
        unseen_device=any(part.unseen_device for part in axis.parts),
        unreadable=unreadable,
    )


def conclude(source: Source, axis: Axis, job: JobResults, later: LaterEpochs | None = None) -> Diagnosis:
    """Put everything together and judge it.

    Args:
        source: What was analysed.
        axis: The traces.
        job: What the job noted.
        later: Its later epochs, where they are to be judged by themselves.
    """
    traces = _merge_traces(axis, axis.parts, NO_TRACES)
    outliers = {"outlier_steps": _outliers(job, traces.step_breakdown)}
    results = Results(
        source=source, origin_epoch_ns=axis.origin_epoch_ns, **_fields(traces), **(_fields(job) | outliers)
    )
    if later is None:
        return Diagnosis(**_fields(results), findings=findings.find_all_findings(results), verdict=judge(results))
    ran = put_in(results, later)
    behind = _merge_traces(axis, windows_after(axis.parts, later.start_ns), ONLY_THE_FIRST)
    return Diagnosis(
        **_fields(results),
        findings=findings.find_all_findings(ran),
        verdict=judge(replace(ran, **_fields(behind)), later.first),
        later_epochs=later,
    )


@dataclass(frozen=True, eq=False)
class _Traces:
    """What comes from the traces."""

    steps: Steps | Unavailable
    input_stalls: InputStalls | Unavailable
    step_breakdown: StepBreakdown | Unavailable
    retraces: Retraces | Unavailable
    hosts: Hosts | Unavailable
    idle_gaps: IdleGaps | Unavailable
    tf_data: TfData | Unavailable
    allocators: Allocators | Unavailable


def _merge_traces(axis: Axis, parts: Sequence[TraceParts], missing: str) -> _Traces:
    """Fold some of the captures of an axis; ``missing`` says why there are none."""
    if not parts:
        return _Traces(*[Unavailable(missing)] * len(fields(_Traces)))

    def merge_gaps(gaps: Sequence[IdleGaps]) -> IdleGaps:
        return idle_gaps.merge_gaps(gaps, capture_gaps=not axis.kept_apart)

    found_steps = fold(recorded_steps.merge_steps, [part.steps for part in parts])
    stalls = fold(input_stalls.merge_stalls, [part.input_stalls for part in parts])
    breakdown = fold(step_breakdown.merge_breakdowns, [part.step_breakdown for part in parts])
    retraces = fold(retracing.merge_retraces, [part.retraces for part in parts])
    gaps = fold(merge_gaps, [part.idle_gaps for part in parts])
    pipeline = fold(pipeline_fold.merge_pipelines, [part.tf_data for part in parts])
    memory = fold(allocators.merge_allocators, [part.allocators for part in parts])
    hosts = _on(breakdown, stragglers.compare_hosts)
    return _Traces(found_steps, stalls, breakdown, retraces, hosts, gaps, pipeline, memory)


def _outliers(job: JobResults, breakdown: StepBreakdown | Unavailable) -> OutlierSteps | Unavailable:
    """Return the outliers among all steps of the job where it noted them, else among the recorded ones."""
    if isinstance(job.outlier_steps, Unavailable):
        return _on(breakdown, outlier_steps.find_in_recorded)
    return job.outlier_steps


def _on(breakdown: StepBreakdown | Unavailable, analysis: Callable[[StepBreakdown], Found]) -> Found | Unavailable:
    return breakdown if isinstance(breakdown, Unavailable) else attempt(lambda: analysis(breakdown))


def _fields(result: Results | JobResults | _Traces) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}


def _add_salvage(losses: list[Salvage]) -> Salvage | None:
    if not losses:
        return None
    more = f" {len(losses) - 1} more files are damaged too." if len(losses) > 1 else ""
    return Salvage(
        bytes_lost=sum(loss.bytes_lost for loss in losses),
        events_kept=sum(loss.events_kept for loss in losses),
        reason=losses[0].reason + more,
    )
