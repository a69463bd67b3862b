"""The ``tf_data`` part of the JSON document."""

from typing import Any

from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, Stage, TfData
from pipeline_lab.analysis.tf_data.written_words import stage_call
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenPipeline, WrittenStage
from pipeline_lab.units import NS_PER_MS

Document = dict[str, Any]


def write_tf_data(pipeline: TfData, written: WrittenPipeline | Unavailable) -> Document:
    """Return the stages that ran and what the job waited for; times in ms, shares in percent."""
    path = pipeline.critical_path
    return {
        "stages": [_stage(stage) for stage in pipeline.stages],
        "critical_path": path.to_json() if isinstance(path, Unavailable) else _critical_path(pipeline, path),
        "bottleneck": None if pipeline.bottleneck is None else pipeline.stages[pipeline.bottleneck].path,
        "ran": [stage.path for stage in pipeline.stages],
        "written": written.to_json()
        if isinstance(written, Unavailable)
        else [_written(stage) for stage in written.stages],
        "observed_ms": pipeline.observed_ns / NS_PER_MS,
        "threadpool_size": pipeline.threadpool_size,
        "threadpool_busy_percent": _percent(pipeline.pool_busy_share),
        "cpu_budget": pipeline.cpu_budget,
        "ram_budget_bytes": pipeline.ram_budget_bytes,
        "ram_used_bytes": pipeline.ram_used_bytes,
    }


def _written(stage: WrittenStage) -> Document:
    return {"call": stage_call(stage), "node": stage.name or None, "inputs": list(stage.inputs)}


def _stage(stage: Stage) -> Document:
    return {
        "name": stage.name,
        "path": stage.path,
        "parent": stage.parent,
        "node": stage.node,
        "origin": stage.origin.value,
        "iterators": stage.iterators,
        "calls": stage.calls,
        "elements": stage.elements,
        "self_ms": stage.self_ns / NS_PER_MS,
        "blocked_ms": stage.blocked_ns / NS_PER_MS,
        "function_calls": stage.function_calls,
        "function_on_thread_ms": stage.function_on_thread_ns / NS_PER_MS,
        "function_latency_ms": stage.function_latency_ns / NS_PER_MS,
        "function_latency_variation": stage.function_latency.variation,
        "queueing_ms": stage.queueing_ns / NS_PER_MS,
        "operations": [
            {"name": operation.name, "calls": operation.calls, "self_ms": operation.self_ns / NS_PER_MS}
            for operation in stage.operations
        ],
        "parallelism": stage.parallelism,
        "parallelism_used": stage.parallelism_used,
        "cycle_length": stage.cycle_length,
        "autotuned": stage.autotuned,
        "deterministic": stage.deterministic,
        "buffer_limit": stage.buffer_limit,
        "buffer_mean": stage.buffer_mean,
        "buffer_empty_percent": _percent(stage.empty_share),
        "bytes_per_element": stage.bytes_per_element,
    }


def _critical_path(pipeline: TfData, path: CriticalPath) -> list[Document]:
    return [
        {
            "stage": None if share.stage is None else pipeline.stages[share.stage].path,
            "what": share.what,
            "wait_ms": share.wait_ns / NS_PER_MS,
            "exposed_ms": share.exposed_ns / NS_PER_MS,
        }
        for share in path.shares
    ]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share
