"""Stay with a run or a race to its end, and hand a request to stop on to it."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from pipeline_lab.cli.output import messages

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.store import RunFolder


@dataclass
class StopRequests:
    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:  # the run ends without us
            raise KeyboardInterrupt


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequests]:
    """Count Ctrl-C and its like instead of dying from it: the run is told to stop, and we stay to its end."""
    requests = StopRequests()
    before = {number: signal.signal(number, requests.add) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow_run(folder: "RunFolder", requests: StopRequests) -> "RunRecord":
    """Show a run's progress to its end; the first request to stop cancels it."""
    from pipeline_lab.cli.progress import RunProgress
    from pipeline_lab.runs.launch.launcher import cancel, follow

    told = False
    with RunProgress(messages()) as progress:
        progress.note(f"Run {folder.id}")
        for update in follow(folder):
            progress.show(update)
            if requests.count and not told:
                cancel(folder)
                progress.note("Cancelling; what was recorded is kept.")
                told = True
    return update.record
