"""The worker as its supervisor holds it: start it cold or warm, hand it its run, end it and whatever it started."""

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline_lab.runs.queue import MeasurementLock
from pipeline_lab.runs.runtime import child_environment, die_with_parent, worker_command
from pipeline_lab.runs.store import RunFolder

POLL_S = 0.1


@dataclass
class WorkerProcess:
    """A worker in a session of its own, which the kernel kills when the supervisor dies."""

    process: subprocess.Popen[bytes]

    @classmethod
    def start_cold(cls, folder: RunFolder, lock: MeasurementLock) -> "WorkerProcess":
        """Start a worker on one run; what it prints goes to the run's log."""
        with folder.log.open("ab") as log:
            return cls(_start([str(folder.path)], lock, stdin=subprocess.DEVNULL, output=log))

    @classmethod
    def start_waiting(cls, log: Path, lock: MeasurementLock) -> "WorkerProcess":
        """Start a worker that loads TensorFlow, prints ``ready`` and then waits for :meth:`hand_over`."""
        with log.open("wb") as file:
            return cls(_start(["--wait"], lock, stdin=subprocess.PIPE, stdout=subprocess.PIPE, output=file))

    @property
    def says(self) -> IO[bytes]:
        """What a waiting worker prints; something to read means that it is ready."""
        assert self.process.stdout is not None
        return self.process.stdout

    def hand_over(self, folder: RunFolder) -> bool:
        """Give a waiting worker its run; false if it is dead."""
        if self.exit_code() is not None or self.process.stdin is None:
            return False
        try:
            self.process.stdin.write(os.fsencode(folder.path) + b"\n")
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def exit_code(self) -> int | None:
        """Return how the worker ended, negative for a signal; None while it lives.

        Processes that it left behind are killed before it is reaped, while its process group cannot be anybody else's.
        """
        if self.process.returncode is None:
            if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self._signal_group()
            self.process.wait()
        return self.process.returncode

    def stop(self, grace_s: float) -> bool:
        """Ask the worker to stop and flush, and kill it when it does not; true if it went on its own."""
        if self.exit_code() is None:
            self.process.send_signal(signal.SIGTERM)
        deadline_s = time.monotonic() + grace_s
        while self.exit_code() is None:
            if time.monotonic() > deadline_s:
                self.kill()
                return False
            time.sleep(POLL_S)
        return True

    def kill(self) -> None:
        """End the worker and everything it started, and close the pipes to it."""
        if self.process.returncode is None:
            self._signal_group()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not read cannot be flushed
                    pipe.close()

    def _signal_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _start(
    arguments: list[str], lock: MeasurementLock, *, stdin: int, output: IO[bytes], stdout: int | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        worker_command(*arguments),
        stdin=stdin,
        stdout=output if stdout is None else stdout,
        stderr=output,
        env=child_environment() | {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
        start_new_session=True,
        pass_fds=(lock.fileno(),),
        preexec_fn=die_with_parent(),  # the supervisor has one thread, so this is safe
    )
