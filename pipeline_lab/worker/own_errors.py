"""What can go wrong in the user's own code, told in one sentence with file and line."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from pipeline_lab.errors import OwnCodeError, PipelineLabError
from pipeline_lab.units import NS_PER_S, format_duration
from pipeline_lab.worker.code_places import explain, place_of_frame
from pipeline_lab.worker.failures import is_disk_full
from pipeline_lab.worker.stopping import StopRequestedError

SUBJECT = "Your code"
Tell = Callable[[OwnCodeError], None]


@contextlib.contextmanager
def errors_told(home: Path) -> Iterator[None]:
    """Turn whatever the block raises into a sentence that names the user's file and line.

    Args:
        home: The folder below which code is the user's.
    """
    try:
        yield
    except (PipelineLabError, StopRequestedError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if is_disk_full(error) or type(error).__name__ == "ResourceExhaustedError":
            raise
        raise OwnCodeError(explain(error, home, SUBJECT)) from error


@contextlib.contextmanager
def hard_exits_told(tell: Tell) -> Iterator[None]:
    """Keep ``os._exit`` from ending the job without a word, while the block runs.

    On the main thread it raises, so that everything recorded is written. On another thread it tells why and leaves.
    Processes that the user's code forks leave as they always did.
    """
    leave: Callable[[int], NoReturn] = os._exit
    process = os.getpid()

    def leave_in_order(status: int) -> NoReturn:
        if os.getpid() != process:
            leave(status)
        frame = sys._getframe(1)
        place = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        error = OwnCodeError(f"{SUBJECT} left by os._exit({status}) at {place}.")
        if threading.current_thread() is threading.main_thread():
            raise error
        tell(error)
        leave(status or 1)

    os._exit = leave_in_order
    try:
        yield
    finally:
        os._exit = leave  # type: ignore[assignment]  # what it was before


class FirstBatch:
    """Ends a job whose first batch does not come, and says where its code stands.

    Args:
        limit_s: From building the dataset to its first batch; None waits for ever.
        home: The folder below which code is the user's.
        tell: Leaves the sentence in the run.
    """

    def __init__(self, limit_s: float | None, home: Path, tell: Tell) -> None:
        self._limit_s, self._home, self._tell = limit_s, home, tell
        self._came = threading.Event()
        self._is_expected = False

    def expect(self, maker: str) -> None:
        """Start to wait; a second call does nothing.

        Args:
            maker: Where the dataset is made, as " (file, line n)".
        """
        if not self._is_expected and self._limit_s is not None:
            self._is_expected = True
            leave: Callable[[int], NoReturn] = os._exit
            threading.Thread(
                target=self._wait, args=(maker, self._limit_s, leave), name="first batch", daemon=True
            ).start()

    def came(self) -> None:
        self._came.set()

    def _wait(self, maker: str, limit_s: float, leave: Callable[[int], NoReturn]) -> None:
        if self._came.wait(limit_s):
            return
        limit = format_duration(limit_s * NS_PER_S)
        place = self._place()
        where = f"Python stands at {place}" if place else f"no Python code of yours runs; look into make_dataset{maker}"
        self._tell(
            OwnCodeError(f"No batch came within {limit}: {where}. Raise workload.first_batch_s if it takes long.")
        )
        leave(1)

    def _place(self) -> str:
        """Say where the user's code stands; threads of the pipeline come before the one that waits for them."""
        main = threading.main_thread().ident
        frames = sorted(sys._current_frames().items(), key=lambda item: item[0] == main)
        places = (place_of_frame(frame, self._home) for _, frame in frames)
        return next(filter(None, places), "")
