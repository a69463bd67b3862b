"""What a run is: the document ``run.json``, and who watches over it.

``SCHEMA_VERSION`` history: 1, the first one.
"""

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from pipeline_lab.errors import StoreError

SCHEMA_VERSION = 1


class RunKind(StrEnum):
    """What a run folder holds, told by the options that it was made with."""

    LOG = "log"
    """Something that was recorded or opened, not launched: it has no options."""
    RUN = "run"
    """One job."""
    RACE = "race"
    TUNE = "tune"
    """A search for a better pipeline; its trials are runs and races of their own."""

    @property
    def holds_several(self) -> bool:
        """Whether it compares several jobs and is none itself."""
        return self in (RunKind.RACE, RunKind.TUNE)


class RunState(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    """Waits for the device."""
    STARTING = "starting"
    """The worker loads TensorFlow, data and model."""
    RUNNING = "running"
    """The worker trains."""
    DONE = "done"
    FAILED = "failed"
    """The worker ended with an error; `reason` says which."""
    CANCELLED = "cancelled"
    LOST = "lost"
    """The supervisor vanished (power cut, kill -9) before it could write an end."""

    @property
    def is_live(self) -> bool:
        return self in (RunState.QUEUED, RunState.STARTING, RunState.RUNNING)


@dataclass(frozen=True)
class Process:
    """A process named so that a recycled pid is not mistaken for it.

    Attributes:
        pid: Process id.
        created_s: Start time, seconds since the epoch, as psutil reports it.
        host, boot, numbering: Its machine's name, the machine's start, and what its pids count in; empty in older
            records, and where the system does not say.
    """

    pid: int
    created_s: float
    host: str = ""
    boot: str = ""
    numbering: str = ""


@dataclass(frozen=True)
class RunStatus:
    """The state of a run and how it came to it.

    Attributes:
        state: See :class:`RunState`.
        reason: One sentence on how it ended when that was not as planned, else empty.
        created_s, started_s, ended_s: Seconds since the epoch; None while it has not happened.
        supervisor: The process that owns the worker, while there is one.
        exit_code: The worker's exit code; negative for a signal; None while it lives.
    """

    state: RunState
    reason: str = ""
    created_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    supervisor: Process | None = None
    exit_code: int | None = None

    def change(self, state: RunState, **changes: Any) -> "RunStatus":
        return replace(self, state=state, **changes)


@dataclass(frozen=True)
class RunRecord:
    """One run's ``run.json``.

    Attributes:
        id: Folder name inside the store.
        name: What people call it; may be changed.
        status: State and times.
        options: The options document as it was given, or None for a run that was not launched by us.
        environment: What it ran on: versions, host, cores, memory, GPUs; empty until the worker wrote it.
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
        """Say what the folder holds; options without a ``kind`` are those of one job."""
        return RunKind.LOG if self.options is None else RunKind(self.options.get("kind", RunKind.RUN))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RunRecord":
        """Read a record.

        Raises:
            StoreError: The text is no run record, or one of a newer Pipeline Lab.
        """
        try:
            document = json.loads(text)
            version = document["schema_version"]
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"The run was written by a newer Pipeline Lab (schema {version}, this one reads up to "
                    f"{SCHEMA_VERSION}); upgrade to open it."
                )
            status = document["status"]
            supervisor = status.get("supervisor")
            options, environment = document.get("options"), document.get("environment") or {}
            if not isinstance(options, dict | None) or not isinstance(environment, dict):
                raise TypeError("options and environment should be JSON objects")
            if options is not None and options.get("kind", RunKind.RUN) not in set(map(str, RunKind)):
                raise StoreError(
                    f"The run is a {options['kind']}, which this Pipeline Lab does not know; upgrade to open it."
                )
            return cls(
                id=str(document["id"]),
                name=str(document["name"]),
                status=RunStatus(
                    state=RunState(status["state"]),
                    reason=str(status.get("reason", "")),
                    created_s=float(status.get("created_s", 0.0)),
                    started_s=status.get("started_s"),
                    ended_s=status.get("ended_s"),
                    supervisor=Process(**supervisor) if supervisor else None,
                    exit_code=status.get("exit_code"),
                ),
                options=options,
                environment=environment,
                tags=tuple(map(str, document.get("tags") or ())),
                notes=str(document.get("notes", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"run.json is damaged ({error}); the run's traces can still be analysed.") from None


SILENT_S = 86_400.0
"""A run of another machine that has written nothing for so long is taken for lost; its pid means nothing here.

Long on purpose: a run that waits for its turn, or a search that waits for a race, writes nothing either.
"""

GONE = "The process that watched over this run is gone (killed, or the machine restarted)."
SILENT = "This run belongs to another machine or container, and has written nothing for a day."


def this_process() -> Process:
    """Return the calling process's identity."""
    return Process(os.getpid(), psutil.Process().create_time(), os.uname().nodename, _boot(), _numbering())


def is_alive(process: Process) -> bool:
    """Say whether exactly that process of this machine still runs."""
    try:
        found = psutil.Process(process.pid)
        return abs(found.create_time() - process.created_s) < 1 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def explain_loss(process: Process, folder: Path) -> str:
    """Say why a run is lost; empty while it may be going on.

    Args:
        process: Who watches over it; one that was written down without its machine counts as one of this machine.
        folder: Where the run lies.
    """
    is_same_host = process.host in ("", os.uname().nodename)
    if is_same_host and process.boot not in ("", _boot()):
        return GONE
    if is_same_host and process.numbering in ("", _numbering()):
        return "" if is_alive(process) else GONE
    return SILENT if time.time() - _last_sign_s(folder) > SILENT_S else ""


def _last_sign_s(folder: Path) -> float:
    """Return when a run wrote into its files last, seconds since the epoch; its load is noted twice a second."""
    written_s = 0.0
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file():  # the folders hold what analyses write, too
                    written_s = max(written_s, entry.stat().st_mtime)
    return written_s


def _boot() -> str:
    """Name this start of the machine; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _numbering() -> str:
    """Name what the pids of this process count in: containers have one of their own; empty where the system does not say."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
