"""Ctrl-C that comes while an object is given up: Python drops it there, so it comes once more, a moment later.

An object without a ``__del__`` written in Python takes no interrupt: what arrives while C++ tears it down is raised in the script right
after. One that is given a ``__del__``, to time that, would take it and lose it.
"""

import _thread
import sys
import threading
from collections.abc import Callable
from typing import Any

AGAIN_S = 0.01


def keep_interrupts(given_up: Callable[[Any], None]) -> None:
    """Let an interrupt that is raised inside a ``__del__`` be raised in the script instead.

    Args:
        given_up: The ``__del__``.
    """
    report = sys.unraisablehook

    def hand_on(dropped: "sys.UnraisableHookArgs") -> None:
        if dropped.object is given_up and isinstance(dropped.exc_value, KeyboardInterrupt):
            again = threading.Timer(AGAIN_S, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            report(dropped)

    sys.unraisablehook = hand_on
