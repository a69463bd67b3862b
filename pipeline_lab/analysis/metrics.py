"""Every number that people see, declared once.

A metric says what it is called, its unit, over what it was measured, which way is better, what it means in one sentence, where it
stands in the JSON document, and how to read it off a diagnosis. The run page, the terminal, reports, comparisons, the glossary and
``docs/numbers.md`` derive from :data:`METRICS`; to add a number, add an entry.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, assert_never

import numpy as np

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS, format_bytes, format_count, format_duration, format_percent

Value: TypeAlias = float | Unavailable
Row: TypeAlias = tuple[str, str]

LAST_SHARE = 0.1
"""Loss and accuracy are means over this share of the measured steps, the last ones."""
NOT_MEASURED = "not measured"
NO_EXAMPLES = Unavailable("The job did not note its samples; switch `sample_probe` on to count them.")
NO_DATA = Unavailable("Nothing of the data lies on disk, or the run does not say how large its files are.")
NO_STEPS = Unavailable("The windows hold no step; record longer windows.")
NO_PROBE = Unavailable("The job did not note its samples; switch `sample_probe` on.")


class Topic(StrEnum):
    """What a number, a chart or a table is about; the parts of a run's page, in their order."""

    STALLS = "Input stalls"
    PIPELINE = "Pipeline"
    GAPS = "Idle gaps"
    SAMPLING = "File sampling"
    MEMORY = "Memory"
    STEPS = "Steps and loss"


class Unit(StrEnum):
    MS = "ms"
    PERCENT = "%"
    BYTES = "bytes"
    PER_SECOND = "1/s"
    BITS = "bits"
    MHZ = "MHz"
    NONE = ""


class Over(StrEnum):
    """What a number is measured over."""

    STEPS = "all measured steps; of a log, the recorded ones"
    MEASURED_STEPS = "all measured steps"
    RECORDED_STEPS = "recorded steps"
    WINDOWS = "the windows; the time between two windows is not in it"
    CALIBRATION = "the measured steps and a held batch"
    SAMPLES = "the examples that the job took"
    RUN = "the whole run"

    def words(self, diagnosis: Diagnosis) -> str | None:
        """Say how many steps, or which stretch of time, that was in one run; None where there was none."""
        job, steps = diagnosis.job_steps, diagnosis.steps
        recorded = None if isinstance(steps, Unavailable) else f"the {format_count(steps.count)} recorded steps"
        match self:
            case Over.STEPS | Over.MEASURED_STEPS:
                return recorded if isinstance(job, Unavailable) else f"all {format_count(job.count)} measured steps"
            case Over.RECORDED_STEPS:
                return recorded
            case Over.WINDOWS:
                return "the whole profile windows"
            case Over.CALIBRATION | Over.SAMPLES | Over.RUN:
                return self.value
            case _:
                assert_never(self)


@dataclass(frozen=True)
class Metric:
    """One number.

    Attributes:
        key: In JSON and tables of comparisons, ending in its unit.
        title: For people.
        unit: Of the value that :attr:`read` returns.
        topic: Where it stands.
        over: What it is measured over.
        better: ``lower``, ``higher``, or empty where neither is better in itself.
        explanation: What it is, in one sentence.
        origin: Its place in the document of ``analyze --json``; the first part is the result that it is read from. What is
            made of several numbers there says how.
        read: From a diagnosis to its value.
        text: From a diagnosis to the value with what belongs beside it; None leaves it out. Without it, reports do not list the
            number by itself.
        label: At the top of a run's page; empty if it does not stand there.
        compared: Title in comparisons of runs; empty if it is not compared.
    """

    key: str
    title: str
    unit: Unit
    topic: Topic
    over: Over
    better: str
    explanation: str
    origin: str
    read: Callable[[Diagnosis], Value] = field(repr=False)
    text: Callable[[Any], str | None] | None = field(default=None, repr=False)
    label: str = ""
    compared: str = ""

    @property
    def source(self) -> str:
        """The result of a diagnosis that it is read from."""
        return self.origin.split(".")[0]

    def write(self, diagnosis: Diagnosis) -> str | Unavailable:
        """Return the value of a run as text, or why there is none."""
        value = self.read(diagnosis)
        return value if isinstance(value, Unavailable) else write_value(value, self.unit)


