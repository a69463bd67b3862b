"""The end of a watched script: how it came goes into the run, the verdict to the terminal."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable

from pipeline_lab.capture.recording import Recording
from pipeline_lab.hooks import Program, module_of
from pipeline_lab.runs.launch.runtime import child_environment, module_command
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import FailureEvent

NO_TENSORFLOW = "The script ended without TensorFlow, or right after it had loaded it; there was nothing to record."
INTERRUPTED = "Interrupted (Ctrl-C); what was recorded is kept."
PATIENCE_S = 60.0
"""How long the script's exit may wait for the verdict."""


class ScriptEnd:
    """Ends the run when the script is over, however that came about.

    What it says goes to standard error, from a process of its own: the script's streams and memory are left alone.

    The run ends once, and not with a process that the script has forked.

    Args:
        recording: The run.
        finish: Writes the window that is open, if any; says whether the script has loaded TensorFlow.
        is_quiet: Say nothing.
    """

    def __init__(self, recording: Recording, finish: Callable[[], bool], *, is_quiet: bool) -> None:
        self._recording, self._finish = recording, finish
        self._speaks = recording.is_owner and not is_quiet
        self._process, self._lock, self._is_over = os.getpid(), threading.RLock(), False

    def greet(self) -> None:
        """Say where the recording goes."""
        self._say(f"recording into run {self._recording.folder.id}")

    def warn(self, sentence: str) -> None:
        """Say what may go wrong, and leave it in the run."""
        self._recording.note(sentence)
        self._say(sentence)

    def by_exit(self, code: int, reason: str = "", details: str = "") -> None:
        """The script ended with that code; ``reason`` is why if it is not 0, ``details`` a traceback."""
        self._end(RunState.FAILED if code else RunState.DONE, reason, code, details)

    def by_interrupt(self) -> None:
        """Somebody pressed Ctrl-C."""
        self._end(RunState.CANCELLED, INTERRUPTED, None)

    def _end(self, state: RunState, reason: str, code: int | None, details: str = "") -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._write_end(state, reason, code, details)

    def _write_end(self, state: RunState, reason: str, code: int | None, details: str) -> None:
        if details:
            with contextlib.suppress(OSError):
                self._recording.log.write(FailureEvent(reason, details))
        try:
            saw_tensorflow = self._finish()
        except KeyboardInterrupt:  # Ctrl-C once more: what is being written is given up
            self._recording.end(state, reason, code)
            raise
        if not saw_tensorflow:
            self._recording.note(NO_TENSORFLOW)
        self._recording.end(state, reason, code)
        if saw_tensorflow:
            self._tell_verdict()
        else:
            self._say(" ".join(filter(None, [reason, NO_TENSORFLOW])))

    def _tell_verdict(self) -> None:
        if not self._speaks:
            return
        folder = self._recording.folder.path
        command = module_command(module_of(Program.CLOSING), str(folder))
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=folder,  # not the script's, whose files may bear the names of modules
                env=child_environment(),
                timeout=PATIENCE_S,
                start_new_session=True,  # Ctrl-C at the terminal ends it through this process alone, without a traceback
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._say(f"the verdict takes longer; `pipeline-lab analyze {folder}` gives it")
        except (OSError, KeyboardInterrupt):  # the script's own end is what counts
            self._say(f"the run is {folder}")

    def _say(self, words: str) -> None:
        if self._speaks:
            with contextlib.suppress(Exception):  # the script may have closed its streams
                print(f"pipeline-lab: {words}", file=sys.stderr)  # noqa: T201
