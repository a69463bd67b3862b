"""What a verdict consists of: its class, sentence and evidence, its suggestions, and the findings beside it."""

import re
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from pipeline_lab.analysis.causes import GapCause, InputCause, VerdictClass
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import SourcePlace
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.units import NS_PER_MS, format_percent


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Evidence:
    """One number that speaks for the verdict.

    Attributes:
        name: What was measured.
        value: The number with its unit, as text.
    """

    name: str
    value: str

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value}


MOST_DOUBTS = 2
"""Reasons shown beside a low confidence."""
LEAST_GAIN_PERCENT = 1.0
"""A smaller gain is not named: it is less than the prediction's own error."""
NO_GAIN = Unavailable(
    "What the change would bring can only be predicted where Pipeline Lab measured the stages; launch the job with "
    "`pipeline-lab run`, or the script with `pipeline-lab watch`."
)


_DOES = {
    "fix": "Find the lines to change in your script, prove and race the change:",
    "watch": "Measure it in your own script:",
    "what-if": "Predict it again, and race it against this run:",
}
"""What a suggestion's command does, by its verb."""
_CLAUSE_END = re.compile(r"[;.](?: |$)")
_WORDS_END = re.compile(r"[;:.,](?: |$)")


@dataclass(frozen=True)
class Suggestion:
    """What to try next.

    Attributes:
        change: What to do.
        why: What speaks for it.
        predicted_gain_percent: How much shorter a step for as many examples would become.
        side_effects: What else changes: memory, disk, the order of the examples, ….
        settings: The change as ``--set`` takes it, ``PATH=VALUE`` each; none where it is not one of options.
        command: What predicts the change again and races it against the run, for a shell.
        source_diff: The change of the pipeline's source as a unified diff.
        options: The changed options as a document to run or race.
        risk: How much has to be thought over before, ``low risk`` to ``high risk``; empty where nobody weighed it.
        place: The line of the user's script that it is about.
        before, after: The call there as it is and as it would be; empty where the change is none of a call.
        gain_range_percent: Bounds of the gain, where the model gives them.
        held_back: What keeps the gain small here, and what it would be otherwise, a sentence; empty where nothing does.
        request: What ``fix --change`` takes, where it leaves such a change alone unless it is asked for; else empty.
    """

    change: str
    why: str
    predicted_gain_percent: float | Unavailable = NO_GAIN
    side_effects: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    command: str = ""
    source_diff: str = ""
    options: dict[str, Any] | None = None
    risk: str = ""
    place: SourcePlace | None = None
    before: str = ""
    after: str = ""
    gain_range_percent: tuple[float, float] | None = None
    held_back: str = ""
    request: str = ""

    @property
    def headline(self) -> str:
        """What to do, up to the first semicolon or full stop: the rest says where else, and what if not."""
        return _CLAUSE_END.split(self.change, maxsplit=1)[0]

    @property
    def edit(self) -> str:
        """The change of the user's line, ``train.py:41  .map(load) → .map(load, …)``; empty where it is none of a call."""
        if not self.after:
            return ""
        place = "" if self.place is None else f"{self.place}  "
        return f"{place}{self.before} → {self.after}" if self.before else f"{place}{self.after}"

    @property
    def is_snippet(self) -> bool:
        """Whether ``after`` is a line of its own for the user's code, wherever it belongs there."""
        return bool(self.after) and not self.before and self.place is None

    @property
    def command_does(self) -> str:
        """What its command does, as the words before it; empty where it has none."""
        return _DOES[self.command.split()[1]] if self.command else ""

    @property
    def reasons(self) -> str:
        """What speaks for it, what holds it back, and what else changes."""
        return " ".join(filter(None, (self.why, self.held_back, *self.side_effects)))

    def why_beside(self, sentence: str) -> str:
        """Return its reason in one clause, for below a sentence that may say the same already; then it is empty."""
        clause = _CLAUSE_END.split(self.why, maxsplit=1)[0].strip()
        return "" if not clause or _WORDS_END.split(clause, maxsplit=1)[0].lower() in sentence.lower() else f"{clause}."

    @property
    def prediction(self) -> str:
        """The gain in words; empty where there is none to speak of."""
        gain = self.predicted_gain_percent
        if isinstance(gain, Unavailable) or gain < LEAST_GAIN_PERCENT:
            return ""
        if self.gain_range_percent is not None:
            low, high = self.gain_range_percent
            return f"predicted: step {format_percent(gain)} shorter, {low:.0f} to {high:.0f} %"
        at_most = "" if self.options is not None else "up to "  # the most a perfect fix could save
        return f"predicted: step {at_most}{format_percent(gain)} shorter"

    def to_json(self) -> dict[str, Any]:
        gain = self.predicted_gain_percent
        return {
            "change": self.change,
            "why": self.why,
            "predicted_gain_percent": gain.to_json() if isinstance(gain, Unavailable) else gain,
            "side_effects": list(self.side_effects),
            "risk": self.risk,
            "settings": list(self.settings),
            "command": self.command,
            "source_diff": self.source_diff,
            "place": self.place and asdict(self.place),
            "before": self.before,
            "after": self.after,
            "gain_range_percent": self.gain_range_percent and list(self.gain_range_percent),
            "held_back": self.held_back,
        }


@dataclass(frozen=True)
class Finding:
    """Something worth knowing beside the verdict.

    Attributes:
        kind: ``sampling-skew``, ``low-coverage``, ``salvaged``, ``first-step-only``, …
        sentence: For people.
        evidence: Numbers behind it.
    """

    kind: str
    sentence: str
    evidence: tuple[Evidence, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "sentence": self.sentence, "evidence": [one.to_json() for one in self.evidence]}


