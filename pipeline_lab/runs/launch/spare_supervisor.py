"""A supervisor that holds a warm worker and waits for one run.

``python -m pipeline_lab.runs.launch.spare_supervisor <owner's pid> <its start time> <fingerprint>``, started by
:func:`pipeline_lab.runs.launch.spare.ensure_spare`. It exits when its owner is gone, its worker has died, or a
caller needs another environment; and while it is still loading, when a measurement starts.
"""

import contextlib
import fcntl
import select
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.launch.queue import MeasurementLock, is_measuring
from pipeline_lab.runs.launch.runtime import runtime_folder
from pipeline_lab.runs.launch.spare import TIMEOUT_S, Request, short_address, socket_path
from pipeline_lab.runs.launch.supervisor import WorkerProcess, claim, supervise
from pipeline_lab.runs.record import Process, is_alive
from pipeline_lab.runs.store import RunFolder

_LOOK_S = 1.0
"""How often it checks its owner."""
_REQUEST_BYTES = 64 * 1024


def main() -> None:
    pid, created_s, fingerprint = sys.argv[1:4]
    with contextlib.closing(MeasurementLock()) as lock:
        assignment = _serve(Process(int(pid), float(created_s)), fingerprint, lock)
        if assignment is not None:
            supervise(assignment.folder, lock, assignment.worker)


@dataclass(frozen=True)
class Assignment:
    """A run that this process has claimed, and its worker."""

    folder: RunFolder
    worker: WorkerProcess


def _serve(owner: Process, fingerprint: str, lock: MeasurementLock) -> Assignment | None:
    """Hold a warm worker until it gets a run; None if there is nothing more to wait for."""
    with (runtime_folder() / "spare.lock").open("a") as single, socket.socket(socket.AF_UNIX) as listener:
        try:
            fcntl.flock(single, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        path = socket_path()
        path.unlink(missing_ok=True)
        with short_address(path) as address:
            listener.bind(address)
        listener.listen()
        worker = WorkerProcess.start_waiting(runtime_folder() / "spare.log", lock)
        folder = None
        try:
            folder = Spare(owner, fingerprint, listener, worker).wait_for_run()
        finally:
            path.unlink(missing_ok=True)
            if folder is None:
                worker.kill()
    return None if folder is None else Assignment(folder, worker)


@dataclass
class Spare:
    """Waits for a run."""

    owner: Process
    fingerprint: str
    listener: socket.socket
    worker: WorkerProcess
    is_warm: bool = False
    leaving: bool = False

    def wait_for_run(self) -> RunFolder | None:
        """Answer requests until one brings a run; None when there is a reason to exit."""
        while not self._should_leave():
            asked, ready = self._listen()
            self.is_warm = self.is_warm or ready
            if asked and (folder := self._answer()) is not None:
                return folder
        return None

    def _listen(self) -> tuple[bool, bool]:
        """Wait a moment; say whether there is a request, and whether the worker has become ready."""
        caller, worker = self.listener.fileno(), self.worker.says.fileno()
        heard, _, _ = select.select([caller] if self.is_warm else [caller, worker], [], [], _LOOK_S)
        return caller in heard, worker in heard

    def _should_leave(self) -> bool:
        """Say whether owner, worker or matching environment is gone, or loading would disturb a measurement."""
        if self.leaving or self.worker.exit_code() is not None or not is_alive(self.owner):
            return True
        return not self.is_warm and is_measuring()

    def _answer(self) -> RunFolder | None:
        channel, _ = self.listener.accept()
        with channel:
            channel.settimeout(TIMEOUT_S)
            try:
                with channel.makefile("rb") as lines:
                    request = Request.decode(lines.readline(_REQUEST_BYTES))
                answer, folder = self._decide(request)
            except (OSError, ValueError):
                return None
            with contextlib.suppress(OSError):  # run.json tells a lost caller who owns the run
                channel.sendall(answer.encode() + b"\n")
            return folder

    def _decide(self, request: Request) -> tuple[str, RunFolder | None]:
        if request.fingerprint != self.fingerprint:
            self.leaving = True
            return "leaving", None
        self.owner = request.owner or self.owner
        if request.run is None:
            return "here", None
        folder = RunFolder(Path(request.run))
        if self.worker.exit_code() is None and _claim(folder):
            return "taken", folder
        return "refused", None


def _claim(folder: RunFolder) -> bool:
    try:
        return claim(folder)
    except StoreError:
        return False


if __name__ == "__main__":
    main()
