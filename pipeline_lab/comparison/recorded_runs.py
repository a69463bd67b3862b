"""Recorded runs side by side: what differs in their options, then what differs in what was measured.

A recorded run is a diagnosis with the run's options and what it ran on.

``SCHEMA_VERSION`` history of :meth:`Comparison.to_json`: 1, the first one; 2, stages; 3, from the source on,
without the root, with their places.
"""

from collections.abc import Sequence
from dataclasses import asdict, field, replace
from pathlib import PurePath
from typing import Any, assert_never

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.compared_stages import ComparedStages, compare_stages
from pipeline_lab.comparison.differences import Differences, find_differences
from pipeline_lab.comparison.measures import Measure, read_measures
from pipeline_lab.comparison.step_time_ratio import (
    LARGE,
    StepTimeRatio,
    common_basis,
    compare_step_times,
    compared_steps,
)
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import ComparisonError, OptionsError, Unavailable
from pipeline_lab.hooks import Displayed
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.record import EMULATED_NOTE, RunRecord
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.statistics.outcome import Outcome
from pipeline_lab.units import NS_PER_S, format_percent


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """One run, or one log that somebody brought.

    Attributes:
        name: What people call it.
        diagnosis: All analyses of it.
        id: Its folder's name; empty for a log that is no run.
        state, reason: How it ended, in the words of the run store; empty for a log.
        created_s: When it was launched, seconds since the epoch; None for a log.
        options: Its options; None where that was not recorded.
        environment: What it ran on; empty where that was not recorded.
        source: The pipeline's Python source as it ran; None where that was not recorded.
        notes, tags: The user's words.
    """

    name: str
    diagnosis: Diagnosis
    id: str = ""
    state: str = ""
    reason: str = ""
    created_s: float | None = None
    options: dict[str, Any] | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    notes: str = ""
    tags: tuple[str, ...] = ()

    @property
    def batch_size(self) -> float | None:
        """Examples per step, the mean where buckets differ; None if neither the options nor the run say."""
        job = self.diagnosis.job_steps
        if self.options is None and not isinstance(job, Unavailable) and job.examples_per_second is not None:
            return round(job.examples_per_second * job.mean_ns / NS_PER_S)
        try:
            options = None if self.options is None else read_options(self.options)
        except OptionsError:
            return None
        if options is None or not options.is_assembled:
            return None
        if options.pipeline.find("bucket_by_sequence_length") is None:
            return options.pipeline.batch_size
        padding = self.diagnosis.padding
        return None if isinstance(padding, Unavailable) else padding.examples_per_step


def describe_run(folder: RunFolder, diagnosis: Diagnosis) -> RecordedRun:
    """Join a diagnosis with what the run's folder says about it.

    Raises:
        StoreError: The run's record is missing or damaged.
    """
    record: RunRecord = read_record(folder)
    source = folder.source.read_text(encoding="utf-8", errors="replace") if folder.source.is_file() else None
    return RecordedRun(
        name=record.name,
        diagnosis=diagnosis,
        id=record.id,
        state=record.status.state.value,
        reason=record.status.reason,
        created_s=record.status.created_s or None,
        options=record.options,
        environment=record.environment,
        source=source,
        notes=record.notes,
        tags=record.tags,
    )


def with_distinct_names(runs: Sequence[RecordedRun]) -> tuple[RecordedRun, ...]:
    """Return the runs with a number after each name that occurs more than once."""
    names = [run.name for run in runs]
    taken, seen, renamed = set(names), dict.fromkeys(names, 0), []
    for run in runs:
        seen[run.name] += 1
        name = run.name
        if names.count(run.name) > 1:
            name = _free_name(run.name, seen[run.name], taken)
            taken.add(name)
        renamed.append(replace(run, name=name))
    return tuple(renamed)


def _free_name(name: str, number: int, taken: set[str]) -> str:
    while (candidate := f"{name} ({number})") in taken:
        number += 1
    return candidate


SCHEMA_VERSION = 3
CONFIDENCE = 0.95
MAX_RUNS = 20

