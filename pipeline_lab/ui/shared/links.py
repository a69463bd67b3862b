"""Where the pages are, and how one page opens another."""

from pathlib import Path
from typing import NoReturn

import streamlit as st

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.ui.shared import state

_APP = Path(__file__).parents[1]
HOME, NEW_RUN, UPLOAD, RUNS, RUN, COMPARE, RACE, TUNE, HELP = (
    str(_APP / page)
    for page in (
        "home_page.py",
        "new_run/new_run_page.py",
        "upload/upload_page.py",
        "runs_page.py",
        "run/run_page.py",
        "compare_page.py",
        "race_page.py",
        "tune_page.py",
        "help_page.py",
    )
)
RUNS_PARAMETER, ARMS_PARAMETER, START_PARAMETER, FROM_PARAMETER = "runs", "arms", "start", "from"


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
    st.switch_page(NEW_RUN, query_params={FROM_PARAMETER: origin})
