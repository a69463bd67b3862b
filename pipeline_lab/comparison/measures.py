"""The numbers that runs are compared by, each with its unit and which way is better.

A number that a run did not measure is ``Unavailable`` there and stays a number in the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS

FloatArray = NDArray[np.float64]
Value: TypeAlias = float | Unavailable
Part = TypeVar("Part")
Read: TypeAlias = Callable[[Diagnosis], Value]

LAST_SHARE = 0.1
"""Loss and accuracy are means over this share of the measured steps, the last ones."""

NO_EXAMPLES = Unavailable("The number of examples per step is not recorded.")
NO_DATA = Unavailable("Nothing of the data lies on disk, or the run does not say how large its files are.")
NO_STEPS = Unavailable("The windows hold no step; record longer windows.")


@dataclass(frozen=True)
class Measure:
    """One number of every run.

    Attributes:
        name: Key in JSON and tables, ending in its unit.
        title: For people, without the unit.
        unit: ``ms``, ``%``, ``bytes``, ``1/s`` or empty.
        group: ``steps``, ``stalls``, ``gaps``, ``sampling``, ``memory`` or ``learning``.
        better: ``lower``, ``higher``, or empty where neither is better in itself.
        values: One per run, baseline first.
    """

    name: str
    title: str
    unit: str
    group: str
    better: str
    values: tuple[Value, ...]

    def difference(self, run: int) -> float | None:
        """Return this run's value minus the baseline's; None if either was not measured."""
        baseline, value = self.values[0], self.values[run]
        if isinstance(baseline, Unavailable) or isinstance(value, Unavailable):
            return None
        return value - baseline


def measure(diagnoses: tuple[Diagnosis, ...]) -> tuple[Measure, ...]:
    """Read every number off every run; a number that no run measured is left out."""
    measures = (
        Measure(name, title, unit, group, better, tuple(read(each) for each in diagnoses))
        for name, title, unit, group, better, read in _definitions()
    )
    return tuple(each for each in measures if not all(isinstance(value, Unavailable) for value in each.values))


def _definitions() -> list[tuple[str, str, str, str, str, Read]]:
    """Return name, title, unit, group, the better way, and how to read it."""
    return [
        ("median_step_ms", "Step, median", "ms", "steps", "lower", _step_percentile(50)),
        ("p95_step_ms", "Step, 95th percentile", "ms", "steps", "lower", _step_percentile(95)),
        ("mean_step_ms", "Step, mean", "ms", "steps", "lower", _mean_step),
        ("examples_per_second", "Examples per second", "1/s", "steps", "higher", _job(_examples_per_second)),
        ("utilisation_percent", "Utilisation (G / P)", "%", "steps", "higher", _utilisation),
        ("wait_ms", "Input wait per step", "ms", "stalls", "lower", _stall(lambda stalls: stalls.wait_ns)),
        ("exposed_ms", "Exposed stall per step", "ms", "stalls", "lower", _stall(lambda stalls: stalls.exposed_ns)),
        ("wait_percent", "Input wait, share of the steps", "%", "stalls", "lower", _wait_percent),
        ("exposed_percent", "Exposed stall, share of the steps", "%", "stalls", "lower", _exposed_percent),
        ("idle_percent", "Device idle, share of the windows", "%", "gaps", "lower", _idle_percent),
        *(
            (f"idle_{cause.value}_ms", f"Idle per step: {cause.label}", "ms", "gaps", "lower", _idle_ms(cause))
            for cause in GapCause
            if cause is not GapCause.CAPTURE_GAP
        ),
        (
            "beyond_share_percent",
            "Samples beyond their file's share",
            "%",
            "sampling",
            "lower",
            _sampling(_beyond_share),
        ),
        ("beyond_share_by_chance_percent", "The same, by chance alone", "%", "sampling", "", _sampling(_by_chance)),
        ("coverage_percent", "Records used", "%", "sampling", "higher", _sampling(_coverage)),
        (
            "unopened_files",
            "Files that gave no example",
            "",
            "sampling",
            "lower",
            _sampling(_unopened),
        ),
        ("padding_percent", "Padding, share of what the steps were sent", "%", "sampling", "lower", _padding),
        (
            "same_source_per_batch",
            "Examples of a batch that share their image",
            "",
            "sampling",
            "lower",
            _sampling(_same_source),
        ),
        ("peak_memory_bytes", "Memory, peak", "bytes", "memory", "lower", _memory),
        ("data_bytes", "Data on disk", "bytes", "memory", "lower", _data),
        ("last_loss", "Loss, last tenth of the steps", "", "learning", "lower", _job(_last("loss"))),
        ("last_accuracy_percent", "Accuracy, last tenth of the steps", "%", "learning", "higher", _job(_accuracy)),
    ]


def _of(part: Part | Unavailable, read: Callable[[Part], Value]) -> Value:
    return part if isinstance(part, Unavailable) else read(part)


def _job(read: Callable[[JobSteps], Value]) -> Read:
    return lambda diagnosis: _of(diagnosis.job_steps, read)


def _sampling(read: Callable[[FileSampling], Value]) -> Read:
    return lambda diagnosis: _of(diagnosis.file_sampling, read)


def _step_percentile(percent: int) -> Read:
    def read(diagnosis: Diagnosis) -> Value:
        job = diagnosis.job_steps
        if not isinstance(job, Unavailable):
            return (job.median_ns if percent == 50 else job.p95_ns) / NS_PER_MS
        return _of(diagnosis.steps, lambda steps: _percentile_ms(steps.training_step_ns, percent))

    return read


def _mean_step(diagnosis: Diagnosis) -> Value:
    job = diagnosis.job_steps
    if not isinstance(job, Unavailable):
        return job.total_ns / job.count / NS_PER_MS if job.count else NO_STEPS
    return _of(
        diagnosis.steps,
        lambda steps: float(steps.training_step_ns.mean()) / NS_PER_MS if steps.count else NO_STEPS,
    )


def _percentile_ms(lengths_ns: FloatArray, percent: int) -> Value:
    return float(np.percentile(lengths_ns, percent)) / NS_PER_MS if len(lengths_ns) else NO_STEPS


def _examples_per_second(job: JobSteps) -> Value:
    return NO_EXAMPLES if job.examples_per_second is None else job.examples_per_second


def _utilisation(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.calibration, lambda calibration: calibration.utilisation_percent)


def _stall(total_ns: Callable[[InputStalls], int]) -> Read:
    def read(diagnosis: Diagnosis) -> Value:
        return _of(
            diagnosis.input_stalls,
            lambda stalls: _of(diagnosis.steps, lambda steps: _per_step_ms(total_ns(stalls), steps)),
        )

    return read


def _wait_percent(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.input_stalls, lambda stalls: stalls.wait_percent if stalls.step_ns else NO_STEPS)


def _exposed_percent(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.input_stalls, lambda stalls: stalls.exposed_percent if stalls.step_ns else NO_STEPS)


def _idle_percent(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.idle_gaps, lambda gaps: gaps.idle_percent)


def _idle_ms(cause: GapCause) -> Read:
    def read(diagnosis: Diagnosis) -> Value:
        return _of(
            diagnosis.idle_gaps,
            lambda gaps: _of(diagnosis.steps, lambda steps: _per_device_ms(gaps, cause, steps)),
        )

    return read


def _per_device_ms(gaps: IdleGaps, cause: GapCause, steps: Steps) -> Value:
    """Return idle time per step of one device; the steps of each host are rows of their own."""
    devices_per_host = len(gaps.devices) / max(1, len(steps.table.column("host").unique()))
    per_step = _per_step_ms(gaps.by_cause_ns.get(cause, 0), steps)
    return per_step if isinstance(per_step, Unavailable) else per_step / max(1.0, devices_per_host)


def _per_step_ms(total_ns: int, steps: Steps) -> Value:
    training_steps = steps.count * (steps.steps_per_marker or 1.0)
    return total_ns / training_steps / NS_PER_MS if training_steps else NO_STEPS


def _beyond_share(sampling: FileSampling) -> Value:
    if sampling.total_variation is None:
        return Unavailable("The records of each file were not counted, so the expected shares are unknown.")
    return 100.0 * sampling.total_variation


def _by_chance(sampling: FileSampling) -> Value:
    if sampling.total_variation_ideal is None:
        return Unavailable("The records of each file were not counted, so chance cannot be simulated.")
    return 100.0 * sampling.total_variation_ideal


def _unopened(sampling: FileSampling) -> Value:
    if sampling.unopened is None:
        return Unavailable("The files of the job are not recorded, so nobody knows which gave no example.")
    return float(sampling.unopened)


def _coverage(sampling: FileSampling) -> Value:
    if sampling.coverage_percent is None:
        return Unavailable("The job did not note its samples; switch `sample_probe` on.")
    return sampling.coverage_percent


def _padding(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.padding, lambda padding: padding.percent)


def _same_source(sampling: FileSampling) -> Value:
    found = sampling.same_source
    return (
        Unavailable("Each record gives one example; a views stage makes several.") if found is None else found.per_batch
    )


def _memory(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.memory, lambda memory: float(memory.process_peak_bytes))


def _data(diagnosis: Diagnosis) -> Value:
    return _of(diagnosis.memory, lambda memory: NO_DATA if memory.data_bytes is None else float(memory.data_bytes))


def _last(column: str) -> Callable[[JobSteps], Value]:
    def read(job: JobSteps) -> Value:
        table: pa.Table = job.table
        values = table.column(column).to_numpy()[~table.column("warmup").to_numpy(zero_copy_only=False)]
        last = values[-max(1, round(LAST_SHARE * len(values))) :]
        if not len(last) or np.isnan(values).all():
            return Unavailable(f"The job noted no {column}.")
        if not np.isfinite(last).all():
            return Unavailable(f"The {column} is no finite number at the end of the job: its training diverged.")
        return float(np.mean(last))

    return read


def _accuracy(job: JobSteps) -> Value:
    return _of(_last("accuracy")(job), lambda share: 100.0 * share)
