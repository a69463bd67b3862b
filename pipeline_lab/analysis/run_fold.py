"""One run folder, analysed window by window: what was analysed once is kept, new windows are added as they land."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import (
    calibration,
    evaluation,
    file_sampling,
    gpu_clocks,
    job_load,
    job_steps,
    kept_outputs,
    label_mix,
    later_epochs,
    live_model,
    memory,
    outlier_steps,
    padding,
    profiler_cost,
    step_phases,
    tables,
)
from pipeline_lab.analysis import steps as trace_steps
from pipeline_lab.analysis.conclusion import JobResults, conclude, describe
from pipeline_lab.analysis.file_reads import FileReads
from pipeline_lab.analysis.file_sampling import Predict
from pipeline_lab.analysis.inputs import Progress, window_files
from pipeline_lab.analysis.later_epochs import LaterEpochs
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.spreading import Spread, analyse_files, in_turn
from pipeline_lab.analysis.step_phases import StepPhases
from pipeline_lab.analysis.steps import Steps
from pipeline_lab.analysis.trace_parts import TraceParts, attempt, fold, place_on_axis
from pipeline_lab.analysis.written_words import NOT_KEPT
from pipeline_lab.errors import OptionsError, StoreError, Unavailable
from pipeline_lab.options.run import RunOptions, read_options
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.workload import GeneratorWorkload
from pipeline_lab.pipeline.lives import predict_run, reachable_examples
from pipeline_lab.runs.events import Event, read_events
from pipeline_lab.runs.files import DataFile, read_files, read_tables
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.runs.tables import EVALUATED, LABELS, MODEL, OUTPUTS, PADDING, RESOURCES, SAMPLES, STEPS, read_table
from pipeline_lab.runs.written import WrittenPipeline, read_written
from pipeline_lab.trace.trace_file import FileKind, TraceFile


@dataclass(frozen=True, eq=False)
class JobTables:
    """What the job noted about itself, read at one moment; jobs that are not ours do not time their steps."""

    times_steps: bool
    steps: pa.Table
    samples: pa.Table
    labels: pa.Table
    evaluated: pa.Table
    padding: pa.Table
    outputs: pa.Table
    resources: pa.Table
    model: pa.Table | None
    written: WrittenPipeline | None
    environment: dict[str, Any]
    events: list[Event]
    files: list[DataFile]
    tables: list[DataFile]
    predict: Predict | None
    views: int
    training: TrainingOptions
    reachable: int | None

    @property
    def trained_files(self) -> list[DataFile]:
        """The files that training reads."""
        return self.files[: len(self.files) - self.training.held_out_files]

    @property
    def held_out_files(self) -> list[DataFile]:
        """The files that only evaluations read."""
        return self.files[len(self.trained_files) :]

    def evaluate(self, origin_ns: int) -> evaluation.Evaluation:
        """Read the evaluation passes; see :func:`pipeline_lab.analysis.evaluation.measure`."""
        return evaluation.measure(
            self.events,
            self.evaluated,
            self.files,
            origin_ns,
            held_out=self.training.held_out_files,
            is_rebuilt=self.training.evaluation == "rebuild",
        )

    @property
    def origin_epoch_ns(self) -> int | None:
        """Zero of the run's axis: its first step, which comes before any window."""
        return int(self.steps.column("start_ns")[0].as_py()) if self.steps.num_rows else None


class RunFold:
    """The parts of a run's windows.

    Args:
        folder: The run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._parts: dict[Path, TraceParts] = {}
        self._unreadable: dict[Path, str] = {}

    @property
    def captures(self) -> int:
        """Trace files that were analysed."""
        return len(self._parts)

    def missing(self) -> list[Path]:
        """Return the trace files that were not analysed yet, oldest window first."""
        return [path for path in window_files(self._folder) if path not in self._parts and path not in self._unreadable]

    def add_new(self, progress: Progress | None = None, spread: Spread = in_turn) -> bool:
        """Analyse the windows that came since the last call; say whether there were any."""
        missing = self.missing()
        names = [path.parent.name for path in missing]
        for path, found in zip(
            missing, analyse_files(list(map(_trace_file, missing)), names, progress, spread), strict=True
        ):
            if isinstance(found, Unavailable):
                self._unreadable[path] = found.reason
            else:
                self._parts[path] = found
        return bool(missing)

    def diagnose(self) -> Diagnosis:
        """Put together what is known by now."""
        job = read_job(self._folder)
        axis = place_on_axis(list(self._parts.values()), job.origin_epoch_ns)
        source = describe(self._folder.path, "run", axis, tuple(self._unreadable.values()))
        origin_ns = axis.origin_epoch_ns or job.origin_epoch_ns or 0
        recorded = fold(trace_steps.merge, [part.steps for part in axis.parts])
        results = measure_job(job, origin_ns, axis.reads, recorded)
        return conclude(source, axis, results, measure_later(job, results.step_phases, origin_ns))


def _trace_file(path: Path) -> TraceFile:
    """Return one host's capture of one window."""
    host = path.name.removesuffix(".xplane.pb")
    return TraceFile(path, FileKind.XPLANE, path.parent.name, host, path.stat().st_size)


