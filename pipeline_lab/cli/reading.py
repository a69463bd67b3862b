"""What the terminal shows while a trace is read."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.status import Status

from pipeline_lab.cli.output import messages

if TYPE_CHECKING:
    from pipeline_lab.analysis.diagnosis.fold import Spread
    from pipeline_lab.analysis.results import Diagnosis


def read_diagnosis(path: Path, spread: "Spread | None" = None) -> "Diagnosis":
    """Return the diagnosis of a run or log: a saved one at once, without loading what reads traces.

    Args:
        path: What :func:`pipeline_lab.analysis.diagnosis.diagnose.diagnose` takes.
        spread: Who reads the traces; None for this process.

    Raises:
        TraceReadError: There is nothing that can be read as a trace, and no run either.
    """
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, diagnose_saved

    found = SavedDiagnosis(path).load() if path.exists() else None
    if found is not None:
        return found
    with reading(path.name):
        return diagnose_saved(path, spread=spread)


def reading(name: str) -> AbstractContextManager[Status]:
    """Show that a log is being read, and why the first time on a machine takes some seconds longer."""
    from pipeline_lab.trace.compiled import is_compiled, leave_out_linear_algebra

    leave_out_linear_algebra()
    first = "" if is_compiled() else " (compiling the reader, once on this machine)"
    return messages().status(f"Reading {escape(name)} …{first}")
