"""What to change in a script, as it was found: the changes, their proof, what they gain, what was left alone."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline_lab.advice.script.script_model import ScriptPrediction
from pipeline_lab.comparison.race_result import Candidate
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.changes import Change
from pipeline_lab.pipeline.samples import Proof
from pipeline_lab.pipeline.source_edits import Edited
from pipeline_lab.statistics.outcome import Outcome
from pipeline_lab.tuning.script.proving import LeftAlone
from pipeline_lab.tuning.script.script_result import of_changed
from pipeline_lab.units import NS_PER_MS, format_duration, format_percent

LEAST_PERCENT = 0.5
"""Of a step; a gain or loss that is predicted below it counts as none."""
NOT_PREDICTED = Unavailable("Not predicted: the run says too little of its pipeline.")
NOT_RACED = Unavailable("Not raced: the gain is not measured.")


@dataclass(frozen=True)
class CallTimes:
    """What calls took that were made both ways on the same input, in turn.

    Attributes:
        before_ms, after_ms: Medians of each line, averaged over all recorded calls of these lines.
        share_percent: Part of the time from step to step that these calls took when they were recorded.
    """

    before_ms: float
    after_ms: float
    share_percent: float

    @property
    def gain_percent(self) -> float:
        """How much less time the script takes from step to step."""
        return self.share_percent * (1.0 - self.after_ms / self.before_ms)

    @property
    def sentence(self) -> str:
        before, after = (format_duration(each * NS_PER_MS) for each in (self.before_ms, self.after_ms))
        return (
            f"The script's own calls, made both ways in turn: {before} as they are, {after} as they would be. They took "
            f"{format_percent(self.share_percent)} of the time, so a step should take {format_percent(self.gain_percent)} less time."
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "gain_percent": self.gain_percent, "sentence": self.sentence}


@dataclass(frozen=True)
class Fix:
    """What to change in a script.

    Attributes:
        changes: The proposed ones; none where nothing applies or nothing could be proved.
        edited: The files with them; None without any.
        proof: That the script with all of them gives the same; None without any.
        left: What was left alone.
        predicted: What the model says of all of them together.
        gain: What a race measured, or calls that were made both ways.
        note: A sentence on why nothing is proposed; empty where something is.
        otherwise: What would help if another order of the examples were allowed, after a space; empty where nothing would.
    """

    changes: tuple[Change, ...]
    edited: Edited | None
    proof: Proof | None
    left: tuple[LeftAlone, ...]
    predicted: ScriptPrediction | Unavailable = NOT_PREDICTED
    gain: Candidate | CallTimes | Unavailable = NOT_RACED
    note: str = ""
    otherwise: str = ""

    @property
    def is_faster(self) -> bool:
        """Whether what was measured says so."""
        if isinstance(self.gain, Candidate):
            return self.gain.standing.outcome is Outcome.FASTER
        return isinstance(self.gain, CallTimes)

    def diff(self, folder: Path | None = None) -> str:
        return "" if self.edited is None else self.edited.diff(folder)


def to_json(fix: Fix, folder: Path | None = None) -> dict[str, Any]:
    """Return a fix as plain data."""
    return {
        "schema_version": 1,
        "changes": [_change(each) for each in fix.changes],
        "left": [{**_change(each.change), "reason": each.reason} for each in fix.left],
        "proof": None if fix.proof is None else {
            "outcome": fix.proof.outcome.value,
            "sentence": fix.proof.sentence,
            "elements": list(fix.proof.elements),
            "is_whole": fix.proof.is_whole,
        },
        "predicted": fix.predicted.to_json() if isinstance(fix.predicted, Unavailable) else {
            "gain_percent": fix.predicted.gain_percent,
            "low_percent": fix.predicted.low_percent,
            "high_percent": fix.predicted.high_percent,
        },
        "gain": fix.gain.to_json(),
        "gain_sentence": describe_gain(fix),
        "note": fix.note,
        "diff": fix.diff(folder),
        "files": {} if fix.edited is None else {
            path: [fix.edited.before[path], text] for path, text in fix.edited.texts.items()
        },
    }  # fmt: skip


def describe_gain(fix: Fix) -> str:
    """Say what was raced and predicted."""
    if isinstance(fix.gain, CallTimes):
        return fix.gain.sentence
    if not isinstance(fix.gain, Unavailable):
        return f"{of_changed(fix.gain.sentence, fix.gain.name)}{_describe_unraced(fix)}"
    raced = fix.gain.reason
    if isinstance(fix.predicted, Unavailable):
        return f"{raced} {fix.predicted.reason}"
    change, (low, high) = abs(fix.predicted.gain_percent), fix.predicted.bounds_percent
    more, less = ("more", "less") if fix.predicted.is_longer else ("less", "more")
    bounds = f"{format_percent(low)} to {format_percent(high)}"
    if low < 0.0:
        bounds = f"between {format_percent(-low)} {less} and {format_percent(high)} {more}"
    if change < LEAST_PERCENT:
        return f"{raced} Predicted: a step takes about as long ({bounds})."
    return f"{raced} Predicted: a step takes {format_percent(change)} {more} time ({bounds})."


def _describe_unraced(fix: Fix) -> str:
    """Say what was not in the race, and what is predicted with it; empty where all was."""
    unraced = [each.words for each in fix.changes if each.cannot_race]
    if not unraced:
        return ""
    said = f" Not raced, because pipelines that share one training cannot differ in it: {' '.join(unraced)}"
    if isinstance(fix.predicted, Unavailable) or fix.predicted.is_longer:
        return said
    return (
        f"{said} Predicted for all changes together: {format_percent(fix.predicted.gain_percent)} less time per step."
    )


def _change(change: Change) -> dict[str, Any]:
    return {
        "rewrite": change.rewrite,
        "words": change.words,
        "effect": change.effect.value,
        "risk": change.risk.value,
        "also": list(change.also),
        "place": None if change.place is None else str(change.place),
    }
