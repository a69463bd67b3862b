"""Errors in the user's code, explained in one sentence with file and line."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from pipeline_lab.errors import PipelineLabError, UserCodeError
from pipeline_lab.units import NS_PER_S, format_duration
from pipeline_lab.worker.job import StopRequestedError
from pipeline_lab.worker.note.failures import explain_user_error, is_disk_full, name_place, place_of_frame

SUBJECT = "Your code"
Tell = Callable[[UserCodeError], None]


_leave: Callable[[int], NoReturn] = os._exit
"""The original function, which is replaced while the user's code runs."""


@contextlib.contextmanager
def explaining_errors(home: Path, maker: str = "") -> Iterator[None]:
    """Turn the errors of the block into a sentence that names the user's file and line.

    Args:
        home: The folder below which code is the user's.
        maker: What to check where a TensorFlow operation fails, which has no line of Python.
    """
    try:
        yield
    except (PipelineLabError, StopRequestedError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if is_disk_full(error) or type(error).__name__ == "ResourceExhaustedError":
            raise
        told = explain_user_error(error, home, SUBJECT)
        if maker and not name_place(error, home):
            told = f"{told.rstrip('.')}; check {maker} and the step."
        raise UserCodeError(told) from error


@contextlib.contextmanager
def explaining_hard_exits(stop: Callable[[], None]) -> Iterator[None]:
    """Keep ``os._exit`` from ending the job without an explanation, while the block runs.

    It raises instead, so that everything recorded is written and the job fails with a sentence that names the line.
    Forked processes exit as usual.

    Args:
        stop: Asks the job to end, for a call on another thread.
    """
    process = os.getpid()
    left: list[UserCodeError] = []

    def leave_in_order(status: int) -> NoReturn:
        if os.getpid() != process:
            _leave(status)
        frame = sys._getframe(1)
        place = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        left.append(UserCodeError(f"{SUBJECT} called os._exit({status}) at {place}."))
        stop()
        raise left[0]

    before, os._exit = os._exit, leave_in_order
    try:
        yield
    except BaseException:
        if left:
            raise left[0] from None
        raise
    finally:
        os._exit = before
    if left:
        raise left[0]


class FirstBatch:
    """Ends a job whose first batch does not arrive, and says where its code is.

    Args:
        limit_s: From building the dataset, or the end of a rest, to its first batch; None for no limit.
        home: The folder below which code is the user's.
        tell: Writes the sentence into the run.
    """

    def __init__(self, limit_s: float | None, home: Path, tell: Tell) -> None:
        self._limit_s, self._home, self._tell = limit_s, home, tell
        self._came = threading.Event()
        self._is_expected = False

    def expect(self, maker: str) -> None:
        """Start to wait; a second call does nothing, except after a rest.

        Args:
            maker: The function that makes the dataset, with file and line.
        """
        if not self._is_expected and self._limit_s is not None:
            self._is_expected = True
            waiting = (maker, self._limit_s, self._came)
            threading.Thread(target=self._wait, args=waiting, name="first batch", daemon=True).start()

    def came(self) -> None:
        self._came.set()

    def rest(self) -> None:
        """Stop waiting until the next :meth:`expect`: other arms of a race take their first batches."""
        self._came.set()
        self._came = threading.Event()
        self._is_expected = False

    def _wait(self, maker: str, limit_s: float, came: threading.Event) -> None:
        if came.wait(limit_s):
            return
        limit = format_duration(limit_s * NS_PER_S)
        place = self._place()
        where = f"Python is at {place}" if place else f"none of your Python code runs; check {maker}"
        self._tell(
            UserCodeError(f"No batch arrived within {limit}: {where}. Raise workload.first_batch_s if it needs longer.")
        )
        _leave(1)

    def _place(self) -> str:
        """Return where the user's code is; threads of the pipeline come before the one that waits for them."""
        main = threading.main_thread().ident
        frames = sorted(sys._current_frames().items(), key=lambda item: item[0] == main)
        places = (place_of_frame(frame, self._home) for _, frame in frames)
        return next(filter(None, places), "")
