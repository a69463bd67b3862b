"""What a run is: the document ``run.json``, and the process that supervises it.

``SCHEMA_VERSION`` history: 1, the first one.
"""

import contextlib
import json
import os
import time
from dataclasses import asdict, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.hooks import Displayed

if TYPE_CHECKING:
    from pipeline_lab.runs.run_folder import RunFolder

SCHEMA_VERSION = 1
_MAX_PID = 1 << 31
"""What the type of a process id holds."""
_MAX_MOMENT_S = 253_402_214_400.0
"""The last day of year 9999, beyond which no calendar goes."""


class NewerRecordError(StoreError):
    """The record is sound, but written by a newer Pipeline Lab."""


def _moment_s(value: Any) -> float:
    """Return a time in seconds since the epoch.

    Raises:
        TypeError, ValueError: It is not one.
    """
    moment_s = float(value)
    if not 0 <= moment_s <= _MAX_MOMENT_S:
        raise ValueError(f"{value!r} is not a time")
    return moment_s


EMULATED_ACCELERATOR = "emulated accelerator"
"""Device of a run whose steps only take time (``training.device = emulated``), as its environment and every page name it."""
EMULATED_PLANE = f"/device:{EMULATED_ACCELERATOR}"
"""Its plane in a trace."""
EVALUATION_BEGINS, EVALUATION_ENDS = "evaluation begins", "evaluation ends"
"""Events in the traces of our jobs before and after what evaluates the model between their steps; no longer than a moment, so that
a window which opens or closes in between has one of them."""
EMULATED_NOTE = "The accelerator is emulated."
"""What every answer about such a run says."""


class RunKind(StrEnum):
    """What a run folder holds; follows from its options."""

    LOG = "log"
    """Recorded or opened, not launched: it has no options."""
    RUN = "run"
    """One job."""
    RACE = "race"
    TUNE = "tune"
    """A search for a better pipeline; its trials are separate runs and races."""

    @property
    def holds_several(self) -> bool:
        """Whether it compares several jobs."""
        return self in (RunKind.RACE, RunKind.TUNE)


class RunState(StrEnum):
    """State of a run."""

    QUEUED = "queued"
    """Waits for its turn."""
    STARTING = "starting"
    """The worker loads TensorFlow, data and model."""
    RUNNING = "running"
    """The worker trains."""
    DONE = "done"
    FAILED = "failed"
    """The worker ended with an error, given in `reason`."""
    CANCELLED = "cancelled"
    LOST = "lost"
    """The supervisor vanished (power cut, kill -9) before it could write an end."""

    @property
    def label(self) -> str:
        """What people read; documents keep the value."""
        return "canceled" if self is RunState.CANCELLED else self.value

    @property
    def is_live(self) -> bool:
        return self in (RunState.QUEUED, RunState.STARTING, RunState.RUNNING)


@dataclass(frozen=True)
class Process:
    """A process, identified so that a recycled pid is not mistaken for it.

    Attributes:
        pid: Process id.
        created_s: Start time, seconds since the epoch, as psutil reports it.
        host, boot, numbering: Host name, boot id and pid namespace; empty in older records and where unknown.
        started_ticks: Start time in clock ticks since boot, which setting the clock does not change; None in older
            records and where unknown.
    """

    pid: int
    created_s: float
    host: str = ""
    boot: str = ""
    numbering: str = ""
    started_ticks: int | None = None

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Process":
        """Read a process as it was saved.

        Raises:
            KeyError, TypeError, ValueError: It is damaged.
        """
        pid, ticks = document["pid"], document.get("started_ticks")
        if not isinstance(pid, int) or not 0 < pid < _MAX_PID or not isinstance(ticks, int | None):
            raise ValueError("a process should have a pid and a start time")
        host, boot, numbering = (str(document.get(name, "")) for name in ("host", "boot", "numbering"))
        return cls(pid, _moment_s(document["created_s"]), host, boot, numbering, ticks)


