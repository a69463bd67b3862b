"""How the numbers of :mod:`pipeline_lab.analysis.metrics.metrics` are read off a diagnosis, and what stands beside them in reports."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.job_steps import NO_JOB_WAITS
from pipeline_lab.analysis.steps.step_phases import LATER
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS, format_bytes, format_count, format_duration, format_percent

Value: TypeAlias = float | Unavailable

MOST_CAUSES = 4
MOST_ALLOCATORS = 4
RUN_TAIL_SHARE = 0.1
"""Loss and accuracy are means over this share of the measured steps, the last ones."""
NOT_MEASURED = "not measured"
NO_DATA = Unavailable("Nothing of the data lies on disk, or the run does not say how large its files are.")
NO_SHARES = Unavailable("The records of each file were not counted, so the expected shares are unknown.")
NO_CHANCE = Unavailable("The records of each file were not counted, so chance cannot be simulated.")
NO_FILES = Unavailable("The files of the job are not recorded, so nobody knows which gave no example.")
NO_VIEWS = Unavailable("Each record gives one example; a views stage makes several.")
NO_STEPS = Unavailable("The windows hold no step; record longer windows.")
NOT_JUDGED = Unavailable("The bottleneck could not be determined, so there is no step to speak of.")
NO_PROBE = Unavailable("The job did not note its samples; switch `sample_probe` on.")


def read_of(source: str, read: Callable[[Any], Value]) -> Callable[[Results], Value]:
    """Read a result of the diagnosis, or say why it is not there."""

    def value(diagnosis: Results) -> Value:
        result = getattr(diagnosis, source)
        return result if isinstance(result, Unavailable) else read(result)

    return value


def read_ms(source: str, attribute: str) -> Callable[[Results], Value]:
    """Read a time of a result."""

    def read(result: Any) -> Value:
        found = getattr(result, attribute)
        return Unavailable("It was not timed.") if found is None else found / NS_PER_MS

    return read_of(source, read)


def read_judged(attribute: str, scale: float = 1.0) -> Callable[[Any], Value]:
    """Read a number of the step that the verdict speaks of."""

    def read(diagnosis: Any) -> Value:
        step = diagnosis.verdict.step
        if step is not None:
            value = getattr(step, attribute)
            return value if isinstance(value, Unavailable) else float(value) / scale
        return diagnosis.steps if isinstance(diagnosis.steps, Unavailable) else NOT_JUDGED

    return read


def or_reason(value: float | None, missing: str | Unavailable, factor: float = 1.0) -> Value:
    """Return a value times a factor, or why it is missing."""
    if value is None:
        return missing if isinstance(missing, Unavailable) else Unavailable(missing)
    return factor * value


def step_time(of_job: Callable[[Any], float], of_trace: Callable[[Any], float]) -> Callable[[Results], Value]:
    """Read a time of the measured steps; of a log, of the recorded ones."""

    def read(diagnosis: Results) -> Value:
        job, steps = diagnosis.job_steps, diagnosis.steps
        if not isinstance(job, Unavailable):
            return of_job(job) / NS_PER_MS if job.count else NO_STEPS
        if isinstance(steps, Unavailable):
            return steps
        return float(of_trace(steps.training_step_ns)) / NS_PER_MS if steps.count else NO_STEPS

    return read


def wait_of_all(diagnosis: Results) -> Value:
    job, stalls = diagnosis.job_steps, diagnosis.input_stalls
    if not isinstance(job, Unavailable):
        return or_reason(job.wait_percent, NO_JOB_WAITS)
    return job if isinstance(stalls, Unavailable) else stalls.wait_percent


def wait_words(job: Any) -> str:
    if job.wait_percent is None:
        return NOT_MEASURED
    return f"{format_percent(job.wait_percent)} of the measured steps ({format_duration(job.wait_total_ns)})"


def recorded_words(steps: Any) -> str:
    first = ", the job's first" if steps.first_step_only else ""
    return f"{format_count(steps.count)}{first}; marked by {steps.marker}{steps.rule.note}"


def per_step(attribute: str) -> Callable[[Results], Value]:
    """Read a time of all recorded steps, divided by their number."""

    def read(diagnosis: Results) -> Value:
        stalls, steps = diagnosis.input_stalls, diagnosis.steps
        if isinstance(stalls, Unavailable):
            return stalls
        return steps if isinstance(steps, Unavailable) else _divide(getattr(stalls, attribute), steps)

    return read


def idle_per_step(cause: GapCause) -> Callable[[Results], Value]:
    """Read the idle time per step of one device; the steps of each host are rows of their own."""

    def read(diagnosis: Results) -> Value:
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


def stall_words(name: str) -> Callable[[Any], str]:
    def words(stalls: Any) -> str:
        counted = name == "wait" and stalls.events is not None
        events = f", {format_count(stalls.events)} events" if counted else ""
        percent = format_percent(getattr(stalls, f"{name}_percent"))
        return f"{percent} of the recorded steps ({format_duration(getattr(stalls, f'{name}_ns'))}{events})"

    return words


def idle_words(gaps: Any) -> str:
    idle = gaps.idle_percent
    if isinstance(idle, Unavailable):
        return idle.reason
    causes = sorted(((ns, cause) for cause, ns in gaps.idle_by_cause_ns.items() if ns), reverse=True)[:MOST_CAUSES]
    listed = ", ".join(f"{cause.label} {format_duration(ns)}" for ns, cause in causes)
    off = f"; not recorded between windows: {format_duration(gaps.unrecorded_ns)}" if gaps.unrecorded_ns else ""
    return f"{format_percent(idle)} of the windows ({gaps.device})" + (f": {listed}" if listed else "") + off


def files_words(sampling: Any) -> str:
    """Count the files; the readers of a log may take files in turn."""
    is_known = sampling.basis == "samples" or sampling.unopened is not None
    return f"{format_count(sampling.table.num_rows)}{'' if is_known else ' readers'}, known by their {sampling.basis}"


def skew_words(sampling: Any) -> str | None:
    if sampling.total_variation is None:
        return None
    ideal = sampling.total_variation_ideal
    chance = "" if ideal is None else f" (by chance {format_percent(100 * ideal)})"
    return format_percent(100 * sampling.total_variation) + chance


def coverage_words(sampling: Any) -> str | None:
    if sampling.coverage_percent is None:
        return None
    seen = sampling.epochs_seen
    return format_percent(sampling.coverage_percent) + ("" if seen is None else f" ({seen:.3g} epochs)")


def reads_words(sampling: Any) -> str | None:
    counts = (f"{format_count(reads)} in epoch {epoch}" for epoch, reads in sampling.reads_by_epoch)
    return ", ".join(counts) or None


def read_mixing(read: Callable[[Any], float | None]) -> Callable[[Results], Value]:
    def value(sampling: Any) -> Value:
        return NO_PROBE if sampling.mixing is None else or_reason(read(sampling.mixing), "The run is too short to say.")

    return read_of("file_sampling", value)


def mixing_words(words: Callable[[Any, Any], str | None]) -> Callable[[Any], str | None]:
    def written(sampling: Any) -> str | None:
        mixing, ideal = sampling.mixing, sampling.mixing_ideal
        return None if mixing is None or ideal is None else words(mixing, ideal)

    return written


def worst_words(mixing: Any, ideal: Any) -> str | None:
    if mixing.worst_tenth is None or ideal.worst_tenth is None:
        return None
    return f"{format_percent(100 * mixing.worst_tenth)} (by chance {format_percent(100 * ideal.worst_tenth)})"


def same_source_words(sampling: Any) -> str | None:
    found = sampling.same_source
    if found is None:
        return None
    predicted = "" if found.predicted is None else f", predicted {found.predicted:.3g}"
    return f"{found.per_batch:.3g} of {found.batch_size} (perfect shuffle: {found.expected:.3g}{predicted})"


def phase_words(found: Any) -> str | None:
    """Say what a step took in each phase; nothing where there is but one."""
    if found.phases[-1].phase not in LATER.values():
        return None
    return "; ".join(
        f"{one.phase} {format_duration(one.median_ns)}"
        + ("" if one.wait_percent is None else f", {format_percent(one.wait_percent)} input wait")
        for one in found.phases
    )


def retrace_words(found: Any) -> str | None:
    functions = ", ".join((*found.functions, *found.datasets)[:3])
    told = f"{count_words(found.count, 'time')} in {count_words(found.steps, 'recorded step')}"
    return (told + (f": {functions}" if functions else "")) if found.count else None


def allocator_words(found: Any) -> str | None:
    shown = found.allocators[:MOST_ALLOCATORS]
    return ", ".join(f"{one.name} {format_bytes(one.peak_bytes)}" for one in shown) or None


def profiler_words(cost: Any) -> str:
    inside = "" if cost.profiled_steps is None else f", {count_words(cost.profiled_steps, 'timed step')}"
    told = f"{count_words(cost.windows.num_rows, 'window')}{inside}"
    if cost.profiled_step_ns is None or cost.plain_step_ns is None:
        return told
    return f"{told}; median step {format_duration(cost.profiled_step_ns)} inside, {format_duration(cost.plain_step_ns)} outside"


def count_words(number: int, noun: str) -> str:
    return f"{format_count(number)} {noun}{'s' * (number != 1)}"


def clock_words(clocks: Any) -> str:
    slowed = clocks.slowed_percent
    held = "" if slowed is None else f"; held back by heat or power for {format_percent(slowed)} of the time"
    return f"{clocks.median_mhz:,} MHz ({clocks.lowest_mhz:,} to {clocks.highest_mhz:,}){held}"


def evaluations_words(evaluation: Any) -> str:
    ways = {True: "; the pipeline is rebuilt after each", False: "; the pipeline is kept", None: ""}
    place = f", most of it in {evaluation.longest_call}" if evaluation.longest_call else ""
    took = f"{format_count(evaluation.count)}, {format_duration(evaluation.total_ns)} in all"
    return f"{took}{place}{ways[evaluation.is_rebuilt]}"


def last_evaluation_words(evaluation: Any) -> str | None:
    loss, accuracy = evaluation.last_loss, evaluation.last_accuracy
    found = [] if loss is None else [f"loss {loss:.3g}"]
    found += [] if accuracy is None else [f"accuracy {format_percent(100 * accuracy)}"]
    return ", ".join(found) or None


def padding_words(padding: Any) -> str:
    amount = f"{format_count(padding.padding_elements)} of {format_count(padding.elements)} frames"
    return f"{format_percent(padding.percent)} ({amount})"


def tail_mean(column: str, scale: float = 1.0) -> Callable[[Any], Value]:
    """Read the mean of a column of the steps over their last tenth."""

    def read(job: Any) -> Value:
        values = job.table.column(column).to_numpy()[~job.table.column("warmup").to_numpy(zero_copy_only=False)]
        last = values[-max(1, round(RUN_TAIL_SHARE * len(values))) :]
        if not len(last) or np.isnan(values).all():
            return Unavailable(f"The job did not record its {column}.")
        if not np.isfinite(last).all():
            return Unavailable(f"The {column} is not finite at the end of the job: training diverged.")
        return scale * float(np.mean(last))

    return read
