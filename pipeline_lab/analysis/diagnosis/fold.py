"""The fold of a diagnosis: each trace becomes its parts, and parts are put on one axis and merged.

Parts are merged in the order of their times, whoever made them (this process, an executor's processes or machines) and
whenever they came back.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.diagnosis.inputs import Progress
from pipeline_lab.analysis.idle import idle_gaps
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input import input_stalls
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.machine import allocators
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.sampling import file_reads
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.steps import recorded_steps, retracing, step_breakdown
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.tf_data import traced_pipeline as pipeline_fold
from pipeline_lab.analysis.tf_data.tf_data import TfData
from pipeline_lab.errors import TraceIncompleteError, TraceReadError, Unavailable
from pipeline_lab.trace.schema import Salvage, Trace
from pipeline_lab.trace.trace_file import TraceFile

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
    found = attempt(lambda: recorded_steps.find_steps(activity))
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
        else attempt(lambda: input_stalls.find_stalls(activity, found)),
        step_breakdown=found if isinstance(found, Unavailable) else step_breakdown.divide_steps(activity, found),
        retraces=found if isinstance(found, Unavailable) else retracing.find_retraces(activity, found),
        idle_gaps=attempt(lambda: idle_gaps.find_gaps(activity)),
        tf_data=attempt(
            lambda: pipeline_fold.analyse_pipeline(activity, None if isinstance(found, Unavailable) else found)
        ),
        allocators=attempt(lambda: allocators.read_allocators(trace)),
        reads=file_reads.count_reads(trace, None if isinstance(found, Unavailable) else found),
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
        return file_reads.add_reads([part.reads for part in self.parts])

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


Item = TypeVar("Item")


class Spread(Protocol):
    """Does a task for every item and yields the item's place with its result, in whatever order they end."""

    def __call__(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...


def in_turn(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """Do the tasks here, one after another: one trace in memory at a time."""
    for place, item in enumerate(items):
        yield place, task(item)


def analyse_file(file: TraceFile) -> TraceParts | Unavailable:
    """Return what one trace says, or why it cannot be read."""
    try:
        return analyse_trace(file.read())
    except TraceReadError as error:
        return Unavailable(str(error))


def analyse_files(
    files: Sequence[TraceFile], names: Sequence[str], progress: Progress | None = None, spread: Spread = in_turn
) -> list[TraceParts | Unavailable]:
    """Return what each trace says, in the order of the files.

    Args:
        files: To analyse.
        names: What the progress calls them.
        progress: Told how many are done, how many there are, and the name of one that is not.
        spread: Who does it.
    """
    found: dict[int, TraceParts | Unavailable] = {}
    waiting = dict(enumerate(names))

    def tell() -> None:
        if progress and waiting:
            progress(len(found), len(files), next(iter(waiting.values())))

    tell()
    for place, parts in spread(analyse_file, files):
        found[place] = parts
        del waiting[place]
        tell()
    return [found[place] for place in range(len(files))]
