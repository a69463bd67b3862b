"""Runs that record the user's own job: how its processes begin and join them, or a capture of a running job starts.

The recording process is the run's supervisor, so a killed job leaves a run that reads as lost.
"""

import contextlib
import hashlib
import ipaddress
import os
import re
import time
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.hooks import Program, module_of
from pipeline_lab.runs.launch.runtime import module_command, start_process
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus, this_process
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore

JOIN_S = 60.0
"""How long a process waits for the first process of its job to begin the run."""


def begin(store: RunStore, name: str, *, tags: tuple[str, ...], environment: dict[str, Any] | None = None) -> RunFolder:
    """Make the folder of a run that this process records into.

    Raises:
        StoreError: The store is locked, or cannot be written.
    """
    now_s = time.time()
    status = RunStatus(RunState.RUNNING, created_s=now_s, started_s=now_s, supervisor=this_process())
    return store.add(RunRecord("", name.strip()[:200] or "job", status, environment=environment or {}, tags=tags))


def announce(store: RunStore, job: str, folder: RunFolder) -> None:
    """Let the other processes of a job find the run; ``job`` is the key that they share.

    Raises:
        StoreError: The store cannot be written.
    """
    place = _meeting_place(store, job)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_suffix(f".{os.getpid()}")
        scratch.write_text(folder.id, encoding="utf-8")
        scratch.replace(place)
    except OSError as error:
        raise StoreError(f"Cannot write to the run store {store.root}: {error.strerror}.") from None


def join(store: RunStore, job: str, patience_s: float = JOIN_S) -> RunFolder | None:
    """Return the run that the first process of a job announced; None if none is live within the patience."""
    place, deadline_s = _meeting_place(store, job), time.monotonic() + patience_s
    while True:
        with contextlib.suppress(OSError, StoreError):
            folder = store.folder(place.read_text(encoding="utf-8").strip())
            if read_record(folder).status.state.is_live:  # lost, if its first process was killed
                return folder
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(0.2)


def forget(store: RunStore, job: str) -> None:
    """Take an announcement back."""
    _meeting_place(store, job).unlink(missing_ok=True)


def _meeting_place(store: RunStore, job: str) -> Path:
    return store.root / ".jobs" / hashlib.sha256(job.encode()).hexdigest()[:32]


TAG = "captured"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")


@dataclass(frozen=True)
class RemoteCapture:
    """Windows to record from a running job.

    Attributes:
        address: ``HOST:PORT`` of TensorFlow's profiler server in the job.
        length_s: Of one window.
        every_s: From the start of one window to the start of the next.
        windows: How many.

    Raises:
        OptionsError: The address is not valid, or the windows do not fit.
    """

    address: str
    length_s: float = 2.0
    every_s: float = 30.0
    windows: int = 1

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        is_host = _NAME.fullmatch(host) or (host.startswith("[") and host.endswith("]") and _is_ip(host[1:-1]))
        if not is_host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise OptionsError(f"{self.address[:100]!r} is not an address; write HOST:PORT, such as localhost:6009.")
        if not 0.05 <= self.length_s <= 600:
            raise OptionsError(f"A window of {self.length_s:g} s is out of range; choose 0.05 to 600 s.")
        if not 1 <= self.windows <= 100_000:
            raise OptionsError(f"{self.windows} windows are out of range; choose 1 to 100000.")
        if self.windows > 1 and self.every_s < self.length_s:
            raise OptionsError(
                f"Windows of {self.length_s:g} s do not fit into every {self.every_s:g} s; leave more time between them."
            )


def launch_capture(store: RunStore, capture: RemoteCapture) -> RunFolder:
    """Start recording and return at once; the run continues when the caller ends, and is canceled like any run.

    Raises:
        StoreError: The store cannot be written, or no process can be started.
    """
    environment = {"command": f"capture {capture.address}"}
    folder = begin(store, f"capture {capture.address}", tags=(TAG,), environment=environment)
    numbers = {"--seconds": capture.length_s, "--every": capture.every_s, "--windows": capture.windows}
    options = [part for name, value in numbers.items() for part in (name, str(value))]
    command = module_command(module_of(Program.CAPTURE), *options, str(folder.path), capture.address)
    start_process(folder, command)
    return folder


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
