"""The fold of a diagnosis: each trace becomes its parts, parts are put on one axis and merged, and the whole is judged.

Parts are merged in the order of their times, whoever made them (this process, an executor's processes or machines) and
whenever they came back. Which analyses there are, and what each needs, is declared by them; see `declaration`.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Found, JobView, PerTrace, TraceView, attempt
from pipeline_lab.analysis.diagnosis.axis import PlacedCapture, place_captures, window_key
from pipeline_lab.analysis.diagnosis.inputs import Progress
from pipeline_lab.analysis.diagnosis.later_epochs import ONLY_THE_FIRST, put_in
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Results, Source, analyses
from pipeline_lab.analysis.sampling.file_reads import FileReads, add_reads, count_reads
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.analysis.verdict.recording_findings import why_no_device
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.runs.record import EMULATED_PLANE
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile
from pipeline_lab.trace.parallel import beside
from pipeline_lab.trace.schema import MOST_MESSAGES, Salvage, Trace
from pipeline_lab.trace.sources import TraceFile

Item = TypeVar("Item")
Result = TypeVar("Result")
AnyResults = dict[str, Any]
"""Results, or why they are missing, by their names in ``Results``."""

READS = "reads"
"""Name of what the traces say about file readers, which is merged as the results are."""
Merge = Callable[[Sequence[Any]], Any]
"""Puts together what several captures say; the first may be what was merged of earlier ones."""

NO_TRACES = "No profile window has been recorded; let the job run until its first window is written, with profiling on."
_DEVICE_MEMORY = re.compile(r"[GT]PU_\d|gpu_async_\d")
"""Allocators of a device: ``GPU_0_bfc``, with cudaMallocAsync ``gpu_async_0``. (``gpu_host_bfc`` is memory of the host.)"""


@dataclass(frozen=True, eq=False)
class TraceParts:
    """One trace, analyzed; times are still its own.

    Attributes:
        name: Of the file, to put parts without a time in order.
        start_ns, end_ns: Its window on its own axis.
        is_emulated: Its device is the emulated accelerator.
        unseen_device: The job used an accelerator of whose work it holds nothing.
        has_device: It holds the work of an accelerator.
        errors, warnings: Of the profiler.
        found: What each analysis of traces says.
        reads: What it says about file readers.
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
    is_emulated: bool
    found: AnyResults
    reads: FileReads
    has_device: bool = False
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def say(self, name: str) -> Any:
        """Return what it says, or why it says nothing."""
        return self.reads if name == READS else self.found[name]

    @property
    def steps(self) -> Steps | None:
        steps = self.found["steps"]
        return steps if isinstance(steps, Steps) else None

    def place(self, window: int, shift_ns: int) -> "TraceParts":
        """Return the parts on the common axis, as those of that window."""
        placed = {
            name: result if isinstance(result, Unavailable) else tables.place(result, window, shift_ns)
            for name, result in self.found.items()
        }
        return replace(self, start_ns=self.start_ns + shift_ns, end_ns=self.end_ns + shift_ns, found=placed)


_LONG = ("tf_data",)
"""What takes as long as all others together."""
WORTH_A_CORE = 200_000
"""Events of a trace whose analyses run on two cores."""


def analyze_trace(trace: Trace) -> TraceParts:
    """Run every analysis that looks at traces on one of them."""
    activity, found = Activity(trace), AnyResults()
    view, work = TraceView(activity, Found(found)), dict(_per_trace())

    def analyze(names: Iterable[str]) -> None:
        for name in names:
            found[name] = attempt(partial(work[name].analyze, view))

    def analyze_others() -> FileReads:
        analyze(name for name in work if name not in ("steps", *_LONG))
        reads = count_reads(trace, steps if isinstance(steps, Steps) else None)
        activity.forget_kinds()
        return reads

    analyze(["steps"])
    steps = found["steps"]
    if trace.event_count < WORTH_A_CORE:
        analyze(_LONG)
        reads = analyze_others()
    else:  # what they share was made for the steps
        _, reads = beside(partial(analyze, _LONG), analyze_others)
    start_ns, end_ns = activity.extent
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
        is_emulated=trace.plane(EMULATED_PLANE) is not None,
        unseen_device=_uses_unseen_device(activity, found["allocators"]),
        found={name: found[name] for name in work},
        reads=reads,
        has_device=activity.has_devices,
        errors=trace.errors,
        warnings=trace.warnings,
    )


