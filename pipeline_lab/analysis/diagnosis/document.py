"""Write a diagnosis as the JSON document that scripts rely on: times in ms, shares in percent.

``SCHEMA_VERSION`` history: 1, the first one.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.idle.idle_gaps import DeviceTime, IdleGaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.machine.process_memory import Memory
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Diagnosis, Source
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import KeptOutputs
from pipeline_lab.analysis.sampling.padding import Padding
from pipeline_lab.analysis.sampling.sample_history import LabelMix
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.step_phases import StepPhases
from pipeline_lab.analysis.steps.stragglers import Hosts
from pipeline_lab.analysis.tf_data.tf_data_json import write_tf_data
from pipeline_lab.analysis.verdict.verdict import Evidence, Finding, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS

SCHEMA_VERSION = 1
LONGEST = 20
"""Rows in each list of the longest waits or gaps."""

NO_PAGE_CACHE = Unavailable(
    "Whether the files came from the page cache or from the disk is not known: the run is an older one, or it asked for a "
    "cold page cache and the system kept the files in it."
)

Result = TypeVar("Result")
Document = dict[str, Any]


def write_document(diagnosis: Diagnosis) -> Document:
    """Return the whole document; what was not measured stands as ``{"unavailable": reason}`` in its place."""
    return {
        "schema_version": SCHEMA_VERSION,
        "source": _source(diagnosis.source),
        "job_steps": _part(diagnosis.job_steps, _job_steps),
        "steps": _part(diagnosis.steps, _steps),
        "input_stalls": _part(diagnosis.input_stalls, _input_stalls),
        "step_breakdown": _part(diagnosis.step_breakdown, _step_breakdown),
        "step_phases": _part(diagnosis.step_phases, _step_phases),
        "outlier_steps": _part(diagnosis.outlier_steps, _outlier_steps),
        "retracing": _part(diagnosis.retraces, _retraces),
        "hosts": _part(diagnosis.hosts, _hosts),
        "calibration": _part(diagnosis.calibration, _calibration),
        "idle_gaps": _part(diagnosis.idle_gaps, _idle_gaps),
        "tf_data": _part(diagnosis.tf_data, lambda found: write_tf_data(found, diagnosis.written)),
        "file_sampling": _part(diagnosis.file_sampling, _file_sampling),
        "padding": _part(diagnosis.padding, _padding),
        "gpu_clocks": _part(diagnosis.gpu_clocks, asdict),
        "evaluation": _part(diagnosis.evaluation, _evaluation),
        "kept_outputs": _part(diagnosis.kept_outputs, _kept_outputs),
        "memory": _memory(diagnosis.memory, diagnosis.allocators),
        "profiler_cost": _part(diagnosis.profiler_cost, _profiler_cost),
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "verdict": _verdict(diagnosis.verdict),
    }


def _part(result: Result | Unavailable, write: Callable[[Result], Document]) -> Document:
    return result.to_json() if isinstance(result, Unavailable) else write(result)


def _ms(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else float(duration_ns) / NS_PER_MS


def _source(source: Source) -> Document:
    lost = source.salvaged
    return {
        "path": source.path,
        "kind": source.kind,
        "hosts": list(source.hosts),
        "windows": source.windows,
        "bytes": source.size_bytes,
        "events": source.events,
        "salvaged": lost and {"bytes_lost": lost.bytes_lost, "events_kept": lost.events_kept, "reason": lost.reason},
        "unreadable": list(source.unreadable),
    }


def _job_steps(job: JobSteps) -> Document:
    return {
        "count": job.count,
        "median_ms": _ms(job.median_ns),
        "p95_ms": _ms(job.p95_ns),
        "total_ms": _ms(job.total_ns),
        "wait_ms": _ms(job.wait_total_ns),
        "first_batch_ms": _ms(job.first_batch_ns),
        "examples_per_second": job.examples_per_second,
    }


def _steps(steps: Steps) -> Document:
    length = steps.length_ns
    return {
        "marker": steps.marker,
        "count": steps.count,
        "steps_per_marker": steps.steps_per_marker,
        "mean_ms": _ms(float(length.mean())),
        "median_ms": _ms(float(np.median(length))),
        "p95_ms": _ms(float(np.percentile(length, 95))),
        "training_step_ms": _ms(float(np.median(steps.training_step_ns))),
        "total_ms": _ms(int(length.sum())),
        "first_step_only": steps.first_step_only,
    }


def _input_stalls(stalls: InputStalls) -> Document:
    table = stalls.table
    return {
        "wait_ms": _ms(stalls.wait_ns),
        "exposed_ms": _ms(stalls.exposed_ns),
        "step_ms": _ms(stalls.step_ns),
        "wait_percent": stalls.wait_percent,
        "exposed_percent": stalls.exposed_percent,
        "events": stalls.events,
        "event_sum_ms": _ms(stalls.event_sum_ns),
        "event_names": list(stalls.event_names),
        "longest": [
            {
                "step": row["step"],
                "start_ms": _ms(row["start_ns"]),
                "wait_ms": _ms(row["end_ns"] - row["start_ns"]),
                "exposed_ms": _ms(row["exposed_ns"]),
            }
            for row in _longest(table, tables.ints(table, "end_ns") - tables.ints(table, "start_ns"))
        ],
    }


def _step_breakdown(breakdown: StepBreakdown) -> Document:
    return {name.removesuffix("_ns") + "_ms": _ms(part_ns) for name, part_ns in breakdown.parts_ns.items()}


def _step_phases(found: StepPhases) -> Document:
    return {
        "basis": "all steps",
        "phases": [
            {
                "phase": one.phase.value,
                "steps": one.steps,
                "first_step": one.first_step,
                "median_ms": _ms(one.median_ns),
                "p95_ms": _ms(one.p95_ns),
                "total_ms": _ms(one.total_ns),
                "wait_ms": _ms(one.wait_ns),
                "wait_percent": one.wait_percent,
            }
            for one in found.phases
        ],
    }


def _outlier_steps(found: OutlierSteps) -> Document:
    longest = _longest(found.table, tables.ints(found.table, "length_ns"))
    return {
        "basis": found.basis,
        "looked_at": found.looked_at,
        "count": found.count,
        "excess_ms": _ms(found.excess_ns),
        "longest": [_times_in_ms(row) for row in longest],
    }


def _retraces(found: Retraces) -> Document:
    return {
        "basis": "recorded steps",
        "count": found.count,
        "steps": found.steps,
        "functions": list(found.functions),
    }


def _hosts(found: Hosts) -> Document:
    return {
        "straggler": found.straggler,
        "common_steps": found.common_steps,
        "common_ms": _ms(found.common_ns),
        "hosts": [_times_in_ms(row) for row in found.table.to_pylist()],
    }


def _times_in_ms(row: Document) -> Document:
    return {
        name.removesuffix("_ns") + "_ms" if name.endswith("_ns") else name: _ms(value)
        if name.endswith("_ns")
        else value
        for name, value in row.items()
    }


def _calibration(calibration: Calibration) -> Document:
    return {
        "device_only_ms": _ms(calibration.device_only_ns),
        "pipeline_only_ms": _ms(calibration.pipeline_only_ns),
        "step_ms": _ms(calibration.step_ns),
        "utilisation_percent": calibration.utilisation_percent,
        "page_cache": calibration.page_cache or NO_PAGE_CACHE.to_json(),
    }


def _idle_gaps(gaps: IdleGaps) -> Document:
    hosts = {device.host for device in gaps.devices}

    def name(device: DeviceTime) -> str:
        return f"{device.host} {device.name}" if len(hosts) > 1 else device.name

    return {
        "device": gaps.device,
        "devices": [
            {"name": name(device), "busy_ms": _ms(device.busy_ns), "idle_ms": _ms(device.idle_ns)}
            for device in gaps.devices
        ],
        "by_cause_ms": {cause.value: _ms(idle_ns) for cause, idle_ns in gaps.by_cause_ns.items()},
        "by_operation": [
            {"operation": one.operation, "cause": one.cause.value, "idle_ms": _ms(one.idle_ns)}
            for one in gaps.by_operation[:LONGEST]
        ],
        "longest": [
            {
                "device": row["device"],
                "start_ms": _ms(row["start_ns"]),
                "duration_ms": _ms(row["duration_ns"]),
                "cause": row["cause"],
                "host_operations": _host_operations(gaps, row),
            }
            for row in _longest(gaps.inside, tables.ints(gaps.inside, "duration_ns"))
        ],
    }


def _host_operations(gaps: IdleGaps, gap: Document) -> list[Document]:
    return [
        {
            "operation": row["operation"],
            "time_ms": _ms(row["time_ns"]),
            "share_percent": 100.0 * row["time_ns"] / gap["duration_ns"],
        }
        for row in gaps.operations_of(gap["host"], gap["device"], gap["start_ns"])
    ]


def _file_sampling(sampling: FileSampling) -> Document:
    return {
        "basis": sampling.basis,
        "files": [_percent_shares(row) for row in sampling.table.to_pylist()],
        "total_variation": sampling.total_variation,
        "total_variation_ideal": sampling.total_variation_ideal,
        "unopened": sampling.unopened,
        "reachable_percent": sampling.reachable_percent,
        "coverage_percent": sampling.coverage_percent,
        "duplicates": sampling.duplicates,
        "within_batch_entropy": sampling.within_batch_entropy,
        "worst_tenth": sampling.worst_tenth,
        "worst_tenth_ideal": sampling.worst_tenth_ideal,
        "total_variation_limit": sampling.total_variation_limit,
        "chi_square_per_df": sampling.chi_square_per_df,
        "epochs_seen": sampling.epochs_seen,
        "mixing": None if sampling.mixing is None else vars(sampling.mixing),
        "mixing_ideal": None if sampling.mixing_ideal is None else vars(sampling.mixing_ideal),
        "visible_percent": sampling.visible_percent,
        "predicted": None if sampling.predicted is None else vars(sampling.predicted),
        "same_source": None if sampling.same_source is None else vars(sampling.same_source),
        "labels": None if sampling.labels is None else _label_mix(sampling.labels),
        "coverage": sampling.coverage.to_pylist(),
        "epochs": sampling.epochs.to_pylist(),
        "reads_by_epoch": [{"epoch": epoch, "reads": reads} for epoch, reads in sampling.reads_by_epoch],
    }


def _evaluation(found: Evaluation) -> Document:
    return {
        "rebuilt": found.is_rebuilt,
        "held_out_files": found.held_out_files,
        "total_ms": _ms(found.total_ns),
        "passes": [_times_in_ms(row) for row in found.passes.to_pylist()],
        "file_sampling": found.sampling and _file_sampling(found.sampling),
    }


def _padding(found: Padding) -> Document:
    low, middle, high = found.batch_percent
    return {
        "padding_percent": found.percent,
        "elements": found.elements,
        "padding_elements": found.padding_elements,
        "examples": found.examples,
        "batches": found.table.num_rows,
        "batch_percent": {"p5": low, "median": middle, "p95": high},
    }


def _label_mix(mix: LabelMix) -> Document:
    return {
        "labels": mix.labels,
        "batch_total_variation": mix.batch_total_variation,
        "batch_total_variation_ideal": mix.batch_total_variation_ideal,
    }


def _kept_outputs(kept: KeptOutputs) -> Document:
    return {
        "step": kept.step,
        "examples": kept.table.num_rows,
        "right": kept.right,
        "first": kept.table.slice(0, LONGEST).to_pylist(),
    }


def _percent_shares(row: Document) -> Document:
    return {name: 100.0 * value if "_share" in name and value is not None else value for name, value in row.items()}


def _memory(memory: Memory | Unavailable, allocators: Allocators | Unavailable) -> Document:
    if isinstance(memory, Unavailable) and isinstance(allocators, Unavailable):
        return memory.to_json()
    process = memory.to_json() if isinstance(memory, Unavailable) else None
    return {
        "process_peak_bytes": memory.process_peak_bytes if isinstance(memory, Memory) else process,
        "process_start_bytes": memory.process_start_bytes if isinstance(memory, Memory) else process,
        "data_bytes": memory.data_bytes if isinstance(memory, Memory) else process,
        "allocators": allocators.to_json()
        if isinstance(allocators, Unavailable)
        else [
            {"host": found.host, "name": found.name, "peak_bytes": found.peak_bytes} for found in allocators.allocators
        ],
    }


def _profiler_cost(cost: ProfilerCost) -> Document:
    return {
        "windows": cost.windows.num_rows,
        "profiled_steps": cost.profiled_steps,
        "profiled_step_ms": _ms(cost.profiled_step_ns),
        "plain_step_ms": _ms(cost.plain_step_ns),
        "flushing_step_ms": _ms(cost.flushing_step_ns),
    }


def _finding(finding: Finding) -> Document:
    return {"kind": finding.kind, "sentence": finding.sentence, "evidence": _evidence(finding.evidence)}


def _verdict(verdict: Verdict) -> Document:
    return {
        "class": verdict.verdict_class.value,
        "stage": verdict.stage,
        "cause": verdict.cause,
        "sentence": verdict.sentence,
        "evidence": _evidence(verdict.evidence),
        "confidence": verdict.confidence.value,
        "suggestions": [
            {
                "change": suggestion.change,
                "why": suggestion.why,
                "predicted_gain_percent": _gain(suggestion.predicted_gain_percent),
                "side_effects": list(suggestion.side_effects),
                "settings": list(suggestion.settings),
                "command": suggestion.command,
                "source_diff": suggestion.source_diff,
            }
            for suggestion in verdict.suggestions
        ],
    }


def _gain(percent: float | Unavailable) -> Document | float:
    return percent.to_json() if isinstance(percent, Unavailable) else percent


def _evidence(evidence: tuple[Evidence, ...]) -> list[Document]:
    return [{"name": item.name, "value": item.value} for item in evidence]


def _longest(table: pa.Table, length_ns: np.ndarray[Any, Any]) -> list[Document]:
    order = np.argsort(-length_ns, kind="stable")[:LONGEST]
    rows: list[Document] = tables.take(table, order).to_pylist()
    return rows
