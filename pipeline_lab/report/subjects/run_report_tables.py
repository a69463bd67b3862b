"""The tables of a run: the longest and the largest of everything, bounded, and one stage of its pipeline in full."""

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import KeptOutputs
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, StageOrigin, TracedStage
from pipeline_lab.analysis.tf_data.written_words import say_calls
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Block, Table, Text
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

UNKNOWN = "–"
MAX_LONGEST = 10
MAX_FILES = 30
MAX_WINDOWS = 20
MAX_EXAMPLES = 40
MAX_OUTPUTS = 5
SHOWN_OPERATIONS = 3


def longest_waits(stalls: InputStalls) -> Table:
    """List the longest waits for input."""
    waits = stalls.table.append_column("length_ns", pc.subtract(stalls.table["end_ns"], stalls.table["start_ns"]))
    rows = tuple(
        (
            _known(row["step"], str),
            format_duration(row["start_ns"]),
            format_duration(row["length_ns"]),
            format_duration(row["exposed_ns"]),
        )
        for row in _largest(waits, "length_ns")
    )
    return Table(
        "Longest waits",
        ("Step", "Start", "Wait", "Exposed"),
        rows,
        numeric=(0, 1, 2, 3),
        note=_left_out(len(rows), waits.num_rows, "waits"),
    )


def stages(pipeline: tuple[PipelineStage, ...]) -> Table:
    """List the stages that ran, the outermost first, beside what was written."""
    rows = tuple(
        (
            "\u2003" * stage.depth + stage.name,
            say_calls(stage.written) or _origin(stage),
            format_duration(stage.work_ns),
            f"{stage.visits_per_batch:.4g}",
            _known(stage.element_bytes, format_bytes),
            _known(stage.parallelism, "{:.3g}".format),
            _buffer(stage),
            _known(stage.exposed_ns, format_duration),
        )
        for stage in pipeline
    )
    return Table(
        "Stages that ran",
        ("Stage", "Written", "Per batch", "Elements", "Of size", "Parallel", "Buffered", "Exposed wait caused"),
        rows,
        numeric=(2, 3, 4, 5, 6, 7),
        note="Per batch: thread time, and elements made for one batch.",
        folded=True,
    )


def _origin(stage: PipelineStage) -> str:
    """Say what TensorFlow did where it is not known what was written."""
    if stage.origin is None or stage.origin is StageOrigin.WRITTEN:
        return UNKNOWN
    return f"{stage.origin.value} by TensorFlow"


def buffers(pipeline: tuple[PipelineStage, ...]) -> Table:
    """List what each stage keeps in memory: as seen, and what it would be if the buffer were full."""
    rows = tuple(
        (
            stage.name,
            say_calls(stage.written) or UNKNOWN,
            _buffer(stage),
            UNKNOWN
            if stage.element_bytes is None or stage.buffer_limit is None
            else format_bytes(stage.element_bytes * stage.buffer_limit),
        )
        for stage in pipeline
        if stage.buffered_elements is not None
    )
    note = "" if rows else "No stage keeps elements in memory."
    return Table("Buffers of the pipeline", ("Stage", "Written", "Seen", "If full"), rows, (2, 3), note, folded=True)


def _buffer(stage: PipelineStage) -> str:
    if stage.buffered_elements is None:
        return UNKNOWN
    limit = "" if stage.buffer_limit is None else f" of {stage.buffer_limit:.4g}"
    size = "" if stage.buffered_bytes is None else f", {format_bytes(stage.buffered_bytes)}"
    return f"{stage.buffered_elements:.4g}{limit}{size}"


def idle_causes(gaps: IdleGaps) -> Table:
    """List what the device idled for."""
    inside = {cause: ns for cause, ns in gaps.idle_by_cause_ns.items() if ns}
    rows = tuple(
        (cause.label, format_duration(ns), format_percent(100 * ns / gaps.window_ns))
        for cause, ns in sorted(inside.items(), key=lambda item: -item[1])
    )
    return Table("Device idle by cause", ("Cause", "Time", "Share of the windows"), rows, numeric=(1, 2))


def longest_gaps(gaps: IdleGaps) -> Table:
    """List the longest idle gaps inside the windows."""
    inside = gaps.inside
    rows = tuple(
        (
            format_duration(row["start_ns"]),
            format_duration(row["duration_ns"]),
            GapCause(row["cause"]).label,
            _operations(gaps, row),
        )
        for row in _largest(inside, "duration_ns")
    )
    return Table(
        "Longest idle gaps",
        ("Start", "Length", "Cause", "Host operations (share of the gap)"),
        rows,
        numeric=(0, 1),
        note=_left_out(len(rows), inside.num_rows, "gaps"),
    )


