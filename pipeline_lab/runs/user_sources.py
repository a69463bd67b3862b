"""The user's source around a call, from the copies that a run keeps."""

import contextlib
from pathlib import PurePath

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.pipeline.recipe import read_recipe
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.runs.run_folder import RunFolder

AROUND = 5
"""Lines shown before and after the marked ones."""
MAX_MARKED = 30
MARK = "▶"


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file of the user's.

    Attributes:
        title: ``train.py, line 41: .map(load)``.
        text: The lines with their numbers, those that are meant with a mark.
    """

    title: str
    text: str


def excerpts(folder: RunFolder, calls: tuple[WrittenCall, ...]) -> tuple[Excerpt, ...]:
    """Return the source of each call and of the Python that it runs; none where the run keeps no copy."""
    found: dict[tuple[str, int], Excerpt | None] = {}
    for call in calls:
        if call.place is not None:
            place = call.place
            title = f"{PurePath(place.file).name}, line {place.name_line}: {call.text}"
            found[place.file, place.name_line] = _excerpt(folder, place.file, place.name_line, place.end_line, title)
        for part in call.python:
            function = part.function
            title = f"{PurePath(function.file).name}, line {function.line}: {function.short_name}, run by {part.kind}"
            found.setdefault(
                (function.file, function.line), _excerpt(folder, function.file, function.line, function.end_line, title)
            )
    return tuple(each for each in found.values() if each is not None)


def _excerpt(folder: RunFolder, file: str, first: int, last: int, title: str) -> Excerpt | None:
    lines = _lines(folder, file)
    if not 1 <= first <= len(lines):
        return None
    last = min(max(first, last), first + MAX_MARKED)
    shown = range(max(1, first - AROUND), min(len(lines), last + AROUND) + 1)
    width = len(str(shown[-1]))
    text = "\n".join(
        f"{MARK if first <= number <= last else ' '} {number:{width}}  {lines[number - 1]}".rstrip() for number in shown
    )
    return Excerpt(title, text)


def kept_files(folder: RunFolder) -> dict[str, str]:
    """Return the user's files of which the run keeps a copy: path and text."""
    found = {}
    for path, name in _names(folder).items():
        with contextlib.suppress(OSError):
            found[path] = (folder.sources / PurePath(name).name).read_text(encoding="utf-8", errors="replace")
    return found


def _lines(folder: RunFolder, file: str) -> list[str]:
    return kept_files(folder).get(file, "").splitlines()


def _names(folder: RunFolder) -> dict[str, str]:
    try:
        recipe = read_recipe(folder.recipe)
    except StoreError:
        return {}
    return {} if recipe is None else recipe.files
