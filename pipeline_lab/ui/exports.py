"""Reports as downloads: the bytes that ``pipeline-lab report`` writes, by a link that names runs and a format.

Nothing here changes anything. The handler is no coroutine, so Starlette runs it, and what it imports, in a thread.
"""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline_lab.errors import OptionsError, PipelineLabError, StoreError
from pipeline_lab.runs.store import open_store

PREFIX = "/api/lab/reports"


def report_url(run_ids: list[str], format_name: str) -> str:
    """Return the link to the report of one run or race, or of runs with the baseline first."""
    return f"{PREFIX}/{format_name}?runs={quote(','.join(run_ids))}"


def send_report(request: Request) -> Response:
    """Hand out a report; a format of several files travels as a zip."""
    from pipeline_lab.report.formats import find_format
    from pipeline_lab.report.renderers.format import pack
    from pipeline_lab.ui import subjects

    try:
        report_format = find_format(request.path_params["format"][:80])
        store = open_store()
        report = subjects.open_report(store, subjects.folders_of(store, request.query_params.get("runs", "")))
        files = report_format.files(report)
    except PipelineLabError as error:
        status = 404 if isinstance(error, OptionsError | StoreError) else 409
        return JSONResponse({"error": str(error)}, status_code=status)
    name, media_type = report_format.file_name(report), report_format.media_type
    if len(files) == 1 and not report_format.is_archive:
        return _download(next(iter(files.values())), name, media_type)
    return _download(pack(files), name.removesuffix(".zip") + ".zip", "application/zip")


def _download(content: bytes, name: str, media_type: str) -> Response:
    """Answer with a file to save: a report never opens as a page of this app."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Encoding": "identity",
        "Cache-Control": "no-store",
    }
    return Response(content, headers=headers, media_type=media_type)


ROUTES = [Route(f"{PREFIX}/{{format}}", send_report)]
