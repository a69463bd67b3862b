"""The warm spare worker: a supervisor whose worker has loaded TensorFlow and waits for one run.

A spare serves one run, and only in the environment that it was started in: the same Python, package, variables, working
directory and cores. It answers one line of JSON with another, on a socket in the user's private folder.

``python -m pipeline_lab.runs.launch.spare <owner's pid> <its start time> <fingerprint>`` is started by
:func:`ensure_spare`. It exits when its owner is gone, its worker has died, or a caller needs another environment; and
while it is still loading, when a measurement starts.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import socket
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.folders import runtime_folder
from pipeline_lab.runs.launch.queue import MeasurementLock, is_measuring
from pipeline_lab.runs.launch.runtime import PACKAGE_ROOT, module_command, start_detached
from pipeline_lab.runs.launch.supervisor import WorkerProcess, claim, supervise
from pipeline_lab.runs.record import Process, is_alive
from pipeline_lab.runs.run_folder import RunFolder

TIMEOUT_S = 2.0
"""How long a launch waits for a spare's answer."""
_RELEVANT = (
    "CUDA",
    "GRPC",
    "KERAS",
    "KMP",
    "LD_",
    "MALLOC",
    "MKL",
    "NVIDIA",
    "OMP",
    "PIPELINE_LAB",
    "PYTHON",
    "TF_",
    "XLA",
)
"""Prefixes of environment variables that change what a job does."""


@dataclass(frozen=True)
class Request:
    """A request to a spare.

    Attributes:
        fingerprint: The caller's environment; the spare exits if its own differs.
        run: Path of the run to take, or None to ask whether the spare exists.
        owner: The app that owns the spare from now on, or None for no change.
    """

    fingerprint: str
    run: str | None = None
    owner: Process | None = None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "Request":
        """Read a request.

        Raises:
            ValueError: The line is not a request.
        """
        try:
            document = json.loads(line)
            owner = document.pop("owner")
            return cls(**document, owner=Process.from_document(owner) if owner else None)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a request: {error}") from None


def hand_over(run: Path) -> bool:
    """Hand a run to the warm spare; false if none fits."""
    return _ask(Request(fingerprint_environment(), run=str(run))) == "taken"


def ensure_spare(owner: Process) -> None:
    """Make sure that a spare exists or is starting, unless its start would disturb a measurement.

    Cheap enough for every page. A spare with an outdated environment exits now and is replaced by the next call.

    Args:
        owner: The app; the spare exits with it.
    """
    own = fingerprint_environment()
    if _ask(Request(own, owner=owner)) is None and not is_measuring():
        arguments = (json.dumps(asdict(owner)), own)
        start_detached(module_command("pipeline_lab.runs.launch.spare", *arguments))


def fingerprint_environment() -> str:
    """Return a hash of the environment that a worker started now would see."""
    code = sorted((str(path), path.stat().st_mtime_ns) for path in (PACKAGE_ROOT / "pipeline_lab").rglob("*.py"))
    libraries = Path(sysconfig.get_path("purelib")).stat().st_mtime_ns
    environment = sorted((name, value) for name, value in os.environ.items() if name.startswith(_RELEVANT))
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    surroundings = [sys.executable, sys.version, libraries, code, environment, str(Path.cwd()), cores]
    return hashlib.sha256(json.dumps(surroundings).encode()).hexdigest()


def socket_path() -> Path:
    return runtime_folder() / "spare.sock"


@contextlib.contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Return an address of a socket that fits into the 107 bytes that the system allows, however long its path."""
    if len(os.fsencode(path)) <= 100 or sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _ask(request: Request) -> str | None:
    """Return the spare's answer (taken, refused, warm, loading, leaving), or None without an answer."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(TIMEOUT_S)
        try:
            with short_address(socket_path()) as address:
                channel.connect(address)
            channel.sendall(request.encode())
            with channel.makefile("rb") as answers:
                return answers.readline(100).decode().strip() or None
        except OSError:
            return None


_LOOK_S = 1.0
"""How often it checks its owner."""
_REQUEST_BYTES = 64 * 1024
_REQUEST_S = 10.0
"""How long a caller may take to send its line."""


def main() -> None:
    owner, fingerprint = sys.argv[1:3]
    with contextlib.closing(MeasurementLock()) as lock:
        assignment = _serve(Process.from_document(json.loads(owner)), fingerprint, lock)
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
            channel.settimeout(_REQUEST_S)
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
            return "warm" if self.is_warm else "loading", None
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
