"""What the timeline's canvas asks for: views, single events, names. The index is mapped; no trace is read here."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.timeline.index import Index, open_index
from pipeline_lab.analysis.timeline.look import at, neighbour, next_named, pick, search
from pipeline_lab.analysis.timeline.view import MAX_PIXELS, MAX_ROWS, View, cut
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.runs.store import RunFolder, open_store
from pipeline_lab.ui.timeline.explain import explain
from pipeline_lab.units import format_count, format_duration

URL = "/api/lab/runs/{run_id}/timeline/{name}"
MAX_FOUND = 12
_NAME = re.compile(r"timeline-[0-9a-f]{32}")
_PLACE = re.compile(r"(\d{1,6})\.(\d{1,3})")
_LIMIT_NS = 2**62


def url_of(run_id: str, name: str) -> str:
    """Return where the timeline of a run answers; ``name`` is that of its index."""
    return URL.format(run_id=run_id, name=name)


def _view(index: Index, _: Diagnosis | None, query: QueryParams) -> Any:
    """Cut a view out: ``start``, ``end`` (ns), ``px``, ``rows`` as ``lane.layer,…``, ``marked`` as name numbers."""
    rows = tuple(_place(part) for part in _parts(query, "rows"))
    if len(rows) > MAX_ROWS:
        raise OptionsError(f"At most {MAX_ROWS} rows fit a view; got {len(rows)}.")
    start, end = _time(query, "start"), _time(query, "end")
    if end <= start:
        raise OptionsError("The end of a view lies after its start.")
    marked = _names(index, query, "marked")
    return cut(index, View(start, end, _int(query, "px", 1, MAX_PIXELS), rows, tuple(marked)))


def _event(index: Index, diagnosis: Diagnosis | None, query: QueryParams) -> Any:
    """Explain the event that ``pick`` names, or the longest at ``place`` within ``tolerance`` of ``time`` (ns)."""
    if "pick" in query:
        found = pick(index, query["pick"])
    else:
        found = at(index, _place(query.get("place", "")), _time(query, "time"), _int(query, "tolerance", 0, _LIMIT_NS))
    return explain(index, diagnosis, found) if found else None


def _next(index: Index, diagnosis: Diagnosis | None, query: QueryParams) -> Any:
    """Explain the next event after ``time`` in the row ``place``, or of the names ``marked`` anywhere."""
    time, backwards = _time(query, "time"), query.get("back") == "1"
    if "place" in query:
        found = neighbour(index, _place(query["place"]), time, backwards=backwards)
    else:
        found = next_named(index, _names(index, query, "marked"), time, backwards=backwards)
    return explain(index, diagnosis, found) if found else None


def _search(index: Index, _: Diagnosis | None, query: QueryParams) -> Any:
    """Find names that hold all ``words``."""
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


def _answer(ask: Callable[[Index, Diagnosis | None, QueryParams], Any]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            index, diagnosis = _open(request.path_params["run_id"], request.path_params["name"])
            content = ask(index, diagnosis, request.query_params)
        except OptionsError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except (StoreError, OSError, ValueError, KeyError) as error:
            sentence = str(error) if isinstance(error, StoreError) else "The timeline is gone; reload the page."
            return JSONResponse({"error": sentence}, status_code=404)
        # "identity" keeps Streamlit's compression away, which takes longer than a view.
        return JSONResponse(content, headers={"Content-Encoding": "identity", "Cache-Control": "no-store"})

    return answer


def open_timeline(folder: RunFolder, name: str) -> Index:
    """Map the timeline's index of that name; the routes will use the same."""
    return _mapped(folder.path, name)[0]


def _open(run_id: str, name: str) -> tuple[Index, Diagnosis | None]:
    if not _NAME.fullmatch(name):
        raise KeyError(name)
    return _mapped(open_store().folder(run_id).path, name)


@lru_cache(maxsize=6)
def _mapped(path: Path, name: str) -> tuple[Index, Diagnosis | None]:
    from pipeline_lab.analysis.saved import SavedDiagnosis

    place = SavedDiagnosis(path)
    folder = place.find_timeline(name)
    if folder is None:
        raise KeyError(name)
    return open_index(folder), place.load_latest()


def _parts(query: QueryParams, key: str) -> list[str]:
    return [part for part in query.get(key, "").split(",") if part]


def _place(text: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise OptionsError(f"{text[:40]!r} is no row; write LANE.LAYER.")
    return int(match[1]), int(match[2])


def _names(index: Index, query: QueryParams, key: str) -> list[int]:
    numbers = [int(part) for part in _parts(query, key) if part.isdecimal()]
    return [number for number in numbers if number < len(index.names)]


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


ROUTES = [
    Route(f"{URL}/{name}", _answer(ask))
    for name, ask in (("view", _view), ("event", _event), ("next", _next), ("search", _search))
]
