"""How long tests wait: against waiting forever, and so long that no busy machine comes near it.

A test that passes waits for what happens, never for a time; so its result does not depend on the machine's load.
"""

import time
from collections.abc import Callable

PATIENCE_S = 300
"""Longest wait for one thing; ``timeout`` in pyproject.toml, for a whole test, is longer."""


def until(claim: Callable[[], object], what: str, look: Callable[[], object] = lambda: time.sleep(0.02)) -> None:
    """Wait until a claim holds; fail with its words if it never does.

    Args:
        claim: Looks.
        what: What it claims.
        look: Lets time pass between two looks.
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        look()
