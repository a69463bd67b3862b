"""From a path to a diagnosis with advice. Importing this loads no analysis: reading a large trace begins before they are loaded."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lab.analysis.diagnosis.executors import TraceExecutor, in_turn
from pipeline_lab.analysis.diagnosis.saved import WhileReading, diagnose_saved
from pipeline_lab.runs.store import check_is_one

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis


def analyze_path(
    path: Path, *, spread: TraceExecutor = in_turn, while_reading: WhileReading = nullcontext
) -> "Diagnosis":
    """Diagnose a run, a log directory, a trace file or an archive, and say what to try.

    Args:
        path: What to diagnose.
        spread: Who reads the traces.
        while_reading: Entered while they are read; a saved diagnosis needs no reading.

    Raises:
        TraceReadError: There is neither a readable trace nor a run.
        ComparisonError: It is a race or a search, which holds several runs.
    """
    check_is_one(path)
    diagnosis = diagnose_saved(path, spread=spread, while_reading=while_reading)
    from pipeline_lab.advice.advising import advise  # loads what can be changed, which reading need not wait for

    return advise(diagnosis)