@dataclass(frozen=True)
class RunStatus:
    """The state of a run.

    Attributes:
        state: See :class:`RunState`.
        reason: One sentence if it did not end as planned, else empty.
        created_s, started_s, ended_s: Seconds since the epoch; None before it happens.
        supervisor: The process that owns the worker, while it runs.
        exit_code: The worker's exit code; negative for a signal; None while it lives.
    """

    state: RunState
    reason: str = ""
    created_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    supervisor: Process | None = None
    exit_code: int | None = None

    @property
    def took_s(self) -> float | None:
        """How long it has worked; None before it began, where its end is unknown, and where the clock was set back meanwhile."""
        if self.started_s is None or (self.ended_s is None and not self.state.is_live):
            return None
        length_s = (self.ended_s or time.time()) - self.started_s
        return length_s if length_s >= 0 else None

    def change(self, state: RunState, **changes: Any) -> "RunStatus":
        return replace(self, state=state, **changes)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "RunStatus":
        """Read a status as it was saved.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: It is damaged.
        """
        supervisor = document.get("supervisor")
        return cls(
            state=RunState(document["state"]),
            reason=str(document.get("reason", "")),
            created_s=_moment_s(document.get("created_s", 0.0)),
            started_s=None if (started := document.get("started_s")) is None else _moment_s(started),
            ended_s=None if (ended := document.get("ended_s")) is None else _moment_s(ended),
            supervisor=Process.from_document(supervisor) if supervisor else None,
            exit_code=document.get("exit_code"),
        )


@dataclass(frozen=True)
class ListedRun:
    """What lists say of a run; its record says the rest.

    Attributes:
        id, name, status, tags: Of its record.
        kind: What its folder holds.
        preset: Name of its options: a preset's, if it came from one; empty for a run that Pipeline Lab did not launch.
        workload: Kind of its workload; empty where its options have none.
    """

    id: str
    name: str
    status: RunStatus
    tags: tuple[str, ...]
    kind: RunKind
    preset: str
    workload: str

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "ListedRun":
        """Read it as it was saved: its fields by their names.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: It is damaged.
        """
        status, tags, kind = document["status"], document["tags"], document["kind"]
        return cls(**document | {"status": RunStatus.from_document(status), "tags": tuple(tags), "kind": RunKind(kind)})


@dataclass(frozen=True)
class RunRecord:
    """One run's ``run.json``.

    Attributes:
        id: Folder name inside the store.
        name: Display name; may be changed.
        status: State and times.
        options: The options document, or None for a run that Pipeline Lab did not launch.
        environment: Versions, host, cores, memory and GPUs; empty until the worker writes it.
        tags: The user's words, each at most 40 characters.
        notes: The user's text.
    """

    id: str
    name: str
    status: RunStatus
    options: dict[str, Any] | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def kind(self) -> RunKind:
        """What the folder holds; options without a ``kind`` are those of one job."""
        return RunKind.LOG if self.options is None else RunKind(self.options.get("kind", RunKind.RUN))

    @property
    def listed(self) -> ListedRun:
        """What lists say of it."""
        options = self.options or {}
        workload = options.get("workload")
        return ListedRun(
            id=self.id,
            name=self.name,
            status=self.status,
            tags=self.tags,
            kind=self.kind,
            preset=str(options.get("name") or ""),
            workload=str(workload.get("kind") or "") if isinstance(workload, dict) else "",
        )

    def supervised_by(self, process: Process) -> "RunRecord":
        """Return the record with the process that brings the run to its end; unchanged once the run is over."""
        status = replace(self.status, supervisor=process) if self.status.state.is_live else self.status
        return replace(self, status=status)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, run_id: str = "") -> "RunRecord":
        """Read a record.

        Args:
            text: The document.
            run_id: Stands for its id, if it is given.

        Raises:
            StoreError: The text is not a run record, or is from a newer Pipeline Lab.
        """
        try:
            document = json.loads(text)
            version = document["schema_version"]
            if version > SCHEMA_VERSION:
                raise NewerRecordError(
                    f"The run was written by a newer Pipeline Lab (schema {version}, this one reads up to "
                    f"{SCHEMA_VERSION}); upgrade to open it."
                )
            options, environment = document.get("options"), document.get("environment") or {}
            if not isinstance(options, dict | None) or not isinstance(environment, dict):
                raise TypeError("options and environment should be JSON objects")
            if options is not None and options.get("kind", RunKind.RUN) not in set(map(str, RunKind)):
                raise NewerRecordError(
                    f"The run is a {options['kind']}, which this Pipeline Lab does not know; upgrade to open it."
                )
            return cls(
                id=run_id or str(document["id"]),
                name=str(document["name"]),
                status=RunStatus.from_document(document["status"]),
                options=options,
                environment=environment,
                tags=tuple(map(str, document.get("tags") or ())),
                notes=str(document.get("notes", "")),
            )
        except RecursionError:
            raise StoreError(
                "run.json is damaged (nested too deeply); the run's traces can still be analyzed."
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"run.json is damaged ({error}); the run's traces can still be analyzed.") from None


