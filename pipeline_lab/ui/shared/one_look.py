"""What all visitors of a run in progress see: made once for all of them, and looked at less often the more they are."""

import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar, cast

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.serving.visitors import open_pages

Seen = TypeVar("Seen")

REDRAW_S = 3.0
"""Charts refresh less often than progress, because what they show is read and summarized each time."""
KEPT_S = REDRAW_S / 2
"""What was made is shown to others for so long; a page that refreshes alone always finds it older."""
REST = 9
"""It is kept n times as long as it took to make; the charts of a long job take seconds."""
AT_FULL_PACE = 10
"""Pages that refresh as often as one alone; each refresh costs some ms, whatever it shows."""


def paced(every_s: float) -> float:
    """Return how often a page refreshes that would do so every n seconds if it were alone."""
    return every_s * max(1.0, open_pages() / AT_FULL_PACE)


class _Look(Generic[Seen]):
    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._fresh_until_s = float("-inf")
        self._seen: Seen

    def take(self, make: Callable[[], Seen]) -> Seen:
        with self._guard:  # who comes meanwhile waits for the same result
            begun_s = time.monotonic()
            if begun_s >= self._fresh_until_s:
                self._seen = make()
                made_s = time.monotonic()
                self._fresh_until_s = made_s + max(KEPT_S, REST * (made_s - begun_s))
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
