"""What every part of a running job needs to know."""

from dataclasses import dataclass

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.events import PhaseEvent
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.event_log import EventLog
from pipeline_lab.worker.stopping import StopRequest


@dataclass(frozen=True)
class Job:
    """One run, while it is being made."""

    folder: RunFolder
    options: RunOptions
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
