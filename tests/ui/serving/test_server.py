"""The app is found by Streamlit, and looks the same from a checkout and from an installed package."""

import tomllib
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from streamlit import config
from streamlit.web.server.app_discovery import discover_asgi_app

from pipeline_lab.figures.theme import THEMES
from pipeline_lab.ui.serving.access import middleware
from pipeline_lab.ui.serving.server import CONFIG, SCRIPT, streamlit_config
from tests.support.asgi import finish
from tests.ui.conftest import run_function

ROOT = Path(__file__).parents[3]


def test_streamlit_finds_the_app_in_the_file():
    found = discover_asgi_app(ROOT / "app.py")
    assert found.is_asgi_app
    assert SCRIPT.is_file()


def test_the_server_can_start_and_stop_the_app_through_what_requests_pass():
    done, sent, asked = [], [], iter(["lifespan.startup", "lifespan.shutdown"])

    @asynccontextmanager
    async def lifespan(_):
        done.append("started")
        yield
        done.append("stopped")

    async def receive():
        return {"type": next(asked)}

    async def send(message):
        sent.append(message["type"])

    scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    finish(Starlette(middleware=middleware(), lifespan=lifespan)(scope, receive, send))
    assert done == ["started", "stopped"]
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_the_checkouts_settings_are_the_packages():
    assert (ROOT / ".streamlit" / "config.toml").read_bytes() == CONFIG.read_bytes()


def test_every_setting_is_one_that_streamlit_knows():
    assert set(streamlit_config()) <= set(config._config_options_template)


def test_nothing_is_reported_and_only_this_machine_is_served():
    settings = streamlit_config()
    assert settings["browser.gatherUsageStats"] is False
    assert settings["server.address"] == "127.0.0.1"


def test_streamlits_own_offers_are_off():
    assert streamlit_config()["logger.hideWelcomeMessage"] is True


def test_pages_and_charts_share_their_colors():
    theme = tomllib.loads(CONFIG.read_text())["theme"]
    for mode in ("light", "dark"):
        assert theme[mode]["backgroundColor"] == THEMES[mode].paper
        assert theme[mode]["textColor"] == THEMES[mode].ink
        assert len(theme[mode]["chartCategoricalColors"]) == 10


def broken_page(error):
    from pipeline_lab.errors import StoreError
    from pipeline_lab.ui.serving.server import show_error

    show_error(StoreError("The *disk* is full; free some space.") if error == "known" else ValueError("planted"))


def test_a_known_error_is_one_sentence():
    app = run_function(broken_page, "known")
    assert [one.value for one in app.error] == [r"The \*disk\* is full; free some space\."]
    assert not app.expander


def test_an_unknown_error_keeps_its_traceback_out_of_sight():
    app = run_function(broken_page, "unknown")
    assert "planted" not in app.error[0].value
    assert not app.expander[0].proto.expanded
    assert "ValueError: planted" in app.expander[0].code[0].value