def read_stored(profile: DerivedProfile) -> TraceParts:
    """Turn what TensorFlow 2.2 to 2.8 stored beside a trace that is gone into parts; its steps have no times."""
    return TraceParts(
        name=str(profile.path),
        host=profile.host,
        window="",
        origin_epoch_ns=None,
        start_ns=0,
        end_ns=int(profile.steps.total_ns.sum()),
        size_bytes=profile.path.stat().st_size if profile.path.exists() else 0,
        events=0,
        salvage=None,
        unseen_device=False,
        is_emulated=False,
        found={name: _stored(analysis, profile) for name, analysis in _per_trace()},
        reads=FileReads({}, {}),
    )


def _stored(analysis: PerTrace[Any], profile: DerivedProfile) -> object:
    stored = analysis.stored
    return stored if isinstance(stored, Unavailable) else attempt(lambda: stored(profile))


def _per_trace() -> Iterator[tuple[str, PerTrace[Any]]]:
    return ((name, one.per_trace) for name, one in analyses().items() if one.per_trace is not None)


def _uses_unseen_device(activity: Activity, allocators: Allocators | Unavailable) -> bool:
    """Say whether an accelerator was handed work, or its memory was, while nothing of its work was recorded."""
    if activity.has_unseen_work:
        return True
    if activity.has_devices or activity.is_unfinished or isinstance(allocators, Unavailable):
        return False
    return any(_DEVICE_MEMORY.match(allocator.name) for allocator in allocators.allocators)


