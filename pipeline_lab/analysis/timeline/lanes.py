"""Which lanes a trace gives, what class each of its events is, and how nested events are laid in layers."""

from collections.abc import Iterator
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import DeviceKind, Kind
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.causes import GapCause, Work
from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.schema import Line, Plane

MAX_LAYERS = 24
"""Events nested deeper than this are counted, but not shown."""


class LaneKind(StrEnum):
    """What a lane shows, in the order from top to bottom."""

    WINDOWS = "windows"
    STEPS = "steps"
    WAITS = "waits"
    DEVICE = "device"
    STREAM = "stream"
    THREAD = "thread"


CLASSES: tuple[str, ...] = (*(work.value for work in Work), *(cause.value for cause in GapCause))
"""What an event can be; an event's class is an index into this."""
CLASS_NUMBER = {name: number for number, name in enumerate(CLASSES)}

_HOST_CLASSES = (
    (Kind.WAIT | Kind.OUTER_WAIT | Kind.LOOP_WAIT, GapCause.INPUT_WAIT),
    (Kind.HOST_TO_DEVICE, GapCause.HOST_TO_DEVICE),
    (Kind.COMPILE, GapCause.COMPILE),
    (Kind.CHECKPOINT, GapCause.CHECKPOINT),
    (Kind.INPUT_FUNCTION, Work.TF_DATA),
    (Kind.OP | Kind.EAGER_OP, GapCause.HOST_OPERATION),
    (Kind.EXECUTOR, GapCause.DISPATCH),
)
"""The first that fits; the colors are those of the gaps that such events cause."""
_DEVICE_CLASSES = {
    DeviceKind.COMPUTE: Work.BUSY,
    DeviceKind.COPY: GapCause.HOST_TO_DEVICE,
    DeviceKind.COLLECTIVE: Work.COLLECTIVE,
    DeviceKind.HOST_TO_DEVICE: GapCause.HOST_TO_DEVICE,
}


@dataclass(frozen=True)
class Thread:
    """A line of a trace as a lane.

    Attributes:
        plane, line: The line and its plane.
        kind: A device's stream or a host's thread.
        role: ``training``, ``tf.data`` or ``other`` for a thread, ``stream`` for a stream.
        class_of_name: Class of each of the plane's names on this line, shape (names,).
    """

    plane: Plane
    line: Line
    kind: LaneKind
    role: str
    class_of_name: NDArray[np.uint8]


def find_threads(activity: Activity) -> Iterator[Thread]:
    """Yield the lines of a trace that hold events: streams of devices, then the threads of hosts."""
    for plane in activity.trace.device_planes:
        classes = _numbers([_device_class(name) for name in plane.names])
        for line in plane.lines:
            if line.count and event_names.is_work_line(plane, line.name):
                yield Thread(plane, line, LaneKind.STREAM, "stream", classes)
    for plane in activity.trace.planes:
        if not plane.is_host:
            continue
        own, tf_data = (_numbers([_host_class(name, flag) for name in plane.names]) for flag in (False, True))
        for line in plane.lines:
            if line.count:
                is_input = event_names.is_tf_data_thread(line.name)
                role = "training" if line is activity.training_line else "tf.data" if is_input else "other"
                yield Thread(plane, line, LaneKind.THREAD, role, tf_data if is_input else own)


def find_layers(start: IntArray, end: IntArray) -> tuple[list[IntArray], int]:
    """Lay events in layers so that those of one layer do not overlap; nested events come to lie under what holds them.

    Args:
        start, end: ns, any order, shape (n,).

    Returns:
        Numbers of the events of each layer, ordered by start, and how many lie deeper than :data:`MAX_LAYERS`.
    """
    left = np.lexsort((-end, start))
    layers: list[IntArray] = []
    while len(left) and len(layers) < MAX_LAYERS:
        reach = np.maximum.accumulate(end[left])
        is_free = np.concatenate(([True], start[left][1:] >= reach[:-1]))
        layers.append(left[is_free])
        left = left[~is_free]
    return layers, len(left)


def _host_class(name: str, on_tf_data_thread: bool) -> str:
    kind = event_names.host_kind(name)
    for wanted, found in _HOST_CLASSES:
        if kind & wanted and not (on_tf_data_thread and found is GapCause.INPUT_WAIT):
            return Work.TF_DATA.value if on_tf_data_thread else found.value
    if on_tf_data_thread or name.startswith(event_names.ITERATOR):
        return Work.TF_DATA.value
    return GapCause.PYTHON.value if name.startswith("$") else Work.OTHER.value


def _device_class(name: str) -> str:
    return _DEVICE_CLASSES[event_names.device_kind(name)].value


def _numbers(classes: list[str]) -> NDArray[np.uint8]:
    return np.array([CLASS_NUMBER[name] for name in classes], np.uint8)
