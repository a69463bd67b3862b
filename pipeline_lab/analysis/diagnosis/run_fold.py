"""One run folder, analysed window by window: what was analysed once is kept, new windows are added as they land."""

from pathlib import Path

import numpy as np

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.diagnosis import later_epochs
from pipeline_lab.analysis.diagnosis.conclusion import JobResults, conclude, describe
from pipeline_lab.analysis.diagnosis.fold import (
    Spread,
    TraceParts,
    analyse_files,
    attempt,
    fold,
    in_turn,
    place_on_axis,
)
from pipeline_lab.analysis.diagnosis.inputs import Progress, window_files
from pipeline_lab.analysis.diagnosis.job_tables import JobTables, read_job
from pipeline_lab.analysis.input import live_model
from pipeline_lab.analysis.machine import gpu_clocks, job_load, process_memory, profiler_cost
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs
from pipeline_lab.analysis.sampling import file_sampling, kept_outputs, padding, sample_history
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.steps import calibration, job_steps, outlier_steps, step_phases
from pipeline_lab.analysis.steps import recorded_steps as trace_steps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.step_phases import StepPhases
from pipeline_lab.analysis.tf_data.written_words import WRITTEN_NOT_KEPT
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.trace.trace_file import session_file


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
            missing, analyse_files(list(map(session_file, missing)), names, progress, spread), strict=True
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
        recorded = fold(trace_steps.merge_steps, [part.steps for part in axis.parts])
        results = measure_job(job, origin_ns, axis.reads, recorded)
        return conclude(source, axis, results, measure_later(job, results.step_phases, origin_ns))


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
        job_steps=attempt(lambda: job_steps.measure_job_steps(steps, job.samples, origin_ns))
        if job.times_steps
        else Unavailable(job_steps.NO_JOB_STEPS),
        calibration=attempt(lambda: calibration.read_calibration(events, steps)),
        file_sampling=attempt(
            lambda: file_sampling.within_reach(
                file_sampling.measure_sampling(
                    job.trained_files,
                    job.samples,
                    reads.without(job.held_out_files),
                    job.predict,
                    sample_history.measure_labels(job.labels),
                    job.views,
                ),
                job.reachable,
            )
        ),
        gpu_clocks=attempt(lambda: gpu_clocks.measure_clocks(job.resources)),
        evaluation=attempt(lambda: job.evaluate(origin_ns)),
        padding=attempt(lambda: padding.measure_padding(job.padding)),
        kept_outputs=attempt(lambda: kept_outputs.read_kept_outputs(job.outputs, job.files)),
        memory=attempt(
            lambda: process_memory.measure_memory(steps, job.resources, events, origin_ns, [*job.files, *job.tables])
        ),
        profiler_cost=attempt(lambda: profiler_cost.measure_profiler_cost(events, steps, origin_ns)),
        outlier_steps=attempt(
            lambda: outlier_steps.find_in_job(steps, job.resources, profiler_cost.flushes(events), origin_ns)
        ),
        step_phases=attempt(lambda: step_phases.measure_phases(steps, job.samples, job.trained_files)),
        live_model=attempt(lambda: live_model.measure_model(job.model, steps, origin_ns)),
        job_load=attempt(lambda: _load(job, recorded, origin_ns)),
        written=job.written or Unavailable(WRITTEN_NOT_KEPT),
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
    start_ns = int(tables.ints(steps, "start_ns")[begun].min()) - origin_ns
    return LaterEpochs(
        first_step=later.first_step,
        start_ns=start_ns,
        first=first,
        job_steps=attempt(lambda: job_steps.measure_job_steps(steps, job.samples, origin_ns)),
        calibration=attempt(
            lambda: later_epochs.without_first_pace(calibration.read_calibration(job.events, steps), first, later)
        ),
        live_model=attempt(
            lambda: later_epochs.sampled_behind(live_model.measure_model(job.model, steps, origin_ns), start_ns)
        ),
        job_load=attempt(lambda: job_load.measure_load(job.environment, job.written, steps, job.resources)),
        profiler_cost=attempt(lambda: profiler_cost.measure_profiler_cost(job.events, steps, origin_ns)),
    )


def _load(job: JobTables, recorded: Steps | Unavailable, origin_ns: int) -> job_load.JobLoad:
    if job.times_steps or isinstance(recorded, Unavailable):
        return job_load.measure_load(job.environment, job.written, job.steps, job.resources)
    return job_load.measure_recorded_load(job.environment, recorded, job.resources, origin_ns)