def write_value(value: float, unit: Unit) -> str:
    """Write a value for people."""
    match unit:
        case Unit.MS:
            return format_duration(value * NS_PER_MS) if value else "0 ms"
        case Unit.PERCENT:
            return format_percent(value)
        case Unit.BYTES:
            return format_bytes(value)
        case Unit.PER_SECOND | Unit.MHZ | Unit.BITS | Unit.NONE:
            return format_count(value) if value == round(value) or value >= 100 else f"{value:.3g}"
        case _:
            assert_never(unit)


def write_difference(value: float, unit: Unit) -> str:
    """Write a difference of two values with its sign; shares differ by percentage points."""
    if value == 0:
        return "±0"
    size = f"{abs(value):.3g} points" if unit is Unit.PERCENT else write_value(abs(value), unit)
    return f"{'+' if value > 0 else '−'}{size}"


def number_rows(diagnosis: Diagnosis) -> tuple[Row, ...]:
    """Return title and text of every number of a run; of a result that was not measured, the reason."""
    return tuple(_rows(diagnosis, METRICS, with_reasons=True))


def topic_rows(topic: Topic, diagnosis: Diagnosis) -> tuple[Row, ...]:
    """Return title and text of the measured numbers about something."""
    return tuple(_rows(diagnosis, [each for each in METRICS if each.topic is topic], with_reasons=False))


def headline() -> tuple[Metric, ...]:
    """Return the numbers at the top of a run's page."""
    return tuple(map(find_metric, HEADLINE))


def find_metric(key: str) -> Metric:
    """Return the metric of that key; an unknown one is a programming error."""
    return next(each for each in METRICS if each.key == key)


HEADLINE = (
    "median_step_ms",
    "all_wait_percent",
    "exposed_percent",
    "idle_percent",
    "utilisation_percent",
    "examples_per_second",
    "peak_memory_bytes",
)
"""What stands at the top of a run's page, in this order."""


def _rows(diagnosis: Diagnosis, metrics: list[Metric] | tuple[Metric, ...], *, with_reasons: bool) -> Iterator[Row]:
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
    "job_steps": "Steps of the job",
    "steps": "Profiled steps",
    "input_stalls": "Input wait",
    "idle_gaps": "Device idle",
    "calibration": "Utilisation",
    "file_sampling": "File sampling",
    "memory": "Memory",
}
"""What reports say is missing where a result was not measured; the others are left out."""


def _of(source: str, read: Callable[[Any], Value]) -> Callable[[Diagnosis], Value]:
    """Read a result of the diagnosis, or say why it is not there."""

    def value(diagnosis: Diagnosis) -> Value:
        result = getattr(diagnosis, source)
        return result if isinstance(result, Unavailable) else read(result)

    return value


def _ms(source: str, attribute: str) -> Callable[[Diagnosis], Value]:
    """Read a time of a result."""

    def read(result: Any) -> Value:
        found = getattr(result, attribute)
        return Unavailable("It was not timed.") if found is None else found / NS_PER_MS

    return _of(source, read)


def _or(value: float | None, reason: str) -> Value:
    return Unavailable(reason) if value is None else float(value)


def _step_ms(of_job: Callable[[Any], float], of_trace: Callable[[Any], float]) -> Callable[[Diagnosis], Value]:
    """Read a time of the measured steps; of a log, of the recorded ones."""

    def read(diagnosis: Diagnosis) -> Value:
        job, steps = diagnosis.job_steps, diagnosis.steps
        if not isinstance(job, Unavailable):
            return of_job(job) / NS_PER_MS if job.count else NO_STEPS
        if isinstance(steps, Unavailable):
            return steps
        return float(of_trace(steps.training_step_ns)) / NS_PER_MS if steps.count else NO_STEPS

    return read


def _wait_of_all(diagnosis: Diagnosis) -> Value:
    job, stalls = diagnosis.job_steps, diagnosis.input_stalls
    if not isinstance(job, Unavailable):
        return 100.0 * job.wait_total_ns / max(1, job.total_ns)
    return job if isinstance(stalls, Unavailable) else stalls.wait_percent


def _wait_words(job: Any) -> str:
    percent = 100 * job.wait_total_ns / job.total_ns if job.total_ns else 0.0
    return f"{format_duration(job.wait_total_ns)} ({format_percent(percent)} of their time)"


