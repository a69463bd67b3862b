"""Write small XSpace files by hand, so that a test's trace fits on its page and goes through the real reader.

space = XSpace()
host = space.plane("/host:CPU")
host.line("python", timestamp_ns=0).event("train", start_us=0, duration_us=10_000, step_num=0)
space.write(path)
"""

import struct
from pathlib import Path

StatValue = int | float | str | bytes


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, payload: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


class XLine:
    def __init__(self, plane: "XPlane", name: str, line_id: int, timestamp_ns: int) -> None:
        self._plane, self._name, self._id, self._timestamp_ns = plane, name, line_id, timestamp_ns
        self._events: list[bytes] = []

    def event(
        self, name: str, start_us: float, duration_us: float, *, display: str = "", **stats: StatValue
    ) -> "XLine":
        """Add an event; returns the line, so that calls chain."""
        metadata = self._plane.event_metadata(name, display)
        body = number(1, metadata) + number(2, round(start_us * 1e6)) + number(3, round(duration_us * 1e6))
        body += b"".join(chunk(4, self._plane.stat(key, value)) for key, value in stats.items())
        self._events.append(body)
        return self

    def encode(self) -> bytes:
        head = number(1, self._id) + chunk(2, self._name.encode()) + number(3, self._timestamp_ns)
        return head + b"".join(chunk(4, event) for event in self._events)


class XPlane:
    def __init__(self, name: str, plane_id: int) -> None:
        self._name, self._id = name, plane_id
        self._lines: list[XLine] = []
        self._events: dict[tuple[str, str], int] = {}
        self._stat_names: dict[str, int] = {}
        self._stats: list[bytes] = []

    def line(self, name: str, *, line_id: int | None = None, timestamp_ns: int = 0) -> XLine:
        line = XLine(self, name, len(self._lines) + 1 if line_id is None else line_id, timestamp_ns)
        self._lines.append(line)
        return line

    def set(self, name: str, value: StatValue) -> "XPlane":
        """Set a stat of the plane itself."""
        self._stats.append(self.stat(name, value))
        return self

    def event_metadata(self, name: str, display: str) -> int:
        return self._events.setdefault((name, display), len(self._events) + 1)

    def stat(self, name: str, value: StatValue) -> bytes:
        """Encode one XStat: int as int64, float as double, str inline, bytes as bytes."""
        head = number(1, self._stat_names.setdefault(name, len(self._stat_names) + 1))
        if isinstance(value, bool | int):
            return head + number(4, int(value))
        if isinstance(value, float):
            return head + double(2, value)
        if isinstance(value, str):
            return head + chunk(5, value.encode())
        return head + chunk(6, value)

    def encode(self) -> bytes:
        lines = b"".join(chunk(3, line.encode()) for line in self._lines)
        names = b"".join(
            chunk(4, number(1, key) + chunk(2, number(1, key) + chunk(2, name.encode()) + chunk(4, display.encode())))
            for (name, display), key in self._events.items()
        )
        stats = b"".join(
            chunk(5, number(1, key) + chunk(2, number(1, key) + chunk(2, name.encode())))
            for name, key in self._stat_names.items()
        )
        own = b"".join(chunk(6, stat) for stat in self._stats)
        return number(1, self._id) + chunk(2, self._name.encode()) + lines + names + stats + own


class XSpace:
    def __init__(self) -> None:
        self._planes: list[XPlane] = []
        self._messages: list[bytes] = []

    def complain(self, *, error: str = "", warning: str = "") -> "XSpace":
        """Add what the profiler could not do, or left out."""
        self._messages += [chunk(field, text.encode()) for field, text in ((2, error), (3, warning)) if text]
        return self

    def plane(self, name: str) -> XPlane:
        plane = XPlane(name, len(self._planes))
        self._planes.append(plane)
        return plane

    def environment(self, start_epoch_ns: int, stop_epoch_ns: int) -> "XSpace":
        """Add the Task Environment plane of newer captures, which says when the profiler was on."""
        self.plane("Task Environment").set("profile_start_time", start_epoch_ns).set("profile_stop_time", stop_epoch_ns)
        return self

    def encode(self, host: str = "host") -> bytes:
        planes = b"".join(chunk(1, plane.encode()) for plane in self._planes)
        return planes + b"".join(self._messages) + chunk(4, host.encode())

    def write(self, path: Path, host: str = "host") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.encode(host))
        return path
