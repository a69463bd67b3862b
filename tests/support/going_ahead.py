"""One process of pytest-xdist collects ahead of the others, which then find compiled what they would compile side by side.

Loops over events are compiled meanwhile, by a process of its own.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL_TRACE = ROOT / "tests" / "data" / "small_pipeline.xplane.pb"
FIRST, LOCK = "gw0", "PIPELINE_LAB_COLLECTING"


class GoingAhead:
    """Holds the others back from now on, until :meth:`end`; a process that dies holds nobody back."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        os.environ[LOCK] = str(Path(self._folder.name) / "lock")
        self._lock = os.open(os.environ[LOCK], os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._compiling = subprocess.Popen(
            [sys.executable, "-m", "pipeline_lab", "analyze", str(SMALL_TRACE)],
            cwd=ROOT,
            env={**os.environ, "PIPELINE_LAB_CACHE": self._folder.name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        """Let the others collect, and no test run before the loops are compiled."""
        os.close(self._lock)
        self._compiling.wait()
        self._folder.cleanup()


def wait_for_first() -> None:
    """Wait, in a process that is not the first, until that has collected."""
    if LOCK in os.environ and os.environ.get("PYTEST_XDIST_WORKER", FIRST) != FIRST:
        with suppress(FileNotFoundError), Path(os.environ[LOCK]).open() as lock:  # gone when it is over
            fcntl.flock(lock, fcntl.LOCK_SH)
