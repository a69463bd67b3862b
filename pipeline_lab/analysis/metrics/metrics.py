"""Every number that people see, declared once.

A metric says what it is called, its unit, over what it was measured, which way is better, what it means in one sentence, where it
stands in the JSON document, and how to read it off a diagnosis. The run page, the terminal, reports, comparisons, the glossary and
``docs/numbers.md`` derive from :data:`METRICS`; to add a number, add an entry.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.metrics.metric import Metric, Over, Topic, Unit
from pipeline_lab.analysis.metrics.metric_readers import (
    NO_DATA,
    NO_PROBE,
    NO_STEPS,
    NOT_MEASURED,
    allocator_words,
    clock_words,
    count_words,
    coverage_words,
    evaluations_words,
    files_words,
    idle_per_step,
    idle_words,
    last_evaluation_words,
    mixing_words,
    or_reason,
    padding_words,
    per_step,
    phase_words,
    profiler_words,
    read_judged,
    read_mixing,
    read_ms,
    read_of,
    reads_words,
    recorded_words,
    retrace_words,
    same_source_words,
    skew_words,
    stall_words,
    step_time,
    tail_mean,
    wait_of_all,
    wait_words,
    worst_words,
)
from pipeline_lab.analysis.results import Results
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS, format_bytes, format_count, format_duration, format_percent

Row: TypeAlias = tuple[str, str]


def number_rows(diagnosis: Results) -> tuple[Row, ...]:
    """Return title and text of every number of a run; of a result that was not measured, the reason."""
    return tuple(_rows(diagnosis, METRICS, with_reasons=True))


def topic_rows(topic: Topic, diagnosis: Results) -> tuple[Row, ...]:
    """Return title and text of the measured numbers about something."""
    return tuple(_rows(diagnosis, [each for each in METRICS if each.topic is topic], with_reasons=False))


def headline() -> tuple[Metric, ...]:
    """Return the numbers at the top of a run's page."""
    return tuple(map(find_metric, HEADLINE))


def headline_of(diagnosis: Results) -> tuple[Metric, ...]:
    """Return the numbers at the top of one run's page: one per notion, the second choice where the first was not measured."""
    measured = {each.key for each in headline() if not isinstance(each.read(diagnosis), Unavailable)}
    left_out = {
        first if second in measured and first not in measured else second for second, first in SECOND_CHOICES.items()
    }
    return tuple(each for each in headline() if each.key not in left_out)


def find_metric(key: str) -> Metric:
    """Return the metric of that key; an unknown one is a programming error."""
    return next(each for each in METRICS if each.key == key)


HEADLINE = (
    "judged_step_ms",
    "median_step_ms",
    "lost_to_input_percent",
    "all_wait_percent",
    "busy_percent",
    "idle_percent",
    "examples_per_second",
    "peak_memory_bytes",
)
"""What may stand at the top of a run's page, in this order: first the numbers that the verdict speaks of."""
SECOND_CHOICES = {
    "median_step_ms": "judged_step_ms",
    "all_wait_percent": "lost_to_input_percent",
    "idle_percent": "busy_percent",
}
"""Numbers that stand there only where the verdict has none: they say nearly the same on another basis."""


def _rows(diagnosis: Results, metrics: list[Metric] | tuple[Metric, ...], *, with_reasons: bool) -> Iterator[Row]:
    told: set[str] = set()
    for each in metrics:
        if each.text is None:
            continue
        result = getattr(diagnosis, each.source)
        if not isinstance(result, Unavailable):
            text = each.text(result)
            if text is not None:
                yield each.title, text
        elif with_reasons and each.source in _RESULT_TITLES and each.source not in told:
            told.add(each.source)
            yield _RESULT_TITLES[each.source], f"{NOT_MEASURED}: {result.reason}"


_RESULT_TITLES = {
    "job_steps": "Measured steps",
    "steps": "Recorded steps",
    "input_stalls": "Input wait",
    "idle_gaps": "Device idle",
    "calibration": "Utilization",
    "file_sampling": "File sampling",
    "memory": "Memory",
}
"""What reports say is missing where a result was not measured; the others are left out."""


