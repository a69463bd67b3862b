"""What an input-bound verdict blames: a stage of the pipeline, and why that stage is slow."""

from dataclasses import dataclass

from pipeline_lab.analysis.causes import InputCause
from pipeline_lab.analysis.verdict import Evidence


@dataclass(frozen=True)
class Blame:
    """The stage that the job waits for, and the cause.

    Attributes:
        stage: Its iterator's name, such as ``ParallelMapV2``; None where the trace does not tell.
        cause: None where the numbers do not show it.
        evidence: The numbers behind both.
        overlap_gain: Share of the step that working ahead would save at best, 0 to 1; None where nobody knows.
        is_clear: Whether the stage fills most of the wait; a verdict on one that does not is less sure.
    """

    stage: str | None = None
    cause: InputCause | None = None
    evidence: tuple[Evidence, ...] = ()
    overlap_gain: float | None = None
    is_clear: bool = True
