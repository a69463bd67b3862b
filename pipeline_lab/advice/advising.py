"""From a diagnosis to one with advice: the verdict's suggestions, by the model where the run's options are known."""

from dataclasses import replace
from pathlib import Path

from pipeline_lab.advice.cures import find_cures
from pipeline_lab.advice.told import options_of
from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.diagnosis.later_epochs import judged
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.store import RunFolder


def advise(diagnosis: Diagnosis) -> Diagnosis:
    """Fill in what to try next; a diagnosis that has suggestions already stays as it is."""
    if diagnosis.verdict.suggestions:
        return diagnosis
    return replace(diagnosis, verdict=replace(diagnosis.verdict, suggestions=_suggestions(diagnosis)))


def _suggestions(diagnosis: Diagnosis) -> tuple[Suggestion, ...]:
    """Return the model's suggestions; in words where it has none, or where input is not what holds the job back."""
    verdict, found = diagnosis.verdict, _by_model(diagnosis)
    if found and verdict.verdict_class in (VerdictClass.INPUT_BOUND, VerdictClass.HOST_CONTENTION):
        return found
    if verdict.verdict_class is VerdictClass.UNKNOWN:
        return found
    cures = find_cures(
        verdict.verdict_class,
        verdict.cause,
        verdict.stage,
        verdict.lost_percent or 0.0,
        judged(diagnosis).calibration,
        verdict.overlap_percent,
    )
    return (*cures, *found)


def _by_model(diagnosis: Diagnosis) -> tuple[Suggestion, ...]:
    folder = RunFolder(Path(diagnosis.source.path))
    options = options_of(folder)
    if isinstance(options, Unavailable):
        return ()
    from pipeline_lab.advice.suggestions import suggest  # logs need none of this
    from pipeline_lab.advice.what_if import measure
    from pipeline_lab.runs.store import name_of

    measured = measure(diagnosis, options)
    return () if isinstance(measured, Unavailable) else suggest(diagnosis, measured, name_of(folder.path))
