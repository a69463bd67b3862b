"""When the device had no work, for how long, and why.

The time between two profile windows, when nothing was recorded, is a capture gap and counts as neither idle nor busy.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.activity import HOST_COMPUTE, UNFINISHED, Activity
from pipeline_lab.analysis.activity.devices import Device
from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals, complement, length_within, total, union_of
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import (
    LONGEST,
    Analysis,
    Document,
    PerTrace,
    longest_rows,
    only_derived,
    to_ms,
)
from pipeline_lab.analysis.idle.gap_causes import Attribution, attribute
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable

GAP_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),  # null for a capture gap
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("cause", pa.string()),  # a GapCause value: the one with the largest part, the earlier one if two are equal
        ("host_operation", pa.string()),  # the host operation that fills most of the gap, or null
        *[(f"{cause.value}_ns", pa.int64()) for cause in GapCause],  # how the gap divides; they add up to duration_ns
    ]
)
"""One row per maximal interval without device work."""

OPERATION_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),  # of the gap
        ("rank", pa.int32()),  # 1 for the operation that fills most of the gap
        ("operation", pa.string()),  # type of the op, or name of the event
        ("time_ns", pa.int64()),  # how much of the gap it fills
    ]
)
"""One row per gap and host operation inside it."""

BUSY_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
    ]
)
"""One row per maximal interval of device work; adjacent events are joined."""

MIXED_TABLE = pa.schema([*BUSY_TABLE, ("gaps", pa.int64()), ("idle_ns", pa.int64())])
"""One row per stretch of short gaps and the work between them: how many gaps, and how much of the stretch they are."""


def find_capture_gaps(recorded: pa.Table) -> pa.Table:
    """Find the time between the windows of each device of each host, of schema :data:`BUSY_TABLE`."""
    rows, key, start, end = _windows(recorded)
    after = np.flatnonzero((key[1:] == key[:-1]) & (start[1:] > end[:-1]))
    duration = start[after + 1] - end[after]
    names = tables.take(recorded.select(["host", "device"]), rows[after])
    zeros = {f"{cause.value}_ns": 0 for cause in GapCause}
    return tables.build(
        GAP_TABLE,
        len(after),
        host=names.column("host"),
        device=names.column("device"),
        window=None,
        start_ns=end[after],
        duration_ns=duration,
        cause=GapCause.CAPTURE_GAP.value,
        host_operation=None,
        **{**zeros, f"{GapCause.CAPTURE_GAP.value}_ns": duration},
    )


def _windows(recorded: pa.Table) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return a row, the number of the device, start and end of every window, by device and start."""
    _, key = tables.name_numbers(recorded, ("host", "device"))
    window, starts, ends = (tables.ints(recorded, name) for name in ("window", "start_ns", "end_ns"))
    order = np.lexsort((starts, window, key))
    key, window, starts, ends = key[order], window[order], starts[order], ends[order]
    first = np.flatnonzero(np.diff(key, prepend=-1) | np.diff(window, prepend=-1))
    end = np.maximum.reduceat(ends, first) if len(first) else ends
    by_time = np.lexsort((starts[first], key[first]))
    first, end = first[by_time], end[by_time]
    return order[first], key[first], starts[first], end


NO_WORK = (
    "No device work in this trace: it has neither a device plane nor ops on the host's threads; record with "
    "host_tracer_level=2, and for GPUs make sure that CUPTI may be used."
)
NO_DEVICE_TIME = "The windows hold no device time; record longer ones, while steps run."
LONGEST_GAPS = 10_000
"""Gaps kept per device and window, and pieces of work between shorter ones; these are in every total, and in stretches."""
OPERATIONS_PER_GAP = 5
"""Host operations kept of each gap, the longest ones."""


@dataclass(frozen=True)
class DeviceTime:
    """Busy and idle time of one device inside the windows; capture gaps belong to neither."""

    name: str
    busy_ns: int
    idle_ns: int
    host: str = ""


@dataclass(frozen=True)
class OperationTime:
    """One host operation inside the gaps of all devices.

    Attributes:
        operation: Type of the op, or name of the event.
        cause: The cause to which the idle moments belong.
        idle_ns: How long it ran in such moments; operations that run side by side each count.
    """

    operation: str
    cause: GapCause
    idle_ns: int