DRIFT_WARNING = (
    "These runs were recorded separately. What the machine did between them (other jobs, temperature, a warm page cache) is "
    "in the difference and in no interval; a race tells the pipelines apart."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """Two to twenty recorded runs.

    Attributes:
        runs: The baseline first, under distinct names.
        differences: In options, environment and source.
        step_time: For each candidate its time per step over the baseline's; together the intervals hold with
            probability ``CONFIDENCE`` (0.95).
        measures: All other numbers, one value per run.
        stages: The pipelines' stages, matched; why not, where no run has any.
        warnings: What a reader must know before the numbers, as sentences.
    """

    runs: tuple[RecordedRun, ...]
    differences: Differences
    step_time: tuple[StepTimeRatio | Unavailable, ...]
    measures: tuple[Measure, ...]
    stages: ComparedStages | Unavailable
    warnings: tuple[str, ...]

    @property
    def baseline(self) -> RecordedRun:
        return self.runs[0]

    @property
    def candidates(self) -> tuple[RecordedRun, ...]:
        return self.runs[1:]

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per candidate: how its step compares to the baseline's."""
        pairs = zip(self.candidates, self.step_time, strict=True)
        return tuple(describe_ratio(run.name, self.baseline.name, ratio) for run, ratio in pairs)

    def find_measure(self, name: str) -> Measure | None:
        """Return the measure of that name, or None if no run has it."""
        return next((each for each in self.measures if each.key == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``compare --json``; times in ms, shares in percent."""
        return {
            "schema_version": SCHEMA_VERSION,
            "recorded": "apart",
            "runs": [_run_document(run) for run in self.runs],
            "warnings": list(self.warnings),
            "sentences": list(self.sentences),
            "differences": {
                "options": [asdict(each) for each in self.differences.options],
                "environment": [asdict(each) for each in self.differences.environment],
                "source": [_source_document(diff) for diff in self.differences.sources],
            },
            "step_time": [_ratio_document(ratio) for ratio in self.step_time],
            "measures": [_measure_document(each) for each in self.measures],
            "stages": self.stages.to_json(),
        }


def compare_runs(baseline: RecordedRun, *candidates: RecordedRun) -> Comparison:
    """Compare recorded runs with a baseline.

    Raises:
        ComparisonError: There is no candidate, or there are more than twenty runs.
    """
    if not candidates or len(candidates) >= MAX_RUNS:
        raise ComparisonError(
            f"A comparison takes a baseline and 1 to {MAX_RUNS - 1} candidates, got {len(candidates)}."
        )
    runs = with_distinct_names((baseline, *candidates))
    diagnoses = tuple(run.diagnosis for run in runs)
    differences = find_differences(
        [run.options for run in runs], [run.environment for run in runs], [run.source for run in runs]
    )
    basis = common_basis(diagnoses)
    times = [compared_steps(diagnosis, basis) for diagnosis in diagnoses]
    confidence = 1 - (1 - CONFIDENCE) / len(candidates)
    ratios = tuple(
        compare_step_times(times[0], each, confidence, _batch_sizes(runs[0], run))
        for run, each in zip(runs[1:], times[1:], strict=True)
    )
    return Comparison(
        runs,
        differences,
        ratios,
        read_measures(diagnoses),
        compare_stages(diagnoses),
        _warnings(runs, differences, basis),
    )


def describe_ratio(name: str, baseline: str, ratio: StepTimeRatio | Unavailable) -> str:
    """Say in one sentence how a candidate's step compares."""
    if isinstance(ratio, Unavailable):
        return f"{name} cannot be compared with {baseline}: {ratio.reason}"
    interval = f"({ratio.confidence * 100:.3g} % interval {_range(ratio)})"
    factor = max(ratio.ratio, 1 / ratio.ratio)
    if ratio.caveat or factor >= LARGE:
        way = "shorter" if ratio.ratio < 1 else "longer"
        known = (
            f". No interval can be given: {ratio.caveat[:1].lower()}{ratio.caveat[1:]}"
            if ratio.caveat
            else f" {interval}."
        )
        return f"The time per {ratio.per} of {name} is about {factor:.2g}× {way} than that of {baseline}{known}"
    size = format_percent(abs(ratio.percent))
    match ratio.outcome:
        case Outcome.FASTER:
            return f"{name} took {size} less time per {ratio.per} than {baseline} {interval}."
        case Outcome.SLOWER:
            return f"{name} took {size} more time per {ratio.per} than {baseline} {interval}."
        case Outcome.EQUIVALENT:
            return f"{name} and {baseline} took practically the same time per {ratio.per} {interval}."
        case Outcome.UNDECIDED:
            return f"Whether {name} or {baseline} took less time per {ratio.per} cannot be determined {interval}."
        case _:
            assert_never(ratio.outcome)


def _range(ratio: StepTimeRatio) -> str:
    low, high = ratio.bounds_percent
    if high < 0:
        return f"{format_percent(-high)} to {format_percent(-low)} less"
    if low > 0:
        return f"{format_percent(low)} to {format_percent(high)} more"
    return f"{format_percent(-low)} less to {format_percent(high)} more"


def _batch_sizes(baseline: RecordedRun, candidate: RecordedRun) -> tuple[float, float] | None:
    sizes = baseline.batch_size, candidate.batch_size
    return (sizes[0], sizes[1]) if sizes[0] and sizes[1] and sizes[0] != sizes[1] else None


def _warnings(runs: tuple[RecordedRun, ...], differences: Differences, basis: str) -> tuple[str, ...]:
    return (
        DRIFT_WARNING,
        *_emulated(runs),
        *_unlike_runs(runs, differences),
        *_odd_bases(runs, basis),
        *(_unfinished(run) for run in runs if run.state not in ("", "done")),
    )


def _emulated(runs: tuple[RecordedRun, ...]) -> list[str]:
    if all(run.diagnosis.source.is_emulated for run in runs):
        return [EMULATED_NOTE]
    return [f"{run.name} ran on an emulated accelerator." for run in runs if run.diagnosis.source.is_emulated]


def _unlike_runs(runs: tuple[RecordedRun, ...], differences: Differences) -> list[str]:
    sentences = []
    if differences.environment:
        paths = ", ".join(each.path for each in differences.environment[:4])
        more = ", …" if len(differences.environment) > 4 else ""
        sentences.append(f"The runs did not have the same environment ({paths}{more}).")
    for indices, what in (
        (differences.unknown_options, "options"),
        (differences.unknown_environment, "environment"),
    ):
        if indices:
            sentences.append(f"Not recorded, so not compared: the {what} of {_names(runs, indices)}.")
    if any(_batch_sizes(runs[0], run) for run in runs[1:]):
        sentences.append("The batch sizes differ, so the time per example is compared, not the time per step.")
    if any(entry.path.startswith(("workload.", "training.")) for entry in differences.options):
        sentences.append("The runs did not do the same work: workload or training options differ.")
    return sentences


def _odd_bases(runs: tuple[RecordedRun, ...], basis: str) -> list[str]:
    if basis == "all":
        return ["Too few steps lie outside the profile windows, so profiled steps, which are slower, are compared too."]
    if basis == "trace":
        markers = {run.diagnosis.steps.marker for run in runs if not isinstance(run.diagnosis.steps, Unavailable)}
        differ = f" They are marked in different ways: {', '.join(sorted(markers))}." if len(markers) > 1 else ""
        return [f"Compared are the profiled steps of the traces, which the profiler slowed down.{differ}"]
    return []


def _unfinished(run: RecordedRun) -> str:
    reason = f": {run.reason}" if run.reason else "."
    return f"{run.name} did not run to its end ({run.state}){reason}"


def _names(runs: tuple[RecordedRun, ...], indices: tuple[int, ...]) -> str:
    return ", ".join(runs[index].name for index in indices)


def _run_document(run: RecordedRun) -> dict[str, Any]:
    verdict = run.diagnosis.verdict
    return {
        "id": run.id or None,
        "name": run.name,
        "source": PurePath(run.diagnosis.source.path).name,
        "kind": run.diagnosis.source.kind,
        "state": run.state or None,
        "batch_size": run.batch_size,
        "verdict": {"class": verdict.verdict_class.value, "sentence": verdict.sentence},
    }


def _source_document(diff: str | None) -> dict[str, Any]:
    if diff is None:
        return Unavailable("The source of one of the two runs was not recorded.").to_json()
    return {"equal": not diff, "diff": diff}


def _ratio_document(ratio: StepTimeRatio | Unavailable) -> dict[str, Any]:
    return ratio.to_json() if isinstance(ratio, Unavailable) else {**asdict(ratio), "outcome": ratio.outcome.value}


def _measure_document(each: Measure) -> dict[str, Any]:
    values = [value.to_json() if isinstance(value, Unavailable) else value for value in each.values]
    return {"name": each.key, "unit": each.metric.unit.value, "better": each.metric.better, "values": values}
