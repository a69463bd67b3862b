"""The wish to stop: SIGTERM asks for it, the job looks for it between steps."""

import signal
from types import FrameType


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