@dataclass(frozen=True, eq=False)
class IdleGaps:
    """All gaps of all devices.

    Attributes:
        device: What stands for the device: its plane's name, or ``host compute`` where no device plane exists.
        devices: One entry per device.
        by_cause_ns: Idle time by cause, every cause present; a gap's parts are added to their own causes.
        gaps: One row per gap, :data:`GAP_TABLE`, ordered by start.
        busy: One row per busy interval, :data:`BUSY_TABLE`, ordered by start.
        mixed: One row per stretch that holds the gaps left out, :data:`MIXED_TABLE`, ordered by start. Gaps, busy intervals
            and these stretches fill the windows.
        operations: One row per gap and host operation inside it, :data:`OPERATION_TABLE`; gaps too short to hold any
            have none.
        by_operation: Every host operation by the cause of the idle moments in which it ran, the longest first.
        gaps_left_out, left_out_ns: Number and length of the short gaps that are not in ``gaps``.
        recorded: One row per device and window, from its start to its end, of schema :data:`BUSY_TABLE`.
    """

    device: str
    devices: tuple[DeviceTime, ...]
    by_cause_ns: dict[GapCause, int]
    gaps: pa.Table
    busy: pa.Table
    mixed: pa.Table = field(default_factory=lambda: tables.empty(MIXED_TABLE))
    operations: pa.Table = field(default_factory=lambda: tables.empty(OPERATION_TABLE))
    by_operation: tuple[OperationTime, ...] = ()
    gaps_left_out: int = 0
    left_out_ns: int = 0
    recorded: pa.Table = field(default_factory=lambda: tables.empty(BUSY_TABLE))

    def operations_of(self, host: str, device: str, start_ns: int) -> list[dict[str, Any]]:
        """Return the host operations inside one gap, the one that fills most of it first.

        Args:
            host, device, start_ns: Of the gap, as in ``gaps``.

        Returns:
            Rows of :data:`OPERATION_TABLE`.
        """
        begin, end = np.searchsorted(tables.ints(self.operations, "start_ns"), [start_ns, start_ns + 1])
        rows = self.operations.slice(begin, end - begin).to_pylist()
        return [row for row in rows if (row["host"], row["device"]) == (host, device)]

    @property
    def idle_by_cause_ns(self) -> dict[GapCause, int]:
        """Idle time by cause inside the windows; the causes add up to ``idle_ns``."""
        return {cause: length for cause, length in self.by_cause_ns.items() if cause is not GapCause.CAPTURE_GAP}

    @property
    def inside(self) -> pa.Table:
        """The gaps inside the windows: ``gaps`` without the time between them, of which nothing is known."""
        is_inside = tables.valid(self.gaps, "window")
        return self.gaps if is_inside.all() else tables.take(self.gaps, np.flatnonzero(is_inside))

    @property
    def unrecorded_ns(self) -> int:
        """Time between the windows, when the profiler was off; of several devices and hosts the longest."""
        off: Counter[tuple[str, str]] = Counter()
        between = tables.take(self.gaps, np.flatnonzero(~tables.valid(self.gaps, "window")))
        for row in between.select(["host", "device", "duration_ns"]).to_pylist():
            off[row["host"], row["device"]] += row["duration_ns"]
        return max(off.values(), default=0)

    @property
    def idle_ns(self) -> int:
        return sum(device.idle_ns for device in self.devices)

    @property
    def busy_ns(self) -> int:
        return sum(device.busy_ns for device in self.devices)

    @property
    def window_ns(self) -> int:
        """Time of all devices inside the windows."""
        return self.idle_ns + self.busy_ns

    @property
    def idle_percent(self) -> float | Unavailable:
        """Idle time, percent of the time of all devices inside the windows."""
        return 100.0 * self.idle_ns / self.window_ns if self.window_ns else Unavailable(NO_DEVICE_TIME)


def find_gaps(activity: Activity) -> IdleGaps:
    """Find the idle gaps of each device of one trace, over the whole window.

    Raises:
        TraceIncompleteError: There is no device plane and nothing that could stand for one, or the devices had ended nothing
            of what they were handed.
    """
    if activity.is_unfinished:
        raise TraceIncompleteError(UNFINISHED)
    if not len(activity.busy):
        raise TraceIncompleteError(NO_WORK)
    return merge_gaps([_analyze_device(activity, device) for device in activity.devices])


def merge_gaps(parts: Sequence[IdleGaps]) -> IdleGaps:
    """Put the gaps of several traces and devices together.

    Args:
        parts: Results whose tables are on one axis.

    Raises:
        TraceIncompleteError: There are none.
    """
    if not parts:
        raise TraceIncompleteError(NO_WORK)
    gaps = tables.concat(GAP_TABLE, [part.gaps for part in parts])
    busy = tables.concat(BUSY_TABLE, [part.busy for part in parts])
    mixed = tables.concat(MIXED_TABLE, [part.mixed for part in parts])
    by_cause = {cause: sum(part.by_cause_ns[cause] for part in parts) for cause in GapCause}
    devices = _add_devices([device for part in parts for device in part.devices])
    return IdleGaps(
        device=", ".join(dict.fromkeys(device.name for device in devices)),
        devices=devices,
        by_cause_ns=by_cause,
        gaps=gaps,
        busy=busy,
        mixed=mixed,
        operations=tables.concat(OPERATION_TABLE, [part.operations for part in parts]),
        by_operation=_add_operations([one for part in parts for one in part.by_operation]),
        gaps_left_out=sum(part.gaps_left_out for part in parts),
        left_out_ns=sum(part.left_out_ns for part in parts),
        recorded=tables.concat(BUSY_TABLE, [part.recorded for part in parts]),
    )


