"""Notice that a script stands still inside one call, as it does when a batch never comes, and say where."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from pipeline_lab.units import NS_PER_S, format_duration
from pipeline_lab.worker.code_places import place_of_frame

LOOK_S = 1.0
STILL_S = 60.0
SURE_LOOKS = 5


class Standstill:
    """Looks at where the main thread stands, about once a second.

    The same instruction look after look may still be one call after the other, whose frames happen to lie at one
    address. Only then is the frame itself held for some looks, which shows that it is one call; to hold it all the time
    would keep the script's variables alive.

    Args:
        home: The folder below which code is the user's.
        tell: Takes the sentence, once for each standstill.
    """

    def __init__(self, home: Path, tell: Callable[[str], None]) -> None:
        self._home, self._tell = home, tell
        self._due_s = self._since_s = 0.0
        self._place: tuple[int, int] | None = None
        self._held: FrameType | None = None
        self._looks, self._is_told = 0, False

    def look(self, now_s: float) -> None:
        """Look, if it is time to; ``now_s`` comes from a clock that only goes forward."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + LOOK_S
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        place = None if frame is None else (id(frame), frame.f_lasti)
        if place != self._place or (self._held is not None and frame is not self._held):
            self._place, self._since_s, self._held, self._looks, self._is_told = place, now_s, None, 0, False
        elif not self._is_told and now_s - self._since_s >= STILL_S:
            self._held, self._looks = frame, self._looks + 1
            if self._looks > SURE_LOOKS:
                self._say(now_s)

    def _say(self, now_s: float) -> None:
        self._is_told = True
        place, self._held = place_of_frame(self._held, self._home), None
        if place:
            length = format_duration((now_s - self._since_s) * NS_PER_S)
            self._tell(
                f"Python has stood at {place} for {length}, inside one call; if a batch is asked for there, none came."
            )
