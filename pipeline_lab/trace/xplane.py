"""Read an ``.xplane.pb`` file into columns, without TensorFlow and without building a message tree.

The file is mapped, not loaded. A first pass finds planes, lines and names and counts events, a second one fills the
columns; both are compiled and check every byte that they touch. Stats stay encoded until somebody asks for one.
"""

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
    """Read a serialised XSpace; ``path`` says where it came from."""
    budget = Budget(path.name, len(data))
    try:
        trace = build_trace(data, read_space(data, budget), budget, path, window=window)
    except DamagedError as damage:
        raise TraceReadError(f"{path.name} is damaged at byte {damage.position:,}; record it again.") from damage
    finally:
        release_pages(data)
    return trace


def build_trace(
    data: ByteArray, space: SpaceBytes, budget: Budget, path: Path, *, window: str, salvage: Salvage | None = None
) -> Trace:
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
        host=space.hostnames[0] if space.hostnames else "",
        window=window,
        planes=read_planes(data, bases, budget),
        origin_epoch_ns=origin,
        start_ns=start,
        stop_ns=stop,
        size_bytes=len(data),
        salvage=salvage,
    )


def _profiled(sessions: list[Session], origin: int | None) -> tuple[int | None, int | None]:
    """Return when the profiler was on, in ns since the origin."""
    if origin is None:
        return None, None
    starts = [one.start_epoch_ns - origin for one in sessions if one.start_epoch_ns is not None]
    stops = [one.stop_epoch_ns - origin for one in sessions if one.stop_epoch_ns is not None]
    return min(starts, default=None), max(stops, default=None)
