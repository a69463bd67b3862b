"""The analysis of the tf.data pipeline: its declaration, apart from the code that reads traces, which loads Numba."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from pipeline_lab.analysis.declaring.declaration import (
    Analysis,
    Document,
    PerTrace,
    TraceView,
    attempt,
    only_derived,
    to_ms,
    to_percent,
)
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, TfData, TracedStage
from pipeline_lab.analysis.tf_data.written_words import calls_of_stages, stage_call
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenStage

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Results


def _analyze(trace: TraceView) -> TfData:
    from pipeline_lab.analysis.tf_data.traced_pipeline import analyze_pipeline  # loads compiled code

    def find_steps() -> Steps | None:
        steps = attempt(lambda: trace.found.need(Steps, "steps"))
        return None if isinstance(steps, Unavailable) else steps

    return analyze_pipeline(trace.activity, find_steps)


def _merge(parts: Sequence[TfData]) -> TfData:
    from pipeline_lab.analysis.tf_data.traced_pipeline import merge_pipelines

    return merge_pipelines(parts)


def _to_json(results: "Results") -> Document:
    """Write the stages that ran, what the job waited for, and the stages as they were written."""
    pipeline, written = results.tf_data, results.written
    if isinstance(pipeline, Unavailable):
        return pipeline.to_json()
    path = pipeline.critical_path
    calls = {} if isinstance(written, Unavailable) else calls_of_stages(written, pipeline.stages)
    return {
        "stages": [
            {**_stage_to_json(stage), "calls": [call.to_json() for call in calls.get(stage.path, ())]}
            for stage in pipeline.stages
        ],
        "critical_path": path.to_json() if isinstance(path, Unavailable) else _path_to_json(pipeline, path),
        "bottleneck": None if pipeline.bottleneck is None else pipeline.stages[pipeline.bottleneck].path,
        "ran": [stage.path for stage in pipeline.stages],
        "written": written.to_json()
        if isinstance(written, Unavailable)
        else [_written_to_json(stage) for stage in written.stages],
        "observed_ms": to_ms(pipeline.observed_ns),
        "threadpool_size": pipeline.threadpool_size,
        "threadpool_busy_percent": to_percent(pipeline.pool_busy_share),
        "cpu_budget": pipeline.cpu_budget,
        "ram_budget_bytes": pipeline.ram_budget_bytes,
        "ram_used_bytes": pipeline.ram_used_bytes,
    }


def _written_to_json(stage: WrittenStage) -> Document:
    place = None if stage.call is None else stage.call.place
    found = {"call": stage_call(stage), "node": stage.name or None, "inputs": list(stage.inputs)}
    return found if place is None else {**found, "place": asdict(place)}


def _stage_to_json(stage: TracedStage) -> Document:
    return {
        "name": stage.name,
        "path": stage.path,
        "parent": stage.parent,
        "node": stage.node,
        "origin": stage.origin.value,
        "iterators": stage.iterators,
        "calls": stage.calls,
        "elements": stage.elements,
        "self_ms": to_ms(stage.self_ns),
        "blocked_ms": to_ms(stage.blocked_ns),
        "function_calls": stage.function_calls,
        "function_on_thread_ms": to_ms(stage.function_on_thread_ns),
        "function_latency_ms": to_ms(stage.function_latency_ns),
        "function_latency_variation": stage.function_latency.variation,
        "queueing_ms": to_ms(stage.queueing_ns),
        "operations": [
            {"name": operation.name, "calls": operation.calls, "self_ms": to_ms(operation.self_ns)}
            for operation in stage.operations
        ],
        "parallelism": stage.parallelism,
        "parallelism_used": stage.parallelism_used,
        "cycle_length": stage.cycle_length,
        "autotuned": stage.autotuned,
        "deterministic": stage.deterministic,
        "buffer_limit": stage.buffer_limit,
        "buffer_mean": stage.buffer_mean,
        "buffer_empty_percent": to_percent(stage.empty_share),
        "bytes_per_element": stage.bytes_per_element,
    }


def _path_to_json(pipeline: TfData, path: CriticalPath) -> list[Document]:
    return [
        {
            "stage": None if share.stage is None else pipeline.stages[share.stage].path,
            "what": share.what,
            "wait_ms": to_ms(share.wait_ns),
            "exposed_ms": to_ms(share.exposed_ns),
        }
        for share in path.shares
    ]


TF_DATA = Analysis(
    TfData,
    per_trace=PerTrace(_analyze, _merge, only_derived("the stages of the pipeline are")),
    to_json_with=_to_json,
)
