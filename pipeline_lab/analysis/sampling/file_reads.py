"""How many records each file reader produced, from the iterator indices of a trace.

A trace names a file only when it is opened inside the capture (``SetupStreamsLocked``). Otherwise the place of the
reader in the pipeline tells readers apart: ``FlatMap[2]`` is the third file of a list, ``ParallelInterleaveV4[2]``
the third element that was opened, ``Interleave[2]`` a slot that files take in turn, each as a dataset of another name
(``TextLineDataset:17``; only TFRecord readers record their openings). Two pipelines in one trace, as for
training and validation, are told apart by the stages that the reader feeds.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise

import numpy as np

from pipeline_lab.analysis.activity.event_names import ITERATOR
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.trace.schema import Line, Plane, Trace

_READER = re.compile(r"Iterator::.*::(?:TFRecord|TextLine|FixedLengthRecord)")
_OPENING = re.compile(r"(?:TFRecord|TextLine|FixedLengthRecord)DatasetOp::.*SetupStreamsLocked")
_EPOCH = re.compile(r"([A-Za-z]*Repeat)\[(\d{1,18})\]")
_SLOT = "::Interleave["
_DATASET = re.compile(r"\w+Dataset\w*:\d+")
_INDEX = re.compile(r"([A-Za-z]\w*)\[(\d+)\]")


@dataclass(frozen=True)
class FileReads:
    """Records that were read.

    Attributes:
        by_file: Records per file whose opening was recorded.
        by_reader: Records per reader whose file is not known, by its path in the pipeline; see :func:`name_readers`.
        by_step: Of each file or reader the numbers of the steps that ran when records were read, and how many were, shape
            (n, 2), a step perhaps in several rows; empty without steps. Reads run ahead of the steps that use them by what
            the buffers hold.
        by_epoch: Records per epoch, counted from 0 by the ``repeat`` nearest to the training; empty without one.
    """

    by_file: dict[str, int]
    by_reader: dict[str, int]
    by_step: dict[str, IntArray] = field(default_factory=dict, compare=False)
    by_epoch: dict[int, int] = field(default_factory=dict, compare=False)

    @property
    def total(self) -> int:
        return sum(self.by_file.values()) + sum(self.by_reader.values())

    def without(self, files: Sequence[DataFile]) -> "FileReads":
        """Return the reads of all other files."""
        paths = {file.path for file in files}
        by_step = {name: counts for name, counts in self.by_step.items() if name not in paths}
        by_file = {name: count for name, count in self.by_file.items() if name not in paths}
        return replace(self, by_file=by_file, by_step=by_step)


@dataclass(frozen=True, eq=False)
class _Reading:
    """One opened file (or what was open before the capture began): its reads, by when they began and ended."""

    name: str
    file: str | None
    first_ns: int
    end_ns: IntArray
    dataset: str | None = None


def count_reads(trace: Trace, steps: Steps | None) -> FileReads:
    """Count the records that the file readers of one trace produced.

    Args:
        trace: Host events of one window.
        steps: Its own steps, None if it has none.
    """
    host = trace.host_plane
    readings = _readings(host) if host else []
    by_file, by_reader, by_epoch = Counter[str](), Counter[str](), Counter[int]()
    by_step: dict[str, list[IntArray]] = {}
    latest: dict[str, int] = {}
    for reading in readings:
        family = _INDEX.sub(r"\1[]", reading.name)
        latest[family] = max(latest.get(family, 0), reading.first_ns)
    for reading in readings:
        # The call that finds the end of the file is an event too; a later opening shows that it was made.
        is_over = bool(latest[_INDEX.sub(r"\1[]", reading.name)] >= reading.end_ns[-1])
        end_ns = reading.end_ns[: len(reading.end_ns) - is_over]
        reader = _path(reading) if reading.file is None else reading.file
        (by_reader if reading.file is None else by_file)[reader] += len(end_ns)
        if steps is not None and steps.count and len(end_ns):
            by_step.setdefault(reader, []).append(_count_by_step(end_ns, steps))
        epoch = _EPOCH.search(reading.name)
        if epoch is not None:
            by_epoch[int(epoch[2])] += len(end_ns)
    return FileReads(dict(by_file), dict(by_reader), _joined(by_step), dict(by_epoch))


def _count_by_step(end_ns: IntArray, steps: Steps) -> IntArray:
    """Return numbers of steps, and how many of these moments in order lie in each, shape (n, 2); the first and last step have the rest."""
    start_ns = tables.ints(steps.table, "start_ns")
    in_order = np.argsort(start_ns, kind="stable")
    counts = np.diff(np.searchsorted(end_ns, start_ns[in_order[1:]]), prepend=0, append=len(end_ns))
    return np.stack((tables.ints(steps.table, "step")[in_order], counts), axis=1)[counts > 0]


def _joined(by_step: dict[str, list[IntArray]]) -> dict[str, IntArray]:
    return {reader: np.concatenate(counts) for reader, counts in by_step.items()}


def add_reads(parts: Sequence[FileReads]) -> FileReads:
    """Add up several traces."""
    by_file, by_reader, by_epoch = Counter[str](), Counter[str](), Counter[int]()
    by_step: dict[str, list[IntArray]] = {}
    for part in parts:
        by_file.update(part.by_file)
        by_reader.update(part.by_reader)
        by_epoch.update(part.by_epoch)
        for reader, counts in part.by_step.items():
            by_step.setdefault(reader, []).append(counts)
    return FileReads(dict(by_file), dict(by_reader), _joined(by_step), dict(by_epoch))


def name_readers(paths: Sequence[str]) -> dict[str, str]:
    """Return a short name for each reader's path: its place alone, and the stages around it where two share a place."""
    places = {path: _place(path) for path in paths}
    shared = Counter(places.values())
    return {
        path: place
        if place and shared[place] == 1
        else f"{place or path.rsplit('::', 1)[-1]}{_stages_of(path, shared[place])}"
        for path, place in places.items()
    }


