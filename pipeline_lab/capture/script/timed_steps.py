"""Times every step of the job in this process, beside its profile windows, into the table that our own jobs write too."""

import threading
import time
from collections.abc import Callable

from pipeline_lab.capture.recording import Recording
from pipeline_lab.capture.script import gradient_hooks, graph_loops, keras_hooks, step_hooks
from pipeline_lab.capture.script.own_python import OwnPython
from pipeline_lab.capture.script.step_log import StepLog
from pipeline_lab.capture.script.step_notes import sort_notes
from pipeline_lab.worker.record.window_recorder import WindowRecorder

PERIOD_S = 0.25
EARLY_PERIOD_S = 0.02
"""Until Keras is loaded, of which a script makes a model before it can train."""


class TimedSteps:
    """Listens to the hooks and writes rows from a thread, until it is closed.

    Args:
        recording: The run.
        recorder: Of its windows.
    """

    def __init__(self, recording: Recording, recorder: WindowRecorder) -> None:
        self._recording = recording
        offset_ns = recording.clock.offset_ns
        self.log = StepLog(recording.own, recording.log, offset_ns, lambda: recorder.windows, step_hooks.read_gaps)
        self._end, self._has_failed, self._python = threading.Event(), False, OwnPython()
        step_hooks.listen(self.log.notes.append)
        graph_loops.hook_graph_loops()
        self._thread = threading.Thread(target=self._run, name="pipeline-lab steps", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the last rows."""
        self._end.set()
        self._thread.join()
        if not self._has_failed:
            self._try(self._drain)
        step_hooks.leave(self.log.notes.append)
        if not self._has_failed:
            self._try(self.log.close)
        if (most := self._python.most) is not None:
            self._recording.log.write(most)
        for step in gradient_hooks.eager_steps.found:
            self._recording.log.write(step)
        graph_loops.drop_steps()

    def _run(self) -> None:
        while not self._end.wait(PERIOD_S if keras_hooks.hook_keras() else EARLY_PERIOD_S) and not self._has_failed:
            if self.log.step_ns is not None and not keras_hooks.is_evaluating():
                self._python.look()
            self._try(self._drain)

    def _drain(self, now_ns: int) -> None:
        if graph_loops.tell_steps():  # which are noted later than they were taken
            sort_notes(self.log.notes)
        self.log.drain(now_ns)

    def _try(self, work: Callable[[int], None]) -> None:
        """Keep failures, such as a full disk, away from the job."""
        try:
            work(time.perf_counter_ns())
        except Exception as error:
            self._has_failed = True
            step_hooks.leave(self.log.notes.append)
            self._recording.note(f"Steps are no longer timed ({type(error).__name__}: {error}); the job continues.")
