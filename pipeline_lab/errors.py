"""The one error family, and the word for "not measured".

Every error that a user can meet derives from :class:`PipelineLabError` and carries one sentence that says what is
wrong, what was expected and what to do. The command line and the app print that sentence and nothing else.
"""

from collections.abc import Iterable

from pipeline_lab.data_classes import dataclass


class PipelineLabError(Exception):
    """A problem that the user can act on; its text is one full sentence."""


class ArgumentError(PipelineLabError):
    """A function was given something of a kind that it does not take."""


class OptionsError(PipelineLabError):
    """Options contradict each other or hold a value that is not allowed."""


class StoreError(PipelineLabError):
    """The run store, or a run in it, cannot be read or written."""


class DataError(PipelineLabError):
    """A data file of the job is missing, empty or damaged."""


class UserCodeError(PipelineLabError):
    """The user's own code stopped a job."""


class TraceReadError(PipelineLabError):
    """A file is not a profiler trace, or nothing in it can be read."""


class TraceIncompleteError(PipelineLabError):
    """A trace is readable but does not hold what an analysis needs."""


class CaptureError(PipelineLabError):
    """A job cannot be recorded."""


class RunFailedError(PipelineLabError):
    """A job ended without a result."""


@dataclass(frozen=True)
class Unavailable:
    """Stands where a result would be when it was not measured.

    Attributes:
        reason: Why it is missing and how to record it, as one sentence.
    """

    reason: str

    def to_json(self) -> dict[str, str]:
        return {"unavailable": self.reason}


class ComparisonError(PipelineLabError):
    """Runs cannot be compared."""


def closest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known name closest to a word; None if none is similar enough."""
    import difflib  # few commands end in an error

    found = difflib.get_close_matches(word, list(known), 1, likeness)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence that offers the closest name, a blank before it; nothing where no name is close."""
    name = closest(word, known)
    return "" if name is None else f" Did you mean {name}?"
