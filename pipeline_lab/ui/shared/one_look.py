"""What all visitors of a run in progress see, made once for all of them and not once for each."""

import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar, cast

from pipeline_lab.runs.run_folder import RunFolder

Seen = TypeVar("Seen")

REDRAW_S = 3.0
"""Charts refresh less often than progress, because what they show is read and summarized each time."""
KEPT_S = REDRAW_S / 2
"""What was made is shown to others for so long; a page that refreshes alone always finds it older."""


class _Look(Generic[Seen]):
    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._made_s = float("-inf")
        self._seen: Seen

    def take(self, make: Callable[[], Seen]) -> Seen:
        with self._guard:  # who comes meanwhile waits for the same result
            if time.monotonic() - self._made_s >= KEPT_S:
                self._seen = make()
                self._made_s = time.monotonic()
            return self._seen


@lru_cache(maxsize=32)
def _look_at(_path: Path, _what: str) -> _Look[object]:
    return _Look()


def look(folder: RunFolder, what: str, make: Callable[[], Seen]) -> Seen:
    """Return what was made of a run a moment ago, else make it.

    Args:
        folder: The run.
        what: Names what is made of it.
        make: Makes it; it shows nothing, because others wait for it.
    """
    return cast(_Look[Seen], _look_at(folder.path, what)).take(make)
