"""The steps of the emulated accelerator in a trace, as a device of its own."""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensorflow.tsl.profiler.protobuf import xplane_pb2

from pipeline_lab.runs.record import EMULATED_PLANE
from pipeline_lab.worker.record.profiler import TensorFlowProfiler
from pipeline_lab.worker.train.emulated_device import EmulatedDevice, EmulatedStep, EmulatedTrainer
from pipeline_lab.worker.train.training_steps import Trainer

STREAM = "Stream #0(Compute)"
STEP = "emulated step"
PS_PER_NS = 1_000
ENVIRONMENT = "Task Environment"
SMALL_BYTES = 1 << 16
"""The plane that holds the session's times is far smaller; larger ones are passed over."""
PLANES_TAG = 0x0A
"""Field 1 of an XSpace, a message."""


def make_profiler(trainer: Trainer) -> TensorFlowProfiler:
    """Return the profiler of a job's windows, which also records the emulated device if that trains."""
    return EmulatedProfiler(trainer.device) if isinstance(trainer, EmulatedTrainer) else TensorFlowProfiler()


class EmulatedProfiler(TensorFlowProfiler):
    """Adds a plane with the device's steps to each trace.

    A file of serialized spaces one after another is a valid space, so the plane is appended. Its times count from the start
    of the session, which TensorFlow reads from the same system clock.
    """

    def __init__(self, device: EmulatedDevice) -> None:
        self._device = device
        self._logdir = Path()

    def settle(self) -> None:
        self._device.settle()

    def start(self, logdir: Path) -> None:
        super().start(logdir)
        self._logdir = logdir
        self._device.start_recording()

    def stop(self, *, save: bool) -> None:
        shift_ns = self._device.clock_error_ns
        super().stop(save=save)
        steps = self._device.stop_recording()
        for trace in self._logdir.rglob("*.xplane.pb") if save else ():
            if trace.stat().st_size == 0:  # too large for TensorFlow, as publish reports
                continue
            plane = make_plane(steps, shift_ns, read_session(trace))
            with trace.open("ab") as file:
                file.write(xplane_pb2.XSpace(planes=[plane]).SerializeToString())


def make_plane(steps: Sequence[EmulatedStep], shift_ns: int, session: tuple[int, int]) -> xplane_pb2.XPlane:
    """Write steps as the plane of a device; one that had not ended by the end of the session is left out, as real ones are.

    Args:
        steps: In order.
        shift_ns: From the device's clock to the system's.
        session: Its start and end, ns since the epoch.
    """
    begin_ns, stop_ns = session
    plane = xplane_pb2.XPlane(id=1, name=EMULATED_PLANE)
    plane.event_metadata[1].id, plane.event_metadata[1].name = 1, STEP
    plane.stat_metadata[1].id, plane.stat_metadata[1].name = 1, "correlation_id"
    line = plane.lines.add(id=0, name=STREAM)
    for step in steps:
        start_ns, end_ns = max(step.start_ns + shift_ns, begin_ns), step.end_ns + shift_ns
        if begin_ns < end_ns <= stop_ns:
            event = line.events.add(metadata_id=1)
            event.offset_ps, event.duration_ps = (start_ns - begin_ns) * PS_PER_NS, (end_ns - start_ns) * PS_PER_NS
            event.stats.add(metadata_id=1, uint64_value=step.number)
    return plane


def read_session(trace: Path) -> tuple[int, int]:
    """Return when the session of a trace began and ended, ns since the epoch."""
    for plane in _small_planes(trace):
        if plane.name == ENVIRONMENT:
            names = {number: entry.name for number, entry in plane.stat_metadata.items()}
            stats = {names[stat.metadata_id]: stat.uint64_value or stat.int64_value for stat in plane.stats}
            return stats["profile_start_time"], stats["profile_stop_time"]
    raise ValueError("TensorFlow wrote no session times")


def _small_planes(trace: Path) -> Iterator[xplane_pb2.XPlane]:
    """Yield the planes of a trace but the large ones, which hold the events."""
    with trace.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        place = 0
        while place < len(data):
            tag = data[place]
            size, place = _varint(data, place + 1)
            if tag == PLANES_TAG and size < SMALL_BYTES:
                yield xplane_pb2.XPlane.FromString(data[place : place + size])
            place += size


def _varint(data: mmap.mmap, place: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = shift = 0
    while True:
        byte = data[place]
        value, shift, place = value | (byte & 0x7F) << shift, shift + 7, place + 1
        if byte < 0x80:
            return value, place
