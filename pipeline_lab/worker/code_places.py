"""Where in somebody else's code an error arose, and what it says, for one sentence about it."""

import os
import re
from pathlib import Path
from types import FrameType, TracebackType

_OWN = (f"{Path(__file__).resolve().parents[1]}{os.sep}", "<frozen ")
_UNSAID: dict[type[BaseException], str] = {StopIteration: "the data had ended"}
"""What errors mean that say nothing."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
"""A line of a traceback; TensorFlow quotes that of a Python function of a pipeline in its own message."""


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback from its first frame that is neither ours nor the import machinery's."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_OWN):
        traceback = traceback.tb_next
    return traceback


def explain(error: BaseException, home: Path, subject: str) -> str:
    """Say in one sentence what ended somebody's code, with file and line where they lie below ``home``."""
    place, words = name_place(error, home), describe(error)
    return f"{subject} stopped at {place} with {words}." if place else f"{subject} stopped with {words}."


def describe(error: BaseException) -> str:
    """Name an error and its first telling line."""
    said = gist(error)
    if _FRAME.search(text_of(error)):  # TensorFlow's error quotes that of a Python function, name and all
        return said
    said = said or _UNSAID.get(type(error), "")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def gist(error: BaseException) -> str:
    """Return the first line that says something, without TensorFlow's node names; empty if none does."""
    lines = [re.sub(r"\{\{.*?\}\}", "", line).strip() for line in text_of(error).splitlines()]
    telling = [line for line in lines if line and line != "Graph execution error:"]
    return telling[0][:300].rstrip(".") if telling else ""


def text_of(error: BaseException) -> str:
    """Return what an error says; TensorFlow's words about a binary record can themselves fail to decode."""
    return error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)


def name_place(error: BaseException, home: Path) -> str:
    """Say where in the user's code an error arose: the innermost line of a file below a folder, or nothing."""
    if isinstance(error, SyntaxError) and error.filename and (name := below(error.filename, home)):
        return f"{name}, line {error.lineno}"
    place, traceback = "", user_frames(error.__traceback__)
    for file, line in _FRAME.findall(text_of(error)):
        if name := below(file, home):
            place = f"{name}, line {line}"
    if place:
        return place
    while traceback is not None:
        if name := below(traceback.tb_frame.f_code.co_filename, home):
            place = f"{name}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def place_of_frame(frame: FrameType | None, home: Path) -> str:
    """Say where in the user's code a thread stands; nothing if it is not there."""
    while frame is not None:
        if name := below(frame.f_code.co_filename, home):
            return f"{name}, line {frame.f_lineno}"
        frame = frame.f_back
    return ""


def below(path: str, home: Path) -> str:
    """Return a path as seen from a folder; empty where it lies elsewhere, or among packages installed below it.

    What stands in angle brackets, such as ``<frozen runpy>``, is the name of no file.
    """
    if path.startswith("<"):
        return ""
    found = Path(path).resolve()
    if not found.is_relative_to(home) or str(found).startswith(_OWN):
        return ""
    inside = found.relative_to(home)
    return "" if "site-packages" in inside.parts else str(inside)