def _recorded_words(steps: Any) -> str:
    first = ", the job's first" if steps.first_step_only else ""
    return f"{format_count(steps.count)}{first}; marked by {steps.marker}"


def _per_step(attribute: str) -> Callable[[Diagnosis], Value]:
    """Read a time of all recorded steps, divided by their number."""

    def read(diagnosis: Diagnosis) -> Value:
        stalls, steps = diagnosis.input_stalls, diagnosis.steps
        if isinstance(stalls, Unavailable):
            return stalls
        return steps if isinstance(steps, Unavailable) else _divide(getattr(stalls, attribute), steps)

    return read


def _idle_ms(cause: GapCause) -> Callable[[Diagnosis], Value]:
    """Read the idle time per step of one device; the steps of each host are rows of their own."""

    def read(diagnosis: Diagnosis) -> Value:
        gaps, steps = diagnosis.idle_gaps, diagnosis.steps
        if isinstance(gaps, Unavailable):
            return gaps
        if isinstance(steps, Unavailable):
            return steps
        per_step = _divide(gaps.by_cause_ns.get(cause, 0), steps)
        devices_per_host = len(gaps.devices) / max(1, len(steps.table.column("host").unique()))
        return per_step if isinstance(per_step, Unavailable) else per_step / max(1.0, devices_per_host)

    return read


def _divide(total_ns: int, steps: Any) -> Value:
    training_steps = steps.count * (steps.steps_per_marker or 1.0)
    return total_ns / training_steps / NS_PER_MS if training_steps else NO_STEPS


def _stall_words(name: str) -> Callable[[Any], str]:
    def words(stalls: Any) -> str:
        counted = name == "wait" and stalls.events is not None
        events = f", {format_count(stalls.events)} events" if counted else ""
        percent = format_percent(getattr(stalls, f"{name}_percent"))
        return f"{format_duration(getattr(stalls, f'{name}_ns'))} ({percent} of the steps{events})"

    return words


def _idle_words(gaps: Any) -> str:
    idle = gaps.idle_percent
    if isinstance(idle, Unavailable):
        return idle.reason
    return f"{format_duration(gaps.idle_ns)} ({format_percent(idle)} of the windows; {gaps.device})"


def _skew_words(sampling: Any) -> str | None:
    if sampling.total_variation is None:
        return None
    ideal = sampling.total_variation_ideal
    chance = "" if ideal is None else f" (chance alone {format_percent(100 * ideal)})"
    return format_percent(100 * sampling.total_variation) + chance


def _coverage_words(sampling: Any) -> str | None:
    if sampling.coverage_percent is None:
        return None
    seen = sampling.epochs_seen
    return format_percent(sampling.coverage_percent) + (
        "" if seen is None else f" ({seen:.3g} epochs' worth of examples)"
    )


def _reads_words(sampling: Any) -> str | None:
    counts = (f"{format_count(reads)} in epoch {epoch}" for epoch, reads in sampling.reads_by_epoch)
    return ", ".join(counts) or None


def _mixing(read: Callable[[Any], float | None]) -> Callable[[Diagnosis], Value]:
    def value(sampling: Any) -> Value:
        return NO_PROBE if sampling.mixing is None else _or(read(sampling.mixing), "The run is too short to say.")

    return _of("file_sampling", value)


def _mixing_words(words: Callable[[Any, Any], str | None]) -> Callable[[Any], str | None]:
    def written(sampling: Any) -> str | None:
        mixing, ideal = sampling.mixing, sampling.mixing_ideal
        return None if mixing is None or ideal is None else words(mixing, ideal)

    return written


def _worst_words(mixing: Any, ideal: Any) -> str | None:
    if mixing.worst_tenth is None or ideal.worst_tenth is None:
        return None
    return f"{format_percent(100 * mixing.worst_tenth)} (by chance {format_percent(100 * ideal.worst_tenth)})"


def _same_source_words(sampling: Any) -> str | None:
    found = sampling.same_source
    if found is None:
        return None
    predicted = "" if found.predicted is None else f", predicted {found.predicted:.3g}"
    return f"{found.per_batch:.3g} of {found.batch_size} (a perfect shuffle {found.expected:.3g}{predicted})"