def read_job(folder: RunFolder) -> JobTables:
    """Read what the job wrote beside its traces; a run in progress has a part of it."""
    options, environment = _options(folder), _environment(folder)
    return JobTables(
        times_steps=folder.source.exists() or folder.steps.exists(),
        steps=read_table(folder.steps, STEPS),
        samples=read_table(folder.samples, SAMPLES),
        labels=read_table(folder.labels, LABELS),
        evaluated=read_table(folder.evaluated, EVALUATED),
        padding=read_table(folder.padding, PADDING),
        outputs=read_table(folder.outputs, OUTPUTS),
        resources=read_table(folder.resources, RESOURCES),
        model=read_table(folder.model, MODEL) if folder.model.exists() else None,
        written=read_written(folder.written),
        environment=environment,
        events=read_events(folder.events),
        files=read_files(folder.files),
        tables=read_tables(folder.files),
        predict=_prediction(options, environment),
        views=1 if options is None else options.pipeline.views,
        training=TrainingOptions() if options is None else options.training,
        reachable=None if options is None else reachable_examples(options),
    )


def _options(folder: RunFolder) -> RunOptions | None:
    """Return the run's options, or None where they are not those of a single pipeline."""
    try:
        record = read_record(folder)
        return read_options(record.options or {}) if record.kind is RunKind.RUN else None
    except (OptionsError, StoreError):
        return None


def _prediction(options: RunOptions | None, environment: dict[str, Any]) -> Predict | None:
    """Return how to predict the run's order from the examples of each file, or None where that is not known."""
    if options is None or isinstance(options.workload, GeneratorWorkload) or not options.is_assembled:
        return None
    views, cores = options.pipeline.views, max(1, int(environment.get("machine_cores") or 1))
    return lambda examples, batches: predict_run(options, examples // views, batches, cores=cores)


def measure_job(job: JobTables, origin_ns: int, reads: FileReads, recorded: Steps | Unavailable) -> JobResults:
    """Run the analyses that look at the job's own tables.

    Args:
        job: The tables.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        reads: What the traces say about file readers.
        recorded: The steps of all windows.
    """
    steps, events = job.steps, job.events
    other = tables.floats(job.resources, "other_cpu_percent")
    return JobResults(
        job_steps=attempt(lambda: job_steps.measure(steps, job.samples, origin_ns))
        if job.times_steps
        else Unavailable(job_steps.NO_JOB_STEPS),
        calibration=attempt(lambda: calibration.measure(events, steps)),
        file_sampling=attempt(
            lambda: file_sampling.within_reach(
                file_sampling.measure(
                    job.trained_files,
                    job.samples,
                    reads.without(job.held_out_files),
                    job.predict,
                    label_mix.measure(job.labels),
                    job.views,
                ),
                job.reachable,
            )
        ),
        gpu_clocks=attempt(lambda: gpu_clocks.measure(job.resources)),
        evaluation=attempt(lambda: job.evaluate(origin_ns)),
        padding=attempt(lambda: padding.measure(job.padding)),
        kept_outputs=attempt(lambda: kept_outputs.measure(job.outputs, job.files)),
        memory=attempt(lambda: memory.measure(steps, job.resources, events, origin_ns, [*job.files, *job.tables])),
        profiler_cost=attempt(lambda: profiler_cost.measure(events, steps, origin_ns)),
        outlier_steps=attempt(
            lambda: outlier_steps.find_in_job(steps, job.resources, profiler_cost.flushes(events), origin_ns)
        ),
        step_phases=attempt(lambda: step_phases.measure(steps, job.samples, job.trained_files)),
        live_model=attempt(lambda: live_model.measure(job.model, steps, origin_ns)),
        job_load=attempt(lambda: _load(job, recorded, origin_ns)),
        written=job.written or Unavailable(NOT_KEPT),
        other_cpu_percent=float(np.nanmean(other)) if np.isfinite(other).any() else None,
    )


def measure_later(job: JobTables, phases: StepPhases | Unavailable, origin_ns: int) -> LaterEpochs | None:
    """Measure the later epochs by themselves, or return None if the first one is like them.

    Args:
        job: The tables.
        phases: The job's epochs.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
    """
    apart = None if isinstance(phases, Unavailable) else later_epochs.find_apart(phases)
    if apart is None:
        return None
    first, later = apart
    steps = later_epochs.as_warmup(job.steps, later.first_step)
    begun = tables.ints(steps, "step") >= later.first_step
    return LaterEpochs(
        start_ns=int(tables.ints(steps, "start_ns")[begun].min()) - origin_ns,
        first=first,
        job_steps=attempt(lambda: job_steps.measure(steps, job.samples, origin_ns)),
        calibration=attempt(lambda: later_epochs.without_pipeline_alone(calibration.measure(job.events, steps))),
        live_model=attempt(lambda: live_model.measure(job.model, steps, origin_ns)),
        job_load=attempt(lambda: job_load.measure(job.environment, job.written, steps, job.resources)),
        profiler_cost=attempt(lambda: profiler_cost.measure(job.events, steps, origin_ns)),
    )


def _load(job: JobTables, recorded: Steps | Unavailable, origin_ns: int) -> job_load.JobLoad:
    if job.times_steps or isinstance(recorded, Unavailable):
        return job_load.measure(job.environment, job.written, job.steps, job.resources)
    return job_load.measure_recorded(job.environment, recorded, job.resources, origin_ns)


def _environment(folder: RunFolder) -> dict[str, Any]:
    try:
        return read_record(folder).environment
    except StoreError:
        return {}
