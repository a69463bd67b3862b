"""What the app does behind its first page, never in its way: loads what others need, clears up, keeps a worker warm."""

import contextlib
import threading
from importlib import import_module

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.launch.spare import ensure_spare
from pipeline_lab.runs.record import this_process
from pipeline_lab.ui import changes, uploads

_prepared = threading.Event()


def prepare() -> None:
    """Do it once in this process; the page does not wait."""
    if not _prepared.is_set():
        _prepared.set()
        threading.Thread(target=_prepare, name="prepare", daemon=True).start()


def renew_spare() -> None:
    """Ask for a warm worker again, because a run used the last one up."""
    threading.Thread(target=_ask_for_spare, name="spare worker", daemon=True).start()


def _prepare() -> None:
    import_module("pipeline_lab.analysis.diagnosis.saved")
    import_module("pipeline_lab.advice.suggestions")
    if not changes.problem():
        with contextlib.suppress(PipelineLabError, OSError):  # the next start will try again
            uploads.discard_stale()
    _ask_for_spare()


def _ask_for_spare() -> None:
    if changes.problem():
        return
    with contextlib.suppress(PipelineLabError, OSError):  # without a spare a launch is slower, nothing else
        ensure_spare(this_process())
