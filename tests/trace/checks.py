"""What holds for every trace, however damaged the file was."""

import numpy as np

from pipeline_lab.trace.schema import Line, Plane, Trace


def assert_consistent(trace: Trace) -> None:
    """Check that columns fit each other, that indices lead somewhere, and that every kind of stat can be asked for."""
    assert len({plane.name for plane in trace.planes}) == len(trace.planes)
    assert trace.salvage is None or trace.salvage.events_kept == trace.event_count
    for plane in trace.planes:
        assert len(plane.names) == len(plane.display_names)
        for line in plane.lines:
            assert_line(plane, line)


def assert_line(plane: Plane, line: Line) -> None:
    count = line.count
    assert len(line.duration_ns) == len(line.name_index) == count
    assert (line.duration_ns >= 0).all()
    assert (line.end_ns >= line.start_ns).all()
    assert ((line.name_index >= 0) & (line.name_index < len(plane.names))).all()
    rows = np.arange(count)[:: max(1, count // 50)]
    for stat in ("id", "step_num", "shapes", "element_size"):
        values, known = line.stats.ints(rows, stat)
        assert len(values) == len(known) == len(rows)
        assert len(line.stats.floats(rows, stat)) == len(line.stats.texts(rows, stat)) == len(rows)


def events(trace: Trace) -> set[tuple[str, str, int, int, str]]:
    """Every event with its plane, line, place and name, so that traces can be compared."""
    return {
        (plane.name, line.name, int(start), int(duration), plane.names[name])
        for plane in trace.planes
        for line in plane.lines
        for start, duration, name in zip(line.start_ns, line.duration_ns, line.name_index, strict=True)
    }


def spans(trace: Trace) -> set[tuple[str, int, int]]:
    """Every event with its plane and place."""
    return {(plane, start, duration) for plane, _, start, duration, _ in events(trace)}
