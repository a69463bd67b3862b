"""The run that this process records into, and which process of its job it is."""

import contextlib
import json
import shutil
from collections.abc import Mapping
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import NoteEvent, PhaseEvent
from pipeline_lab.runs.run_folder import add_environment, end_run, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.record.window_recorder import Profiler, WindowRecorder

_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
    ("PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "HYDI_CONTROL_FD")),
    ("SLURM_PROCID", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
"""Variables of Open MPI, MPICH-like launchers and Slurm's ``srun``: rank, size, and those that identify the job."""


@dataclass(frozen=True)
class JobProcess:
    """One process of a job.

    Attributes:
        rank: 0, 1, …; process 0 owns the run.
        size: Number of processes.
        job: Key shared by the processes of this job alone; empty for a single process.
    """

    rank: int = 0
    size: int = 1
    job: str = ""

    @property
    def label(self) -> str:
        """Suffix of this process's files; empty for a single process."""
        return f".rank{self.rank}" if self.size > 1 else ""


def find_process(environment: Mapping[str, str]) -> JobProcess:
    """Read the launcher's variables; malformed ones are ignored."""
    for rank_name, size_name, job_names in _RANKS:
        rank, size = _number(environment.get(rank_name)), _number(environment.get(size_name))
        if rank is not None and size is not None and 0 <= rank < size and size > 1:
            names = [environment[name] for name in job_names if name in environment]
            return JobProcess(rank, size, _job(environment, " ".join([rank_name, *names])))
    return _from_tf_config(environment) or JobProcess()


def _from_tf_config(environment: Mapping[str, str]) -> JobProcess | None:
    """Read ``TF_CONFIG``: chief and workers share a run, parameter servers and evaluators record separate ones."""
    try:
        config = json.loads(environment.get("TF_CONFIG", ""))
        cluster, task = config["cluster"], config["task"]
        members = [(kind, index) for kind in ("chief", "worker") for index in range(len(cluster.get(kind, ())))]
        rank = members.index((task["type"], int(task["index"])))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if len(members) < 2:
        return None
    return JobProcess(rank, len(members), _job(environment, json.dumps(cluster, sort_keys=True)))


def _job(environment: Mapping[str, str], text: str) -> str:
    return environment.get("PIPELINE_LAB_JOB") or text


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


ALONE = JobProcess()


class Recording:
    """One process's part of a run.

    Of several processes the first owns the run; the others write tables and events into a subfolder, and traces beside
    the first one's. A process that finds no run to join begins one.

    Attributes:
        folder: The whole run.
        own: Where this process writes its tables and events; the run's folder for its owner.
        begun_s: Start of the run, s since the epoch; the same for all its processes.
    """

    def __init__(self, store: RunStore, name: str, *, tags: tuple[str, ...], process: JobProcess = ALONE) -> None:
        self.process = process
        self._store = store
        joined = own_job_runs.join(store, process.job) if process.rank else None
        self.is_owner = joined is None
        self.folder = own_job_runs.begin(store, name, tags=tags) if joined is None else joined
        if self.is_owner and process.size > 1 and not process.rank:
            own_job_runs.announce(store, process.job, self.folder)
        self.begun_s = read_record(self.folder).status.created_s
        self.own = self.folder if self.is_owner else self.folder.process(process.rank)
        self.own.path.mkdir(parents=True, exist_ok=True)
        self.clock = Clock()
        self.log = EventLog(self.own.events)
        if process.rank and self.is_owner:
            self.note(
                f"No run of {process.job[:80]!r} was live after {own_job_runs.JOIN_S:.0f} s; this process records a separate run."
            )

    def note(self, sentence: str) -> None:
        """Write a remark into the run; lost if the disk is full."""
        with contextlib.suppress(OSError):
            self.log.write(NoteEvent(sentence))

    def enter(self, phase: str) -> None:
        """Report a phase; lost if the disk is full."""
        with contextlib.suppress(OSError):
            self.log.write(PhaseEvent(phase))

    def windows(self, profiler: Profiler) -> WindowRecorder:
        """Return the recorder of this process's windows."""
        return WindowRecorder(
            self.folder, profiler, self.log, self.clock, process=self.process.label, scratch=self.own.scratch
        )

    def describe(self, environment: dict[str, Any]) -> None:
        """Add to the environment of the run."""
        if self.is_owner:
            with contextlib.suppress(Exception):  # a deleted run or a full disk must not affect the job
                add_environment(self.folder, environment)

    def end(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        """Record how it ended; only the owner of the run does."""
        shutil.rmtree(self.own.scratch, ignore_errors=True)
        if not self.is_owner:
            return
        if self.process.size > 1:
            own_job_runs.forget(self._store, self.process.job)
        end_run(self.folder, state, reason, exit_code)
