"""Everything that the analyses say about one trace, and how such parts go onto one axis: the fold of the diagnosis."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from pipeline_lab.analysis import (
    allocators,
    file_reads,
    idle_gaps,
    input_stalls,
    retracing,
    step_breakdown,
    steps,
    tables,
)
from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.allocators import Allocators
from pipeline_lab.analysis.file_reads import FileReads
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.analysis.input_stalls import InputStalls
from pipeline_lab.analysis.retracing import Retraces
from pipeline_lab.analysis.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps import Steps
from pipeline_lab.analysis.tf_data import fold as pipeline_fold
from pipeline_lab.analysis.tf_data.results import TfData
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.trace.schema import Salvage, Trace

Result = TypeVar("Result")


class Capture(Protocol):
    """What places a capture on the axis: its names, its window on its own axis, and when that axis begins."""

    @property
    def name(self) -> str: ...
    @property
    def window(self) -> str: ...
    @property
    def origin_epoch_ns(self) -> int | None: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...


Placed = TypeVar("Placed", bound=Capture)


@dataclass(frozen=True)
class Place(Generic[Placed]):
    """Where a capture lies: the number of its window, and what is added to its times."""

    capture: Placed
    window: int
    shift_ns: int


_DEVICE_THREAD = re.compile(r"tf_gpu_|.*(?:GPU|TPU):\d")


@dataclass(frozen=True, eq=False)
class TraceParts:
    """One trace, analysed; times are still its own.

    Attributes:
        name: Of the file, to put parts without a time in order.
        start_ns, end_ns: Its window on its own axis.
        unseen_device: Its host served a device that left no plane.
    """

    name: str
    host: str
    window: str
    origin_epoch_ns: int | None
    start_ns: int
    end_ns: int
    size_bytes: int
    events: int
    salvage: Salvage | None
    unseen_device: bool
    steps: Steps | Unavailable
    input_stalls: InputStalls | Unavailable
    step_breakdown: StepBreakdown | Unavailable
    retraces: Retraces | Unavailable
    idle_gaps: IdleGaps | Unavailable
    tf_data: TfData | Unavailable
    allocators: Allocators | Unavailable
    reads: FileReads


def analyse_trace(trace: Trace) -> TraceParts:
    """Run every analysis that looks at traces on one of them."""
    activity = Activity(trace)
    start_ns, end_ns = activity.extent
    found = attempt(lambda: steps.analyse(activity))
    return TraceParts(
        name=str(trace.path),
        host=trace.host,
        window=trace.window,
        origin_epoch_ns=trace.origin_epoch_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        size_bytes=trace.size_bytes,
        events=trace.event_count,
        salvage=trace.salvage,
        unseen_device=_serves_unseen_device(activity),
        steps=found,
        input_stalls=found
        if isinstance(found, Unavailable)
        else attempt(lambda: input_stalls.analyse(activity, found)),
        step_breakdown=found if isinstance(found, Unavailable) else step_breakdown.analyse(activity, found),
        retraces=found if isinstance(found, Unavailable) else retracing.analyse(activity, found),
        idle_gaps=attempt(lambda: idle_gaps.analyse(activity)),
        tf_data=attempt(lambda: pipeline_fold.analyse(activity, None if isinstance(found, Unavailable) else found)),
        allocators=attempt(lambda: allocators.analyse(trace)),
        reads=file_reads.analyse(trace, None if isinstance(found, Unavailable) else found),
    )


def attempt(analysis: Callable[[], Result]) -> Result | Unavailable:
    """Return what the analysis finds, or why it cannot."""
    try:
        return analysis()
    except TraceIncompleteError as error:
        return Unavailable(str(error))


def fold(merge: Callable[[Sequence[Result]], Result], parts: Sequence[Result | Unavailable]) -> Result | Unavailable:
    """Merge the parts that there are; without any, say why the first one is missing."""
    found = [part for part in parts if not isinstance(part, Unavailable)]
    if found or not parts:
        return attempt(lambda: merge(found))
    return next(part for part in parts if isinstance(part, Unavailable))


@dataclass(frozen=True, eq=False)
class Axis:
    """All parts on one time axis.

    Attributes:
        parts: In the order of time, with their windows numbered.
        origin_epoch_ns: Zero of the axis; None where not all captures say when they were made.
        windows: Number of windows.
    """

    parts: tuple[TraceParts, ...]
    origin_epoch_ns: int | None
    windows: int

    @property
    def reads(self) -> FileReads:
        return file_reads.merge([part.reads for part in self.parts])

    @property
    def kept_apart(self) -> bool:
        return self.origin_epoch_ns is None and len(self.parts) > 1


def place_on_axis(parts: Sequence[TraceParts], origin_epoch_ns: int | None = None) -> Axis:
    """Shift every part onto one axis; see :func:`find_places`."""
    places, zero = find_places(parts, origin_epoch_ns)
    placed = tuple(_place(place.capture, place.window, place.shift_ns) for place in places)
    return Axis(placed, zero, len({place.window for place in places}))


def find_places(
    captures: Sequence[Placed], origin_epoch_ns: int | None = None
) -> tuple[list[Place[Placed]], int | None]:
    """Find where each capture lies on one axis, in the order of time, and the epoch of the axis' zero.

    Where all captures have absolute times, the axis is theirs; otherwise they are laid one after another.

    Args:
        captures: In any order.
        origin_epoch_ns: Zero of the axis; the earliest capture's origin if not given.
    """
    known = [one.origin_epoch_ns for one in captures if one.origin_epoch_ns is not None]
    is_absolute = len(known) == len(captures)
    zero = min(known, default=None) if origin_epoch_ns is None else origin_epoch_ns
    if not is_absolute or zero is None:
        in_a_row = sorted(captures, key=lambda one: (one.window, one.name))
        return _lay_in_a_row(in_a_row), zero if not captures else None
    ordered = sorted(captures, key=lambda one: ((one.origin_epoch_ns or 0) + one.start_ns, one.name))
    numbers = _number_windows(ordered)
    return [Place(one, numbers[_window_key(one)], (one.origin_epoch_ns or 0) - zero) for one in ordered], zero


def _lay_in_a_row(ordered: Sequence[Placed]) -> list[Place[Placed]]:
    numbers = _number_windows(ordered)
    places, cursor = [], 0
    for one in ordered:
        places.append(Place(one, numbers[_window_key(one)], cursor - one.start_ns))
        cursor += one.end_ns - one.start_ns
    return places


def _number_windows(ordered: Sequence[Capture]) -> dict[str, int]:
    names = dict.fromkeys(_window_key(one) for one in ordered)
    return {name: number for number, name in enumerate(names)}


def _window_key(capture: Capture) -> str:
    """Return what the hosts of one window share; a lone file is a window of its own."""
    return capture.window or capture.name


def _place(part: TraceParts, window: int, shift_ns: int) -> TraceParts:
    return replace(
        part,
        start_ns=part.start_ns + shift_ns,
        end_ns=part.end_ns + shift_ns,
        steps=_placed(part.steps, window, shift_ns),
        input_stalls=_placed(part.input_stalls, window, shift_ns),
        step_breakdown=_placed(part.step_breakdown, window, shift_ns),
        retraces=_placed(part.retraces, window, shift_ns),
        idle_gaps=_placed(part.idle_gaps, window, shift_ns),
        tf_data=_placed(part.tf_data, window, shift_ns),
        allocators=_placed(part.allocators, window, shift_ns),
    )


def _placed(result: Result | Unavailable, window: int, shift_ns: int) -> Result | Unavailable:
    return result if isinstance(result, Unavailable) else tables.place(result, window, shift_ns)


def _serves_unseen_device(activity: Activity) -> bool:
    if activity.has_devices or activity.host is None:
        return False
    return any(_DEVICE_THREAD.match(line.name) for line in activity.host.lines)