def _operations(gaps: IdleGaps, gap: dict[str, Any]) -> str:
    ranked = gaps.operations_of(gap["host"], gap["device"], gap["start_ns"])[:SHOWN_OPERATIONS]
    named = [f"{row['operation']} {format_percent(100 * row['time_ns'] / gap['duration_ns'])}" for row in ranked]
    return ", ".join(named) or gap["host_operation"] or UNKNOWN


def files(sampling: FileSampling) -> Table:
    """List the files, those furthest from their expected share first where that is known."""
    rows = sampling.table.to_pylist()
    names = [PurePath(row["file"]).name for row in rows]
    if len(set(names)) == len(names):  # where files lie says more about the machine than a reader needs
        rows = [{**row, "file": name} for row, name in zip(rows, names, strict=True)]
    rows.sort(key=lambda row: -abs((row["observed_share"] or 0) - (row["expected_share"] or 0)))
    shown = tuple(
        (
            row["file"],
            _known(row["records"], format_count),
            _known(row["reads"], format_count),
            _known(row["samples"], format_count),
            _known(row["expected_share"], _percent),
            _known(row["observed_share"], _percent),
        )
        for row in rows[:MAX_FILES]
    )
    return Table(
        "Files",
        ("File", "Records", "Reads", "Samples", "Expected", "Observed"),
        shown,
        numeric=(1, 2, 3, 4, 5),
        note=_left_out(len(shown), len(rows), "files"),
    )


def windows(cost: ProfilerCost) -> Table:
    """List the profile windows and what they cost."""
    rows = cost.windows.to_pylist()
    shown = tuple(
        (
            str(row["name"]),
            UNKNOWN if row["first_step"] is None else f"{row['first_step']}–{row['last_step']}",
            _held(row["start_cost_ns"], row["stop_cost_ns"]),
            format_duration(row["flushed_ns"] - row["stop_ns"]),
            format_bytes(row["size_bytes"]),
            _known(row["rss_growth_bytes"], format_bytes),
        )
        for row in rows[:MAX_WINDOWS]
    )
    return Table(
        "Profile windows",
        ("Window", "Steps", "Training held", "Flush, beside training", "On disk", "Memory grew by"),
        shown,
        numeric=(1, 2, 3, 4, 5),
        note=_left_out(len(shown), len(rows), "windows"),
    )


def _held(start_ns: int | None, stop_ns: int | None) -> str:
    return UNKNOWN if start_ns is None or stop_ns is None else format_duration(start_ns + stop_ns)


def outputs(kept: KeptOutputs) -> Table:
    """List what the model made of each example of the batch that was kept, mistakes first."""
    rows = sorted(kept.table.to_pylist(), key=lambda row: bool(row["right"]))
    count = max(len(row["outputs"].split()) for row in rows)
    few = (
        f"Outputs are the {MAX_OUTPUTS} largest of {format_count(count)}, each with its class."
        if count > MAX_OUTPUTS
        else ""
    )
    shown = tuple(
        (
            _known(row["file"], lambda file: PurePath(file).name),
            _known(row["record"], format_count),
            str(row["label"]),
            str(row["prediction"]),
            "yes" if row["right"] else "no",
            _largest_outputs([float(value) for value in row["outputs"].split()]),
        )
        for row in rows[:MAX_EXAMPLES]
    )
    return Table(
        f"Outputs of step {kept.step}: {format_count(kept.right)} of {format_count(len(rows))} right",
        ("File", "Record", "Label", "Prediction", "Right", "Outputs"),
        shown,
        numeric=(1, 2, 3),
        note=" ".join(filter(None, (few, _left_out(len(shown), len(rows), "examples")))),
        folded=True,
    )


def _largest_outputs(values: list[float]) -> str:
    """Name the classes with the largest outputs; a lone output has no class."""
    if len(values) == 1:
        return f"{values[0]:.3g}"
    order = sorted(range(len(values)), key=lambda number: -values[number])
    return ", ".join(f"{number}: {values[number]:.3g}" for number in order[:MAX_OUTPUTS])


