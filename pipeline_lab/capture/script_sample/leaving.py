"""Leave a script that has come to the place it was run for, in whichever of its threads."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

_LEAVE = signal.SIGUSR1


class Reached(BaseException):
    """The script has come to the place, and what was asked for is known."""


def leave_script() -> NoReturn:
    """Leave the thread that has come to the place, and the main thread, which may be waiting for it.

    Raises:
        Reached: Always.
    """
    main = threading.main_thread()
    if threading.current_thread() is not main and main.ident is not None:
        signal.pthread_kill(main.ident, _LEAVE)
    raise Reached


@contextlib.contextmanager
def until_reached() -> Iterator[None]:
    """Run a script in the main thread until any thread leaves it."""

    def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(_LEAVE, signal.SIG_IGN)  # other threads come to the place, too
        raise Reached

    signal.signal(_LEAVE, leave)
    try:
        yield
    except Reached:
        pass
    finally:
        signal.signal(_LEAVE, signal.SIG_IGN)