def _place(path: str) -> str:
    dataset = path.rsplit("::", 1)[-1]
    indices = [f"{kind}[{index}]" for kind, index in _INDEX.findall(path)]
    return " ".join([*indices, dataset] if _DATASET.fullmatch(dataset) else indices)


def _stages_of(path: str, sharing: int) -> str:
    """Say which stages a reader feeds, nearest to the training first, if others share its place."""
    stages = [_INDEX.sub(r"\1", part) for part in path.split("::")[1:] if not _DATASET.fullmatch(part)]
    return f" of {', '.join(stages)}" if sharing > 1 and stages else ""


def _readings(host: Plane) -> list[_Reading]:
    is_reader = host.name_mask(lambda name: _READER.fullmatch(name) is not None)
    if not is_reader.any():
        return []
    is_opening = host.name_mask(lambda name: _OPENING.fullmatch(name) is not None)
    starts: list[IntArray] = []
    ends: list[IntArray] = []
    names: list[IntArray] = []
    places: list[IntArray] = []
    openings: dict[int, list[tuple[int, str]]] = {}
    for number, line in enumerate(host.lines):
        rows = line.rows_named(is_reader)
        if not len(rows):
            continue
        starts.append(line.start_ns[rows])
        ends.append(line.start_ns[rows] + line.duration_ns[rows])
        names.append(line.name_index[rows].astype(np.int64))
        places.append(np.stack((np.full(len(rows), number), rows), axis=1))
        for reader, start_ns, file in _openings(line, rows, line.rows_named(is_opening)):
            openings.setdefault(reader, []).append((start_ns, file))
    if not starts:
        return []
    start, end, name, place = map(np.concatenate, (starts, ends, names, places))
    order = np.lexsort((end, name))
    start, end, name, place = start[order], end[order], name[order], place[order]
    bounds = np.flatnonzero(np.diff(name, prepend=-1, append=-1))
    readings: list[_Reading] = []
    for first, after in pairwise(bounds.tolist()):
        of_reader, reader = slice(first, after), int(name[first])
        if reader in openings or _SLOT not in host.names[reader]:
            readings += _split(host.names[reader], start[of_reader], end[of_reader], openings.get(reader, []))
        else:
            readings += _split_slot(host, reader, start[of_reader], end[of_reader], place[of_reader])
    return readings


def _split_slot(host: Plane, reader: int, start: IntArray, end: IntArray, place: IntArray) -> list[_Reading]:
    """Divide the events of a slot, sorted by end, where another dataset, and so another file, takes it."""

    def dataset(event: int) -> str | None:
        stats = host.lines[int(place[event, 0])].stats
        return stats.texts(place[event, 1:], "name")[0]

    def changes(first: int, last: int) -> list[int]:
        if first == last or dataset(first) == dataset(last):
            return []
        middle = (first + last) // 2
        return [last] if middle == first else changes(first, middle) + changes(middle, last)

    bounds = [0, *changes(0, len(end) - 1), len(end)]
    return [
        _Reading(
            host.names[reader], None, int(start[first]), end[first:after], dataset(first) if len(bounds) > 2 else None
        )
        for first, after in pairwise(bounds)
    ]


def _openings(line: Line, reads: IntArray, openings: IntArray) -> list[tuple[int, int, str]]:
    """Return reader, time and file of each opening; it happens inside the read that needs the file."""
    if not len(openings):
        return []
    order = np.argsort(line.start_ns[reads], kind="stable")
    at = line.start_ns[openings]
    index = np.searchsorted(line.start_ns[reads][order], at, side="right") - 1
    inside = reads[order][np.maximum(index, 0)]
    known = (index >= 0) & (line.start_ns[inside] + line.duration_ns[inside] >= at)
    files = line.stats.texts(openings, "filename")
    return [
        (int(line.name_index[read]), int(start_ns), file)
        for read, start_ns, file, is_known in zip(inside, at, files, known, strict=True)
        if is_known and file is not None
    ]


def _split(name: str, start: IntArray, end: IntArray, openings: list[tuple[int, str]]) -> list[_Reading]:
    """Divide a reader's events, sorted by end, into one reading per file that it opened."""
    openings = sorted(openings)
    cuts = np.searchsorted(end, [at for at, _ in openings], side="left")
    bounds = [0, *cuts.tolist(), len(end)]
    files = [None, *(file for _, file in openings)]
    return [
        _Reading(name, file, int(start[first]), end[first:after])
        for file, first, after in zip(files, bounds[:-1], bounds[1:], strict=True)
        if after > first
    ]


def _path(reading: _Reading) -> str:
    """Return a reader's path without epochs' numbers, its own ``FlatMap[0]`` and, where an index tells more, its kind."""
    parts = _EPOCH.sub(r"\1", reading.name.removeprefix(ITERATOR)).split("::")
    indexed = [part for part in parts if _INDEX.search(part)]
    if len(indexed) > 1 and parts[-2] == "FlatMap[0]":
        del parts[-2]
    last = [reading.dataset] if reading.dataset else [] if indexed else parts[-1:]
    return "::".join([*parts[:-1], *last])
