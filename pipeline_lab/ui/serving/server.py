"""The app as a server: what ``app.py`` serves from a checkout and ``pipeline-lab app`` from an installed package."""

import contextlib
import os
import signal
import threading
import tomllib
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import streamlit as st

from pipeline_lab.collecting import collect_as_usual, loading
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.launch.spare import ensure_spare
from pipeline_lab.runs.record import this_process
from pipeline_lab.ui.serving import access, uploads, visitors
from pipeline_lab.ui.serving.routes import ROUTES
from pipeline_lab.ui.shared.text import prose, sentence

_APP = Path(__file__).parents[1]
SCRIPT = _APP / "main.py"
CONFIG = _APP / "assets" / "config.toml"
MIDDLEWARE = access.middleware()


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Load what the first page needs while the browser still fetches Streamlit's own files."""
    threading.Thread(target=_load, name="load ahead", daemon=True).start()
    host, port = st.get_option("browser.serverAddress"), st.get_option("server.port")
    token = "" if access.is_local() else visitors.token()
    print(f"Open http://{host}:{port}/{token and f'?token={token}'}", flush=True)  # noqa: T201
    _let_a_second_interrupt_end_at_once()
    yield
    uploads.forget_all()
    if (
        signal.getsignal(signal.SIGINT) is _end
    ):  # `streamlit run` would end with another code, by when a second one comes
        _end(signal.SIGINT, None)


def _load() -> None:
    with loading():
        import_module("pipeline_lab.ui.home_page")


def serve(port: int = 8501, *, store: Path | None = None, open_browser: bool = False, allow_code: bool = False) -> None:
    """Serve the app on this machine until the process is stopped.

    Args:
        port: TCP port on the loopback address.
        store: Run store to show; None takes the usual one.
        open_browser: Also open the app in the user's browser.
        allow_code: Let the app launch workloads of custom Python code.
    """
    collect_as_usual()
    if store is not None:
        os.environ["PIPELINE_LAB_STORE"] = str(store.absolute())
    if allow_code:
        os.environ[access.CODE_VARIABLE] = "1"
    app = st.App(SCRIPT, routes=ROUTES, middleware=MIDDLEWARE, lifespan=lifespan, on_script_error=show_error)
    signal.signal(signal.SIGINT, _end)  # the server takes interrupts while it runs and hands them on when it has ended
    app.run(config={**streamlit_config(), "server.port": port, "server.headless": not open_browser})


INTERRUPTED = 130
"""Exit code of a process that Ctrl-C ended, as shells have it."""


def _end(_number: int, _frame: FrameType | None) -> None:
    """End this process at once: threads that still import compiled code would abort an orderly exit."""
    with contextlib.suppress(Exception):  # what is half received goes as well, however soon the second Ctrl-C comes
        uploads.forget_all()
    os._exit(INTERRUPTED)


def _let_a_second_interrupt_end_at_once() -> None:
    """End without the traceback that the server prints where it cuts short its own orderly end."""
    server_ends = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(server_ends):
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, _end)
        server_ends(number, frame)

    signal.signal(signal.SIGINT, interrupted)


def streamlit_config() -> dict[str, Any]:
    """Return the settings of ``config.toml`` under Streamlit's dotted names."""
    return dict(_flatten(tomllib.loads(CONFIG.read_text(encoding="utf-8"))))


def show_error(error: Exception) -> bool:
    """Say what went wrong in one sentence; an unexpected error keeps its traceback for a bug report."""
    if isinstance(error, PipelineLabError):
        st.error(prose(sentence(str(error))))
        return True
    st.error("An unexpected error occurred in Pipeline Lab. Reload the page; if it happens again, please report it.")
    with st.expander("For a bug report"):
        st.code("".join(traceback.format_exception(error)), language=None)
    return True


def _flatten(section: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    options: list[tuple[str, Any]] = []
    for name, value in section.items():
        if isinstance(value, dict):
            options += _flatten(value, f"{prefix}{name}.")
        else:
            options.append((prefix + name, value))
    return options


_prepared = threading.Event()


def prepare() -> None:
    """Prepare once per process, without making the page wait."""
    if not _prepared.is_set():
        _prepared.set()
        threading.Thread(target=_prepare, name="prepare", daemon=True).start()


def renew_spare() -> None:
    """Request a new spare worker, because a run used the last one."""
    threading.Thread(target=_ask_for_spare, name="spare worker", daemon=True).start()


def _prepare() -> None:
    import_module("pipeline_lab.analysis.diagnosis.saved")
    import_module("pipeline_lab.advice.suggestions")
    if not access.why_read_only():
        with contextlib.suppress(PipelineLabError, OSError):  # the next start tries again
            uploads.discard_stale()
    _ask_for_spare()
    with contextlib.suppress(PipelineLabError, OSError):  # the page says what is wrong
        import_module("pipeline_lab.ui.shared.cache").read_ahead()


def _ask_for_spare() -> None:
    if access.why_read_only():
        return
    with contextlib.suppress(PipelineLabError, OSError):  # without a spare a launch is only slower
        ensure_spare(this_process())