def _clock_words(clocks: Any) -> str:
    slowed = clocks.slowed_percent
    held = "" if slowed is None else f"; held back by heat or power for {format_percent(slowed)} of the time"
    return f"{clocks.median_mhz:,} MHz ({clocks.lowest_mhz:,} to {clocks.highest_mhz:,}){held}"


def _evaluations_words(evaluation: Any) -> str:
    way = "the pipeline built anew after each" if evaluation.is_rebuilt else "the pipeline kept going"
    return f"{format_count(evaluation.count)}, {format_duration(evaluation.total_ns)} in all; {way}"


def _last_evaluation_words(evaluation: Any) -> str | None:
    loss, accuracy = evaluation.last_loss, evaluation.last_accuracy
    found = [] if loss is None else [f"loss {loss:.3g}"]
    found += [] if accuracy is None else [f"accuracy {format_percent(100 * accuracy)}"]
    return ", ".join(found) or None


def _padding_words(padding: Any) -> str:
    amount = f"{format_count(padding.padding_elements)} of {format_count(padding.elements)} frames"
    return f"{format_percent(padding.percent)} ({amount})"


def _last(column: str, scale: float = 1.0) -> Callable[[Any], Value]:
    """Read the mean of a column of the steps over their last tenth."""

    def read(job: Any) -> Value:
        values = job.table.column(column).to_numpy()[~job.table.column("warmup").to_numpy(zero_copy_only=False)]
        last = values[-max(1, round(LAST_SHARE * len(values))) :]
        if not len(last) or np.isnan(values).all():
            return Unavailable(f"The job noted no {column}.")
        if not np.isfinite(last).all():
            return Unavailable(f"The {column} is no finite number at the end of the job: its training diverged.")
        return scale * float(np.mean(last))

    return read


