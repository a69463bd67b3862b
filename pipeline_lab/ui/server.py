"""The app as a server: what ``app.py`` serves from a checkout and ``pipeline-lab app`` from an installed package."""

import os
import threading
import tomllib
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.ui import own_code, security
from pipeline_lab.ui.routes import ROUTES
from pipeline_lab.ui.text import escape, sentence

SCRIPT = Path(__file__).with_name("main.py")
CONFIG = Path(__file__).with_name("config.toml")
MIDDLEWARE = security.middleware()


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Load what the first page needs while the browser still fetches Streamlit's own files."""
    threading.Thread(target=import_module, args=("pipeline_lab.ui.cards",), name="load ahead", daemon=True).start()
    yield


def serve(port: int = 8501, *, store: Path | None = None, open_browser: bool = False, allow_code: bool = False) -> None:
    """Serve the app on this machine until the process is told to stop.

    Args:
        port: TCP port on the loopback address.
        store: Run store to show; None takes the usual one.
        open_browser: Also open the app in the user's browser.
        allow_code: Let the app launch workloads that are Python code of the user's.
    """
    if store is not None:
        os.environ["PIPELINE_LAB_STORE"] = str(store.absolute())
    if allow_code:
        os.environ[own_code.VARIABLE] = "1"
    app = st.App(SCRIPT, routes=ROUTES, middleware=MIDDLEWARE, lifespan=lifespan, on_script_error=show_error)
    app.run(config={**streamlit_config(), "server.port": port, "server.headless": not open_browser})


def streamlit_config() -> dict[str, Any]:
    """Return the settings of ``config.toml`` under Streamlit's dotted names."""
    return dict(_flatten(tomllib.loads(CONFIG.read_text(encoding="utf-8"))))


def show_error(error: Exception) -> bool:
    """Say what went wrong in one sentence; an unexpected error keeps its traceback for a bug report."""
    if isinstance(error, PipelineLabError):
        st.error(escape(sentence(str(error))))
        return True
    st.error("Something went wrong in Pipeline Lab itself. Reload the page; if it comes back, please report it.")
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