@dataclass(frozen=True)
class JudgedStep:
    """The step that the verdict speaks of, and where its time goes; the numbers at the top of a run's page.

    Attributes:
        mean_ns: Its length.
        input_percent: Share of it that is lost to input: what a perfect pipeline would save, of a job that they compete with for the
            processor what the pipeline takes from the step. Unavailable where nothing tells of waits, as in a log of JAX.
        busy_percent: Share of it in which the device is busy, however slowly.
        count: How many steps that was measured over.
        are_recorded: These are the recorded steps; else all measured ones, of which the recorded ones are no fair sample.
    """

    mean_ns: float
    input_percent: float | Unavailable
    busy_percent: float
    count: int
    are_recorded: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "mean_ms": self.mean_ns / NS_PER_MS,
            "lost_to_input_percent": self.input_percent.to_json()
            if isinstance(self.input_percent, Unavailable)
            else self.input_percent,
            "busy_percent": self.busy_percent,
            "count": self.count,
            "recorded": self.are_recorded,
        }


@dataclass(frozen=True)
class Verdict:
    """Why the device waits.

    Attributes:
        verdict_class: What holds the job back.
        sentence: One sentence that a tired person understands.
        evidence: The numbers behind it.
        confidence: Lowered for few steps, damaged traces, missing device planes.
        doubts: Why it is lower than high, a few words each, the gravest first.
        suggestions: What to try next; filled in by ``advice.advising``, which knows what the run was told.
        stage: That an input-bound job waits for, or that takes most of the processor from the step; None where it is not known.
        cause: Of an input-bound job, where the stages are known; of idle time.
        calls: What the user wrote for the stage, with file and line where a script was watched.
        step: That the sentence speaks of; None where there is none.
        lost_percent: Share of the step that the class stands for, the most a perfect fix could save; None where nothing is lost.
        overlap_percent: Share of the step that working ahead would save at best, 0 where a stage does so already; None where
            nobody knows, or input does not hold the job back.
        break_percent: Share of the step that lies between epochs, beside the setup and teardown of iterators, and no window saw.
        predicting_percent: Share of the step that passes in many calls of Keras' ``predict`` between steps.
    """

    verdict_class: VerdictClass
    sentence: str
    evidence: tuple[Evidence, ...]
    confidence: Confidence
    suggestions: tuple[Suggestion, ...] = ()
    stage: str | None = None
    cause: str | None = None
    step: JudgedStep | None = None
    lost_percent: float | None = None
    overlap_percent: float | None = None
    break_percent: float = 0.0
    predicting_percent: float = 0.0
    calls: tuple[WrittenCall, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What badges and tables call it; of idle time they name the cause."""
        if self.is_about_breaks:
            return "idle: between epochs"
        if self.is_about_predicts:
            return "idle: predictions"
        if self.verdict_class is VerdictClass.IDLE_OTHER and self.cause:
            cause = GapCause(self.cause)
            return f"idle: {'cause unknown' if cause is GapCause.UNKNOWN else cause.label}"
        return self.verdict_class.label

    @property
    def is_about_breaks(self) -> bool:
        """Whether what the job loses lies between its epochs."""
        return self._is_about_python and self.break_percent > 0 and self.lost_percent == self.break_percent

    @property
    def is_about_predicts(self) -> bool:
        """Whether what the job loses passes in calls of ``predict`` between its steps."""
        return self._is_about_python and self.predicting_percent > 0 and self.lost_percent == self.predicting_percent

    @property
    def _is_about_python(self) -> bool:
        return self.verdict_class is VerdictClass.IDLE_OTHER and self.cause == GapCause.PYTHON

    @property
    def certainty(self) -> str:
        """How sure it is; a low confidence says why."""
        why = ", ".join(self.doubts[:MOST_DOUBTS]) if self.confidence is Confidence.LOW else ""
        return f"confidence: {self.confidence.value}" + (f" ({why})" if why else "")

    @property
    def has_nothing_to_fix(self) -> bool:
        """Whether input is not the limit and nothing is known to shorten the step."""
        return self.verdict_class is VerdictClass.DEVICE_BOUND and not any(one.prediction for one in self.suggestions)

    @property
    def predicted(self) -> Suggestion | None:
        """The first suggestion, if its own gain is predicted, not only the most that a perfect fix could save."""
        first = next(iter(self.suggestions), None)
        is_known = first is not None and (first.options is not None or first.gain_range_percent is not None)
        return first if first is not None and is_known and first.prediction else None

    def to_json(self) -> dict[str, Any]:
        return {
            "class": self.verdict_class.value,
            "stage": self.stage,
            "calls": [call.to_json() for call in self.calls],
            "cause": self.cause,
            "sentence": self.sentence,
            "step": self.step and self.step.to_json(),
            "evidence": [one.to_json() for one in self.evidence],
            "confidence": self.confidence.value,
            "doubts": list(self.doubts),
            "suggestions": [suggestion.to_json() for suggestion in self.suggestions],
        }


@dataclass(frozen=True)
class Blame:
    """The stage that the job waits for, and the cause.

    Attributes:
        stage: Its iterator's name, such as ``ParallelMapV2``; None where the trace does not tell.
        cause: None where the numbers do not show it.
        evidence: The numbers behind both.
        overlap_gain: Share of the step that working ahead would save at best, 0 to 1; None where nobody knows.
        is_clear: Whether the stage fills most of the wait; a verdict on one that does not is less sure.
        calls: What the user wrote for the stage.
        filled_by: What the user wrote for what fills its buffer, where that is why one waits for it.
    """

    stage: str | None = None
    cause: InputCause | None = None
    evidence: tuple[Evidence, ...] = ()
    overlap_gain: float | None = None
    is_clear: bool = True
    calls: tuple[WrittenCall, ...] = ()
    filled_by: tuple[WrittenCall, ...] = ()
