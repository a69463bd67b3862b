"""How long tests wait: against waiting forever, and so long that no busy machine comes near it.

A test that passes waits for what happens, never for a time; so its result does not depend on the machine's load.
Where the clock of a device is part of what is claimed, :func:`unless_late` says so.
"""

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 300
"""Longest wait for one thing; ``timeout`` in pyproject.toml, for a whole test, is longer."""
TRIES = 5
"""Of what a busy machine can spoil."""


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


def unless_late(test: Callable[..., None]) -> Callable[..., None]:
    """Let a test pass that holds in one of several tries, each in a folder of its own.

    For claims that hold only if this process gets to run while a device works: a busy machine can spoil them, but no machine can
    bring them about.
    """

    @functools.wraps(test)
    def try_often(**given: Any) -> None:
        folder: Path | None = given.get("tmp_path")
        for number in range(TRIES):
            if folder is not None:
                given["tmp_path"] = folder / str(number)
                given["tmp_path"].mkdir()
            try:
                return test(**given)
            except AssertionError:
                if number == TRIES - 1:
                    raise
        return None

    return try_often
