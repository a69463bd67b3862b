"""Find what marks the steps of a trace: explicit traces, Keras, TraceContext, else the device's own ``Steps`` line.

XProf groups steps from root events and loses explicit markers as soon as a step holds a loop. Here a marker is simply
an event that carries a step number; what runs inside it does not matter.
"""

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.evaluations import find_evaluations
from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals, length_within, union, union_by
from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.schema import Line, Plane, Trace

_NO_MARKER = re.compile(
    r"Iterator|ThreadpoolListener|Memory(?:Alloc|Dealloc)|ExecutorState|TFE_|Eager|Kernel|Prefetch|InstantiatedCaptured|\$"
)
_USUAL = {
    "train": (0, "Trace 'train' (step_num)"),
    "Profiled batch": (2, "Keras 'Profiled batch' (step_num)"),
    "TraceContext": (3, "TraceContext (step_num)"),
}
"""Rank and label of the usual markers, see `_Candidate`."""
_KERAS_FUNCTIONS = ("train_function", "multi_step_on_iterator")
_EVALUATION = ("test", "predict", "eval", "valid")


def asked_of(name: str) -> str | None:
    """Return the stat that numbers the steps which a usual marker marks, None for other events."""
    return "step_num" if name in _USUAL else None


@dataclass(frozen=True, eq=False)
class Markers:
    """The marked intervals of one trace, ordered, apart from each other.

    Attributes:
        label: What marks the steps, in the field's words.
        is_numbered: The numbers are the job's own; otherwise they only count what the capture holds.
        number: Step number of each, shape (n,).
        start_ns, end_ns: The marked interval itself, shape (n,).
        line: The thread that holds them; None for device markers.
        event_name: The marker's name; None for device markers.
        resumes: Whether the job evaluated the model between the step before and each, shape (n,); None where nothing tells.
    """

    label: str
    is_numbered: bool
    number: IntArray
    start_ns: IntArray
    end_ns: IntArray
    line: Line | None = None
    event_name: str | None = None
    resumes: NDArray[np.bool_] | None = None

    @property
    def intervals(self) -> IntArray:
        return union(self.start_ns, self.end_ns)

    def follows(self) -> NDArray[np.bool_]:
        """Say which step comes right after the one before it (no evaluation, epoch end or other device in between)."""
        stride = np.diff(self.number)
        usual = _most_common(stride[stride > 0])
        follows = np.concatenate(([False], stride == usual))
        return follows if self.resumes is None else follows & ~self.resumes


def find_markers(trace: Trace) -> Markers | None:
    """Return the best step markers of a trace, or None if nothing marks its steps."""
    host = trace.host_plane
    return (_host_markers(host) if host else None) or _device_markers(trace)


_UNNUMBERED = 20
"""Ranks from here on belong to markers without a step number of the job."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One name on one thread that may mark steps; the smallest rank wins, then the most events."""

    name: str
    label: str
    rank: int
    line: Line
    rows: IntArray
    number: IntArray


def _host_markers(host: Plane) -> Markers | None:
    possible = host.name_mask(lambda name: not _NO_MARKER.match(name) and event_names.operation(name) is None)
    found: list[_Candidate] = []
    for line in host.lines:
        if line.count and not event_names.is_runtime_thread(line.name):
            found += _candidates(host, line, possible)
    if not found:
        return None
    best = min(found, key=lambda candidate: (candidate.rank, -len(candidate.rows)))
    start = best.line.start_ns[best.rows]
    number, start, end = _one_per_step(best.number, start, start + best.line.duration_ns[best.rows])
    evaluations = find_evaluations(host, best.line)
    evaluated_before = np.searchsorted(evaluations[:, 0], start)
    resumes = np.diff(evaluated_before, prepend=evaluated_before[:1]) > 0
    return Markers(best.label, best.rank < _UNNUMBERED, number, start, end, best.line, best.name, resumes)


def _outside(candidate: _Candidate, evaluations: IntArray) -> _Candidate:
    """Leave out what was called while the model was evaluated, and steps in which it was."""
    start, duration = candidate.line.start_ns[candidate.rows], candidate.line.duration_ns[candidate.rows]
    trains = length_within(evaluations, as_intervals(start, start + np.maximum(duration, 1))) == 0
    return replace(candidate, rows=candidate.rows[trains], number=candidate.number[trains])


