"""Read an ``.xplane.pb`` file into columns, without TensorFlow and without building a message tree.

The file is mapped, not loaded. A first pass finds planes, lines and names and counts events, a second one fills the
columns; both are compiled and check every byte that they touch. Stats stay encoded until somebody asks for one.

All planes of a file share one time axis. TensorFlow writes ``line.timestamp_ns`` relative to the start of the session, and newer captures say in a plane
called ``Task Environment`` when that was. Some captures hold times since the epoch instead. A file of concatenated
XSpaces holds several sessions, each with its own start.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.file_memory import Budget, map_path, release_pages
from pipeline_lab.trace.schema import Salvage, Trace
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.trace.xplane.columns import read_planes
from pipeline_lab.trace.xplane.layout import DamagedError, PlaneBytes, SpaceBytes, read_space

ENVIRONMENT = "Task Environment"
EPOCH_NS = 10**17
"""Times beyond this (three years) count from the epoch: no session lasts that long."""
LATEST_EPOCH_NS = 4 * 10**18
LIMIT_NS = 2**62


@dataclass(frozen=True)
class Session:
    """One profiler session inside a file.

    Attributes:
        planes: Its planes; names do not repeat.
        start_epoch_ns, stop_epoch_ns: When the profiler was on, or None if the file does not say.
        origin_epoch_ns: Epoch of its time 0, or None.
    """

    planes: tuple[PlaneBytes, ...]
    start_epoch_ns: int | None
    stop_epoch_ns: int | None
    origin_epoch_ns: int | None

    def shifted(self, timestamp_ns: int, trace_origin_ns: int | None) -> int:
        """Return a line's base in ns since the trace's origin, bounded so that sums stay in int64."""
        if timestamp_ns > EPOCH_NS and self.origin_epoch_ns is not None:
            timestamp_ns -= self.origin_epoch_ns
        if trace_origin_ns is not None and self.origin_epoch_ns is not None:
            timestamp_ns += self.origin_epoch_ns - trace_origin_ns
        return max(-LIMIT_NS, min(LIMIT_NS, timestamp_ns))


def find_sessions(planes: Sequence[PlaneBytes]) -> list[Session]:
    """Split concatenated spaces: a plane name that comes again begins the next session."""
    groups: list[dict[str, PlaneBytes]] = [{}]
    for plane in planes:
        if plane.name in groups[-1]:
            groups.append({})
        groups[-1][plane.name] = plane
    return [_session(tuple(group.values())) for group in groups]


def _session(planes: tuple[PlaneBytes, ...]) -> Session:
    stats = next((plane.stats for plane in planes if plane.name == ENVIRONMENT), {})
    start, stop = _epoch(stats.get("profile_start_time")), _epoch(stats.get("profile_stop_time"))
    absolute = [line.timestamp_ns for plane in planes for line in plane.lines if line.timestamp_ns > EPOCH_NS]
    return Session(planes, start, stop, start if start is not None else min(absolute, default=None))


def _epoch(value: object) -> int | None:
    return value if isinstance(value, int) and EPOCH_NS < value < LATEST_EPOCH_NS else None


_PROCESS = re.compile(r"\.rank\d+(?=\.xplane\.pb)")
"""How the file of one of several processes of a job is named: ``<host>.rank1.xplane.pb``."""


def read_xplane(path: Path, *, window: str = "") -> Trace:
    """Read one capture.

    Args:
        path: An ``.xplane.pb`` file.
        window: Name of the session folder it belongs to.

    Raises:
        TraceReadError: The file cannot be opened, is empty or is no XSpace.
    """
    return read_bytes(map_path(path), path, window=window)


def read_bytes(data: ByteArray, path: Path, *, window: str = "") -> Trace:
    """Read a serialised XSpace, salvaging what can be if it is damaged.

    Args:
        data: The bytes, mapped or in memory.
        path: Where they came from.
        window: Name of the session folder.
    """
    try:
        return _read_sound(data, path, window) or _read_damaged(data, path, window)
    finally:
        release_pages(data)


def _read_sound(data: ByteArray, path: Path, window: str) -> Trace | None:
    """Read a sound file; return None if it is damaged."""
    budget = Budget(path.name, len(data))
    try:
        return build_trace(data, read_space(data, budget), budget, path, window)
    except DamagedError:
        return None


def _read_damaged(data: ByteArray, path: Path, window: str) -> Trace:
    from pipeline_lab.trace.xplane.salvage import salvage_space  # most files are sound

    budget = Budget(path.name, len(data))
    space, loss = salvage_space(data, budget)
    trace = build_trace(data, space, budget, path, window)
    reason = loss.reason(data)
    if trace.event_count and not any(any(plane.names) for plane in trace.planes):
        reason = reason.rstrip(".") + ", and the names of its events are among what is lost."
    return replace(trace, salvage=Salvage(loss.skipped + loss.missing, trace.event_count, reason))


def build_trace(data: ByteArray, space: SpaceBytes, budget: Budget, path: Path, window: str) -> Trace:
    """Read the events of ``space`` and put them on one time axis."""
    if not any(plane.name for plane in space.planes):
        raise TraceReadError(
            f"{path.name} holds no profiler planes; expected an XSpace as TensorFlow's profiler writes it "
            "(<host>.xplane.pb)."
        )
    sessions = find_sessions(space.planes)
    origin = next((one.origin_epoch_ns for one in sessions if one.origin_epoch_ns is not None), None)
    bases = [(plane, partial(one.shifted, trace_origin_ns=origin)) for one in sessions for plane in one.planes]
    start, stop = _profiled(sessions, origin)
    return Trace(
        path=path,
        host=_name_host(space.hostnames, path),
        window=window,
        planes=read_planes(data, bases, budget),
        origin_epoch_ns=origin,
        start_ns=start,
        stop_ns=stop,
        size_bytes=len(data),
    )


def _name_host(hostnames: tuple[str, ...], path: Path) -> str:
    """Return the host's name, empty if the file does not say; processes of one machine are told apart by their files."""
    process = _PROCESS.search(path.name)
    host = hostnames[0] if hostnames else ""
    return f"{host}{process[0]}" if host and process else host


def _profiled(sessions: list[Session], origin: int | None) -> tuple[int | None, int | None]:
    """Return when the profiler was on, in ns since the origin."""
    if origin is None:
        return None, None
    starts = [one.start_epoch_ns - origin for one in sessions if one.start_epoch_ns is not None]
    stops = [one.stop_epoch_ns - origin for one in sessions if one.stop_epoch_ns is not None]
    return min(starts, default=None), max(stops, default=None)
