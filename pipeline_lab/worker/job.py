"""What every part of a running job needs to know, and the request to stop it."""

import signal
import time
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from pipeline_lab.runs.run_events import PhaseEvent
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.note.event_log import Clock, EventLog

if TYPE_CHECKING:  # the stop request is needed where pydantic is not
    from pipeline_lab.options.run_options import RunOptions


class StopRequestedError(Exception):
    """The job was asked to stop before it trained; nothing went wrong."""


class StopRequest:
    """Remembers that the job shall end."""

    def __init__(self) -> None:
        self.is_set = False

    def listen(self) -> None:
        """Let SIGTERM set the request; call on the main thread."""
        signal.signal(signal.SIGTERM, self._set)

    def request(self) -> None:
        """Ask the job to stop."""
        self.is_set = True

    def check(self) -> None:
        """Leave the preparation of a job that nobody wants any more.

        Raises:
            StopRequestedError: The request is there.
        """
        if self.is_set:
            raise StopRequestedError

    def _set(self, _signal: int, _frame: FrameType | None) -> None:
        self.request()


@dataclass(frozen=True)
class Job:
    """One run, while it is being made."""

    folder: RunFolder
    options: "RunOptions"
    log: EventLog
    stop: StopRequest
    clock: Clock

    def enter(self, phase: str) -> None:
        """Tell readers what happens next; a job that shall stop goes no further.

        Raises:
            StopRequestedError: The job was asked to stop.
        """
        self.stop.check()
        self.log.write(PhaseEvent(phase))

    def pause(self) -> None:
        """Spend the time that the workload's Python takes after a call, if it takes any."""
        if python_ms := self.options.workload.pause_ms:
            time.sleep(python_ms / 1e3)
