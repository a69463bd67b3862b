"""How processes start that outlive this one, or die with it."""

import ctypes
import errno
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from pipeline_lab.errors import StoreError
from pipeline_lab.hooks import Program, module_of
from pipeline_lab.runs.record import RunState, process_of
from pipeline_lab.runs.run_folder import RunFolder, end_run, update_record

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
_PR_SET_PDEATHSIG = 1


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of the package with this Python."""
    return [sys.executable, "-m", module, *arguments]


def worker_command(*arguments: str, program: Program = Program.WORKER) -> list[str]:
    """Return the command line of what runs a job; ``PIPELINE_LAB_WORKER`` replaces the worker, by a wrapper for instance."""
    if program is Program.WORKER and (named := os.environ.get("PIPELINE_LAB_WORKER")):
        return [*shlex.split(named), *arguments]
    return module_command(module_of(program), *arguments)


def child_environment() -> dict[str, str]:
    """Return the environment for child processes, which must find the package from any working directory.

    An installed package needs no help; a checkout that app.py put on ``sys.path`` does.
    """
    environment = dict(os.environ)
    if str(PACKAGE_ROOT) not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        known = environment.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, [str(PACKAGE_ROOT), *known])))
    return environment


KERAS_2 = {"TF_USE_LEGACY_KERAS": "1"}
"""What makes ``tf.keras`` Keras 2 (``tf_keras``), where it is set before TensorFlow is imported."""


def wants_keras_2() -> bool:
    """Say whether ``tf.keras`` is Keras 2 in this process."""
    return any(os.environ.get(name) in ("true", "True", "1") for name in KERAS_2)


def start_detached(command: list[str], log: IO[bytes] | int = subprocess.DEVNULL) -> int:
    """Start a process that outlives this one and leaves no zombie: a shell starts it in a new session and exits.

    Returns:
        Its process id.

    Raises:
        OSError: There is no shell, or the machine is out of processes.
    """
    shell = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&2 & echo $!', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        env=child_environment(),
        start_new_session=True,
        check=False,
    )
    if not shell.stdout:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return int(shell.stdout)


def start_process(folder: RunFolder, command: list[str]) -> None:
    """Start the process that supervises a run, and record it, so that its end is seen before it has said a word.

    Raises:
        StoreError: No process can be started, and the run fails; or its record cannot be written.
    """
    try:
        with folder.log.open("ab") as log:
            supervisor = process_of(start_detached(command, log))
    except OSError as error:
        end_run(folder, RunState.FAILED, f"Its process could not be started: {error.strerror}.")
        raise StoreError(f"Cannot start a process for the run {folder.id}: {error.strerror}.") from None
    update_record(folder, lambda record: record.supervised_by(supervisor))


def die_with_parent() -> Callable[[], None]:
    """Return a function for a child to call before it starts its program, so that it is killed when this process ends.

    The kernel binds it to the thread that starts the child: call from the main thread. Does nothing except on Linux.
    """
    library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    return partial(die_with, os.getpid(), library)


def die_with(parent: int, library: ctypes.CDLL | None = None) -> None:
    """Let this process be killed when its parent ends, or end it where the parent has ended already.

    Args:
        parent: Process id.
        library: The C library, where a process that was just forked should not have to load it.
    """
    if sys.platform == "linux":
        (library or ctypes.CDLL(None, use_errno=True)).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
