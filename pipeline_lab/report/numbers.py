"""The headline numbers of one diagnosis as rows of text."""

from collections.abc import Callable
from typing import TypeVar

from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.machine.gpu_clocks import GpuClocks
from pipeline_lab.analysis.machine.process_memory import Memory
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling, SameSource
from pipeline_lab.analysis.sampling.padding import Padding
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import Topic
from pipeline_lab.statistics.mixing import Mixing
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

Part = TypeVar("Part")
Row = tuple[str, str]

NOT_MEASURED = "not measured"


def headline_rows(diagnosis: Diagnosis) -> tuple[Row, ...]:
    """Return name and value of each headline number; what was not measured says so and why."""
    return (
        *_part(diagnosis.job_steps, "Steps of the job", _job_rows),
        *_part(diagnosis.steps, "Profiled steps", _step_rows),
        *_part(diagnosis.input_stalls, "Input wait", _stall_rows),
        *_part(diagnosis.idle_gaps, "Device idle", _gap_rows),
        *_part(diagnosis.calibration, "Utilisation", _calibration_rows),
        *_part(diagnosis.file_sampling, "File sampling", _sampling_rows),
        *_measured(diagnosis.padding, _padding_rows),
        *_measured(diagnosis.gpu_clocks, _clock_rows),
        *_measured(diagnosis.evaluation, _evaluation_rows),
        *_part(diagnosis.memory, "Memory", _memory_rows),
    )


def section_rows(section: Topic, diagnosis: Diagnosis) -> tuple[Row, ...]:
    """Return name and value of the measured numbers that belong to a section of the run's page."""
    match section:
        case Topic.STALLS:
            return (*_measured(diagnosis.input_stalls, _stall_rows),)
        case Topic.PIPELINE:
            return (*_measured(diagnosis.calibration, _calibration_rows),)
        case Topic.GAPS:
            return (*_measured(diagnosis.idle_gaps, _gap_rows), *_measured(diagnosis.gpu_clocks, _clock_rows))
        case Topic.SAMPLING:
            sampling = _measured(diagnosis.file_sampling, _sampling_rows)
            return (*sampling, *_measured(diagnosis.padding, _padding_rows))
        case Topic.MEMORY:
            return (*_measured(diagnosis.memory, _memory_rows),)
        case Topic.STEPS:
            steps = _measured(diagnosis.job_steps, _job_rows)
            return (*steps, *_measured(diagnosis.evaluation, _evaluation_rows))


def _part(part: Part | Unavailable, name: str, rows: Callable[[Part], list[Row]]) -> list[Row]:
    return [(name, f"{NOT_MEASURED}: {part.reason}")] if isinstance(part, Unavailable) else rows(part)


def _measured(part: Part | Unavailable, rows: Callable[[Part], list[Row]]) -> list[Row]:
    return [] if isinstance(part, Unavailable) else rows(part)


def _job_rows(job: JobSteps) -> list[Row]:
    wait = 100 * job.wait_total_ns / job.total_ns if job.total_ns else 0.0
    speed = job.examples_per_second
    return [
        ("Steps after the warm-up", format_count(job.count)),
        ("Step time, median", format_duration(job.median_ns)),
        ("Step time, 95th percentile", format_duration(job.p95_ns)),
        ("Examples per second", NOT_MEASURED if speed is None else format_count(speed)),
        *([] if job.first_batch_ns is None else [("First batch after", format_duration(job.first_batch_ns))]),
        ("Wait of all steps", f"{format_duration(job.wait_total_ns)} ({format_percent(wait)} of their time)"),
    ]


def _step_rows(steps: Steps) -> list[Row]:
    first = ", the job's first" if steps.first_step_only else ""
    return [("Profiled steps", f"{format_count(steps.count)}{first}; marked by {steps.marker}")]


def _stall_rows(stalls: InputStalls) -> list[Row]:
    events = "" if stalls.events is None else f", {format_count(stalls.events)} events"
    return [
        (
            "Input wait, profiled steps",
            f"{format_duration(stalls.wait_ns)} ({format_percent(stalls.wait_percent)} of the steps{events})",
        ),
        (
            "Exposed stall",
            f"{format_duration(stalls.exposed_ns)} ({format_percent(stalls.exposed_percent)} of the steps)",
        ),
    ]