def add_capture_gaps(found: IdleGaps, before: IdleGaps | None = None) -> IdleGaps:
    """Count the time between two windows of a host as capture gap; the axis is absolute.

    Args:
        found: Of all windows.
        before: What came of it without the last ones.
    """
    between = find_capture_gaps(found.recorded)
    by_cause = found.by_cause_ns | {GapCause.CAPTURE_GAP: int(tables.ints(between, "duration_ns").sum())}
    gaps = None if before is None else _lengthen(before, found.inside, between)
    return replace(found, by_cause_ns=by_cause, gaps=gaps or tables.concat(GAP_TABLE, [found.inside, between]))


def _lengthen(before: IdleGaps, inside: pa.Table, between: pa.Table) -> pa.Table | None:
    """Put the gaps that begin after all earlier ones under these; None where others are new, too."""
    end = tables.ints(before.gaps, "start_ns").max(initial=0)
    is_new = tables.ints(between, "start_ns") > end
    known = int(np.searchsorted(tables.ints(inside, "start_ns"), end, side="right"))
    new = tables.concat(GAP_TABLE, [inside.slice(known), tables.take(between, np.flatnonzero(is_new))])
    with tables.appending():
        longer = tables.concat(GAP_TABLE, [before.gaps, new])
    return longer if longer.num_rows == inside.num_rows + between.num_rows else None


def _analyze_device(activity: Activity, device: Device) -> IdleGaps:
    idle = attribute(activity, device.work)
    start, end = activity.extent
    idle_ns = total(idle.gaps)
    kept = _longest(idle.gaps)
    left_out = _without(idle.gaps, kept)
    mixed = _stretches(left_out, idle.gaps, (start, end))
    busy = complement(union_of(idle.gaps[kept], mixed), start, end)
    return IdleGaps(
        device=device.name,
        devices=(DeviceTime(device.name, end - start - idle_ns, idle_ns, activity.trace.host),),
        by_cause_ns={cause: total(moments) for cause, moments in idle.causes.items()},
        gaps=_gap_table(activity, device, idle, kept),
        busy=_place(BUSY_TABLE, activity, device, busy),
        mixed=_place(
            MIXED_TABLE,
            activity,
            device,
            mixed,
            gaps=np.searchsorted(left_out[:, 0], mixed[:, 1]) - np.searchsorted(left_out[:, 0], mixed[:, 0]),
            idle_ns=length_within(left_out, mixed),
        ),
        operations=_operation_table(activity, device, idle, kept),
        by_operation=_operation_times(idle),
        gaps_left_out=len(left_out),
        left_out_ns=total(left_out),
        recorded=_place(BUSY_TABLE, activity, device, np.array([(start, end)], np.int64)),
    )


def _longest(gaps: IntArray) -> IntArray:
    if len(gaps) <= LONGEST_GAPS:
        return np.arange(len(gaps))
    return np.sort(np.argpartition(gaps[:, 0] - gaps[:, 1], LONGEST_GAPS)[:LONGEST_GAPS])


def _without(intervals: IntArray, rows: IntArray) -> IntArray:
    """Return a set without some rows; ``np.delete`` of both columns at once takes several times as long."""
    stays = np.ones(len(intervals), np.bool_)
    stays[rows] = False
    return as_intervals(intervals[stays, 0], intervals[stays, 1])


def _gap_table(activity: Activity, device: Device, idle: Attribution, kept: IntArray) -> pa.Table:
    gaps = idle.gaps[kept]
    shares = {cause: length_within(idle.causes[cause], gaps) for cause in GapCause}
    largest = np.argmax(np.stack(list(shares.values())), axis=0)
    causes = [cause.value for cause in GapCause]
    return tables.build(
        GAP_TABLE,
        len(gaps),
        host=activity.trace.host,
        device=device.name,
        window=0,
        start_ns=gaps[:, 0],
        duration_ns=gaps[:, 1] - gaps[:, 0],
        cause=[causes[index] for index in largest],
        host_operation=[idle.named[index] for index in kept],
        **{f"{cause.value}_ns": share for cause, share in shares.items()},
    )


