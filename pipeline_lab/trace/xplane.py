"""Read an ``.xplane.pb`` file into columns, without TensorFlow and without building a message tree.

The file is mapped, not loaded. A first pass finds planes, lines and names and counts events, a second one fills the
columns; both are compiled and check every byte that they touch. Stats stay encoded until somebody asks for one.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.budget import Budget
from pipeline_lab.trace.columns import read_planes
from pipeline_lab.trace.layout import DamagedError, SpaceBytes, read_space
from pipeline_lab.trace.mapping import map_path, release_pages
from pipeline_lab.trace.schema import Salvage, Trace
from pipeline_lab.trace.timebase import Session, find_sessions
from pipeline_lab.trace.wire import ByteArray

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
    from pipeline_lab.trace.salvage import salvage_space  # most files are sound

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