def _gap_rows(gaps: IdleGaps) -> list[Row]:
    idle = gaps.idle_percent
    if isinstance(idle, Unavailable):
        return [("Device idle", idle.reason)]
    return [("Device idle", f"{format_duration(gaps.idle_ns)} ({format_percent(idle)} of the windows; {gaps.device})")]


def _calibration_rows(calibration: Calibration) -> list[Row]:
    pipeline = calibration.pipeline_only_ns
    return [
        ("G, step on a held batch", format_duration(calibration.device_only_ns)),
        ("D, pipeline alone", NOT_MEASURED if pipeline is None else format_duration(pipeline)),
        ("P, median step as it ran", format_duration(calibration.step_ns)),
        ("Utilisation, G / P", format_percent(calibration.utilisation_percent)),
    ]


def _sampling_rows(sampling: FileSampling) -> list[Row]:
    rows = [("Files", format_count(sampling.table.num_rows))]
    if sampling.total_variation is not None:
        ideal = sampling.total_variation_ideal
        chance = "" if ideal is None else f" (chance alone {format_percent(100 * ideal)})"
        rows.append(("Samples beyond their file's share", format_percent(100 * sampling.total_variation) + chance))
    if sampling.coverage_percent is not None:
        seen = sampling.epochs_seen
        epochs = "" if seen is None else f" ({seen:.3g} epochs' worth of examples)"
        rows.append(("Records used", format_percent(sampling.coverage_percent) + epochs))
    if sampling.reads_by_epoch:
        counts = (f"{format_count(reads)} in epoch {epoch}" for epoch, reads in sampling.reads_by_epoch)
        rows.append(("Records read", ", ".join(counts)))
    if sampling.mixing is not None and sampling.mixing_ideal is not None:
        rows += _mixing_rows(sampling.mixing, sampling.mixing_ideal)
    if sampling.same_source is not None:
        rows.append(("Examples of a batch that share their image", _same_source(sampling.same_source)))
    return rows


def _same_source(found: SameSource) -> str:
    predicted = "" if found.predicted is None else f", predicted {found.predicted:.3g}"
    return f"{found.per_batch:.3g} of {found.batch_size} (a perfect shuffle {found.expected:.3g}{predicted})"


def _mixing_rows(mixing: Mixing, ideal: Mixing) -> list[Row]:
    entropy = f"{mixing.batch_entropy:.2f} bits (a perfect shuffle {ideal.batch_entropy:.2f})"
    moved = f"{format_percent(100 * mixing.displacement)} of what a random order moves them"
    rows = [("Files inside a batch, entropy", entropy), ("Examples moved from their stored place", moved)]
    if mixing.worst_tenth is not None and ideal.worst_tenth is not None:
        worst = f"{format_percent(100 * mixing.worst_tenth)} (by chance {format_percent(100 * ideal.worst_tenth)})"
        rows.append(("Beyond their file's share, worst tenth", worst))
    return rows


def _evaluation_rows(evaluation: Evaluation) -> list[Row]:
    loss, accuracy = evaluation.last_loss, evaluation.last_accuracy
    found = [] if loss is None else [f"loss {loss:.3g}"]
    found += [] if accuracy is None else [f"accuracy {format_percent(100 * accuracy)}"]
    way = "the pipeline built anew after each" if evaluation.is_rebuilt else "the pipeline kept going"
    return [
        ("Evaluations", f"{format_count(evaluation.count)}, {format_duration(evaluation.total_ns)} in all; {way}"),
        *([("Last evaluation", ", ".join(found))] if found else []),
    ]


def _clock_rows(clocks: GpuClocks) -> list[Row]:
    slowed = clocks.slowed_percent
    held = "" if slowed is None else f"; held back by heat or power for {format_percent(slowed)} of the time"
    return [("GPU clock, median", f"{clocks.median_mhz:,} MHz ({clocks.lowest_mhz:,} to {clocks.highest_mhz:,}){held}")]


def _padding_rows(padding: Padding) -> list[Row]:
    amount = f"{format_count(padding.padding_elements)} of {format_count(padding.elements)} frames"
    return [("Padding in the batches", f"{format_percent(padding.percent)} ({amount})")]


def _memory_rows(memory: Memory) -> list[Row]:
    return [
        (
            "Memory, peak",
            f"{format_bytes(memory.process_peak_bytes)} (start {format_bytes(memory.process_start_bytes)})",
        ),
        *([] if memory.data_bytes is None else [("Data on disk", format_bytes(memory.data_bytes))]),
    ]
