"""All pages in one list, and how one page opens another."""

from pathlib import Path
from typing import NoReturn

import streamlit as st

from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.ui.shared import state

_APP = Path(__file__).parents[1]


@dataclass(frozen=True)
class Page:
    """One page of the app.

    Attributes:
        script: Its file in ``ui/``.
        title: Its name in the navigation.
        url_path: Its address.
        help: What it is for, as a tooltip in the navigation.
    """

    script: str
    title: str
    url_path: str
    help: str | None = None

    @property
    def path(self) -> str:
        return str(_APP / self.script)


HOME = Page("home_page.py", "Pipeline Lab", "home")
NEW_RUN = Page("new_run/new_run_page.py", "New run", "new", "Assemble an input pipeline and launch it.")
UPLOAD = Page("upload/upload_page.py", "Open a log", "open", "Diagnose a profile log of any job.")
RUNS = Page("runs_page.py", "Runs", "runs", "Every run: search, open, tag, delete.")
COMPARE = Page("compare_page.py", "Compare", "compare", "Recorded runs side by side.")
RACE = Page("race_page.py", "Race", "race", "Time pipelines in alternating blocks: which is faster?")
TUNE = Page("tune_page.py", "Tune", "tune", "Search for a faster pipeline.")
RUN = Page("run/run_page.py", "Run", "run", "One run: verdict, charts, options, source.")
HELP = Page("help_page.py", "Help", "help", "What the terms mean, and how the app was started.")
PAGES = (
    HOME,
    NEW_RUN,
    UPLOAD,
    RUNS,
    COMPARE,
    RACE,
    TUNE,
    RUN,
    HELP,
)
"""In the order of the navigation; the first is the default."""

RUNS_PARAMETER, ARMS_PARAMETER, START_PARAMETER, FROM_PARAMETER = "runs", "arms", "start", "from"
OPENED_PARAMETER = "opened"


def open_run(run_id: str) -> NoReturn:
    """Leave this page for a run's."""
    st.switch_page(RUN.path, query_params={"run": run_id})


def open_upload(run_id: str) -> NoReturn:
    """Leave this page for the one that finishes opening a log."""
    st.switch_page(UPLOAD.path, query_params={OPENED_PARAMETER: run_id})


def open_comparison(run_ids: list[str]) -> NoReturn:
    """Leave this page for the comparison of these runs, the baseline first."""
    st.switch_page(COMPARE.path, query_params={RUNS_PARAMETER: ",".join(run_ids)})


def open_race(arms: list[str]) -> NoReturn:
    """Leave this page for the start of a race between these arms, the baseline first."""
    st.switch_page(RACE.path, query_params={ARMS_PARAMETER: ",".join(arms)})


def open_tune(start: str) -> NoReturn:
    """Leave this page for the start of a search; ``start`` is ``preset:NAME``, ``run:ID`` or ``form``."""
    st.switch_page(TUNE.path, query_params={START_PARAMETER: start})


def open_new_run(options: RunOptions, origin: str) -> NoReturn:
    """Leave this page for the form, with new options; ``origin`` is ``preset:NAME`` or ``run:ID``."""
    state.start(options, origin)
    st.switch_page(NEW_RUN.path, query_params={FROM_PARAMETER: origin})
