"""The verdict's sentence and its evidence, in words."""

import numpy as np

from pipeline_lab.analysis.causes import GapCause, InputCause, VerdictClass
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.step_phases import PhaseTimes
from pipeline_lab.analysis.verdict.losses import Losses
from pipeline_lab.analysis.verdict.verdict import Evidence
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_duration, format_percent


def write_sentence(kind: VerdictClass, cause: str | None, stage: str | None, losses: Losses) -> str:
    """Say in one sentence what holds the job back, and how much of a step that takes."""
    lost = losses.by_class.get(kind, 0.0) / 100.0 * losses.step_ns
    template, why = kind.sentence, ""
    if kind is VerdictClass.INPUT_BOUND:
        clause = InputCause(cause).clause if cause else ", mostly for {stage}" if stage else ""
        template, why = template if losses.pace is None else _PACE, clause.format(stage=stage)
    elif kind is VerdictClass.IDLE_OTHER and cause:
        template = GapCause(cause).sentence
    return template.format(
        device=losses.device_name,
        lost=format_duration(lost),
        step=format_duration(losses.step_ns),
        share=format_percent(losses.by_class.get(kind, losses.device_percent)),
        why=why,
        pipeline="" if losses.pace is None else format_duration(losses.pace.pipeline_ns),
        alone="" if losses.pace is None else format_duration(losses.pace.step_ns),
    )


_BUSY = {"the device": "device busy"}
_PACE = "The job is limited by input throughput: the pipeline alone takes {pipeline} per batch, the compute-only step {alone}{why}."
"""Where the pipeline sets the job's pace, though most of what it takes does not show as waiting."""


def name_first_epoch(sentence: str, first: PhaseTimes | None) -> str:
    """Add to a sentence about the later epochs what the first one is like."""
    if first is None:
        return sentence
    waiting = format_percent(first.wait_percent)
    return (
        f"{sentence.removesuffix('.')}; that is so after the first epoch, in which a step takes "
        f"{format_duration(first.mean_ns)} and waits for input for {waiting} of it."
    )


def name_last_host(sentence: str, results: Results) -> str:
    """Add to a sentence which host makes the others wait, if one does."""
    last = _last_host(results)
    return (
        sentence
        if last is None
        else f"{sentence.removesuffix('.')}; {last} comes last, and the other hosts wait for it."
    )


def _last_host(results: Results) -> str | None:
    """Return the host for which the others wait in collectives; hosts without any do not wait for each other."""
    breakdown, hosts = results.step_breakdown, results.hosts
    if isinstance(breakdown, Unavailable) or isinstance(hosts, Unavailable) or not breakdown.collective_ns:
        return None
    return hosts.straggler


def collective_evidence(results: Results) -> tuple[Evidence, ...]:
    """Return how much of all hosts' steps passes in collectives, and who makes the others wait."""
    breakdown, hosts = results.step_breakdown, results.hosts
    if isinstance(breakdown, Unavailable) or not breakdown.collective_ns:
        return ()
    share = format_percent(100.0 * breakdown.collective_ns / breakdown.total_ns)
    found = Evidence(
        "collectives", f"{share} of the steps" if isinstance(hosts, Unavailable) else f"{share} of all hosts' steps"
    )
    if isinstance(hosts, Unavailable) or hosts.straggler is None:
        return (found,)
    rows = {row["host"]: row for row in hosts.table.to_pylist()}
    last = rows.pop(hosts.straggler)
    others_ns = float(np.median([row["input_wait_ns"] for row in rows.values()]))
    return (
        found,
        Evidence("comes last", f"{hosts.straggler}, in {last['last_in']} of {hosts.common_steps} steps of all hosts"),
        Evidence(
            f"input wait of {hosts.straggler}",
            f"{format_duration(last['input_wait_ns'])} per step, of the other hosts {format_duration(others_ns)}",
        ),
    )


def first_epoch_evidence(first: PhaseTimes | None, later: JobSteps | Unavailable) -> tuple[Evidence, ...]:
    """Return the steps that were judged, and those of the first epoch that were not."""
    if first is None or isinstance(later, Unavailable):
        return ()
    waiting = 100.0 * later.wait_total_ns / later.total_ns if later.total_ns else 0.0
    return tuple(
        Evidence(
            name, f"{format_count(count)} steps, median {format_duration(median)}, waiting {format_percent(percent)}"
        )
        for name, count, median, percent in (
            ("first epoch", first.steps, first.median_ns, first.wait_percent),
            ("later epochs, which are judged", later.count, later.median_ns, waiting),
        )
    )


def gather_evidence(kind: VerdictClass, losses: Losses, results: Results) -> tuple[Evidence, ...]:
    found = [Evidence("mean step", format_duration(losses.step_ns))]
    if not isinstance(results.steps, Unavailable):
        found.append(Evidence("recorded steps", f"{format_count(results.steps.count)} ({results.steps.marker})"))
    if not isinstance(results.input_stalls, Unavailable):
        stalls = results.input_stalls
        found.append(Evidence("input wait", f"{format_percent(stalls.wait_percent)} of the steps"))
        found.append(Evidence("exposed stall", f"{format_percent(stalls.exposed_percent)} of the steps"))
    if kind in losses.by_class and kind is not VerdictClass.INPUT_BOUND:
        found.append(Evidence(kind.loss, f"{format_percent(losses.by_class[kind])} of the steps"))
    found.append(
        Evidence(_BUSY.get(losses.device_name, "compute busy"), f"{format_percent(losses.device_percent)} of the steps")
    )
    job = results.job_steps
    if not isinstance(job, Unavailable) and job.total_ns:
        waiting = format_percent(100.0 * job.wait_total_ns / job.total_ns)
        found.append(Evidence("input wait, all measured steps", f"{waiting} of {format_count(job.count)} steps"))
    return (*found, *_calibration_evidence(results.calibration))


def _calibration_evidence(calibration: Calibration | Unavailable) -> tuple[Evidence, ...]:
    if isinstance(calibration, Unavailable):
        return ()
    alone = calibration.pipeline_only_ns
    return (
        Evidence("compute-only step", format_duration(calibration.device_only_ns)),
        *(() if alone is None else (Evidence("input-only time per batch", format_duration(alone)),)),
        Evidence("utilization", format_percent(calibration.utilisation_percent)),
    )


def idle_evidence(gaps: IdleGaps) -> tuple[Evidence, ...]:
    idle = gaps.idle_percent
    if isinstance(idle, Unavailable):
        return ()
    return (Evidence(f"idle time of {gaps.device}", f"{format_percent(idle)} of the capture"),)
