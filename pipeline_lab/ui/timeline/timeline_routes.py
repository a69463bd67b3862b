"""What the timeline's canvas asks for: views, single events, names. The index is mapped; no trace is read here."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.runs.store import open_store

URL = "/api/lab/runs/{run_id}/timeline/{name}"
GONE = "The timeline no longer exists; reload the page."


def url_of(run_id: str, name: str) -> str:
    """Return where the timeline of a run answers; ``name`` is that of its index."""
    return URL.format(run_id=run_id, name=name)


def ask(request: Request) -> Response:
    """Answer one question of the canvas."""
    from pipeline_lab.ui.timeline.answers import answer  # slow imports

    asked = request.path_params
    try:
        folder = open_store().folder(asked["run_id"])
        content = answer(asked["question"], folder, asked["name"], request.query_params)
    except OptionsError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    except StoreError as error:
        return JSONResponse({"error": str(error)}, status_code=404)
    except (OSError, ValueError, LookupError):
        return JSONResponse({"error": GONE}, status_code=404)
    # "identity" disables Streamlit's compression, which takes longer than a view.
    return JSONResponse(content, headers={"Content-Encoding": "identity", "Cache-Control": "no-store"})


ROUTES = [Route(f"{URL}/{{question}}", ask)]
