"""Parts of several traces, put on one axis and merged.

They are merged in the order of their times, whoever made them (this process, an executor's processes or machines) and
whenever they came back; of a run that goes on, what was merged stays and later windows are added to it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Found, attempt
from pipeline_lab.analysis.diagnosis.axis import PlacedCapture, place_captures, window_key
from pipeline_lab.analysis.diagnosis.trace_facts import TraceFacts, add_facts
from pipeline_lab.analysis.diagnosis.trace_parts import FACTS, READS, AnyResults, TraceParts, per_trace
from pipeline_lab.analysis.results import analyses
from pipeline_lab.analysis.sampling.file_reads import FileReads, add_reads
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable

Merge = Callable[[Sequence[Any]], Any]
"""Puts together what several captures say; the first may be what was merged of earlier ones."""


class Scope(StrEnum):
    """Which captures of an axis are merged; its text says why there are none."""

    ALL = "No profile window has been recorded; let the job run until its first window is written, with profiling on."
    LATER_EPOCHS = (
        "No profile window was recorded after the first epoch, which differs from the later ones; record windows for longer, or "
        "more epochs."
    )


class KnownParts:
    """How much of a sequence of parts is known already: as a rule it is one list, to which the thread that asks adds more."""

    def __init__(self) -> None:
        self._parts: Sequence[TraceParts] = ()
        self._known = 0

    def new_of(self, parts: Sequence[TraceParts]) -> Sequence[TraceParts] | None:
        """Return what follows the known parts; None if these do not begin with them."""
        if parts is not self._parts and parts[: self._known] != self._parts[: self._known]:  # equal only to themselves
            return None
        return parts[self._known :]

    def remember(self, parts: Sequence[TraceParts]) -> None:
        """Know these parts; nothing in them may change but that more are added at the end."""
        self._parts, self._known = parts, len(parts)


class Fold:
    """What was merged of some captures, to which only later ones are added: a new window costs what is in it."""

    def __init__(self) -> None:
        self._parts = KnownParts()
        self._merged: AnyResults = {}
        self._with_between: AnyResults = {}

    def merge(self, parts: Sequence[TraceParts], merges: Mapping[str, Merge]) -> AnyResults:
        """Merge captures.

        Args:
            parts: At least one.
            merges: How to merge what the captures say, by the names of the results; the same at every call.

        Returns:
            Each result; where no capture has it, why the first one has not.
        """
        new = self._parts.new_of(parts)
        if new is None:
            self._merged, self._with_between, new = {}, {}, parts
        self._parts.remember(parts)
        self._merged = {name: _add(name, merge, self._merged, new) for name, merge in merges.items()}
        return {name: parts[0].say(name) if found is None else found for name, found in self._merged.items()}

    def add_between(self, name: str, found: Any, between: Callable[[Any, Any], Any]) -> Any:
        """Add to a merged result what lies between its captures.

        Args:
            name: Of the result.
            found: What :meth:`merge` returned.
            between: Adds it; see :class:`~pipeline_lab.analysis.declaring.declaration.PerTrace`.
        """
        self._with_between[name] = between(found, self._with_between.get(name))
        return self._with_between[name]


def _add(name: str, merge: Merge, before: AnyResults, new: Sequence[TraceParts]) -> Any:
    """Return what was merged before with what new captures say; None where none says anything."""
    found = [said for part in new if not isinstance(said := part.say(name), Unavailable)]
    known = before.get(name)
    if known is None:
        return merge(found) if found else None
    if not found:
        return known
    with tables.appending():
        return merge([known, *found])


class FoldMemory:
    """What was made of the windows of a run so far: where they lie on the axis, and what was merged of them."""

    def __init__(self) -> None:
        self.folds: defaultdict[Scope, Fold] = defaultdict(Fold)
        self._given = KnownParts()
        self._origin_epoch_ns: int | None = None
        self._placed: list[TraceParts] = []
        self._windows: dict[str, int] = {}

    def place(self, parts: Sequence[TraceParts], origin_epoch_ns: int | None) -> "Axis":
        """Put captures onto one axis: those that were on it stay, where the others came later."""
        places, zero = self._place_later(parts, origin_epoch_ns)
        if zero is None:
            places, zero = place_captures(parts, origin_epoch_ns)
            self._placed, self._windows = [], {}
        self._given.remember(parts)
        self._origin_epoch_ns = origin_epoch_ns
        self._placed += [place.capture.place(place.window, place.shift_ns) for place in places]
        self._windows |= {window_key(place.capture): place.window for place in places}
        return Axis(self._placed, zero, len(self._windows), self)

    def _place_later(
        self, parts: Sequence[TraceParts], origin_epoch_ns: int | None
    ) -> tuple[list[PlacedCapture[TraceParts]], int | None]:
        """Place the captures that came since; without a zero where all have to be placed again."""
        if not self._placed or origin_epoch_ns is None or origin_epoch_ns != self._origin_epoch_ns:
            return [], None
        new = self._given.new_of(parts)
        if new is None:
            return [], None
        places, zero = place_captures(new, origin_epoch_ns, self._windows)
        is_later = all(self._placed[-1].start_ns < place.capture.start_ns + place.shift_ns for place in places[:1])
        return places, zero if is_later else None


@dataclass(frozen=True, eq=False)
class Axis:
    """All parts on one time axis.

    Attributes:
        parts: In the order of time, with their windows numbered; what is placed later is added to them.
        origin_epoch_ns: Zero of the axis; None where not all captures say when they were made.
        windows: Number of windows.
        memory: What was made of most of them before.
    """

    parts: Sequence[TraceParts]
    origin_epoch_ns: int | None
    windows: int
    memory: FoldMemory

    @cached_property
    def merged(self) -> AnyResults:
        """What all captures say together, without what lies between them and follows from it."""
        return _merge(self, self.parts, Scope.ALL)

    @property
    def reads(self) -> FileReads:
        """What the traces say about file readers."""
        reads: FileReads = self.merged[READS] if self.parts else add_reads(())
        return reads

    @property
    def facts(self) -> TraceFacts:
        """What is known of the traces as a whole."""
        facts: TraceFacts = self.merged[FACTS] if self.parts else add_facts(())
        return facts

    @property
    def steps(self) -> Steps | Unavailable:
        """The steps of all windows."""
        steps: Steps | Unavailable = self.merged["steps"]
        return steps

    @property
    def kept_apart(self) -> bool:
        return self.origin_epoch_ns is None and len(self.parts) > 1


def place_on_axis(
    parts: Sequence[TraceParts], origin_epoch_ns: int | None = None, memory: FoldMemory | None = None
) -> Axis:
    """Shift every part onto one axis; see :func:`place_captures`."""
    return (memory or FoldMemory()).place(parts, origin_epoch_ns)


def _merge(axis: Axis, parts: Sequence[TraceParts], scope: Scope) -> AnyResults:
    merges: dict[str, Merge] = {READS: add_reads, FACTS: add_facts}
    merges |= {name: analysis.merge for name, analysis in per_trace()}
    if not parts:
        return dict.fromkeys(merges, Unavailable(scope.value))
    return axis.memory.folds[scope].merge(parts, merges)


def merge_parts(axis: Axis, parts: Sequence[TraceParts], scope: Scope) -> AnyResults:
    """Merge captures of an axis, and add what follows from the merged results.

    Args:
        axis: Theirs.
        parts: Those of the scope.
        scope: Which they are.
    """
    found = _merge(axis, parts, scope)
    del found[READS], found[FACTS]
    for name, analysis in per_trace():
        if analysis.between is not None and not axis.kept_apart and not isinstance(found[name], Unavailable):
            found[name] = axis.memory.folds[scope].add_between(name, found[name], analysis.between)
    for name, one in analyses().items():
        if one.of_results is not None and one.per_job is None:
            found[name] = attempt(partial(one.of_results, Found(found)))
    return found
