"""The app's script without a server: pages run as Streamlit runs them, with a store of their own and no worker."""

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from pipeline_lab.runs import store
from pipeline_lab.runs.launch import launcher, runtime
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving import server
from pipeline_lab.ui.serving.server import SCRIPT
from pipeline_lab.ui.shared import analyses, links
from pipeline_lab.ui.shared.chart import COMPONENT
from pipeline_lab.units import NO_BREAK_SPACE
from tests.support import results
from tests.support.patience import PATIENCE_S
from tests.support.run_folders import make_samples


@pytest.fixture(scope="session", autouse=True)
def _packages_are_scanned_once() -> Iterator[None]:
    """Let Streamlit look for components in what is installed once, not for each app: that is most of a page's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def run_store(tmp_path, monkeypatch) -> RunStore:
    """Return an empty store that the app uses too; it has no samples, and launches start no process."""
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path / "profiles"))
    monkeypatch.setattr(store, "samples_folder", lambda: None)
    monkeypatch.setattr(runtime, "start_detached", lambda *_: os.getpid())
    monkeypatch.setattr(launcher, "hand_over", lambda _: False)
    monkeypatch.setattr(server, "ensure_spare", lambda _: None)
    monkeypatch.setattr(analyses, "start_live_analysis", lambda _: None)
    return RunStore(tmp_path / "profiles")


@pytest.fixture
def samples(tmp_path, monkeypatch, run_store):  # noqa: ARG001  (first the store without samples, then these)
    """Add two bundled samples."""
    folder = make_samples(tmp_path / "samples")
    monkeypatch.setattr(store, "samples_folder", lambda: folder)
    return folder


@pytest.fixture
def diagnosis(monkeypatch):
    """Let every run have the same diagnosis, so that no process has to compute one."""
    found = results.diagnosis()
    monkeypatch.setattr(analyses, "wait_for", lambda _folder, **_: found)
    return found


@pytest.fixture(scope="session")
def pages() -> dict[str, Any]:
    """Hold what :class:`AppTest` knows of the app's pages once it has run, so that not every test opens the first page too."""
    return {}


@pytest.fixture
def open_page(run_store, pages):  # noqa: ARG001  (no page may see the user's own store)
    """Return a function that opens a page by its file's name, with query parameters."""

    def open_(page: str, **query: str) -> AppTest:
        app = AppTest.from_file(str(SCRIPT), default_timeout=PATIENCE_S)
        if not pages:
            pages.update(app.run()._registered_pages)
        app._registered_pages = dict(pages)
        for name, value in query.items():
            app.query_params[name] = value
        app.switch_page(getattr(links, page.upper()).path)
        return app.run()

    return open_


def run_function(function: Callable[..., None], *args: object) -> AppTest:
    """Run a function as a page of its own."""
    return AppTest.from_function(function, default_timeout=PATIENCE_S, args=args).run()


def texts(app: AppTest) -> str:
    """Return everything that is written on the page, with plain spaces."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "error", "info", "code")
    return "\n".join(str(element.value) for kind in kinds for element in app.get(kind)).replace(NO_BREAK_SPACE, " ")


def said(text: str) -> str:
    """Return what a text in Markdown says, with plain spaces."""
    return text.replace("\\", "").replace(NO_BREAK_SPACE, " ")


def charts(app: AppTest) -> list[dict[str, Any]]:
    """Return what the page draws, in its order, each as plotly.js takes it."""
    shown = [element.proto for element in app.get("bidi_component")]
    return [json.loads(json.loads(one.json)["figure"]) for one in shown if one.component_name == COMPONENT]
