"""The answers to what the timeline's canvas asks; loaded with the first question because its imports are slow."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.timeline.index import Index, open_index
from pipeline_lab.analysis.timeline.look import at, neighbor, next_named, pick, search
from pipeline_lab.analysis.timeline.shown_axis import TO_SCALE, collapse_unrecorded
from pipeline_lab.analysis.timeline.view import MAX_PIXELS, MAX_ROWS, View, cut
from pipeline_lab.errors import OptionsError
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.timeline.explain import explain_event, explain_range
from pipeline_lab.units import format_count, format_duration

MAX_FOUND = 12
_NAME = re.compile(r"timeline-[0-9a-f]{32}")
_PLACE = re.compile(r"(\d{1,6})\.(\d{1,3})")
_LIMIT_NS = 2**62


def answer(question: str, folder: RunFolder, name: str, query: QueryParams) -> Any:
    """Answer ``view``, ``event``, ``next``, ``range`` or ``search`` with plain values.

    Raises:
        OptionsError: The query makes no sense.
        LookupError, OSError, ValueError: There is no such index, or it is damaged.
    """
    if not _NAME.fullmatch(name):
        raise LookupError(name)
    return _QUESTIONS[question](*_mapped(folder.path, name), query)


def open_timeline(folder: RunFolder, name: str) -> Index:
    """Map the timeline's index of that name; the answers will use the same."""
    return _mapped(folder.path, name)[0]


def _view(index: Index, _: Diagnosis | None, query: QueryParams) -> Any:
    """Cut a view out: ``start``, ``end`` (ns), ``px``, ``rows`` as ``lane.layer,…``, ``marked`` as name numbers.

    With ``collapse=1`` time that was not recorded takes hardly any room.
    """
    rows = tuple(_place(part) for part in _parts(query, "rows"))
    if len(rows) > MAX_ROWS:
        raise OptionsError(f"At most {MAX_ROWS} rows fit a view; got {len(rows)}.")
    start, end = _span(query)
    marked = _names(index, query, "marked")
    axis = collapse_unrecorded(index) if query.get("collapse") == "1" else TO_SCALE
    return cut(index, View(start, end, _int(query, "px", 1, MAX_PIXELS), rows, tuple(marked), axis))


def _range(index: Index, diagnosis: Diagnosis | None, query: QueryParams) -> Any:
    """Say what the time from ``start`` to ``end`` (ns) went into."""
    return explain_range(index, diagnosis, _span(query))


def _event(index: Index, diagnosis: Diagnosis | None, query: QueryParams) -> Any:
    """Explain the event that ``pick`` names, or the longest at ``place`` within ``tolerance`` of ``time`` (ns)."""
    if "pick" in query:
        found = pick(index, query["pick"])
    else:
        found = at(index, _place(query.get("place", "")), _time(query, "time"), _int(query, "tolerance", 0, _LIMIT_NS))
    return explain_event(index, diagnosis, found) if found else None


def _next(index: Index, diagnosis: Diagnosis | None, query: QueryParams) -> Any:
    """Explain the next event after ``time`` in the row ``place``, or of the names ``marked`` anywhere."""
    time, backwards = _time(query, "time"), query.get("back") == "1"
    if "place" in query:
        found = neighbor(index, _place(query["place"]), time, backwards=backwards)
    else:
        found = next_named(index, _names(index, query, "marked"), time, backwards=backwards)
    return explain_event(index, diagnosis, found) if found else None


def _search(index: Index, _: Diagnosis | None, query: QueryParams) -> Any:
    """Find names that contain all ``words``."""
    names = search(index, query.get("words", "")[:200])
    shown = [
        {
            "number": number,
            "label": index.labels[number],
            "text": f"{format_count(index.counts[number])} ×, {format_duration(index.totals_ns[number])}",
        }
        for number in names[:MAX_FOUND]
    ]
    return {"names": names, "shown": shown, "events": sum(index.counts[number] for number in names)}


@lru_cache(maxsize=6)
def _mapped(path: Path, name: str) -> tuple[Index, Diagnosis | None]:
    place = SavedDiagnosis(path)
    folder = place.find_timeline(name)
    if folder is None:
        raise LookupError(name)
    return open_index(folder), place.load_latest()


def _parts(query: QueryParams, key: str) -> list[str]:
    return [part for part in query.get(key, "").split(",") if part]


def _place(text: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise OptionsError(f"{text[:40]!r} is not a row; use LANE.LAYER.")
    return int(match[1]), int(match[2])


def _names(index: Index, query: QueryParams, key: str) -> list[int]:
    numbers = [int(part) for part in _parts(query, key) if part.isdecimal()]
    return [number for number in numbers if number < len(index.names)]


def _span(query: QueryParams) -> tuple[int, int]:
    start, end = _time(query, "start"), _time(query, "end")
    if end <= start:
        raise OptionsError("The end of a view must be after its start.")
    return start, end


def _time(query: QueryParams, key: str) -> int:
    return _int(query, key, -_LIMIT_NS, _LIMIT_NS)


def _int(query: QueryParams, key: str, low: int, high: int) -> int:
    try:
        number = int(query.get(key, ""))
    except ValueError:
        raise OptionsError(f"{key} must be a whole number, not {query.get(key, '')[:40]!r}.") from None
    if not low <= number <= high:
        raise OptionsError(f"{key} must lie between {low} and {high}; got {number}.")
    return number


_QUESTIONS = {"view": _view, "event": _event, "next": _next, "range": _range, "search": _search}
