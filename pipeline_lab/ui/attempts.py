"""Analyses in processes of their own, at most one per run and kind; a thread waits for each, so none is left a zombie."""

import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.runs.launch.runtime import child_environment, module_command
from pipeline_lab.runs.store import RunFolder

RETRY_S = 5.0
"""An analysis that ended without an answer (another process was at it) is started again after this time."""


@dataclass(frozen=True)
class Attempt:
    """One analysis that this app started."""

    process: subprocess.Popen[bytes]
    started_s: float

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def has_failed(self) -> bool:
        return self.process.poll() not in (None, 0)

    @property
    def may_be_repeated(self) -> bool:
        return not self.is_running and not self.has_failed and time.monotonic() - self.started_s > RETRY_S


class Attempts:
    """The analyses of one kind, by run."""

    def __init__(self) -> None:
        self._attempts: dict[Path, Attempt] = {}
        self._guard = threading.Lock()

    def find(self, folder: RunFolder) -> Attempt | None:
        """Return the last one of a run."""
        return self._attempts.get(folder.path)

    def start(self, folder: RunFolder, *options: str) -> Attempt:
        """Start one unless the last one still runs, has failed, or ended only a moment ago."""
        with self._guard:
            attempt = self._attempts.get(folder.path)
            if attempt is not None and not attempt.may_be_repeated:
                return attempt
            process = subprocess.Popen(
                module_command("pipeline_lab.analysis", str(folder.path), *options),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                start_new_session=True,
            )
            threading.Thread(target=process.wait, name=f"analysis of {folder.id}", daemon=True).start()
            self._attempts[folder.path] = attempt = Attempt(process, time.monotonic())
            return attempt

    def forget(self, folder: RunFolder) -> None:
        """Let a failed one be started again."""
        with self._guard:
            self._attempts.pop(folder.path, None)
