"""What a user's processes on one machine share: the queue, the spare worker's socket, and how we start processes."""

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pipeline_lab.errors import StoreError
from pipeline_lab.programs import Program, module_of
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, end_run

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
_PR_SET_PDEATHSIG = 1


def runtime_folder() -> Path:
    """Return the user's private folder for locks and sockets, making it where needed.

    It does not follow ``XDG_RUNTIME_DIR`` or ``TMPDIR``: those differ between a desktop, a cron job and a service, and
    two queues would let two measurements share the machine.

    Raises:
        StoreError: It cannot be made, or somebody else made it.
    """
    user = os.getuid()
    named = os.environ.get("PIPELINE_LAB_RUNTIME")
    folder = Path(named) if named else Path("/tmp") / f"pipeline-lab-{user}"  # noqa: S108 (ownership is checked)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise StoreError(
            f"Cannot make {folder} for locks ({error.strerror}); name another folder in PIPELINE_LAB_RUNTIME."
        ) from None
    if found.st_uid != user or found.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise StoreError(
            f"{folder} must be a folder that only you can open, because runs are handed over in it; "
            "remove it, or name another one in PIPELINE_LAB_RUNTIME."
        )
    return folder


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs one of our modules with this Python."""
    return [sys.executable, "-m", module, *arguments]


def worker_command(*arguments: str) -> list[str]:
    """Return the worker's command line; ``PIPELINE_LAB_WORKER`` puts another program in its place (a wrapper, say)."""
    if named := os.environ.get("PIPELINE_LAB_WORKER"):
        return [*shlex.split(named), *arguments]
    return module_command(module_of(Program.WORKER), *arguments)


def child_environment() -> dict[str, str]:
    """Return the environment for our own processes, which must find the package from any working directory.

    An installed package needs no help; a checkout that was put on ``sys.path`` by its app.py does.
    """
    environment = dict(os.environ)
    if str(PACKAGE_ROOT) not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        known = environment.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, [str(PACKAGE_ROOT), *known])))
    return environment


def start_detached(command: list[str], log: IO[bytes] | int = subprocess.DEVNULL) -> None:
    """Start a process that outlives us and is never our zombie: a shell starts it in a session of its own and leaves.

    Raises:
        OSError: There is no shell, or the machine is out of processes.
    """
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=child_environment(),
        start_new_session=True,
        check=False,
    )


def start_process(folder: RunFolder, command: list[str]) -> None:
    """Start the process that brings a run to its end; where none can be started, the run says so.

    Raises:
        StoreError: No process can be started.
    """
    try:
        with folder.log.open("ab") as log:
            start_detached(command, log)
    except OSError as error:
        end_run(folder, RunState.FAILED, f"No process could be started for it: {error.strerror}.")
        raise StoreError(f"Cannot start a process for the run {folder.id}: {error.strerror}.") from None


def die_with_parent() -> Callable[[], None]:
    """Return what a child must call before it starts its program, so that it is killed when this process ends.

    The kernel ties it to the thread that starts the child: call from the main thread. Linux only; elsewhere the
    function does nothing.
    """
    parent = os.getpid()
    library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def tie() -> None:
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie
