"""In which functions of a script its own Python runs while it trains: looked for now and then from a side thread.

A look comes when the thread gets Python's lock, sooner in TensorFlow than in Python, so that the looks tell functions apart but not
how long each one takes.
"""

import sys
import threading
from collections import Counter
from types import CodeType, FrameType

from pipeline_lab.runs.run_events import OwnPythonEvent
from pipeline_lab.worker.recipe.places import is_framework, is_users


class OwnPython:
    """Counts where the main thread is, outside of TensorFlow and Keras."""

    def __init__(self) -> None:
        self._lines: Counter[tuple[CodeType, int]] = Counter()

    def look(self) -> None:
        """Look once."""
        frame = _own_frame(sys._current_frames().get(threading.main_thread().ident or 0))
        if frame is not None:
            self._lines[frame.f_code, frame.f_lineno] += 1

    @property
    def most(self) -> OwnPythonEvent | None:
        """The function that was seen most, by the line of it that was; None where none was seen."""
        functions: Counter[CodeType] = Counter()
        for (code, _), count in self._lines.items():
            functions[code] += count
        if not functions:
            return None
        code, seen = functions.most_common(1)[0]
        line = max((each for each in self._lines if each[0] is code), key=self._lines.__getitem__)[1]
        return OwnPythonEvent(code.co_qualname, code.co_filename, line, seen, functions.total())


def _own_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's; None where that has called TensorFlow or Keras, and is not back yet."""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_framework(file):
            return None
        if is_users(file):
            return frame
        frame = frame.f_back
    return None
