"""The whole of a diagnosis: what was analyzed, what its traces and its job say together, and the verdict on it."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Found, JobView, attempt
from pipeline_lab.analysis.diagnosis.later_epochs import put_in
from pipeline_lab.analysis.diagnosis.merging import Axis, Scope, merge_parts
from pipeline_lab.analysis.diagnosis.trace_parts import AnyResults, TraceParts
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Results, Source, analyses
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.steps.job_steps import JOB_STEP_TABLE, JobSteps
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS, NO_STEPS_IN_PART, NO_STEPS_OF_JAX, Steps
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.analysis.verdict.recording_effects import why_no_device
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict
from pipeline_lab.errors import Unavailable


def measure_job(job: JobView) -> AnyResults:
    """Run every analysis that looks at what a job noted."""
    return {
        name: attempt(partial(one.per_job.measure, job)) for name, one in analyses().items() if one.per_job is not None
    }


def without_job(reads: FileReads | None) -> AnyResults:
    """Return what there is for a log that no job of ours stands behind: what its traces say about files.

    Args:
        reads: None for a log whose traces are gone.
    """

    def measure(of_log: Callable[[FileReads | None], object] | None, missing: str) -> object:
        return Unavailable(missing) if of_log is None else attempt(lambda: of_log(reads))

    return {
        name: measure(one.per_job.of_log, one.per_job.missing)
        for name, one in analyses().items()
        if one.per_job is not None
    }


def describe(
    path: Path,
    kind: str,
    axis: Axis,
    unreadable: tuple[str, ...] = (),
    *,
    is_emulated: bool = False,
    uses_device: bool = False,
    damaged_tables: tuple[str, ...] = (),
) -> Source:
    """Say what was analyzed.

    Args:
        path, kind: Of the run or log.
        axis: Its traces.
        unreadable: What is wrong with those that could not be read.
        is_emulated: The job's options say that its accelerator was emulated.
        uses_device: The job is known to train on an accelerator.
        damaged_tables: What is wrong with what the job noted.
    """
    facts = axis.facts
    return Source(
        path=str(path),
        kind=kind,
        hosts=facts.hosts,
        windows=axis.windows,
        size_bytes=facts.size_bytes,
        events=facts.events,
        salvaged=facts.salvaged,
        kept_apart=axis.kept_apart,
        unseen_device=facts.unseen_device or (uses_device and bool(axis.parts) and not facts.has_device),
        unreadable=unreadable,
        damaged_tables=damaged_tables,
        is_emulated=is_emulated or facts.is_emulated,
        is_of_jax=facts.is_of_jax,
        errors=facts.errors,
        warnings=facts.warnings,
    )


def _steps_of_others(job: AnyResults) -> AnyResults:
    """Return what stands for the steps that windows show where the script makes its batches itself: these are of what else reads a dataset."""
    steps = job["job_steps"]
    if isinstance(steps, Unavailable) or steps.own_call is None:
        return {}
    why = Unavailable(f"No dataset makes the batches of {steps.own_call}, so that windows do not show its steps.")
    return dict.fromkeys(("steps", "step_breakdown", "input_stalls"), why)


MORE_THAN_IDLE_PERCENT = 15.0
"""Waits that are a larger part of the steps by so much than idle time is of the windows are not those of Python alone."""


def _bears_out(idle: IdleGaps | Unavailable, steps: JobSteps) -> bool:
    """Say whether windows show the training computation idle for as long as a script seems to make its batches."""
    percent = idle if isinstance(idle, Unavailable) else idle.idle_percent
    return not isinstance(percent, Unavailable) and (steps.wait_percent or 0.0) <= percent + MORE_THAN_IDLE_PERCENT


def _without_waits(steps: JobSteps) -> JobSteps:
    """Leave out waits that may be anything else, such as ops that Python launches one by one."""
    unknown = pa.nulls(steps.table.num_rows, pa.int64())
    table = steps.table
    for name in ("wait_ns", "compute_ns"):
        table = table.set_column(table.schema.get_field_index(name), JOB_STEP_TABLE.field(name), unknown)
    return replace(steps, table=table, wait_total_ns=None, call_total_ns=None, own_call=None)


def conclude(
    source: Source,
    axis: Axis,
    job: AnyResults,
    other_cpu_percent: float | None = None,
    later: LaterEpochs | None = None,
) -> Diagnosis:
    """Put everything together and judge it.

    Args:
        source: What was analyzed.
        axis: The traces.
        job: What the job noted.
        other_cpu_percent: What other processes took meanwhile; see ``Results``.
        later: Its later epochs, where they are to be judged by themselves.
    """
    others = _steps_of_others(job)
    traces = _merge_seen(source, axis, axis.parts, Scope.ALL) | others
    if others and not _bears_out(traces["idle_gaps"], job["job_steps"]):
        job, later = job | {"job_steps": _without_waits(job["job_steps"])}, None
    results = Results(
        source=source,
        origin_epoch_ns=axis.origin_epoch_ns,
        other_cpu_percent=other_cpu_percent,
        **traces,
        **(job | _stand_ins(job, traces)),
    )
    found = {field.name: getattr(results, field.name) for field in fields(results)}
    if later is not None:
        ran = put_in(results, later)
        behind = _merge_seen(source, axis, windows_after(axis.parts, later.start_ns), Scope.LATER_EPOCHS)
        verdict = reach_verdict(replace(ran, **behind | others), later.first)
        if verdict.verdict_class is not VerdictClass.UNKNOWN:
            return Diagnosis(**found, findings=find_all_findings(ran), verdict=verdict, later_epochs=later)
    return Diagnosis(**found, findings=find_all_findings(results), verdict=reach_verdict(results))


_IN_PART = dict.fromkeys(map(Unavailable, (NO_STEPS, NO_STEPS_OF_JAX)), Unavailable(NO_STEPS_IN_PART))
"""What is said of steps in a damaged file instead."""


def _merge_seen(source: Source, axis: Axis, parts: Sequence[TraceParts], scope: Scope) -> AnyResults:
    """Merge captures; host compute does not stand for an accelerator whose work was not recorded."""
    found = merge_parts(axis, parts, scope)
    if source.salvaged is not None:  # whether steps were marked is not known
        found = {
            name: _IN_PART.get(part, part) if isinstance(part, Unavailable) else part for name, part in found.items()
        }
    return found | {"idle_gaps": Unavailable(why_no_device(source))} if source.unseen_device else found


def windows_after(parts: Sequence[TraceParts], start_ns: int) -> list[TraceParts]:
    """Return the captures whose steps all lie after some moment; the first one's middle decides.

    Step numbers would not do: markers need not count as the job does, and a rhythm of waits has no numbers.
    """
    return [part for part in parts if part.steps is not None and _first_middle(part.steps) >= start_ns]


def _first_middle(steps: Steps) -> float:
    return float(tables.intervals(steps.table).mean(axis=1).min())


def _stand_ins(job: AnyResults, traces: AnyResults) -> AnyResults:
    """Return what the traces give for analyses about which the job noted nothing."""
    return {
        name: attempt(partial(one.of_results, Found(traces)))
        for name, one in analyses().items()
        if one.of_results is not None and one.per_job is not None and isinstance(job[name], Unavailable)
    }
