"""Diagnose whatever a path holds: a run folder, a log directory, a trace file, an archive.

Traces are read one after another unless an executor divides them up, and of each only its parts are kept, so memory stays
that of the traces that are being read. Of a run that goes on, :class:`RunFold` keeps what was analyzed and adds new windows.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lab.analysis.declaring.declaration import JobView
from pipeline_lab.analysis.diagnosis.conclusion import conclude, describe, measure_job, without_job
from pipeline_lab.analysis.diagnosis.executors import TraceExecutor, in_turn
from pipeline_lab.analysis.diagnosis.inputs import Progress, is_run, opened_log, window_paths
from pipeline_lab.analysis.diagnosis.later_epochs import measure_later
from pipeline_lab.analysis.diagnosis.merging import FoldMemory, place_on_axis
from pipeline_lab.analysis.diagnosis.trace_parts import TraceParts, analyze_files, read_stored
from pipeline_lab.analysis.machine.job_load import other_cpu_percent
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import RESOURCES
from pipeline_lab.trace.legacy.derived import read_session
from pipeline_lab.trace.sources import SourceKind, TraceSource, find_traces, session_file

if TYPE_CHECKING:
    from pipeline_lab.analysis.diagnosis.job_tables import JobReader


def diagnose(path: Path | str, *, progress: Progress | None = None, spread: TraceExecutor = in_turn) -> Diagnosis:
    """Analyze a run or any profile log.

    Args:
        path: A run folder, a log directory, a trace file or an archive.
        progress: Told how many traces are done, how many there are, and the next one's name.
        spread: Who analyzes the traces.

    Raises:
        TraceReadError: There is nothing there that can be read as a trace, and no run either.
    """
    path = Path(path)
    if is_run(path):
        return _diagnose_run(path, progress, spread)
    with find_traces(path) as source:
        if source.kind is SourceKind.RUN:  # in an archive
            return _diagnose_run(source.root, progress, spread)
        return _diagnose_log(source, progress, spread)


def _diagnose_run(path: Path, progress: Progress | None, spread: TraceExecutor) -> Diagnosis:
    log = opened_log(RunFolder(path))
    if log is not None:
        diagnosis = diagnose(log, progress=progress, spread=spread)
        return replace(diagnosis, source=replace(diagnosis.source, path=str(path)))
    run = RunFold(RunFolder(path))
    run.add_new(progress, spread)
    return run.diagnose()


def _diagnose_log(source: TraceSource, progress: Progress | None, spread: TraceExecutor) -> Diagnosis:
    parts, unreadable = _read_parts(source, progress, spread)
    axis = place_on_axis(parts)
    described = describe(source.path, source.kind.value, axis, (*unreadable, *source.notes))
    return conclude(described, axis, without_job(axis.reads if source.files else None))


def _read_stored_parts(derived: Sequence[Path]) -> tuple[list[TraceParts], list[str]]:
    """Read what TensorFlow derived, session by session; each session folder is a window of its own."""
    parts: list[TraceParts] = []
    errors: list[str] = []
    for session in sorted({path.parent for path in derived}):
        try:
            profiles = read_session([path for path in derived if path.parent == session])
        except TraceReadError as error:
            errors.append(str(error))
        else:
            parts += [replace(read_stored(profile), window=session.name) for profile in profiles]
    return parts, errors


def _read_parts(
    source: TraceSource, progress: Progress | None, spread: TraceExecutor
) -> tuple[list[TraceParts], list[str]]:
    """Analyze every trace of a log; return also why some could not be read, unless that is all of them."""
    if not source.files:
        parts, errors = _read_stored_parts(source.derived)
    else:
        found = analyze_files(source.files, [file.path.name for file in source.files], progress, spread)
        parts = [part for each in found if not isinstance(each, Unavailable) for part in each]
        errors = [each.reason for each in found if isinstance(each, Unavailable)]
    if not parts:
        raise TraceReadError(errors[0])
    return parts, errors


class RunFold:
    """The parts of a run's windows.

    Args:
        folder: The run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._parts: list[TraceParts] = []
        self._captures = 0
        self._unreadable: list[str] = []
        self._memory = FoldMemory()
        self._job: JobReader | None = None
        self._known: list[str] = []

    @property
    def captures(self) -> int:
        """Trace files that were analyzed."""
        return self._captures

    def missing(self, listed: list[str] | None = None) -> list[str]:
        """Return the paths of the trace files that were not analyzed yet, oldest window first.

        Args:
            listed: All that there are, where they were listed just now.
        """
        paths = window_paths(self._folder) if listed is None else listed
        if paths[: len(self._known)] == self._known:  # as a rule, new ones come last
            return paths[len(self._known) :]
        return list(filterfalse(set(self._known).__contains__, paths))

    def add_new(
        self, progress: Progress | None = None, spread: TraceExecutor = in_turn, listed: list[str] | None = None
    ) -> bool:
        """Analyze the windows that came since the last call; say whether there were any. ``listed`` as for :meth:`missing`."""
        missing = self.missing(listed)
        files = [session_file(Path(path)) for path in missing]
        names = [file.window for file in files]
        for path, found in zip(missing, analyze_files(files, names, progress, spread), strict=True):
            self._known.append(path)
            if isinstance(found, Unavailable):
                self._unreadable.append(found.reason)
            else:
                self._parts += found
                self._captures += 1
        return bool(missing)

    def diagnose(self) -> Diagnosis:
        """Put together what is known by now."""
        from pipeline_lab.analysis.diagnosis.job_tables import JobReader  # loads the models of a run's options

        if self._job is None:
            self._job = JobReader(self._folder)
        tables = self._job.read()
        axis = place_on_axis(self._parts, tables.origin_epoch_ns, self._memory)
        source = describe(
            self._folder.path,
            "run",
            axis,
            tuple(self._unreadable),
            is_emulated=tables.training.is_emulated,
            uses_device=tables.trains_on_gpu,
            damaged_tables=tuple(tables.damage.values()),
        )
        job = JobView(tables, axis.origin_epoch_ns or tables.origin_epoch_ns or 0, axis.reads, axis.steps)
        found = measure_job(job)
        other_percent = None if RESOURCES.name in tables.damage else other_cpu_percent(tables.resources)
        return conclude(source, axis, found, other_percent, measure_later(job, found["step_phases"]))
