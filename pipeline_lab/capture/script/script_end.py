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
"""Time that the script's exit may wait for the verdict."""


class ScriptEnd:
    """Ends the run when the script ends, for whatever reason; once, and not in a forked process.

    The verdict goes to standard error from a separate process, which leaves the script's memory alone.

    Args:
        recording: The run.
        finish: Writes the window that is open, if any; returns what kept the script from being recorded to its end, or nothing.
        is_quiet: Say nothing.
    """

    def __init__(self, recording: Recording, finish: Callable[[], str], *, is_quiet: bool) -> None:
        self._recording, self._finish = recording, finish
        self._speaks = recording.is_owner and not is_quiet
        self._process, self._lock, self._is_over = os.getpid(), threading.RLock(), False

    def greet(self) -> None:
        """Print the id of the run."""
        self.say(f"recording into run {self._recording.folder.id}")

    def warn(self, sentence: str) -> None:
        """Print a warning, and write it into the run."""
        self._recording.note(sentence)
        self.say(sentence)

    def by_exit(self, code: int, reason: str = "", details: str = "") -> None:
        """The script exited with that code; ``reason`` explains a code other than 0, ``details`` is a traceback."""
        self._end(RunState.FAILED if code else RunState.DONE, reason, code, details)

    def by_interrupt(self) -> None:
        """The user pressed Ctrl-C."""
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
            problem = self._finish()
        except KeyboardInterrupt:  # a second Ctrl-C: stop writing
            self._recording.end(state, reason, code)
            raise
        if problem == NO_TENSORFLOW:  # another one was noted when it came
            self._recording.note(problem)
        self._recording.end(state, reason, code)
        if problem:
            self.say(" ".join(filter(None, [reason, problem])))
        if problem != NO_TENSORFLOW:
            self._print_verdict()

    def _print_verdict(self) -> None:
        if not self._speaks:
            return
        folder = self._recording.folder.path
        command = module_command(module_of(Program.CLOSING), str(folder))
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=folder,  # in the script's folder, files could shadow modules
                env=child_environment(),
                timeout=PATIENCE_S,
                start_new_session=True,  # so that Ctrl-C reaches it only through this process, without a traceback
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.say(f"the verdict takes longer; run `pipeline-lab analyze {folder}`")
        except (OSError, KeyboardInterrupt):  # the script's own exit matters more
            self.say(f"the run is {folder}")

    def say(self, words: str) -> None:
        """Print a line, unless the script is to be watched quietly."""
        if self._speaks:
            with contextlib.suppress(Exception):  # the script may have closed its streams
                print(f"pipeline-lab: {words}", file=sys.stderr)  # noqa: T201
