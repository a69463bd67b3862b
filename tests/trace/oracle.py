"""Read an XSpace with protobuf, to compare our reader against; loads TensorFlow's message classes, not TensorFlow."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline_lab.trace.schema import Line, Plane, Trace


@cache
def xplane_pb2() -> ModuleType:
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "tsl/profiler/protobuf/xplane_pb2.py"
    found = importlib.util.spec_from_file_location("xplane_pb2", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def parse(data: bytes) -> Any:
    space = xplane_pb2().XSpace()
    space.ParseFromString(data)
    return space


def value_of(plane: Any, stat: Any) -> int | float | str:
    kind = stat.WhichOneof("value")
    value = getattr(stat, kind)
    if kind == "ref_value":
        return plane.stat_metadata[value].name
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def stats_of(plane: Any, event: Any) -> dict[str, int | float | str]:
    """An event's stats over those of its metadata."""
    shared = plane.event_metadata[event.metadata_id].stats if event.metadata_id in plane.event_metadata else ()
    both = [*shared, *event.stats]
    return {plane.stat_metadata[stat.metadata_id].name: value_of(plane, stat) for stat in both}


def assert_same(trace: Trace, data: bytes) -> None:
    """Check every event of every line: name, start, duration and all stats."""
    space = parse(data)
    assert [plane.name for plane in trace.planes] == [plane.name for plane in space.planes]
    assert trace.host == "".join(space.hostnames[:1])
    for ours, theirs in zip(trace.planes, space.planes, strict=True):
        assert [line.id for line in ours.lines] == [line.id for line in theirs.lines]
        for line, expected in zip(ours.lines, theirs.lines, strict=True):
            assert line.name == expected.name or expected.display_name
            assert_same_events(ours, line, theirs, expected)


def assert_same_events(ours: Plane, line: Line, theirs: Any, expected: Any) -> None:
    begin_ps = [expected.timestamp_ns * 1000 + event.offset_ps for event in expected.events]
    end_ps = [begin + event.duration_ps for begin, event in zip(begin_ps, expected.events, strict=True)]
    assert line.start_ns.tolist() == [begin // 1000 for begin in begin_ps]
    assert line.end_ns.tolist() == [end // 1000 for end in end_ps]
    metadata = [theirs.event_metadata[event.metadata_id] for event in expected.events]
    assert [ours.names[index] for index in line.name_index] == [one.name for one in metadata]
    shown = [one.display_name or one.name for one in metadata]
    assert [ours.display_names[index] for index in line.name_index] == shown
    stats = [stats_of(theirs, event) for event in expected.events]
    for name in {name for row in stats for name in row}:
        assert_same_stat(line, name, [row.get(name) for row in stats])


def assert_same_stat(line: Line, name: str, expected: list[int | float | str | None]) -> None:
    rows = range(line.count)
    texts = line.stats.texts(rows, name)
    assert texts == [None if value is None else str(value) for value in expected]
    ints, known = line.stats.ints(rows, name)
    floats = line.stats.floats(rows, name)
    for row, value in enumerate(expected):
        if isinstance(value, int):
            assert known[row]
            assert int(ints[row]) % 2**64 == value % 2**64
        if isinstance(value, int | float):
            assert floats[row] == float(value)
        else:
            assert not known[row] or str(ints[row]) == value
