"""The overview of a run or log, kept beside its diagnosis, so that a second look loads neither its tables nor models of options.

It is what the terminal shows of a report. It holds while the inputs of the diagnosis are the same, and what advice takes
besides: the run's options and environment, and the name that commands call it by. The samples ship with theirs.
"""

import contextlib
import hashlib
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lab.advice.analyzing import analyze_path
from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.diagnosis.executors import TraceExecutor, in_turn
from pipeline_lab.analysis.diagnosis.inputs import is_run
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, WhileReading, fingerprint_inputs
from pipeline_lab.analysis.verdict.verdict import Evidence, Suggestion
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import SourcePlace
from pipeline_lab.report.content import Answer, Content, Findings, Section, Table
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import check_is_one, name_of
from pipeline_lab.version import __version__

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis

NAME = "overview"


@dataclass(frozen=True)
class KeptOverview:
    """An overview and what it was made of.

    Attributes:
        content: As the terminal shows it.
        made_of: A digest of what advice takes beside the diagnosis.
    """

    content: Content
    made_of: str


KINDS = {
    kind.__name__: kind
    for kind in (
        KeptOverview,
        Content,
        Answer,
        Section,
        Table,
        Findings,
        Evidence,
        Suggestion,
        SourcePlace,
        Unavailable,
        StepPart,
    )
}
"""What an overview consists of; other reports hold pictures, too, which cannot be kept."""


def overview_at(path: Path, *, spread: TraceExecutor = in_turn, while_reading: WhileReading = nullcontext) -> Content:
    """Return what is said of a run or log; what was kept of it if that still holds.

    Args:
        path: A run, a log directory, a trace file or an archive.
        spread: Who reads the traces.
        while_reading: Entered while they are read.

    Raises:
        TraceReadError: There is neither a readable trace nor a run.
        ComparisonError: It is a race or a search, which holds several runs.
    """
    check_is_one(path)
    place = SavedDiagnosis(path)
    kept = place.load_beside(NAME, KeptOverview, KINDS) if path.exists() else None
    if kept is not None and kept.made_of == _made_of(path):
        return _placed(kept.content, str(path)) if is_run(path) else kept.content
    inputs = fingerprint_inputs(path) if path.exists() else ""
    diagnosis = analyze_path(path, spread=spread, while_reading=while_reading)
    from pipeline_lab.report.overview import overview

    with contextlib.suppress(OSError):  # a full disk does not keep the answer from being shown
        place.save_beside(NAME, keep(diagnosis, path), inputs)
    return overview(diagnosis)


def keep(diagnosis: "Diagnosis", path: Path) -> KeptOverview:
    """Return what is kept of a diagnosis with its suggestions: of these not the changed options and sources, which are long."""
    from pipeline_lab.report.overview import overview

    content = overview(diagnosis)
    content = _placed(content, path.name) if is_run(path) else content
    answer = content.answer
    short = tuple(map(_shorten, answer.suggestions))
    predicted = None if answer.predicted is None else _shorten(answer.predicted)
    return KeptOverview(
        replace(content, answer=replace(answer, suggestions=short, predicted=predicted)), _made_of(path)
    )


def _shorten(suggestion: Suggestion) -> Suggestion:
    return replace(suggestion, source_diff="", options=None if suggestion.options is None else {})


def _placed(content: Content, place: str) -> Content:
    """Return the overview of a run that lies there; it is kept without, since a run may be moved with its analysis."""
    about = tuple((name, place if name == "Source" else value) for name, value in content.about)
    return replace(content, title=place, about=about)


def _made_of(path: Path) -> str:
    folder = RunFolder(path)
    recorded: dict[str, object] = {}
    if folder.record.is_file():
        record = read_record(folder)
        recorded = {"options": record.options, "environment": record.environment}
    text = json.dumps([__version__, name_of(path), recorded], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
