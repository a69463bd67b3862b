"""Where the pages are, and how one page opens another."""

from pathlib import Path
from typing import NoReturn

import streamlit as st

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.ui import state
from pipeline_lab.ui.origin import PARAMETER

# Not "pages": Streamlit would take a folder of that name beside main.py for its older kind of multipage app.
_PAGES = Path(__file__).with_name("app_pages")
HOME, NEW_RUN, UPLOAD, RUNS, RUN, COMPARE, RACE, TUNE, HELP = (
    str(_PAGES / f"{name}.py")
    for name in ("home", "new_run", "upload", "runs", "run", "compare", "race", "tune", "help")
)
RUNS_PARAMETER, ARMS_PARAMETER, START_PARAMETER = "runs", "arms", "start"


def open_run(run_id: str) -> NoReturn:
    """Leave this page for a run's."""
    st.switch_page(RUN, query_params={"run": run_id})


def open_comparison(run_ids: list[str]) -> NoReturn:
    """Leave this page for the comparison of these runs, the baseline first."""
    st.switch_page(COMPARE, query_params={RUNS_PARAMETER: ",".join(run_ids)})


def open_race(arms: list[str]) -> NoReturn:
    """Leave this page for the start of a race between these arms, the baseline first."""
    st.switch_page(RACE, query_params={ARMS_PARAMETER: ",".join(arms)})


def open_tune(start: str) -> NoReturn:
    """Leave this page for the start of a search; ``start`` is ``preset:NAME``, ``run:ID`` or ``form``."""
    st.switch_page(TUNE, query_params={START_PARAMETER: start})


def open_new_run(options: RunOptions, origin: str) -> NoReturn:
    """Leave this page for the form, filled anew; ``origin`` is ``preset:NAME`` or ``run:ID``."""
    state.start(options, origin)
    st.switch_page(NEW_RUN, query_params={PARAMETER: origin})
