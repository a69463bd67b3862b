"""The command line: parse, call the library, print.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed (one sentence, no
traceback), 2 wrong usage.
"""

import gc
import signal
import sys
from pathlib import Path
from types import FrameType

from pipeline_lab.collecting import collect_rarely


def main() -> None:
    """Run the command line; an interrupt ends it without a traceback, whenever it comes."""
    collect_rarely()
    interrupts = _note_interrupts()
    try:
        if sys.argv[1:] in (["--help"], ["-h"]):
            from pipeline_lab.cli.front_page import print_front_page

            print_front_page(_program())
            return
        from pipeline_lab.cli.application import build_app

        build_app(sys.argv[1:])()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception:
        if not interrupts:
            raise
        sys.exit(INTERRUPTED)  # a compiled module that was being imported makes another error of it
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would only show where the process was leaving
        gc.freeze()  # Python looks for cycles as it leaves, which takes 0.1 s, and the process is over then


def _note_interrupts() -> list[int]:
    """Return a list that holds each interrupt as it comes; where interrupts are ignored they stay so."""
    found: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        found.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    return found


def _program() -> str:
    """Return how this was called."""
    name = Path(sys.argv[0]).name
    return "python -m pipeline_lab" if name == "__main__.py" else name


INTERRUPTED = 130
