"""Why nothing ran on a device: every idle moment is given to exactly one cause.

The causes are tried in the order of :class:`GapCause`; a moment belongs to the first that holds. A named host
operation counts only where its events fill at least half of the gap.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pipeline_lab.analysis import event_names
from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.intervals import (
    EMPTY,
    IntArray,
    complement,
    covered_until,
    intersect,
    pair_ranges,
    subtract,
    union,
)


class GapCause(StrEnum):
    """Why a device idled, in the order in which the causes are tried."""

    CAPTURE_GAP = "capture_gap"
    INPUT_WAIT = "input_wait"
    HOST_TO_DEVICE = "host_to_device"
    COMPILE = "compile"
    HOST_OPERATION = "host_operation"
    CHECKPOINT = "checkpoint"
    DISPATCH = "dispatch"
    PYTHON = "python"
    UNKNOWN = "unknown"


FILLING_SHARE = 0.5
"""A host operation names a gap when its events fill at least this share of it."""

SHORTEST_NAMED_GAP_NS = 100_000
"""Launching a kernel takes an op up to 60 µs; in gaps shorter than this, op events mean dispatch."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """All idle moments of one device, by cause.

    Attributes:
        gaps: The idle intervals, a set.
        causes: For each cause the idle moments that belong to it; together they are ``gaps``.
        operations: Name of the host operation that fills each gap, or None, length ``len(gaps)``.
    """

    gaps: IntArray
    causes: dict[GapCause, IntArray]
    operations: list[str | None]


def attribute(activity: Activity, work: IntArray) -> Attribution:
    """Give every moment of a trace without ``work`` (a device's, or ``activity.busy``) to one cause."""
    return activity.once(work, lambda work: _attribute(activity, work))


def _attribute(activity: Activity, work: IntArray) -> Attribution:
    gaps = complement(work, *activity.extent)
    operations, filled = _host_operations(activity, gaps)
    candidates = {
        GapCause.INPUT_WAIT: activity.waits.moments,
        GapCause.HOST_TO_DEVICE: activity.host_to_device,
        GapCause.COMPILE: activity.compiling,
        GapCause.HOST_OPERATION: filled,
        GapCause.CHECKPOINT: activity.checkpointing,
        GapCause.DISPATCH: activity.runtime,
        GapCause.PYTHON: gaps if activity.training_line is not None else EMPTY,
        GapCause.UNKNOWN: gaps,
    }
    causes, left = {GapCause.CAPTURE_GAP: EMPTY}, gaps
    for cause, moments in candidates.items():
        causes[cause] = intersect(left, moments)
        left = subtract(left, moments)
    return Attribution(gaps, causes, operations)


def _host_operations(activity: Activity, gaps: IntArray) -> tuple[list[str | None], IntArray]:
    """Name the op that fills most of each gap, and say when it did."""
    names: list[str | None] = [None] * len(gaps)
    long = np.flatnonzero(gaps[:, 1] - gaps[:, 0] >= SHORTEST_NAMED_GAP_NS)
    labels, label, start, end = _operations_within(activity, gaps[long])
    if not len(label):
        return names, EMPTY
    label, start, end = _union_by_label(label, start, end)
    gap, overlap_start, overlap_end, row = _overlaps(gaps[long], start, end)
    keys, group = np.unique(gap * len(labels) + label[row], return_inverse=True)
    lengths = np.bincount(group, overlap_end - overlap_start).astype(np.int64)
    gap_of_key = keys // len(labels)
    needed = FILLING_SHARE * (gaps[long, 1] - gaps[long, 0])[gap_of_key]
    filling = lengths >= needed
    order = np.lexsort((lengths, gap_of_key))
    largest = np.zeros(len(keys), np.bool_)
    largest[order[np.concatenate((np.diff(gap_of_key[order]) != 0, [True]))]] = True
    chosen = filling & largest
    for key in np.flatnonzero(chosen):
        names[long[gap_of_key[key]]] = labels[keys[key] % len(labels)]
    moments = chosen[group]
    return names, union(overlap_start[moments], overlap_end[moments])


def _operations_within(activity: Activity, gaps: IntArray) -> tuple[list[str], IntArray, IntArray, IntArray]:
    """Select the op events that touch a gap; events are told apart by the type of their op."""
    if activity.host is None or not len(gaps):
        return [], *(np.empty(0, np.int64),) * 3
    types = [event_names.operation(name) or "" for name in activity.host.names]
    labels, label_of_name = np.unique(np.array(types, object).astype(str), return_inverse=True)
    label, starts, ends = ([np.empty(0, np.int64)] for _ in range(3))
    for line, rows in activity.operations():
        start = line.start_ns[rows]
        end = start + line.duration_ns[rows]
        touching = covered_until(gaps, end) > covered_until(gaps, start)
        label.append(label_of_name[line.name_index[rows[touching]]])
        starts.append(start[touching])
        ends.append(end[touching])
    return labels.tolist(), np.concatenate(label), np.concatenate(starts), np.concatenate(ends)


def _union_by_label(label: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Join overlapping events of one label, by laying each label's events on a stretch of time of its own."""
    origin, span = start.min(), end.max() - start.min() + 1
    shift = label * span - origin
    joined = union(start + shift, end + shift)
    label = joined[:, 0] // span
    return label, joined[:, 0] - label * span + origin, joined[:, 1] - label * span + origin


def _overlaps(gaps: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return gap, start, end and event of every overlap of an event with a gap."""
    row, gap = pair_ranges(np.searchsorted(gaps[:, 1], start, side="right"), np.searchsorted(gaps[:, 0], end))
    return gap, np.maximum(gaps[gap, 0], start[row]), np.minimum(gaps[gap, 1], end[row]), row
