"""One trace becomes its parts: what each analysis of traces says about it, on its own axis.

Which analyses there are, and what each needs, is declared by them; see `declaration`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Found, PerTrace, TraceView, attempt
from pipeline_lab.analysis.diagnosis.executors import TraceExecutor, in_turn
from pipeline_lab.analysis.diagnosis.inputs import Progress
from pipeline_lab.analysis.diagnosis.reading import read
from pipeline_lab.analysis.diagnosis.trace_facts import TraceFacts
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.results import analyses
from pipeline_lab.analysis.sampling.file_reads import FileReads, count_reads
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.runs.record import EMULATED_PLANE
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile
from pipeline_lab.trace.parallel import WORTH_A_CORE, beside, has_other_core
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import TraceFile

AnyResults = dict[str, Any]
"""Results, or why they are missing, by their names in ``Results``."""

READS, FACTS = "reads", "facts"
"""Names of what the traces say about file readers, and of what is known of them as a whole; both are merged as results are."""
_DEVICE_MEMORY = re.compile(r"[GT]PU_\d|gpu_async_\d")
"""Allocators of a device: ``GPU_0_bfc``, with cudaMallocAsync ``gpu_async_0``. (``gpu_host_bfc`` is memory of the host.)"""


@dataclass(frozen=True, eq=False)
class TraceParts:
    """One trace, analyzed; times are still its own.

    Attributes:
        name: Of the file, to put parts without a time in order.
        start_ns, end_ns: Its window on its own axis.
        facts: What is known of it as a whole.
        found: What each analysis of traces says.
        reads: What it says about file readers.
    """

    name: str
    window: str
    origin_epoch_ns: int | None
    start_ns: int
    end_ns: int
    facts: TraceFacts
    found: AnyResults
    reads: FileReads

    def say(self, name: str) -> Any:
        """Return what it says, or why it says nothing."""
        beside = {READS: self.reads, FACTS: self.facts}
        return beside[name] if name in beside else self.found[name]

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


def analyze_trace(trace: Trace) -> TraceParts:
    """Run every analysis that looks at traces on one of them."""
    activity = Activity(trace)
    found, reads = _run_analyses(activity)
    start_ns, end_ns = activity.extent
    return TraceParts(
        name=str(trace.path),
        window=trace.window,
        origin_epoch_ns=trace.origin_epoch_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        facts=TraceFacts(
            hosts=(trace.host,),
            size_bytes=trace.size_bytes,
            events=trace.event_count,
            lost=trace.salvage,
            damaged_files=int(trace.salvage is not None),
            unseen_device=_uses_unseen_device(activity, found["allocators"]),
            has_device=activity.has_devices,
            is_emulated=trace.plane(EMULATED_PLANE) is not None,
            is_of_jax=activity.is_of_jax,
            errors=trace.errors,
            warnings=trace.warnings,
        ),
        found={name: found[name] for name, _ in per_trace()},
        reads=reads,
    )


def _run_analyses(activity: Activity) -> tuple[AnyResults, FileReads]:
    """Run them, of a long trace beside each other."""
    trace, found = activity.trace, AnyResults()
    view, work = TraceView(activity, Found(found)), dict(per_trace())

    def analyze(names: Iterable[str]) -> None:
        for name in names:
            found[name] = attempt(partial(work[name].analyze, view))

    def analyze_others() -> None:
        analyze(name for name in work if name not in ("steps", *_LONG))

    def count(steps: Steps | Unavailable) -> FileReads:
        return count_reads(trace, steps if isinstance(steps, Steps) else None)

    if trace.event_count < WORTH_A_CORE or not has_other_core():
        analyze(("steps", *_LONG))
        analyze_others()
        return found, count(found["steps"])

    found["steps"] = expected = Future[Any]()  # what takes long asks for them in the end

    def analyze_steps_and_others() -> None:
        with _failing_with(expected):
            analyze(["steps"])
        expected.set_result(found["steps"])
        analyze_others()

    def analyze_all() -> None:
        with _failing_with(expected):  # no other thread may start
            beside(partial(analyze, _LONG), analyze_steps_and_others)

    _, reads = beside(analyze_all, lambda: count(expected.result()))
    return found, reads


@contextmanager
def _failing_with(expected: Future[Any]) -> Iterator[None]:
    """Hand an error to those who wait for what it keeps from being made."""
    try:
        yield
    except BaseException as error:
        if not expected.done():
            expected.set_exception(error)
        raise


def read_stored(profile: DerivedProfile) -> TraceParts:
    """Turn what TensorFlow 2.2 to 2.8 stored beside a trace that is gone into parts; its steps have no times."""
    return TraceParts(
        name=str(profile.path),
        window="",
        origin_epoch_ns=None,
        start_ns=0,
        end_ns=int(profile.steps.total_ns.sum()),
        facts=TraceFacts(hosts=(profile.host,), size_bytes=profile.path.stat().st_size if profile.path.exists() else 0),
        found={name: _stored(analysis, profile) for name, analysis in per_trace()},
        reads=FileReads({}, {}),
    )


def _stored(analysis: PerTrace[Any], profile: DerivedProfile) -> object:
    stored = analysis.stored
    return stored if isinstance(stored, Unavailable) else attempt(lambda: stored(profile))


def per_trace() -> Iterator[tuple[str, PerTrace[Any]]]:
    return ((name, one.per_trace) for name, one in analyses().items() if one.per_trace is not None)


def _uses_unseen_device(activity: Activity, allocators: Allocators | Unavailable) -> bool:
    """Say whether an accelerator was handed work, or its memory was, while nothing of its work was recorded."""
    if activity.has_unseen_work:
        return True
    if activity.has_devices or activity.is_unfinished or isinstance(allocators, Unavailable):
        return False
    return any(_DEVICE_MEMORY.match(allocator.name) for allocator in allocators.allocators)


def analyze_file(file: TraceFile) -> tuple[TraceParts, ...] | Unavailable:
    """Return what one file says, as a rule of one session, or why it cannot be read."""
    try:
        return tuple(map(analyze_trace, read(file).by_session()))
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
        spread: Who does it, if there are several.
    """
    found: dict[int, tuple[TraceParts, ...] | Unavailable] = {}
    waiting = dict(enumerate(names))

    def tell() -> None:
        if progress and waiting:
            progress(len(found), len(files), next(iter(waiting.values())))

    tell()
    for place, parts in (spread if len(files) > 1 else in_turn)(analyze_file, files):
        found[place] = parts
        del waiting[place]
        tell()
    return [found[place] for place in range(len(files))]
