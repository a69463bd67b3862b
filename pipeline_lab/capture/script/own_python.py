"""In which functions of a script its own Python runs while it trains: looked for now and then from a side thread.

A look comes when the thread gets Python's lock, sooner in TensorFlow than in Python, so that the looks tell functions apart but not
how long each one takes.
"""

import os
import sys
import threading
from collections import Counter
from types import CodeType, FrameType

from pipeline_lab.runs.run_events import OwnPythonEvent
from pipeline_lab.worker.recipe.places import is_framework, is_users

_OF_KERAS = tuple(f"{os.sep}{name}{os.sep}" for name in ("keras", "tf_keras"))


class OwnPython:
    """Counts where the main thread is, outside of TensorFlow."""

    def __init__(self) -> None:
        self._lines: Counter[tuple[CodeType, int]] = Counter()
        self._of_keras = 0

    def look(self) -> None:
        """Look once."""
        frame = _first_told(sys._current_frames().get(threading.main_thread().ident or 0))
        if frame is None:
            return
        if is_users(frame.f_code.co_filename):
            self._lines[frame.f_code, frame.f_lineno] += 1
        elif any(part in frame.f_code.co_filename for part in _OF_KERAS):  # TensorFlow computes, or launches ops
            self._of_keras += 1

    @property
    def most(self) -> OwnPythonEvent | None:
        """The function of the script that was seen most, by the line of it that was; None where none was seen."""
        functions: Counter[CodeType] = Counter()
        for (code, _), count in self._lines.items():
            functions[code] += count
        if not functions:
            return None
        code, seen = functions.most_common(1)[0]
        line = max((each for each in self._lines if each[0] is code), key=self._lines.__getitem__)[1]
        return OwnPythonEvent(code.co_qualname, code.co_filename, line, seen, functions.total() + self._of_keras)


def _first_told(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's, or of TensorFlow or Keras where one of the user's has called them."""
    while frame is not None and not is_users(frame.f_code.co_filename) and not is_framework(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
