"""Put the planes of one file on one time axis.

TensorFlow writes ``line.timestamp_ns`` relative to the start of the session, and newer captures say in a plane called
``Task Environment`` when that was. Some captures hold times since the epoch instead. A file of concatenated XSpaces
holds several sessions, each with its own start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.trace.layout import PlaneBytes

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
