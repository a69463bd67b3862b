"""What an analysis is: declared once, in its own module; fold, storage, ``Results`` and the JSON document derive from that.

A module of a sub-room holds the result type, the functions that make it, and one :class:`Analysis` that says where the
result comes from (each trace, the job's own notes, or other results), how parts of several traces become one, why it can
be missing, and how it is written as JSON. A field of :class:`pipeline_lab.analysis.results.Results` registers it. What an
analysis cannot say it raises as a ``TraceIncompleteError``, whose text stands in its place as ``Unavailable``.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.units import NS_PER_MS

if TYPE_CHECKING:
    from pipeline_lab.analysis.activity.activity import Activity
    from pipeline_lab.analysis.diagnosis.job_tables import JobTables
    from pipeline_lab.analysis.results import Results
    from pipeline_lab.analysis.sampling.file_reads import FileReads
    from pipeline_lab.analysis.steps.recorded_steps import Steps
    from pipeline_lab.analysis.steps.step_phases import PhaseTimes
    from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile

Result = TypeVar("Result")
Document = dict[str, Any]

LONGEST = 20
"""Rows in each list of the longest waits or gaps of the JSON document."""


class Found:
    """Results by their names in ``Results``. Asking for one that is missing raises why; one that another thread makes is waited for."""

    def __init__(self, results: Mapping[str, object]) -> None:
        self._results = results

    def need(self, kind: type[Result], name: str) -> Result:
        """Return a result.

        Raises:
            TraceIncompleteError: It is missing; the reason is its own.
        """
        found = self._results[name]
        if isinstance(found, Future):
            found = found.result()
        if isinstance(found, Unavailable):
            raise TraceIncompleteError(found.reason)
        assert isinstance(found, kind)
        return found


@dataclass(frozen=True, eq=False)
class TraceView:
    """One trace and what was found in it so far; times are its own."""

    activity: "Activity"
    found: Found


@dataclass(frozen=True, eq=False)
class JobView:
    """What a job noted, and what its traces say of it.

    Attributes:
        tables: Its own notes.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        reads: What the traces say about file readers.
        recorded: The steps of all windows.
    """

    tables: "JobTables"
    origin_ns: int
    reads: "FileReads"
    recorded: "Steps | Unavailable"


@dataclass(frozen=True)
class LaterView:
    """The later epochs of a job, where they are judged by themselves: times of both parts, and when they begin."""

    first: "PhaseTimes"
    later: "PhaseTimes"
    start_ns: int


@dataclass(frozen=True)
class PerTrace(Generic[Result]):
    """How a result comes from traces.

    Attributes:
        analyze: What one trace says; tables have a window of 0 and times of the trace.
        merge: Puts parts of several traces together, whose tables are on one axis by then. Merging what was merged with later
            parts has to give the same as merging all of them: of a run with very many windows only the new ones are merged.
        stored: The same from TensorFlow's stored step table, for logs whose trace is gone; why not, where it says nothing.
        between: Adds what lies between windows, where all have absolute times; takes also what came of it without the last ones,
            or None.
    """

    analyze: Callable[[TraceView], Result]
    merge: Callable[[Sequence[Result]], Result]
    stored: "Callable[[DerivedProfile], Result] | Unavailable"
    between: Callable[[Result, Result | None], Result] | None = None


@dataclass(frozen=True)
class PerJob(Generic[Result]):
    """How a result comes from what a job noted.

    Attributes:
        measure: What the notes say.
        missing: Why there is none for a log that no job of ours stands behind.
        of_log: What the traces of such a log say of its file readers instead (None for a log whose traces are gone).
        later: Turns what was measured of the later epochs alone into what holds for them; None where these are not measured.
    """

    measure: Callable[[JobView], Result]
    missing: str
    of_log: "Callable[[FileReads | None], Result] | None" = None
    later: Callable[[Result, LaterView], Result] | None = None


@dataclass(frozen=True)
class Analysis(Generic[Result]):
    """One analysis.

    Attributes:
        result: Type of its result.
        per_trace, per_job: Where it comes from; None where it does not.
        of_results: How it follows from what the traces gave, or, beside ``per_job``, what stands in where the job noted nothing.
        to_json: Its part of the JSON document.
        to_json_with: The same where other results belong into that part.
        json_name: Name of the part, if it is not that of the field.
        json_inside: The part of another analysis that holds this one.
    """

    result: type[Result]
    per_trace: PerTrace[Result] | None = None
    per_job: PerJob[Result] | None = None
    of_results: Callable[[Found], Result] | None = None
    to_json: Callable[[Result], Document] | None = None
    to_json_with: "Callable[[Results], Document] | None" = None
    json_name: str = ""
    json_inside: str = ""


def attempt(analysis: Callable[[], Result]) -> Result | Unavailable:
    """Return what the analysis finds, or why it cannot."""
    try:
        return analysis()
    except TraceIncompleteError as error:
        return Unavailable(str(error))


def as_it_is(found: Result, _: LaterView) -> Result:
    """Take a result of the later epochs as it was measured."""
    return found


def only_derived(what: str) -> Unavailable:
    """Say that a log without its trace does not tell something."""
    return Unavailable(
        f"The log holds only what TensorFlow derived from its trace, so {what} not known; keep the *.xplane.pb file "
        "beside it."
    )


def to_ms(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else float(duration_ns) / NS_PER_MS


def to_percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def times_to_ms(row: Document) -> Document:
    """Return a row with every ``…_ns`` as ``…_ms``."""
    return {
        name.removesuffix("_ns") + "_ms" if name.endswith("_ns") else name: to_ms(value)
        if name.endswith("_ns")
        else value
        for name, value in row.items()
    }


def longest_rows(table: pa.Table, length_ns: "np.ndarray[Any, Any]") -> list[Document]:
    """Return the rows of the largest lengths, the longest first."""
    order = np.argsort(-length_ns, kind="stable")[:LONGEST]
    rows: list[Document] = tables.take(table, order).to_pylist()
    return rows