SILENT_S = 86_400.0
"""A run of another machine that has written nothing for this long counts as lost; its pid means nothing here.

Long on purpose: a queued run, or a search that waits for a race, writes nothing either.
"""

GONE = "The process that supervised this run is gone (killed, or the machine restarted)."
SILENT = "This run belongs to another machine or container, and has written nothing for a day."


def this_process() -> Process:
    """Return the calling process's identity."""
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    """Return the identity of a process of this machine; of one that has ended already, one that is not alive."""
    import psutil  # who only reads records needs none of it

    created_s = 0.0
    with contextlib.suppress(psutil.Error):
        created_s = psutil.Process(pid).create_time()
    return Process(pid, created_s, os.uname().nodename, _boot(), _numbering(), _started_ticks(pid))


def is_alive(process: Process) -> bool:
    """Say whether exactly that process still runs on this machine."""
    import psutil

    try:
        found = psutil.Process(process.pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.started_ticks is not None and (ticks := _started_ticks(process.pid)) is not None:
            return ticks == process.started_ticks
        return abs(found.create_time() - process.created_s) < 1
    except psutil.Error:
        return False


def _started_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None where unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[_START_FIELD])
    except (OSError, ValueError, IndexError):
        return None


_START_FIELD = 22 - 3
"""Of proc_pid_stat(5), counted from the field after the command, which may contain anything."""


def explain_loss(process: Process, folder: Path) -> str:
    """Say why a run is lost; empty while it may be running.

    Args:
        process: Its supervisor; without a host, it counts as one of this machine.
        folder: The run folder.
    """
    is_same_host = process.host in ("", os.uname().nodename)
    if is_same_host and process.boot not in ("", _boot()):
        return GONE
    if is_same_host and process.numbering in ("", _numbering()):
        return "" if is_alive(process) else GONE
    return SILENT if time.time() - _last_sign_s(folder) > SILENT_S else ""


def _last_sign_s(folder: Path) -> float:
    """Return when a run last wrote to its files, seconds since the epoch; it records its load twice a second."""
    written_s = 0.0
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file():  # analyses write into the folders, too
                    written_s = max(written_s, entry.stat().st_mtime)
    return written_s


def _boot() -> str:
    """Return the boot id; empty where unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _numbering() -> str:
    """Return the pid namespace, which differs between containers; empty where unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


@dataclass(frozen=True)
class Run(Displayed):
    """A run that is over: done, or canceled with what it had recorded; a notebook shows its verdict and numbers.

    Attributes:
        folder: Names of everything that it left.
        record: Its ``run.json``.
    """

    folder: "RunFolder"
    record: RunRecord

    @property
    def id(self) -> str:
        return self.folder.id

    @property
    def path(self) -> Path:
        """What ``pipeline_lab.analyze`` takes."""
        return self.folder.path
