"""When the device had no work, for how long, and why."""

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa


class GapCause(StrEnum):
    """Why a device idled; the first that applies, in this order, names a gap."""

    CAPTURE_GAP = "capture_gap"
    INPUT_WAIT = "input_wait"
    HOST_TO_DEVICE = "host_to_device"
    COMPILE = "compile"
    HOST_OPERATION = "host_operation"
    CHECKPOINT = "checkpoint"
    DISPATCH = "dispatch"
    PYTHON = "python"
    UNKNOWN = "unknown"


GAP_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),  # null for a capture gap
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("cause", pa.string()),  # a GapCause value
        ("host_operation", pa.string()),  # the host operation that fills most of the gap, or null
        *[(f"{cause.value}_ns", pa.int64()) for cause in GapCause],  # how the gap divides; they add up to duration_ns
    ]
)
"""One row per maximal interval without device work."""

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


@dataclass(frozen=True)
class DeviceTime:
    """Busy and idle time of one device inside the windows; capture gaps belong to neither."""

    name: str
    busy_ns: int
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
    """

    device: str
    devices: tuple[DeviceTime, ...]
    by_cause_ns: dict[GapCause, int]
    gaps: pa.Table
    busy: pa.Table

    @property
    def idle_ns(self) -> int:
        return sum(device.idle_ns for device in self.devices)

    @property
    def busy_ns(self) -> int:
        return sum(device.busy_ns for device in self.devices)
