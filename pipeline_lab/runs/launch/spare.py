"""The client side of the warm spare worker: ask for it over a socket, hand it a run, or start one.

A spare is a supervisor whose worker has loaded TensorFlow and waits. It serves one run, and only in the environment that
it was started in: the same Python, package, variables, working directory and cores. It answers one line of JSON with
another, on a socket in the user's private folder.
"""

import contextlib
import hashlib
import json
import os
import socket
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline_lab.runs.launch.queue import is_measuring
from pipeline_lab.runs.launch.runtime import PACKAGE_ROOT, module_command, runtime_folder, start_detached
from pipeline_lab.runs.record import Process

TIMEOUT_S = 2.0
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
            return cls(**document, owner=Process(**owner) if owner else None)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a request: {error}") from None


def hand_over(run: Path) -> bool:
    """Hand a run to the warm spare; false if none fits."""
    return _ask(Request(fingerprint(), run=str(run))) == "taken"


def ensure_spare(owner: Process) -> None:
    """Make sure that a spare exists or is starting, unless its start would disturb a measurement.

    Cheap enough for every page. A spare with an outdated environment exits now and is replaced by the next call.

    Args:
        owner: The app; the spare exits with it.
    """
    own = fingerprint()
    if _ask(Request(own, owner=owner)) is None and not is_measuring():
        arguments = (str(owner.pid), repr(owner.created_s), own)
        start_detached(module_command("pipeline_lab.runs.launch.spare_supervisor", *arguments))


def fingerprint() -> str:
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
    """Return the spare's answer (taken, here, leaving), or None without an answer."""
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
