"""What the app serves besides its pages: its version, a run's files, reports, and uploads of logs.

Streamlit checks neither origin nor token on custom routes. The routes in this file change nothing, and build paths only
from a run id that the store accepts and a name from a fixed list; uploads do their own checks.
"""

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import RUN_TABLES
from pipeline_lab.runs.store import open_store
from pipeline_lab.ui.serving import uploads
from pipeline_lab.ui.shared import reports
from pipeline_lab.ui.timeline import timeline_routes as timeline
from pipeline_lab.version import __version__

PREFIX = "/api/lab"
DRAWING_LIBRARY = f"{PREFIX}/plotly.js"

FILES: dict[str, Callable[[RunFolder], Path]] = {
    "run.json": lambda folder: folder.record,
    "pipeline.py": lambda folder: folder.source,
    "events.jsonl": lambda folder: folder.events,
    "files.json": lambda folder: folder.files,
    "recipe.json": lambda folder: folder.recipe,
    **{table.file_name: table.path for table in RUN_TABLES},
    "history.jsonl": lambda folder: folder.history,
    "trials.jsonl": lambda folder: folder.trials,
    "worker.log": lambda folder: folder.log,
}
"""Files of a run that can be downloaded, by the name in the link."""

_WINDOW_NAME = re.compile(r"[A-Za-z0-9_@+=-][A-Za-z0-9._@+=-]{0,199}")


def health(_: Request) -> Response:
    """Answer that the server is up, and which version it is."""
    return JSONResponse({"status": "ok", "version": __version__})


def drawing_library(_: Request) -> Response:
    """Serve the charting library, the same as in reports."""
    from pipeline_lab.report.renderers.html import PLOTLY  # slow imports

    headers = {"Content-Encoding": "identity", "Cache-Control": "max-age=86400"}
    return FileResponse(str(files("pipeline_lab.report") / PLOTLY), media_type="text/javascript", headers=headers)


def run_file(request: Request) -> Response:
    """Serve one of a run's own files."""
    name = request.path_params["name"]
    if name not in FILES:
        return _not_found(f"There is no file {name[:80]!r}; there are {', '.join(FILES)}.")
    return _answer(request, FILES[name])


def window_file(request: Request) -> Response:
    """Serve a file of one profile window, such as ``host.xplane.pb``."""
    window, name = request.path_params["window"], request.path_params["name"]
    if not _WINDOW_NAME.fullmatch(window) or not _WINDOW_NAME.fullmatch(name):
        return _not_found("That is not the name of a window's file.")
    return _answer(request, lambda folder: folder.window(window) / name)


def opened_file(request: Request) -> Response:
    """Serve a file of the log that a run was opened from."""
    parts = request.path_params["name"].split("/")
    if not all(map(_WINDOW_NAME.fullmatch, parts)):
        return _not_found("That is not the name of a log's file.")
    return _answer(request, lambda folder: folder.opened.joinpath(*parts))


def file_url(run_id: str, name: str) -> str:
    """Return the link to one of a run's own files."""
    return f"{PREFIX}/runs/{run_id}/files/{name}"


def window_url(run_id: str, window: str, name: str) -> str:
    """Return the link to a file of a profile window."""
    return f"{PREFIX}/runs/{run_id}/windows/{window}/{name}"


def opened_url(run_id: str, name: str) -> str:
    """Return the link to a file of the log that a run was opened from."""
    return f"{PREFIX}/runs/{run_id}/opened/{name}"


def _answer(request: Request, locate: Callable[[RunFolder], Path]) -> Response:
    try:
        folder = open_store().folder(request.path_params["run_id"])
    except StoreError as error:
        return _not_found(str(error))
    path = locate(folder)
    if not _lies_inside(path, folder):
        return _not_found(f"The run has no {path.name}.")
    # "identity" disables Streamlit's compression, which is ten times slower than the disk.
    headers = {"Content-Encoding": "identity", "Cache-Control": "no-store"}
    filename = f"{folder.id}.{path.name}"
    return FileResponse(path, headers=headers, filename=filename, media_type="application/octet-stream")


def _lies_inside(path: Path, folder: RunFolder) -> bool:
    """Say whether the file exists inside the run's folder, links resolved."""
    return path.is_file() and path.resolve().is_relative_to(folder.path.resolve())


def _not_found(sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=404)


ROUTES = [
    Route(f"{PREFIX}/health", health),
    Route(f"{PREFIX}/runs/{{run_id}}/files/{{name}}", run_file),
    Route(f"{PREFIX}/runs/{{run_id}}/windows/{{window}}/{{name}}", window_file),
    Route(f"{PREFIX}/runs/{{run_id}}/opened/{{name:path}}", opened_file),
    *reports.ROUTES,
    Route(DRAWING_LIBRARY, drawing_library),
    *timeline.ROUTES,
    *uploads.ROUTES,
]