def _candidates(host: Plane, line: Line, possible: NDArray[np.bool_]) -> list[_Candidate]:
    """Return the names of a thread whose first event carries a step number."""
    used = line.names_used
    is_possible = possible[used.indices]
    indices, first = used.indices[is_possible], used.first[is_possible]
    numbered = line.stats.ints(first, "step_num")[1]
    rooted = line.stats.ints(first, "_r")[1]
    found = [
        _numbered(host.names[index], bool(root), line, int(index))
        for index, root in zip(indices[numbered], rooted[numbered], strict=True)
    ]
    if not found:
        names = line.stats.texts(first, "step_name")
        found = [
            _named(host.names[index], line, int(index))
            for index, name in zip(indices, names, strict=True)
            if name is not None
        ] or [_bare(host.names[index], line, int(index)) for index in indices if host.names[index] in _KERAS_FUNCTIONS]
    if len(evaluations := find_evaluations(host, line)):
        found = [_outside(candidate, evaluations) for candidate in found]
    return [candidate for candidate in found if len(candidate.rows)]


def _numbered(name: str, rooted: bool, line: Line, index: int) -> _Candidate:
    rows = np.flatnonzero(line.name_index == index)
    number, known = line.stats.ints(rows, "step_num")
    rank, label = _USUAL.get(name, (1 if rooted else 4, f"Trace '{name}' (step_num)"))
    if name.startswith(_EVALUATION):
        rank += 10
    return _Candidate(name, label, rank, line, rows[known], number[known])


def _named(name: str, line: Line, index: int) -> _Candidate:
    """Read a Keras 2 marker, which carries a ``step_name`` and ``iter_num`` but no ``step_num``."""
    rows = np.flatnonzero(line.name_index == index)
    texts = line.stats.texts(rows, "step_name")
    rows = rows[[text is not None for text in texts]]
    number, known = line.stats.ints(rows, "iter_num")
    if not known.all():
        digits = [re.search(r"(\d{1,18})\D*$", text) for text in texts if text is not None]
        number = np.array([int(match[1]) if match else row for row, match in enumerate(digits)], np.int64)
    label = f"Keras '{name}' (step_name)" if name.endswith("_function") else f"'{name}' (step_name)"
    return _Candidate(name, label, _UNNUMBERED + (not name.startswith("train")), line, rows, number)


def _bare(name: str, line: Line, index: int) -> _Candidate:
    """Take each call of Keras' training function for a step, in captures that kept none of its stats."""
    rows = np.flatnonzero(line.name_index == index)
    return _Candidate(name, f"Keras '{name}'", _UNNUMBERED + 2, line, rows, np.arange(len(rows)))


def _one_per_step(number: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Keep the outermost markers and join neighbors of the same number into one step.

    A number that never changes says nothing; its markers are counted instead.
    """
    order = np.argsort(start, kind="stable")
    number, start, end = number[order], start[order], end[order]
    reach = np.maximum.accumulate(end)
    outermost = np.concatenate(([True], start[1:] >= reach[:-1]))
    number, start, end = number[outermost], start[outermost], end[outermost]
    if len(number) > 1 and (number == number[0]).all():
        return np.arange(len(number)), start, end
    first = np.concatenate(([True], np.diff(number) != 0))
    last = np.concatenate((first[1:], [True]))
    return number[first], start[first], end[last]


def _device_markers(trace: Trace) -> Markers | None:
    """Read the ``Steps`` lines of all devices; the same step on several devices at a time is one step."""
    starts, ends, numbers = [], [], []
    for plane in trace.device_planes:
        digits = [re.search(r"\d{1,18}", name) for name in plane.names]
        values = np.array([int(match[0]) if match else -1 for match in digits], np.int64)
        for line in plane.lines:
            if line.name == "Steps" and line.count:
                starts.append(line.start_ns)
                ends.append(line.end_ns)
                numbers.append(values[line.name_index])
    if not starts:
        return None
    number, start, end = union_by(np.concatenate(numbers), np.concatenate(starts), np.concatenate(ends))
    return Markers("device Steps line", False, number, start, end) if len(number) else None


def _most_common(values: IntArray) -> int:
    if not len(values):
        return 1
    found, counts = np.unique(values, return_counts=True)
    return int(found[np.argmax(counts)])
