"""Read `local.trace`, which TensorFlow 1.14 to 2.1 wrote: a serialized `Trace` of trace_events.proto.

TensorFlow made it from step statistics, microseconds exact. There a GPU is several devices, one per stream and kind of
work (`/device:GPU:0/stream:14<MemcpyH2D>`), and TensorFlow 1.14 adds devices that repeat them. Here they become the
planes and lines of an XPlane again: one plane per GPU with a line per stream, and one for all threads of the host.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.file_memory import PER_NAME, MemoryBudget
from pipeline_lab.trace.legacy.local_scan import MEMO, EventColumns, LocalScan, read_args
from pipeline_lab.trace.schema import (
    BoolArray,
    IndexArray,
    IntArray,
    Line,
    Plane,
    Salvage,
    StatSource,
    Trace,
    index_type,
)
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.trace.xplane.stats import as_float, as_int

HOST_PLANE = "/host:CPU"

_STREAM = re.compile(r"(?P<device>/device:GPU:\d+)/(?:stream:(?P<stream>\d+)(?:<(?P<kind>\w+)>)?|(?P<other>.+))")
# "stream:all" and "memcpy" repeat events of the streams, "sync" is a wait on the host, "stream:" is overhead.
_OTHER_LINES = {"stream:all": "all streams", "stream:": "overhead"}
_PLAIN_DEVICE = re.compile(r"/device:(?!CPU:)\w+:\d+")
_COPY = re.compile(r"MEMCPY(HtoD|DtoH|DtoD|PtoP)")
_KERNEL_DETAILS = re.compile(r" (?:regs:|bytes:|\d+ bytes\b).*", re.DOTALL)
_LABEL_STAT = re.compile(r"(\w+)=([^,]*)")


def read_legacy_bytes(data: ByteArray, path: Path, *, window: str = "") -> Trace:
    """Read a serialized `Trace`.

    Args:
        data: The file, shape (bytes,).
        path: Where it came from.
        window: Name of the session folder it belongs to.

    Raises:
        TraceReadError: It holds no trace events.
    """
    budget = MemoryBudget(path.name, len(data))
    scan = LocalScan(data, budget)
    if not scan.events and (scan.bytes_lost or not any(device.name for device in scan.devices.values())):
        raise TraceReadError(
            f"{path.name} holds no trace events; expected the Trace message that TensorFlow 1.14 to 2.1 wrote."
        )
    salvage = None
    if scan.first_damage is not None:
        where = f"{path.name} is damaged from byte {scan.first_damage:,}"
        salvage = Salvage(scan.bytes_lost, scan.events, f"{where}; events that read well were kept.")
    host = path.name.removesuffix(".trace")
    return Trace(
        path=path,
        host="" if host == "local" else host,
        window=window,
        planes=_build_planes(scan, budget),
        origin_epoch_ns=None,
        start_ns=None,
        stop_ns=None,
        size_bytes=len(data),
        salvage=salvage,
    )


@dataclass(frozen=True, eq=False)
class ArgStats(StatSource):
    """Decodes the arguments of one line's events.

    TensorFlow 2.1 kept what an event says about itself (``train#step_num=3,_r=1#``) in the argument ``label``;
    its parts are stats of their own here.

    Attributes:
        data: The file.
        begin, size: Bytes of each event's arguments, shape (n,).
    """

    data: bytes
    begin: IntArray
    size: IndexArray

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        numbers = [as_int(text) for text in self.texts(rows, stat)]
        known = np.array([number is not None for number in numbers], np.bool_)
        return np.array([number or 0 for number in numbers], np.int64), known

    def floats(self, rows: IntArray, stat: str) -> NDArray[np.float64]:
        texts = self.texts(rows, stat)
        return np.array([np.nan if text is None else as_float(text) for text in texts], np.float64)

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.begin):
            raise IndexError(f"rows must lie in [0, {len(self.begin)})")
        begin, end = self.begin[rows], self.begin[rows] + self.size[rows]
        wanted = stat.encode()
        found = (self.data[first:last] for first, last in zip(begin.tolist(), end.tolist(), strict=True))
        return [_read_stats(args).get(stat) if wanted in args else None for args in found]


def _read_stats(data: bytes) -> dict[str, str]:
    args = read_args(data)
    label = args.get("label", "")
    return {**dict(_LABEL_STAT.findall(label)), **args} if "=" in label else args


@dataclass(frozen=True)
class _Target:
    """Where a device's events go.

    Attributes:
        plane, line: Name of the plane and, unless the resource's own name is it, of the line.
        stream: Whether the events are work on a GPU's stream, named after kernels.
        kind: The kind of copy, where the device's name tells it.
    """

    plane: str
    line: str | None = None
    stream: bool = False
    kind: str | None = None


@dataclass(frozen=True, eq=False)
class _LinePart:
    """One line of a plane: a resource of a device."""

    place: _Target
    id: int
    name: str
    columns: EventColumns


def _target(device: str) -> _Target:
    match = _STREAM.fullmatch(device)
    if match and match["stream"]:
        kind = match["kind"]
        line = f"Stream #{match['stream']}" + (f"({kind})" if kind else "")
        return _Target(match["device"], line, True, kind)
    if match:
        return _Target(match["device"], _OTHER_LINES.get(match["other"], match["other"]))
    if _PLAIN_DEVICE.fullmatch(device):
        return _Target(device)
    # What an executor notes under /job:…/device:GPU:0 is the host's part of the op: it launches, the stream works.
    return _Target(HOST_PLANE, None if device == HOST_PLANE or not device else device)


def _build_planes(scan: LocalScan, budget: MemoryBudget) -> tuple[Plane, ...]:
    merged: dict[str, list[_LinePart]] = {}
    for device in scan.devices.values():
        merged.setdefault(_target(device.name).plane, [])
    for (device_id, resource_id), columns in sorted(scan.lines.items(), key=lambda item: item[0]):
        names = scan.devices.get(device_id)
        place = _target(names.name if names else "")
        resource = names.resources.get(resource_id, "") if names else ""
        name = place.line or resource or f"thread {resource_id}"
        merged.setdefault(place.plane, []).append(_LinePart(place, resource_id, name, columns))
    return tuple(_build_plane(scan, budget, name, parts) for name, parts in merged.items())


def _build_plane(scan: LocalScan, budget: MemoryBudget, name: str, parts: Iterable[_LinePart]) -> Plane:
    names = _PlaneNames(scan, budget)
    lines = []
    for part in parts:
        columns = part.columns
        used = names.kernels(part.place.kind, columns) if part.place.stream else names.used(columns)
        index = used.astype(index_type(len(names.names)))
        stats = ArgStats(scan.data, columns.args, columns.args_size)
        lines.append(Line(part.id, part.name, columns.start_ns, columns.duration_ns, index, stats))
    return Plane(name, tuple(lines), tuple(names.names), tuple(names.display_names), {})


class _PlaneNames:
    """The names that one plane's events use."""

    def __init__(self, scan: LocalScan, budget: MemoryBudget) -> None:
        self.names: list[str] = []
        self.display_names: list[str] = []
        self._scan = scan
        self._budget = budget
        self._indices: dict[tuple[str, str], int] = {}

    def used(self, columns: EventColumns) -> IndexArray:
        """Return the index of each event's name as TensorFlow wrote it, shape (n,)."""
        found, inverse = np.unique(columns.name, return_inverse=True)
        scan = self._scan
        mine = [self._intern(scan.names[index], scan.display_names[index]) for index in found]
        return np.array(mine, np.int32)[inverse.reshape(-1)]

    def kernels(self, kind: str | None, columns: EventColumns) -> IndexArray:
        """Return the index of each event's kernel or copy, as an XPlane names them; the op is what is displayed."""
        data, indices = self._scan.data, []
        memo: dict[tuple[int, bytes], int] = {}
        places = (columns.name.tolist(), columns.args.tolist(), columns.args_size.tolist())
        for name, begin, size in zip(*places, strict=True):
            key = name, data[begin : begin + size]
            if key not in memo:
                if len(memo) >= MEMO:
                    memo.clear()
                full, shown = self._scan.names[name], self._scan.display_names[name]
                memo[key] = self._intern(kind or _kernel_name(full, read_args(key[1]).get("label", "")), shown)
            indices.append(memo[key])
        return np.array(indices, np.int32)

    def _intern(self, name: str, shown: str) -> int:
        index = self._indices.setdefault((name, shown), len(self.names))
        if index == len(self.names):
            self._budget.take(PER_NAME + 4 * len(name), 1, "bytes of names")
            self.names.append(name)
            self.display_names.append(shown)
        return index


def _kernel_name(name: str, label: str) -> str:
    """Return the kernel from a label such as ``volta_sgemm_64x64_nn regs:120 shm:8192 …``."""
    copy = _COPY.search(name) or _COPY.search(label)
    if copy:
        return f"Memcpy{copy[1]}"
    return _KERNEL_DETAILS.sub("", label) or name
