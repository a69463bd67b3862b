"""The tables of a run's report: the longest and the largest of everything, bounded."""

from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.file_sampling import FileSampling
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.analysis.input_stalls import InputStalls
from pipeline_lab.analysis.kept_outputs import KeptOutputs
from pipeline_lab.analysis.pipeline_stages import PipelineStage
from pipeline_lab.analysis.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.results import StageOrigin
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Table
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
    waits = stalls.table.append_column(
        "length_ns", pa.array(stalls.table["end_ns"].to_numpy() - stalls.table["start_ns"].to_numpy())
    )
    rows = tuple(
        (
            UNKNOWN if row["step"] is None else str(row["step"]),
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
            " + ".join(stage.written) or _origin(stage),
            format_duration(stage.work_ns),
            f"{stage.visits_per_batch:.4g}",
            "–" if stage.element_bytes is None else format_bytes(stage.element_bytes),
            "–" if stage.parallelism is None else f"{stage.parallelism:.3g}",
            _buffer(stage),
            "–" if stage.exposed_ns is None else format_duration(stage.exposed_ns),
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
    return "–" if stage.origin is None or stage.origin is StageOrigin.WRITTEN else f"{stage.origin.value} by TensorFlow"


def buffers(pipeline: tuple[PipelineStage, ...]) -> Table:
    """List what each stage keeps in memory: as seen, and what it would be if the buffer were full."""
    rows = tuple(
        (
            stage.name,
            " + ".join(stage.written) or "–",
            _buffer(stage),
            "–"
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
        return "–"
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
    return ", ".join(named) or gap["host_operation"] or "–"


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
            _count(row["records"]),
            _count(row["reads"]),
            _count(row["samples"]),
            _share(row["expected_share"]),
            _share(row["observed_share"]),
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
            UNKNOWN if row["rss_growth_bytes"] is None else format_bytes(row["rss_growth_bytes"]),
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
        f"Outputs are the {MAX_OUTPUTS} largest of {format_count(count)}, each behind its class."
        if count > MAX_OUTPUTS
        else ""
    )
    shown = tuple(
        (
            UNKNOWN if row["file"] is None else PurePath(row["file"]).name,
            _count(row["record"]),
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


def _count(value: int | None) -> str:
    return "–" if value is None else format_count(value)


def _share(value: float | None) -> str:
    return "–" if value is None else format_percent(100 * value)
