"""Small captures made by hand, one of every format that is read."""

import json
import struct
import tempfile
from pathlib import Path

import numpy as np

from pipeline_lab.trace.xplane import xspace
from tests.support.recorded_run import write_run
from tests.support.xspace import XSpace, chunk, number


def small_space() -> bytes:
    space = XSpace()
    for plane_name, line_name in (("/host:CPU", "python"), ("/device:GPU:0", "Stream #1")):
        plane = space.plane(plane_name).set("clock_rate", 5)
        for k in range(3):
            line = plane.line(f"{line_name}{k}", timestamp_ns=k)
            for n in range(12):
                line.event(f"Op::{n % 4}", n, 1, id=n, label="x", share=0.5)
    return space.environment(1_700_000_000 * 10**9, 1_700_000_001 * 10**9).encode()


def unusual_space() -> bytes:
    """Return what the format allows and profilers seldom write: events that count, names with stats, a line's head after its events."""

    def named(field: int, key: int, name: bytes, *more: bytes) -> bytes:
        return chunk(field, number(1, key) + chunk(2, number(1, key) + chunk(2, name) + b"".join(more)))

    names = named(4, 1, b"ExecutorState::Process") + named(4, 2, b"Iterator::Root") + named(4, 3, b"train")
    stats = named(5, 1, b"id") + named(5, 2, b"step_num")
    events = [
        chunk(4, number(1, n % 3 + 1) + number(2, n * 10**6) + number(3, 10**6) + chunk(4, number(1, 1) + number(4, n)))
        for n in range(40)
    ]
    count = chunk(4, number(1, 3) + number(5, 7))
    lines = chunk(3, b"".join(events) + count + chunk(2, b"python")) + chunk(3, b"".join(events) + number(3, 1_000))
    shared = chunk(5, number(1, 1) + number(3, 9))
    device = chunk(3, chunk(2, b"XLA Ops") + events[0] + events[3]) + named(4, 1, b"fusion", shared) + stats
    host = chunk(2, b"/host:CPU") + lines + names + stats
    return chunk(1, host) + chunk(1, chunk(2, b"/device:TPU:0") + device)


def chrome_trace() -> bytes:
    names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}]
    events = [
        {"ph": "X", "pid": 1, "tid": n % 3, "ts": n, "dur": 1.5, "name": f"e{n % 4}", "args": {"id": str(n)}}
        for n in range(40)
    ]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": [*names, *events, {}]}).encode()


def legacy_trace() -> bytes:
    """Return a host's waits and a GPU's streams as TensorFlow 2.1 wrote them."""
    devices = _device(3, "/host:CPU", python=7) + _device(4, "/device:GPU:0/stream:14<MemcpyH2D>", stream=1)
    host = (
        _legacy_event((3, 7), b"IteratorGetNextSync", n * 10**6, 10**6, label=f"step_num={n},_r=1") for n in range(20)
    )
    copies = (_legacy_event((4, 1), b"MEMCPYHtoD", n * 10**6, 5 * 10**5, label="bytes: 64", op="x") for n in range(20))
    return devices + b"".join((*host, *copies))


def as_legacy(space: bytes) -> bytes:
    """Write an XSpace's events as TensorFlow 1.14 to 2.1 would have."""
    trace = xspace.read_bytes(np.frombuffer(space, np.uint8), Path("h.xplane.pb"))
    out = b""
    for number_of_plane, plane in enumerate(trace.planes):
        lines = {line.name: index for index, line in enumerate(plane.lines)}
        out += _device(number_of_plane, plane.name, **lines)
        for index, line in enumerate(plane.lines):
            for start, duration, name in zip(line.start_ns, line.duration_ns, line.name_index, strict=True):
                full = plane.names[name]
                place, times = (number_of_plane, index), (int(start) * 1000, int(duration) * 1000)
                out += _legacy_event(place, full.split(":")[-1].encode(), *times, **{"long name": full})
    return out


def _device(key: int, name: str, **resources: int) -> bytes:
    named = ((index, chunk(1, text.encode()) + number(2, index)) for text, index in resources.items())
    parts = b"".join(chunk(3, number(1, index) + chunk(2, resource)) for index, resource in named)
    return chunk(1, number(1, key) + chunk(2, chunk(1, name.encode()) + number(2, key) + parts))


def _legacy_event(place: tuple[int, int], name: bytes, start_ps: int, duration_ps: int, **args: str) -> bytes:
    body = number(1, place[0]) + number(2, place[1]) + chunk(3, name) + number(9, start_ps) + number(10, duration_ps)
    pairs = (chunk(1, key.encode()) + chunk(2, value.encode()) for key, value in args.items())
    return chunk(4, body + b"".join(chunk(11, pair) for pair in pairs))


def events_file() -> bytes:
    """Return an events file with nothing but its version: a length, two checksums (which nobody reads) and text."""
    body = chunk(3, b"brain.Event:2")
    return struct.pack("<QI", len(body), 0) + body + bytes(4)


def derived_file() -> bytes:
    return chunk(1, number(1, 3)) + chunk(4, chunk(1, b"type.googleapis.com/x") + chunk(2, number(1, 4))) + number(6, 1)


def run_folder() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = write_run(Path(name) / "run", windows=1)
        files = sorted(path for path in folder.path.rglob("*") if path.is_file())
        return {str(path.relative_to(name)): path.read_bytes() for path in files}
