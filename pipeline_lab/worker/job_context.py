"""A running job, as all of its parts see it, and the request to stop it."""

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_events import PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.note.event_log import Clock, EventLog

if TYPE_CHECKING:  # the stop request is needed where pydantic is not
    from pipeline_lab.options.run_options import RunOptions


class StopRequestedError(Exception):
    """The job was asked to stop before it trained."""


class StopRequest:
    """Records a request to stop the job."""

    def __init__(self) -> None:
        self.is_set = False

    def listen(self, handle: Callable[[int, FrameType | None], None] | None = None) -> None:
        """Let SIGTERM request the stop; call from the main thread.

        Args:
            handle: What to do instead.
        """
        signal.signal(signal.SIGTERM, handle or self._set)

    def request(self) -> None:
        """Ask the job to stop."""
        self.is_set = True

    def check(self) -> None:
        """End the preparation of a job that was asked to stop.

        Raises:
            StopRequestedError: It was.
        """
        if self.is_set:
            raise StopRequestedError

    def _set(self, _signal: int, _frame: FrameType | None) -> None:
        self.request()


def mark_running(folder: RunFolder) -> None:
    """Mark the run as running, unless it is over."""

    def running(record: RunRecord) -> RunRecord:
        status = record.status
        return replace(record, status=status.change(RunState.RUNNING)) if status.state.is_live else record

    update_record(folder, running)


@dataclass(frozen=True)
class Job:
    """A run in progress."""

    folder: RunFolder
    options: "RunOptions"
    log: EventLog
    stop: StopRequest
    clock: Clock

    def enter(self, phase: str) -> None:
        """Report the next phase, unless the job was asked to stop.

        Raises:
            StopRequestedError: The job was asked to stop.
        """
        self.stop.check()
        self.log.write(PhaseEvent(phase))

    def pause(self) -> None:
        """Spend the Python time that the workload sets between calls, if any."""
        if pause_ns := self.options.workload.pause_ns:
            time.sleep(pause_ns / NS_PER_S)
