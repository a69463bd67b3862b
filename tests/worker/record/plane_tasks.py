"""What the tests of the emulated device's plane ask of a process that has TensorFlow loaded."""

import time
import unittest.mock
from pathlib import Path

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from pipeline_lab.runs.run_events import NoteEvent, read_events
from pipeline_lab.worker.record.emulated_plane import ENVIRONMENT, EmulatedProfiler, make_plane, read_session
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.emulated_device import EmulatedDevice, EmulatedStep
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import make_job


def times_in_plane(steps: list[list[int]], shift_ns: int, session: list[int]) -> list[list[int]]:
    """Write steps, given as start and end, as a plane; return number, offset and duration of each event, ps."""
    begin_ns, stop_ns = session
    emulated = [EmulatedStep(number, start_ns, start_ns, end_ns) for number, (start_ns, end_ns) in enumerate(steps)]
    (line,) = make_plane(emulated, shift_ns, (begin_ns, stop_ns)).lines
    return [[event.stats[0].uint64_value, event.offset_ps, event.duration_ps] for event in line.events]


def times_of_session(path: str, sizes: list[int], session: list[int] | None) -> list[int] | str:
    """Write a trace with planes of these sizes and perhaps the session's times; return the times that are read."""
    space = xplane_pb2.XSpace(hostnames=["here"], warnings=["w" * 300])
    for size in sizes:
        space.planes.add(name="n" * size)
    if session is not None:
        plane = space.planes.add(name=ENVIRONMENT)
        for number, (name, value) in enumerate(
            zip(("profile_start_time", "profile_stop_time"), session, strict=True), 1
        ):
            plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, name
            plane.stats.add(metadata_id=number, uint64_value=value)
    Path(path).write_bytes(space.SerializeToString())
    try:
        return list(read_session(Path(path)))
    except ValueError as error:
        return str(error)


def what_became_of_an_empty_trace(folder: str) -> list[str]:
    """Record a window that is larger than TensorFlow can write; return what is noted."""
    folders: list[Path] = []

    def stop(save: bool) -> None:
        assert save
        session = folders[0] / "plugins" / "profile" / "now"
        session.mkdir(parents=True)
        (session / "host.xplane.pb").touch()

    job = make_job(Path(folder), SYNTHETIC.options)
    profiler = EmulatedProfiler(EmulatedDevice([1_000], time.monotonic_ns, time.sleep))
    recorder = WindowRecorder(job.folder, profiler, job.log, job.clock)
    with (
        unittest.mock.patch.object(tf.profiler.experimental, "start", lambda logdir: folders.append(Path(logdir))),
        unittest.mock.patch.object(tf.profiler.experimental, "stop", stop),
    ):
        recorder.open()
        recorder.close()
        recorder.finish()
    return [event.sentence for event in read_events(job.folder.events) if isinstance(event, NoteEvent)]