METRICS: tuple[Metric, ...] = (
    Metric(
        "measured_steps",
        "Steps after the warm-up",
        Unit.NONE,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "",
        "How many steps were measured, recorded or not, after the warm-up.",
        "job_steps.count",
        _of("job_steps", lambda job: float(job.count)),
        lambda job: format_count(job.count),
    ),
    Metric(
        "median_step_ms",
        "Step time, median",
        Unit.MS,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "Median time from one step to the next, warm-up left out; the verdict speaks of the mean.",
        "job_steps.median_ms",
        _step_ms(lambda job: job.median_ns, np.median),
        lambda job: format_duration(job.median_ns),
        label="Median step",
        compared="Step, median",
    ),
    Metric(
        "p95_step_ms",
        "Step time, 95th percentile",
        Unit.MS,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "95 % of the steps are shorter.",
        "job_steps.p95_ms",
        _step_ms(lambda job: job.p95_ns, lambda times: np.percentile(times, 95)),
        lambda job: format_duration(job.p95_ns),
        compared="Step, 95th percentile",
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
        _step_ms(lambda job: job.mean_ns, np.mean),
        compared="Step, mean",
    ),
    Metric(
        "examples_per_second",
        "Examples per second",
        Unit.PER_SECOND,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "higher",
        "Examples trained per second.",
        "job_steps.examples_per_second",
        _of("job_steps", lambda job: NO_EXAMPLES if job.examples_per_second is None else job.examples_per_second),
        lambda job: NOT_MEASURED if job.examples_per_second is None else format_count(job.examples_per_second),
        label="Throughput",
        compared="Examples per second",
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
        _ms("job_steps", "first_batch_ns"),
        lambda job: None if job.first_batch_ns is None else format_duration(job.first_batch_ns),
    ),
    Metric(
        "all_wait_percent",
        "Wait of all steps",
        Unit.PERCENT,
        Topic.STEPS,
        Over.STEPS,
        "lower",
        "Share of the time spent waiting for the next batch.",
        "job_steps.wait_ms / job_steps.total_ms",
        _wait_of_all,
        _wait_words,
        label="Input wait",
    ),
    Metric(
        "compute_only_ms",
        "G, step on a held batch",
        Unit.MS,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "lower",
        "G: the step alone, on a batch that is already on the device.",
        "calibration.device_only_ms",
        _ms("calibration", "device_only_ns"),
        lambda found: format_duration(found.device_only_ns),
    ),
    Metric(
        "input_only_ms",
        "D, pipeline alone",
        Unit.MS,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "lower",
        "D: one batch of the pipeline with nothing else running.",
        "calibration.pipeline_only_ms",
        _ms("calibration", "pipeline_only_ns"),
        lambda found: NOT_MEASURED if found.pipeline_only_ns is None else format_duration(found.pipeline_only_ns),
    ),
    Metric(
        "end_to_end_ms",
        "P, median step as it ran",
        Unit.MS,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "lower",
        "P: the median step with both, outside of windows.",
        "calibration.step_ms",
        _ms("calibration", "step_ns"),
        lambda found: format_duration(found.step_ns),
    ),
    Metric(
        "utilisation_percent",
        "Utilisation, G / P",
        Unit.PERCENT,
        Topic.PIPELINE,
        Over.CALIBRATION,
        "higher",
        "The step on a held batch over the step as it ran: 100 % means that input costs nothing.",
        "calibration.utilisation_percent",
        _of("calibration", lambda found: found.utilisation_percent),
        lambda found: format_percent(found.utilisation_percent),
        label="Utilisation",
        compared="Utilisation (G / P)",
    ),
    Metric(
        "recorded_steps",
        "Profiled steps",
        Unit.NONE,
        Topic.STEPS,
        Over.RECORDED_STEPS,
        "",
        "Steps inside the profile windows, the only ones that a trace can take apart.",
        "steps.count",
        _of("steps", lambda steps: float(steps.count)),
        _recorded_words,
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
        _per_step("wait_ns"),
        compared="Input wait per step",
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
        _per_step("exposed_ns"),
        compared="Exposed stall per step",
    ),
    Metric(
        "wait_percent",
        "Input wait, profiled steps",
        Unit.PERCENT,
        Topic.STALLS,
        Over.RECORDED_STEPS,
        "lower",
        "Share of the recorded steps in which the next batch was not ready (any event of the family IteratorGetNext).",
        "input_stalls.wait_percent",
        _of("input_stalls", lambda stalls: stalls.wait_percent if stalls.step_ns else NO_STEPS),
        _stall_words("wait"),
        compared="Input wait, share of the steps",
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
        _of("input_stalls", lambda stalls: stalls.exposed_percent if stalls.step_ns else NO_STEPS),
        _stall_words("exposed"),
        label="Exposed stall",
        compared="Exposed stall, share of the steps",
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
        _of("idle_gaps", lambda gaps: gaps.idle_percent),
        _idle_words,
        label="Device idle",
        compared="Device idle, share of the windows",
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
            _idle_ms(cause),
            compared=f"Idle per step: {cause.label}",
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
        "Files, or readers of them, that are told apart.",
        "file_sampling.files",
        _of("file_sampling", lambda sampling: float(sampling.table.num_rows)),
        lambda sampling: format_count(sampling.table.num_rows),
    ),
    Metric(
        "beyond_share_percent",
        "Samples beyond their file's share",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "lower",
        "How much of what was read would have to come from other files to be even (total variation); chance alone gives a little.",
        "file_sampling.total_variation",
        _of(
            "file_sampling",
            lambda sampling: (
                Unavailable("The records of each file were not counted, so the expected shares are unknown.")
                if sampling.total_variation is None
                else 100.0 * sampling.total_variation
            ),
        ),
        _skew_words,
        compared="Samples beyond their file's share",
    ),
    Metric(
        "beyond_share_by_chance_percent",
        "The same, by chance alone",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "",
        "The mean of the same number for an even sample of this size (simulated).",
        "file_sampling.total_variation_ideal",
        _of(
            "file_sampling",
            lambda sampling: (
                Unavailable("The records of each file were not counted, so chance cannot be simulated.")
                if sampling.total_variation_ideal is None
                else 100.0 * sampling.total_variation_ideal
            ),
        ),
        compared="The same, by chance alone",
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
        _of(
            "file_sampling",
            lambda sampling: NO_PROBE if sampling.coverage_percent is None else sampling.coverage_percent,
        ),
        _coverage_words,
        compared="Records used",
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
        _of("file_sampling", lambda sampling: float(sum(reads for _, reads in sampling.reads_by_epoch))),
        _reads_words,
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
        _of(
            "file_sampling",
            lambda sampling: _or(
                sampling.unopened, "The files of the job are not recorded, so nobody knows which gave no example."
            ),
        ),
        compared="Files that gave no example",
    ),
    Metric(
        "batch_entropy_bits",
        "Files inside a batch, entropy",
        Unit.BITS,
        Topic.SAMPLING,
        Over.SAMPLES,
        "higher",
        "How many files a batch mixes, in bits: 0 is one file, 1 two equal ones, 2 four.",
        "file_sampling.mixing.batch_entropy",
        _mixing(lambda mixing: mixing.batch_entropy),
        _mixing_words(
            lambda mixing, ideal: f"{mixing.batch_entropy:.2f} bits (a perfect shuffle {ideal.batch_entropy:.2f})"
        ),
    ),
    Metric(
        "displacement_percent",
        "Examples moved from their stored place",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "higher",
        "How far examples moved from where they are stored, beside what a random order would move them.",
        "file_sampling.mixing.displacement",
        _mixing(lambda mixing: 100.0 * mixing.displacement),
        _mixing_words(
            lambda mixing, _: f"{format_percent(100 * mixing.displacement)} of what a random order moves them"
        ),
    ),
    Metric(
        "worst_tenth_percent",
        "Beyond their file's share, worst tenth",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.SAMPLES,
        "lower",
        "The largest such number of ten consecutive tenths of the run: it shows a mix that is right only in the end.",
        "file_sampling.mixing.worst_tenth",
        _mixing(lambda mixing: None if mixing.worst_tenth is None else 100.0 * mixing.worst_tenth),
        _mixing_words(_worst_words),
    ),
    Metric(
        "padding_percent",
        "Padding in the batches",
        Unit.PERCENT,
        Topic.SAMPLING,
        Over.RUN,
        "lower",
        "What is added to short examples so that all of a batch are as long as its longest, over all that the steps were sent.",
        "padding.padding_percent",
        _of("padding", lambda padding: padding.percent),
        _padding_words,
        compared="Padding, share of what the steps were sent",
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
        _of(
            "file_sampling",
            lambda sampling: (
                Unavailable("Each record gives one example; a views stage makes several.")
                if sampling.same_source is None
                else sampling.same_source.per_batch
            ),
        ),
        _same_source_words,
        compared="Examples of a batch that share their image",
    ),
    Metric(
        "gpu_clock_mhz",
        "GPU clock, median",
        Unit.MHZ,
        Topic.GAPS,
        Over.RUN,
        "higher",
        "Clock of the GPU's multiprocessors while the job trained; heat or power may hold it back.",
        "gpu_clocks.median_mhz",
        _of("gpu_clocks", lambda clocks: float(clocks.median_mhz)),
        _clock_words,
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
        _of("evaluation", lambda evaluation: float(evaluation.count)),
        _evaluations_words,
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
        _of("evaluation", lambda evaluation: _or(evaluation.last_loss, "The evaluations noted no loss.")),
        _last_evaluation_words,
    ),
    Metric(
        "peak_memory_bytes",
        "Memory, peak",
        Unit.BYTES,
        Topic.MEMORY,
        Over.RUN,
        "lower",
        "Largest resident size of the job's process.",
        "memory.process_peak_bytes",
        _of("memory", lambda memory: float(memory.process_peak_bytes)),
        lambda memory: f"{format_bytes(memory.process_peak_bytes)} (start {format_bytes(memory.process_start_bytes)})",
        label="Peak memory",
        compared="Memory, peak",
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
        _of("memory", lambda memory: NO_DATA if memory.data_bytes is None else float(memory.data_bytes)),
        lambda memory: None if memory.data_bytes is None else format_bytes(memory.data_bytes),
        compared="Data on disk",
    ),
    Metric(
        "last_loss",
        "Loss, last tenth of the steps",
        Unit.NONE,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "lower",
        "Mean loss over the last tenth of the measured steps.",
        "job_steps",
        _of("job_steps", _last("loss")),
        compared="Loss, last tenth of the steps",
    ),
    Metric(
        "last_accuracy_percent",
        "Accuracy, last tenth of the steps",
        Unit.PERCENT,
        Topic.STEPS,
        Over.MEASURED_STEPS,
        "higher",
        "Mean accuracy over the last tenth of the measured steps.",
        "job_steps",
        _of("job_steps", _last("accuracy", 100.0)),
        compared="Accuracy, last tenth of the steps",
    ),
)
"""Every number, in the order in which reports and comparisons list them."""
