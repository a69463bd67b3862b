"""The warm spare worker as others see it: ask for it over a socket, give it a run, or start one.

A spare is a supervisor whose worker has TensorFlow loaded and waits. It serves one run, and only one whose surroundings
are those it was started in: the same Python, package, environment, working directory and cores. It answers one line of
JSON with another and lives in the user's private folder.
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
"""Environment variables that start with one of these change what a job does."""


@dataclass(frozen=True)
class Request:
    """What a spare is asked.

    Attributes:
        fingerprint: The caller's surroundings; the spare leaves when they are not its own.
        run: Path of the run to take, or None to ask whether it is there.
        owner: The app that wants a spare from now on, or None to leave that as it is.
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
            ValueError: The line is none.
        """
        try:
            document = json.loads(line)
            owner = document.pop("owner")
            return cls(**document, owner=Process(**owner) if owner else None)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no request: {error}") from None


def hand_over(run: Path) -> bool:
    """Give a run to the warm spare; false if there is none that fits."""
    return _ask(Request(fingerprint(), run=str(run))) == "taken"


def ensure_spare(owner: Process) -> None:
    """See to it that a spare is there or on its way, unless a measurement runs that its start would disturb.

    Cheap enough for every page; a spare whose surroundings have changed leaves now and is replaced by the next call.

    Args:
        owner: The app; the spare leaves with it.
    """
    own = fingerprint()
    if _ask(Request(own, owner=owner)) is None and not is_measuring():
        arguments = (str(owner.pid), repr(owner.created_s), own)
        start_detached(module_command("pipeline_lab.runs.launch.spare_supervisor", *arguments))


def fingerprint() -> str:
    """Sum up what a worker that is started now would see."""
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
    """Name a socket so that it fits into the 107 bytes that the system allows, however deep its folder lies."""
    if len(os.fsencode(path)) <= 100 or sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _ask(request: Request) -> str | None:
    """Return the spare's answer (taken, here, leaving), or None if there is no spare or it does not answer."""
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
