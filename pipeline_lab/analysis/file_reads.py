"""How many records each file reader produced, from the iterator indices of a trace.

A trace names a file only when it is opened inside the capture (``SetupStreamsLocked``). Otherwise the place of the
reader in the pipeline tells readers apart: ``FlatMap[2]`` is the third file of a list, ``ParallelInterleaveV4[2]``
the third element that was opened, ``Interleave[2]`` a slot that files take in turn.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.trace.schema import Line, Plane, Trace

_READER = re.compile(r"Iterator::.*::(?:TFRecord|TextLine|FixedLengthRecord)")
_OPENING = re.compile(r"(?:TFRecord|TextLine|FixedLengthRecord)DatasetOp::.*SetupStreamsLocked")
_INDEX = re.compile(r"([A-Za-z]\w*)\[(\d+)\]")


@dataclass(frozen=True)
class FileReads:
    """Records that were read.

    Attributes:
        by_file: Records per file whose opening was recorded.
        by_reader: Records per reader whose file is not known, by its place in the pipeline.
    """

    by_file: dict[str, int]
    by_reader: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_file.values()) + sum(self.by_reader.values())


@dataclass(frozen=True)
class _Reading:
    """One opened file (or what was open before the capture began): its reads and when they were."""

    name: str
    file: str | None
    count: int
    first_ns: int
    last_ns: int


def analyse(trace: Trace) -> FileReads:
    """Count the records that the file readers of one trace produced."""
    host = trace.host_plane
    readings = _readings(host) if host else []
    by_file, by_reader = Counter[str](), Counter[str]()
    latest: dict[str, int] = {}
    for reading in readings:
        family = _INDEX.sub(r"\1[]", reading.name)
        latest[family] = max(latest.get(family, 0), reading.first_ns)
    for reading in readings:
        # The call that finds the end of the file is an event too; a later opening shows that it was made.
        is_over = latest[_INDEX.sub(r"\1[]", reading.name)] >= reading.last_ns
        records = reading.count - (1 if is_over else 0)
        if reading.file is not None:
            by_file[reading.file] += records
        else:
            by_reader[_label(reading.name)] += records
    return FileReads(dict(by_file), dict(by_reader))


def merge(parts: Sequence[FileReads]) -> FileReads:
    """Add up several traces."""
    by_file, by_reader = Counter[str](), Counter[str]()
    for part in parts:
        by_file.update(part.by_file)
        by_reader.update(part.by_reader)
    return FileReads(dict(by_file), dict(by_reader))


def _readings(host: Plane) -> list[_Reading]:
    is_reader = host.name_mask(lambda name: _READER.fullmatch(name) is not None)
    if not is_reader.any():
        return []
    is_opening = host.name_mask(lambda name: _OPENING.fullmatch(name) is not None)
    starts: list[IntArray] = []
    ends: list[IntArray] = []
    names: list[IntArray] = []
    openings: dict[int, list[tuple[int, str]]] = {}
    for line in host.lines:
        rows = np.flatnonzero(is_reader[line.name_index])
        if not len(rows):
            continue
        starts.append(line.start_ns[rows])
        ends.append(line.start_ns[rows] + line.duration_ns[rows])
        names.append(line.name_index[rows].astype(np.int64))
        for reader, start_ns, file in _openings(line, rows, np.flatnonzero(is_opening[line.name_index])):
            openings.setdefault(reader, []).append((start_ns, file))
    if not starts:
        return []
    start, end, name = np.concatenate(starts), np.concatenate(ends), np.concatenate(names)
    order = np.lexsort((end, name))
    start, end, name = start[order], end[order], name[order]
    bounds = np.flatnonzero(np.diff(name, prepend=-1, append=-1))
    return [
        reading
        for first, after in pairwise(bounds.tolist())
        for reading in _split(
            host.names[name[first]], start[first:after], end[first:after], openings.get(int(name[first]), [])
        )
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
        _Reading(name, file, after - first, int(start[first]), int(end[after - 1]))
        for file, first, after in zip(files, bounds[:-1], bounds[1:], strict=True)
        if after > first
    ]


def _label(name: str) -> str:
    """Name a reader by its place: the indices of its path without epochs and without the one file's own ``FlatMap[0]``."""
    places = [f"{kind}[{index}]" for kind, index in _INDEX.findall(name) if not kind.endswith("Repeat")]
    if len(places) > 1 and places[-1] == "FlatMap[0]":
        places.pop()
    return " ".join(places) or name.rsplit("::", 1)[-1]
