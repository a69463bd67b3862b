"""The answer in one sentence, with its evidence and how sure it is."""

from dataclasses import dataclass
from enum import StrEnum


class VerdictClass(StrEnum):
    """What holds the job back."""

    INPUT_BOUND = "input-bound"
    HOST_TO_DEVICE_BOUND = "host-to-device-bound"
    DISPATCH_BOUND = "dispatch-bound"
    COMPILE_BOUND = "compile-bound"
    DEVICE_BOUND = "device-bound"
    HOST_CONTENTION = "host-contention"
    IDLE_OTHER = "idle-other"
    UNKNOWN = "unknown"


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


@dataclass(frozen=True)
class Suggestion:
    """What to try next."""

    change: str
    why: str
    predicted_gain_percent: float | None = None


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


@dataclass(frozen=True)
class Verdict:
    """Why the device waits.

    Attributes:
        verdict_class: What holds the job back.
        sentence: One sentence that a tired person understands.
        evidence: The numbers behind it.
        confidence: Lowered for few steps, damaged traces, missing device planes.
        suggestions: What to try next.
        stage, cause: Filled for input-bound runs where the stages are known.
    """

    verdict_class: VerdictClass
    sentence: str
    evidence: tuple[Evidence, ...]
    confidence: Confidence
    suggestions: tuple[Suggestion, ...] = ()
    stage: str | None = None
    cause: str | None = None