def _stretches(left_out: IntArray, gaps: IntArray, window: tuple[int, int]) -> IntArray:
    """Put short gaps and the work between them together, up to the longest pieces of work and the gaps that are kept."""
    if not len(left_out):
        return left_out
    work = complement(gaps, *window)
    around = union_of(left_out, _without(work, _longest(work)))
    return around[length_within(left_out, around) > 0]


def _place(schema: pa.Schema, activity: Activity, device: Device, spans: IntArray, **columns: IntArray) -> pa.Table:
    """Return a table of spans of one device's time."""
    return tables.build(
        schema,
        len(spans),
        host=activity.trace.host,
        device=device.name,
        window=0,
        start_ns=spans[:, 0],
        end_ns=spans[:, 1],
        **columns,
    )


def _operation_table(activity: Activity, device: Device, idle: Attribution, kept: IntArray) -> pa.Table:
    gap, operation, time_ns = idle.operations.by_gap()
    first = np.searchsorted(gap, gap)
    rank = np.arange(len(gap)) - first + 1
    is_kept = np.zeros(len(idle.gaps), np.bool_)
    is_kept[kept] = True
    shown = is_kept[gap] & (rank <= OPERATIONS_PER_GAP)
    return tables.build(
        OPERATION_TABLE,
        int(shown.sum()),
        host=activity.trace.host,
        device=device.name,
        window=0,
        start_ns=idle.gaps[gap[shown], 0],
        rank=rank[shown],
        operation=[idle.operations.names[index] for index in operation[shown].tolist()],
        time_ns=time_ns[shown],
    )


def _operation_times(idle: Attribution) -> tuple[OperationTime, ...]:
    found = idle.operations
    spans = np.stack((found.start_ns, found.end_ns), axis=1)
    times = []
    for cause, moments in idle.causes.items():
        time_ns = np.bincount(found.operation, length_within(moments, spans), len(found.names)).astype(np.int64)
        times += [OperationTime(found.names[index], cause, int(time_ns[index])) for index in np.flatnonzero(time_ns)]
    return _add_operations(times)


def _add_operations(times: Sequence[OperationTime]) -> tuple[OperationTime, ...]:
    total_ns: Counter[tuple[str, GapCause]] = Counter()
    for one in times:
        total_ns[one.operation, one.cause] += one.idle_ns
    ranked = sorted(total_ns.items(), key=lambda item: (-item[1], item[0]))
    return tuple(OperationTime(operation, cause, idle_ns) for (operation, cause), idle_ns in ranked)


def _add_devices(devices: Sequence[DeviceTime]) -> tuple[DeviceTime, ...]:
    """Add up the time of each device; where real devices were recorded, host compute of other traces stays apart."""
    names = sorted({(device.host, device.name) for device in devices}, key=lambda key: (key[1] == HOST_COMPUTE, key))
    return tuple(
        DeviceTime(
            name,
            sum(device.busy_ns for device in devices if (device.host, device.name) == (host, name)),
            sum(device.idle_ns for device in devices if (device.host, device.name) == (host, name)),
            host,
        )
        for host, name in names
    )


def _to_json(gaps: IdleGaps) -> Document:
    hosts = {device.host for device in gaps.devices}

    def name(device: DeviceTime) -> str:
        return f"{device.host} {device.name}" if len(hosts) > 1 else device.name

    return {
        "device": gaps.device,
        "devices": [
            {"name": name(device), "busy_ms": to_ms(device.busy_ns), "idle_ms": to_ms(device.idle_ns)}
            for device in gaps.devices
        ],
        "by_cause_ms": {cause.value: to_ms(idle_ns) for cause, idle_ns in gaps.by_cause_ns.items()},
        "by_operation": [
            {"operation": one.operation, "cause": one.cause.value, "idle_ms": to_ms(one.idle_ns)}
            for one in gaps.by_operation[:LONGEST]
        ],
        "longest": [
            {
                "device": row["device"],
                "start_ms": to_ms(row["start_ns"]),
                "duration_ms": to_ms(row["duration_ns"]),
                "cause": row["cause"],
                "host_operations": _host_operations(gaps, row),
            }
            for row in longest_rows(gaps.inside, tables.ints(gaps.inside, "duration_ns"))
        ],
    }


def _host_operations(gaps: IdleGaps, gap: Document) -> list[Document]:
    return [
        {
            "operation": row["operation"],
            "time_ms": to_ms(row["time_ns"]),
            "share_percent": 100.0 * row["time_ns"] / gap["duration_ns"],
        }
        for row in gaps.operations_of(gap["host"], gap["device"], gap["start_ns"])
    ]


IDLE_GAPS = Analysis(
    IdleGaps,
    per_trace=PerTrace(
        lambda trace: find_gaps(trace.activity),
        merge_gaps,
        only_derived("single gaps are"),
        between=add_capture_gaps,
    ),
    to_json=_to_json,
)