class TraceExecutor(Protocol):
    """Does a task for every item and yields the item's place with its result, in whatever order they end."""

    def __call__(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...


def in_turn(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """Do the tasks here, one after another: one trace in memory at a time."""
    for place, item in enumerate(items):
        yield place, task(item)


def analyze_file(file: TraceFile) -> tuple[TraceParts, ...] | Unavailable:
    """Return what one file says, as a rule of one session, or why it cannot be read."""
    try:
        return tuple(map(analyze_trace, file.read().by_session()))
    except TraceReadError as error:
        return Unavailable(str(error))


def analyze_files(
    files: Sequence[TraceFile], names: Sequence[str], progress: Progress | None = None, spread: TraceExecutor = in_turn
) -> list[tuple[TraceParts, ...] | Unavailable]:
    """Return what each file says, in the order of the files.

    Args:
        files: To analyze.
        names: What the progress calls them.
        progress: Told how many are done, how many there are, and the name of one that is not.
        spread: Who does it.
    """
    found: dict[int, tuple[TraceParts, ...] | Unavailable] = {}
    waiting = dict(enumerate(names))

    def tell() -> None:
        if progress and waiting:
            progress(len(found), len(files), next(iter(waiting.values())))

    tell()
    for place, parts in spread(analyze_file, files):
        found[place] = parts
        del waiting[place]
        tell()
    return [found[place] for place in range(len(files))]


class Fold:
    """What was merged of some captures, to which only later ones are added: a new window costs what is in it."""

    def __init__(self) -> None:
        self._parts: Sequence[TraceParts] = ()
        self._merged: AnyResults = {}

    def merge(self, parts: Sequence[TraceParts], merges: Mapping[str, Merge]) -> AnyResults:
        """Merge captures.

        Args:
            parts: At least one.
            merges: How to merge what the captures say, by the names of the results; the same at every call.

        Returns:
            Each result; where no capture has it, why the first one has not.
        """
        is_longer = len(self._parts) <= len(parts) and all(map(operator.is_, self._parts, parts))
        before = self._merged if is_longer else {}
        new = parts[len(self._parts) :] if is_longer else parts
        self._parts, self._merged = parts, {name: _add(name, merge, before, new) for name, merge in merges.items()}
        return {name: parts[0].say(name) if found is None else found for name, found in self._merged.items()}


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
        self.folds: defaultdict[str, Fold] = defaultdict(Fold)
        self._given: Sequence[TraceParts] = ()
        self._origin_epoch_ns: int | None = None
        self._placed: tuple[TraceParts, ...] = ()
        self._windows: dict[str, int] = {}

    def place(self, parts: Sequence[TraceParts], origin_epoch_ns: int | None) -> "Axis":
        """Put captures onto one axis: those that were on it stay, where the others came later."""
        places, zero = self._place_later(parts, origin_epoch_ns)
        if zero is None:
            places, zero = place_captures(parts, origin_epoch_ns)
            self._placed, self._windows = (), {}
        self._given, self._origin_epoch_ns = parts, origin_epoch_ns
        self._placed += tuple(place.capture.place(place.window, place.shift_ns) for place in places)
        self._windows |= {window_key(place.capture): place.window for place in places}
        return Axis(self._placed, zero, len(self._windows), self)

    def _place_later(
        self, parts: Sequence[TraceParts], origin_epoch_ns: int | None
    ) -> tuple[list[PlacedCapture[TraceParts]], int | None]:
        """Place the captures that came since; without a zero where all have to be placed again."""
        known = len(self._given)
        if not known or origin_epoch_ns is None or origin_epoch_ns != self._origin_epoch_ns:
            return [], None
        if known > len(parts) or not all(map(operator.is_, self._given, parts)):
            return [], None
        places, zero = place_captures(parts[known:], origin_epoch_ns, self._windows)
        is_later = all(self._placed[-1].start_ns < place.capture.start_ns + place.shift_ns for place in places[:1])
        return places, zero if is_later else None


@dataclass(frozen=True, eq=False)
class Axis:
    """All parts on one time axis.

    Attributes:
        parts: In the order of time, with their windows numbered.
        origin_epoch_ns: Zero of the axis; None where not all captures say when they were made.
        windows: Number of windows.
        memory: What was made of most of them before.
    """

    parts: tuple[TraceParts, ...]
    origin_epoch_ns: int | None
    windows: int
    memory: FoldMemory

    @property
    def merged(self) -> AnyResults:
        """What all captures say together, without what lies between them and follows from it."""
        return _merge(self, self.parts, NO_TRACES)

    @property
    def reads(self) -> FileReads:
        """What the traces say about file readers."""
        reads: FileReads = self.merged[READS] if self.parts else add_reads(())
        return reads

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


def _merge(axis: Axis, parts: Sequence[TraceParts], missing: str) -> AnyResults:
    merges = {READS: add_reads, **{name: analysis.merge for name, analysis in _per_trace()}}
    if not parts:
        return dict.fromkeys(merges, Unavailable(missing))
    return axis.memory.folds[missing].merge(parts, merges)


def merge_parts(axis: Axis, parts: Sequence[TraceParts], missing: str) -> AnyResults:
    """Merge some of the captures of an axis, and add what follows from the merged results.

    Args:
        axis: Theirs.
        parts: Some of its parts.
        missing: Why there are none.
    """
    found = _merge(axis, parts, missing)
    del found[READS]
    for name, analysis in _per_trace():
        if analysis.between is not None and not axis.kept_apart and not isinstance(found[name], Unavailable):
            found[name] = analysis.between(found[name])
    for name, one in analyses().items():
        if one.of_results is not None and one.per_job is None:
            found[name] = attempt(partial(one.of_results, Found(found)))
    return found


def measure_job(job: JobView) -> AnyResults:
    """Run every analysis that looks at what a job noted."""
    return {
        name: attempt(partial(one.per_job.measure, job)) for name, one in analyses().items() if one.per_job is not None
    }


def without_job(reads: FileReads | None) -> AnyResults:
    """Return what there is for a log that no job of ours stands behind: what its traces say about files.

    Args:
        reads: None for a log whose traces are gone.
    """

    def measure(of_log: Callable[[FileReads | None], object] | None, missing: str) -> object:
        return Unavailable(missing) if of_log is None else attempt(lambda: of_log(reads))

    return {
        name: measure(one.per_job.of_log, one.per_job.missing)
        for name, one in analyses().items()
        if one.per_job is not None
    }


def describe(
    path: Path,
    kind: str,
    axis: Axis,
    unreadable: tuple[str, ...] = (),
    *,
    is_emulated: bool = False,
    uses_device: bool = False,
    damaged_tables: tuple[str, ...] = (),
) -> Source:
    """Say what was analyzed.

    Args:
        path, kind: Of the run or log.
        axis: Its traces.
        unreadable: What is wrong with those that could not be read.
        is_emulated: The job's options say that its accelerator was emulated.
        uses_device: The job is known to train on an accelerator.
        damaged_tables: What is wrong with what the job noted.
    """
    unseen = uses_device and bool(axis.parts) and not any(part.has_device for part in axis.parts)
    return Source(
        path=str(path),
        kind=kind,
        hosts=tuple(sorted({part.host for part in axis.parts})),
        windows=axis.windows,
        size_bytes=sum(part.size_bytes for part in axis.parts),
        events=sum(part.events for part in axis.parts),
        salvaged=_add_salvage([part.salvage for part in axis.parts if part.salvage is not None]),
        kept_apart=axis.kept_apart,
        unseen_device=unseen or any(part.unseen_device for part in axis.parts),
        unreadable=unreadable,
        damaged_tables=damaged_tables,
        is_emulated=is_emulated or any(part.is_emulated for part in axis.parts),
        errors=_different(part.errors for part in axis.parts),
        warnings=_different(part.warnings for part in axis.parts),
    )


def _different(messages: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(chain.from_iterable(messages)), MOST_MESSAGES))


def conclude(
    source: Source,
    axis: Axis,
    job: AnyResults,
    other_cpu_percent: float | None = None,
    later: LaterEpochs | None = None,
) -> Diagnosis:
    """Put everything together and judge it.

    Args:
        source: What was analyzed.
        axis: The traces.
        job: What the job noted.
        other_cpu_percent: What other processes took meanwhile; see ``Results``.
        later: Its later epochs, where they are to be judged by themselves.
    """
    traces = _merge_seen(source, axis, axis.parts, NO_TRACES)
    results = Results(
        source=source,
        origin_epoch_ns=axis.origin_epoch_ns,
        other_cpu_percent=other_cpu_percent,
        **traces,
        **(job | _stand_ins(job, traces)),
    )
    found = {field.name: getattr(results, field.name) for field in fields(results)}
    if later is not None:
        ran = put_in(results, later)
        behind = _merge_seen(source, axis, windows_after(axis.parts, later.start_ns), ONLY_THE_FIRST)
        verdict = reach_verdict(replace(ran, **behind), later.first)
        if verdict.verdict_class is not VerdictClass.UNKNOWN:
            return Diagnosis(**found, findings=find_all_findings(ran), verdict=verdict, later_epochs=later)
    return Diagnosis(**found, findings=find_all_findings(results), verdict=reach_verdict(results))


def _merge_seen(source: Source, axis: Axis, parts: Sequence[TraceParts], missing: str) -> AnyResults:
    """Merge captures; host compute does not stand for an accelerator whose work was not recorded."""
    found = merge_parts(axis, parts, missing)
    return found | {"idle_gaps": Unavailable(why_no_device(source))} if source.unseen_device else found


def windows_after(parts: Sequence[TraceParts], start_ns: int) -> list[TraceParts]:
    """Return the captures whose steps all lie after some moment; the first one's middle decides.

    Step numbers would not do: markers need not count as the job does, and a rhythm of waits has no numbers.
    """
    return [part for part in parts if part.steps is not None and _first_middle(part.steps) >= start_ns]


def _first_middle(steps: Steps) -> float:
    return float(tables.intervals(steps.table).mean(axis=1).min())


def _stand_ins(job: AnyResults, traces: AnyResults) -> AnyResults:
    """Return what the traces give for analyses about which the job noted nothing."""
    return {
        name: attempt(partial(one.of_results, Found(traces)))
        for name, one in analyses().items()
        if one.of_results is not None and one.per_job is not None and isinstance(job[name], Unavailable)
    }


def _add_salvage(losses: list[Salvage]) -> Salvage | None:
    if not losses:
        return None
    more = f" {len(losses) - 1} more files are damaged too." if len(losses) > 1 else ""
    return Salvage(
        bytes_lost=sum(loss.bytes_lost for loss in losses),
        events_kept=sum(loss.events_kept for loss in losses),
        reason=losses[0].reason + more,
    )
