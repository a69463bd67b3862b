"""One stage of the pipeline that ran, in full: what it took of the threads, how parallel it was, what it kept, what ran in it."""

from pipeline_lab.analysis.pipeline_stages import PipelineStage
from pipeline_lab.analysis.tf_data.results import CriticalPath, Stage, StageOrigin
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Block, Table, Text
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

NO_TRACE = "No profile window holds this stage, so its calls and the operations inside it are not measured."
_ORIGINS = {
    StageOrigin.WRITTEN: "runs as written",
    StageOrigin.FUSED: "several written stages, made one by TensorFlow",
    StageOrigin.INJECTED: "put in by TensorFlow",
    StageOrigin.PARALLELISED: "written as serial, made parallel by TensorFlow",
}
_Facts = list[tuple[str, str]]


def stage_blocks(stage: PipelineStage, path: CriticalPath | Unavailable) -> tuple[Block, ...]:
    """Return what is known of one stage.

    Args:
        stage: As :func:`pipeline_lab.analysis.pipeline_stages.join_stages` gives it.
        path: What the job waited for, which tells how much of that was this stage.
    """
    facts = [*_identity(stage), *_cost(stage), *_buffer(stage)]
    traced = stage.traced
    if traced is None:
        return _facts_table(facts), Text(NO_TRACE, missing=True)
    facts += [*_calls(traced), *_function(traced)]
    shares = () if isinstance(path, Unavailable) else _waited_for(traced, path)
    return _facts_table(facts), *shares, *_operations(traced)


def _facts_table(facts: _Facts) -> Table:
    return Table("What is known of it", ("What", "Value"), tuple(facts))


def _identity(stage: PipelineStage) -> _Facts:
    facts = [("Place, the consumer first", stage.path.replace("::", " → "))]
    if stage.written:
        facts.append(("Written as", " + ".join(stage.written)))
    if stage.origin is not None:
        facts.append(("How it came to be", _ORIGINS[stage.origin]))
    return facts


def _cost(stage: PipelineStage) -> _Facts:
    """Tell the thread time by each source that has it: the model speaks of the whole run, the trace of its windows."""
    facts = []
    if stage.traced_work_ns is None or stage.work_ns != stage.traced_work_ns:
        facts.append(("Thread time for one batch, whole run (tf.data's own model)", format_duration(stage.work_ns)))
    if stage.traced_work_ns is not None:
        facts.append(("Thread time for one batch, inside the windows (trace)", format_duration(stage.traced_work_ns)))
    if stage.exposed_ns is not None:
        facts.append(("Wait that it caused and that left the device idle", format_duration(stage.exposed_ns)))
    facts.append(("Elements for one batch", f"{stage.visits_per_batch:.4g}"))
    if stage.element_bytes is not None:
        facts.append(("Size of an element", format_bytes(stage.element_bytes)))
    if stage.parallelism is not None:
        facts.append(("Parallel calls allowed", f"{stage.parallelism:.3g}"))
    return facts


def _buffer(stage: PipelineStage) -> _Facts:
    if stage.buffered_elements is None:
        return []
    limit = "" if stage.buffer_limit is None else f" of {stage.buffer_limit:.4g}"
    facts = [("Elements in its buffer, mean", f"{stage.buffered_elements:.4g}{limit}")]
    if stage.buffered_bytes is not None:
        facts.append(("Size of what lies there, mean", format_bytes(stage.buffered_bytes)))
    if stage.traced is not None and stage.traced.empty_share is not None:
        facts.append(("Calls that found it empty", format_percent(100 * stage.traced.empty_share)))
    return facts


def _calls(stage: Stage) -> _Facts:
    facts = [
        ("Calls in the windows", format_count(stage.calls)),
        ("Elements that it handed over there", format_count(stage.elements)),
        ("Its own time in those calls", format_duration(stage.self_ns)),
        ("Time that they waited for other threads", format_duration(stage.blocked_ns)),
    ]
    if stage.cycle_length is not None:
        facts.append(("Files or datasets open at once", format_count(stage.cycle_length)))
    if stage.autotuned is not None:
        facts.append(("Parallelism or buffer chosen by", "TensorFlow" if stage.autotuned else "the code"))
    if stage.deterministic is not None:
        facts.append(("Elements leave", "in order" if stage.deterministic else "as they get ready"))
    return facts


def _function(stage: Stage) -> _Facts:
    if not stage.function_calls:
        return []
    facts = [
        ("Calls of its function", format_count(stage.function_calls)),
        ("Time of threads in the function", format_duration(stage.function_on_thread_ns)),
    ]
    if stage.function_latency.mean is not None and stage.queueing_share is not None:
        facts += [
            ("From call to result, mean", format_duration(stage.function_latency.mean)),
            ("Of which on no thread", format_percent(100 * stage.queueing_share)),
        ]
    if stage.parallelism_used is not None:
        facts.append(("Calls under way, mean", f"{stage.parallelism_used:.3g}"))
    return facts


def _waited_for(stage: Stage, path: CriticalPath) -> tuple[Table, ...]:
    """List what of the stage the device waited for."""
    shares = [share for share in path.shares if share.stage == stage.number and share.exposed_ns > 0]
    rows = tuple(
        (share.what, format_duration(share.exposed_ns), format_percent(100 * share.exposed_ns / path.exposed_ns))
        for share in sorted(shares, key=lambda share: -share.exposed_ns)
    )
    columns = ("Part", "Device idle meanwhile", "Of all exposed waits")
    return (Table("What of it the device waited for", columns, rows, numeric=(1, 2)),) if rows else ()


def _operations(stage: Stage) -> tuple[Table, ...]:
    """List the ops inside the stage's function; the share is of the time that threads spent on it."""
    rows = tuple(
        (
            operation.name,
            format_count(operation.calls),
            format_duration(operation.self_ns),
            format_percent(100 * operation.self_ns / max(1, stage.function_on_thread_ns)),
        )
        for operation in stage.operations
    )
    columns = ("Operation", "Calls", "Time of threads", "Of the function")
    return (Table("Operations inside its function", columns, rows, numeric=(1, 2, 3)),) if rows else ()