METRICS: tuple[Metric, ...] = (
    Metric(
        "judged_step_ms",
        "Time per step",
        Unit.MS,
        Topic.STEPS,
        Over.JUDGED_STEPS,
        "lower",
        "The mean step, as the verdict speaks of it.",
        "verdict.step.mean_ms",
        read_judged("mean_ns", NS_PER_MS),
    ),
    Metric(
        "lost_to_input_percent",
        "Lost to input",
        Unit.PERCENT,
        Topic.STALLS,
        Over.JUDGED_STEPS,
        "lower",
        "Share of the step that a perfect input pipeline would save; a wait that device work hides is not in it.",
        "verdict.step.lost_to_input_percent",
        read_judged("input_percent"),
    ),
    Metric(
        "busy_percent",
        "Compute busy",
        Unit.PERCENT,
        Topic.GAPS,
        Over.JUDGED_STEPS,
        "higher",
        "Share of the step that is lost to nothing: the device works, or the training computation where it is on the processor.",
        "verdict.step.busy_percent",
        read_judged("busy_percent"),
    ),
    Metric(
        "measured_steps",
        "Measured steps",
        Unit.NONE,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "",
        "How many steps were measured, recorded or not, after the warm-up.",
        "job_steps.count",
        read_of("job_steps", lambda job: float(job.count)),
        lambda job: format_count(job.count),
    ),
    Metric(
        "median_step_ms",
        "Median step",
        Unit.MS,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "Median time from one step to the next, warm-up left out; the verdict speaks of the mean.",
        "job_steps.median_ms",
        step_time(lambda job: job.median_ns, np.median),
        lambda job: format_duration(job.median_ns),
        is_compared=True,
    ),
    Metric(
        "p95_step_ms",
        "95th percentile step",
        Unit.MS,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "The step time that 95 % of the steps stay below.",
        "job_steps.p95_ms",
        step_time(lambda job: job.p95_ns, lambda times: np.percentile(times, 95)),
        lambda job: format_duration(job.p95_ns),
        is_compared=True,
    ),
    Metric(
        "mean_step_ms",
        "Mean step",
        Unit.MS,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "All of the steps' time over their number, so that what is lost of it is its share of all steps.",
        "job_steps.total_ms / job_steps.count",
        step_time(lambda job: job.mean_ns, np.mean),
        is_compared=True,
    ),
    Metric(
        "examples_per_second",
        "Throughput",
        Unit.PER_SECOND,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "higher",
        "Examples trained per second.",
        "job_steps.examples_per_second",
        read_of("job_steps", lambda job: NO_PROBE if job.examples_per_second is None else job.examples_per_second),
        lambda job: NOT_MEASURED if job.examples_per_second is None else f"{format_count(job.examples_per_second)}/s",
        is_compared=True,
    ),
    Metric(
        "first_batch_ms",
        "First batch after",
        Unit.MS,
        Topic.STEPS,
        Over.RUN,
        "lower",
        "How long the job waited for its very first batch: files open, shuffle buffers fill.",
        "job_steps.first_batch_ms",
        read_ms("job_steps", "first_batch_ns"),
        lambda job: None if job.first_batch_ns is None else format_duration(job.first_batch_ns),
    ),
    Metric(
        "all_wait_percent",
        "Input wait",
        Unit.PERCENT,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "Share of the time spent waiting for the next batch.",
        "job_steps.wait_ms / job_steps.total_ms",
        wait_of_all,
        wait_words,
    ),
    Metric(
        "compute_only_ms",
        "Compute-only step",
        Unit.MS,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "lower",
        "One step on a batch that is already on the device.",
        "calibration.device_only_ms",
        read_ms("calibration", "device_only_ns"),
        lambda found: format_duration(found.device_only_ns),
    ),
    Metric(
        "input_only_ms",
        "Input-only time per batch",
        Unit.MS,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "lower",
        "Time of the pipeline for one batch with nothing else running.",
        "calibration.pipeline_only_ms",
        read_ms("calibration", "pipeline_only_ns"),
        lambda found: NOT_MEASURED if found.pipeline_only_ns is None else format_duration(found.pipeline_only_ns),
    ),
    Metric(
        "end_to_end_ms",
        "End-to-end step",
        Unit.MS,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "lower",
        "The median step as it ran, with input, outside of the profile windows.",
        "calibration.step_ms",
        read_ms("calibration", "step_ns"),
        lambda found: format_duration(found.step_ns),
    ),
    Metric(
        "utilisation_percent",
        "Utilization",
        Unit.PERCENT,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "higher",
        "Compute-only step over end-to-end step: 100 % means that input costs nothing.",
        "calibration.utilisation_percent",
        read_of("calibration", lambda found: found.utilisation_percent),
        lambda found: format_percent(found.utilisation_percent),
        is_compared=True,
    ),
    Metric(
        "recorded_steps",
        "Recorded steps",
        Unit.NONE,
        Topic.STEPS,
        Over.RECORDED_STEPS,
        "",
        "Steps inside the profile windows, the only ones that a trace can take apart.",
        "steps.count",
        read_of("steps", lambda steps: float(steps.count)),
        recorded_words,
    ),
    Metric(
        "wait_ms",
        "Input wait per step",
        Unit.MS,
        Topic.STALLS,
        Over.RECORDED_STEPS,
        "lower",
        "Time of a step in which its next batch is not ready, mean over the recorded steps.",
        "input_stalls.wait_ms / steps.count",
        per_step("wait_ns"),
        is_compared=True,
    ),
    Metric(
        "exposed_ms",
        "Exposed stall per step",
        Unit.MS,
        Topic.STALLS,
        Over.RECORDED_STEPS,
        "lower",
        "The part of the wait per step in which the device had nothing to do either.",
        "input_stalls.exposed_ms / steps.count",
        per_step("exposed_ns"),
        is_compared=True,
    ),
    Metric(
        "wait_percent",
        "Input wait, recorded steps",
        Unit.PERCENT,
        Topic.STALLS,
        Over.RECORDED_STEPS,
        "lower",
        "Share of the recorded steps in which the next batch was not ready (any event of the family IteratorGetNext).",
        "input_stalls.wait_percent",
        read_of("input_stalls", lambda stalls: stalls.wait_percent if stalls.step_ns else NO_STEPS),
        stall_words("wait"),
        is_compared=True,
    ),
    Metric(
        "exposed_percent",
        "Exposed stall",
        Unit.PERCENT,
        Topic.STALLS,
        Over.RECORDED_STEPS,
        "lower",
        "Share of the time in which the job waited for input and the device had nothing to do: what a faster pipeline would win.",
        "input_stalls.exposed_percent",
        read_of("input_stalls", lambda stalls: stalls.exposed_percent if stalls.step_ns else NO_STEPS),
        stall_words("exposed"),
        is_compared=True,
    ),
    Metric(
        "idle_percent",
        "Device idle",
        Unit.PERCENT,
        Topic.GAPS,
        Over.WINDOWS,
        "lower",
        "Share of the profile windows without device work, the time between and around the steps included.",
        "idle_gaps.devices",
        read_of("idle_gaps", lambda gaps: gaps.idle_percent),
        idle_words,
        is_compared=True,
    ),
    *(
        Metric(
            f"idle_{cause.value}_ms",
            f"Idle per step: {cause.label}",
            Unit.MS,
            Topic.GAPS,
            Over.WINDOWS,
            "lower",
            f"Idle time of a device per step in which {cause.meaning}.",
            f"idle_gaps.by_cause_ms.{cause.value} / steps.count",
            idle_per_step(cause),
            is_compared=True,
        )
        for cause in GapCause
        if cause is not GapCause.CAPTURE_GAP
    ),
    Metric(
        "files",
        "Files",
        Unit.NONE,
        Topic.SAMPLING,
        Over.SAMPLES,
        "",
        "Files, or readers of them, that can be distinguished.",
        "file_sampling.files",
        read_of("file_sampling", lambda sampling: float(sampling.table.num_rows)),
        files_words,
    ),
    Metric(
        "beyond_share_percent",
        "Sampling skew",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "lower",
        "Total variation distance between the files' shares of the examples and their shares of the records; chance alone gives a little.",
        "file_sampling.total_variation",
        read_of(
            "file_sampling",
            lambda sampling: (
                Unavailable("The records of each file were not counted, so the expected shares are unknown.")
                if sampling.total_variation is None
                else 100.0 * sampling.total_variation
            ),
        ),
        skew_words,
        is_compared=True,
    ),
    Metric(
        "beyond_share_by_chance_percent",
        "Sampling skew by chance",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "",
        "The mean sampling skew of even samples of this size (simulated).",
        "file_sampling.total_variation_ideal",
        read_of(
            "file_sampling",
            lambda sampling: (
                Unavailable("The records of each file were not counted, so chance cannot be simulated.")
                if sampling.total_variation_ideal is None
                else 100.0 * sampling.total_variation_ideal
            ),
        ),
        is_compared=True,
    ),
    Metric(
        "coverage_percent",
        "Records used",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "higher",
        "Different records that were used, over all records.",
        "file_sampling.coverage_percent",
        read_of(
            "file_sampling",
            lambda sampling: NO_PROBE if sampling.coverage_percent is None else sampling.coverage_percent,
        ),
        coverage_words,
        is_compared=True,
    ),
    Metric(
        "reads_by_epoch",
        "Records read",
        Unit.NONE,
        Topic.SAMPLING,
        Over.SAMPLES,
        "",
        "Records that the readers of a log produced in each epoch.",
        "file_sampling.reads_by_epoch",
        read_of("file_sampling", lambda sampling: float(sum(reads for _, reads in sampling.reads_by_epoch))),
        reads_words,
    ),
    Metric(
        "unopened_files",
        "Files that gave no example",
        Unit.NONE,
        Topic.SAMPLING,
        Over.SAMPLES,
        "lower",
        "Files of the job from which no example came.",
        "file_sampling.unopened",
        read_of(
            "file_sampling",
            lambda sampling: or_reason(
                sampling.unopened, "The files of the job are not recorded, so nobody knows which gave no example."
            ),
        ),
        text=lambda sampling: format_count(sampling.unopened) if sampling.unopened else None,
        is_compared=True,
    ),
    Metric(
        "batch_entropy_bits",
        "File mix per batch (entropy)",
        Unit.BITS,
        Topic.SAMPLING,
        Over.SAMPLES,
        "higher",
        "How many files a batch mixes, in bits: 0 is one file, 1 two equal ones, 2 four.",
        "file_sampling.mixing.batch_entropy",
        read_mixing(lambda mixing: mixing.batch_entropy),
        mixing_words(
            lambda mixing, ideal: f"{mixing.batch_entropy:.2f} bits (perfect shuffle: {ideal.batch_entropy:.2f})"
        ),
    ),
    Metric(
        "displacement_percent",
        "Shuffle quality",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "higher",
        "How far the shuffle moved examples from their stored order: 0 % not at all, 100 % as far as a random order.",
        "file_sampling.mixing.displacement",
        read_mixing(lambda mixing: 100.0 * mixing.displacement),
        mixing_words(
            lambda mixing, _: f"{format_percent(100 * mixing.displacement)} of the displacement of a random order"
        ),
    ),
    Metric(
        "worst_tenth_percent",
        "Sampling skew, worst 10 % of the run",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "lower",
        "The largest sampling skew of ten consecutive tenths of the run: it shows a mix that is right only in the end.",
        "file_sampling.mixing.worst_tenth",
        read_mixing(lambda mixing: None if mixing.worst_tenth is None else 100.0 * mixing.worst_tenth),
        mixing_words(worst_words),
    ),
    Metric(
        "padding_percent",
        "Padding",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.RUN,
        "lower",
        "What is added to short examples so that all of a batch are as long as its longest, over all that the steps were sent.",
        "padding.padding_percent",
        read_of("padding", lambda padding: padding.percent),
        padding_words,
        is_compared=True,
    ),
    Metric(
        "same_source_per_batch",
        "Examples of a batch that share their image",
        Unit.NONE,
        Topic.SAMPLING,
        Over.SAMPLES,
        "lower",
        "Examples of a batch that are made of the same image as another one of it, where a stage makes several of each.",
        "file_sampling.same_source.per_batch",
        read_of(
            "file_sampling",
            lambda sampling: (
                Unavailable("Each record gives one example; a views stage makes several.")
                if sampling.same_source is None
                else sampling.same_source.per_batch
            ),
        ),
        same_source_words,
        is_compared=True,
    ),
    Metric(
        "gpu_clock_mhz",
        "GPU clock",
        Unit.MHZ,
        Topic.GAPS,
        Over.RUN,
        "higher",
        "Clock of the GPU's multiprocessors while the job trained; heat or power may hold it back.",
        "gpu_clocks.median_mhz",
        read_of("gpu_clocks", lambda clocks: float(clocks.median_mhz)),
        clock_words,
    ),
    Metric(
        "first_epoch_step_ms",
        "Median step by phase",
        Unit.MS,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "lower",
        "Median step of each phase and its input wait: caches and shuffle buffers are filled in the first epoch.",
        "step_phases.phases.median_ms",
        read_of("step_phases", lambda found: found.phases[0].median_ns / NS_PER_MS),
        phase_words,
    ),
    Metric(
        "retraced_steps",
        "Retraced",
        Unit.NONE,
        Topic.STEPS,
        Over.RECORDED_STEPS,
        "lower",
        "Recorded steps in which TensorFlow traced a function again.",
        "retracing.steps",
        read_of("retraces", lambda found: float(found.steps)),
        retrace_words,
        result="retraces",
    ),
    Metric(
        "kept_right",
        "Kept outputs",
        Unit.NONE,
        Topic.STEPS,
        Over.RUN,
        "higher",
        "Examples of the kept batch whose prediction is their label.",
        "kept_outputs.right",
        read_of("kept_outputs", lambda kept: float(kept.right)),
        lambda kept: (
            f"{format_count(kept.right)} of {count_words(kept.table.num_rows, 'example')} right in step {kept.step}"
        ),
    ),
    Metric(
        "evaluations",
        "Evaluations",
        Unit.NONE,
        Topic.STEPS,
        Over.RUN,
        "",
        "How often the model was evaluated between training steps; that time belongs to no step.",
        "evaluation.passes",
        read_of("evaluation", lambda evaluation: float(evaluation.count)),
        evaluations_words,
    ),
    Metric(
        "last_evaluation_loss",
        "Last evaluation",
        Unit.NONE,
        Topic.STEPS,
        Over.RUN,
        "lower",
        "Loss, and accuracy where the workload has one, of the last evaluation.",
        "evaluation.passes",
        read_of("evaluation", lambda evaluation: or_reason(evaluation.last_loss, "The evaluations noted no loss.")),
        last_evaluation_words,
    ),
    Metric(
        "peak_memory_bytes",
        "Peak memory",
        Unit.BYTES,
        Topic.MEMORY,
        Over.RUN,
        "lower",
        "Largest resident size of the job's process.",
        "memory.process_peak_bytes",
        read_of("memory", lambda memory: float(memory.process_peak_bytes)),
        lambda memory: f"{format_bytes(memory.process_peak_bytes)} (start {format_bytes(memory.process_start_bytes)})",
        is_compared=True,
    ),
    Metric(
        "data_bytes",
        "Data on disk",
        Unit.BYTES,
        Topic.MEMORY,
        Over.RUN,
        "lower",
        "What the data takes on disk, tables beside the files included.",
        "memory.data_bytes",
        read_of("memory", lambda memory: NO_DATA if memory.data_bytes is None else float(memory.data_bytes)),
        lambda memory: None if memory.data_bytes is None else format_bytes(memory.data_bytes),
        is_compared=True,
    ),
    Metric(
        "allocator_peak_bytes",
        "Allocators, peak",
        Unit.BYTES,
        Topic.MEMORY,
        Over.RUN,
        "lower",
        "The most that TensorFlow's allocators had handed out, the largest first.",
        "memory.allocators.peak_bytes",
        read_of("allocators", lambda found: float(found.allocators[0].peak_bytes)),
        allocator_words,
        result="allocators",
    ),
    Metric(
        "profiled_step_ms",
        "Profiler",
        Unit.MS,
        Topic.MEMORY,
        Over.RECORDED_STEPS,
        "lower",
        "The median step inside the profile windows, beside that outside: what profiling costs.",
        "profiler_cost.profiled_step_ms",
        read_ms("profiler_cost", "profiled_step_ns"),
        profiler_words,
    ),
    Metric(
        "last_loss",
        "Loss, last 10 % of the steps",
        Unit.NONE,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "lower",
        "Mean loss over the last tenth of the measured steps.",
        "job_steps",
        read_of("job_steps", tail_mean("loss")),
        is_compared=True,
    ),
    Metric(
        "last_accuracy_percent",
        "Accuracy, last 10 % of the steps",
        Unit.PERCENT,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "higher",
        "Mean accuracy over the last tenth of the measured steps.",
        "job_steps",
        read_of("job_steps", tail_mean("accuracy", 100.0)),
        is_compared=True,
    ),
)
"""Every number, in the order in which reports and comparisons list them."""