def data_tables(diagnosis: Diagnosis) -> dict[str, pa.Table]:
    """Return every table of a diagnosis by name, whole; a part that was not measured has none."""
    found: dict[str, pa.Table] = {}
    for name, part, attribute in (
        ("steps", diagnosis.job_steps, "table"),
        ("profiled_steps", diagnosis.steps, "table"),
        ("input_waits", diagnosis.input_stalls, "table"),
        ("step_parts", diagnosis.step_breakdown, "table"),
        ("outlier_steps", diagnosis.outlier_steps, "table"),
        ("hosts", diagnosis.hosts, "table"),
        ("idle_gaps", diagnosis.idle_gaps, "gaps"),
        ("idle_gap_operations", diagnosis.idle_gaps, "operations"),
        ("files", diagnosis.file_sampling, "table"),
        ("sampling_over_time", diagnosis.file_sampling, "timeline"),
        ("sampling_coverage", diagnosis.file_sampling, "coverage"),
        ("sampling_epochs", diagnosis.file_sampling, "epochs"),
        ("padding", diagnosis.padding, "table"),
        ("outputs", diagnosis.kept_outputs, "table"),
        ("evaluations", diagnosis.evaluation, "passes"),
        ("memory", diagnosis.memory, "table"),
        ("windows", diagnosis.profiler_cost, "windows"),
        ("allocators_over_time", diagnosis.allocators, "table"),
        ("stages_over_time", diagnosis.live_model, "timeline"),
    ):
        if not isinstance(part, Unavailable):
            found[name] = getattr(part, attribute)
    return found


def _largest(table: pa.Table, column: str) -> list[dict[str, Any]]:
    order = [(column, "descending"), ("start_ns", "ascending")]
    rows: list[dict[str, Any]] = table.sort_by(order).slice(0, MAX_LONGEST).to_pylist()
    return rows


def _left_out(shown: int, all_rows: int, what: str) -> str:
    if shown == all_rows:
        return ""
    return f"{format_count(shown)} of {format_count(all_rows)} {what}; the CSV and Parquet exports hold all of them."


def _known(value: Any, write: Callable[[Any], str]) -> str:
    return UNKNOWN if value is None else write(value)


def _percent(share: float) -> str:
    return format_percent(100 * share)


NO_TRACE = "No profile window holds this stage, so its calls and the operations inside it are not measured."
_Facts = list[tuple[str, str]]


def stage_blocks(stage: PipelineStage, path: CriticalPath | Unavailable) -> tuple[Block, ...]:
    """Return what is known of one stage.

    Args:
        stage: As :func:`pipeline_lab.analysis.input.pipeline_stages.join_stages` gives it.
        path: What the job waited for, which tells how much of that was this stage.
    """
    facts = [*_identity(stage), *_cost(stage), *_buffer_facts(stage)]
    traced = stage.traced
    if traced is None:
        return _facts_table(facts), Text(NO_TRACE, missing=True)
    facts += [*_calls(traced), *_function(traced)]
    shares = () if isinstance(path, Unavailable) else _waited_for(traced, path)
    return _facts_table(facts), *shares, *_function_operations(traced)


def _facts_table(facts: _Facts) -> Table:
    return Table("What is known of it", ("What", "Value"), tuple(facts))


def _identity(stage: PipelineStage) -> _Facts:
    facts = [("Place, the consumer first", stage.path.replace("::", " → "))]
    if stage.written:
        facts.append(("Written as", say_calls(stage.written)))
    if stage.origin is not None:
        facts.append(("How it came to be", stage.origin.words))
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


def _buffer_facts(stage: PipelineStage) -> _Facts:
    if stage.buffered_elements is None:
        return []
    limit = "" if stage.buffer_limit is None else f" of {stage.buffer_limit:.4g}"
    facts = [("Elements in its buffer, mean", f"{stage.buffered_elements:.4g}{limit}")]
    if stage.buffered_bytes is not None:
        facts.append(("Size of what lies there, mean", format_bytes(stage.buffered_bytes)))
    if stage.traced is not None and stage.traced.empty_share is not None:
        facts.append(("Calls that found it empty", format_percent(100 * stage.traced.empty_share)))
    return facts


def _calls(stage: TracedStage) -> _Facts:
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


def _function(stage: TracedStage) -> _Facts:
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


def _waited_for(stage: TracedStage, path: CriticalPath) -> tuple[Table, ...]:
    """List what of the stage the device waited for."""
    shares = [share for share in path.shares if share.stage == stage.number and share.exposed_ns > 0]
    rows = tuple(
        (share.what, format_duration(share.exposed_ns), format_percent(100 * share.exposed_ns / path.exposed_ns))
        for share in sorted(shares, key=lambda share: -share.exposed_ns)
    )
    columns = ("Part", "Device idle meanwhile", "Of all exposed waits")
    return (Table("What of it the device waited for", columns, rows, numeric=(1, 2)),) if rows else ()


def _function_operations(stage: TracedStage) -> tuple[Table, ...]:
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
