"""Build small traces by hand, without a file: one line of text per event, times in µs.

trace(host(line("python", ("train", 0, 100, {"step_num": 0}), ("IteratorGetNextOp::DoCompute", 0, 40))))
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lab.trace.schema import BoolArray, IntArray, Line, Plane, Salvage, StatSource, Trace, index_type

Event = tuple[str, float, float] | tuple[str, float, float, dict[str, Any]]
WAIT = "IteratorGetNextOp::DoCompute"
PROCESS = "ExecutorState::Process"


@dataclass(frozen=True)
class Stats(StatSource):
    rows: list[dict[str, Any]]

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        known = [isinstance(self.rows[row].get(stat), int) for row in rows]
        values = [self.rows[row][stat] if found else 0 for row, found in zip(rows, known, strict=True)]
        return np.array(values, np.int64), np.array(known, np.bool_)

    def floats(self, rows: IntArray, stat: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([float(self.rows[row].get(stat, np.nan)) for row in rows])

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        return [str(self.rows[row][stat]) if stat in self.rows[row] else None for row in rows]


@dataclass(frozen=True)
class LineSpec:
    name: str
    events: Sequence[Event]


@dataclass
class Names:
    index: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.index.setdefault(name, len(self.index))


def line(name: str, *events: Event) -> LineSpec:
    return LineSpec(name, events)


def plane(name: str, *lines: LineSpec) -> Plane:
    names = Names()
    built = tuple(_build_line(number, spec, names) for number, spec in enumerate(lines))
    return Plane(name, built, tuple(names.index), tuple(names.index), {})


def host(*lines: LineSpec) -> Plane:
    return plane("/host:CPU", *lines)


def gpu(*lines: LineSpec, number: int = 0) -> Plane:
    return plane(f"/device:GPU:{number}", *lines)


def kernels(*events: tuple[float, float]) -> LineSpec:
    """Return a stream with a kernel for each (start, duration)."""
    return line("Stream #1(Compute)", *(("kernel", start, duration) for start, duration in events))


def trace(
    *planes: Plane,
    window: str = "w0",
    host_name: str = "host",
    origin_s: float | None = None,
    profiled_us: tuple[float, float] | None = None,
    salvage: Salvage | None = None,
) -> Trace:
    start, stop = (us(profiled_us[0]), us(profiled_us[1])) if profiled_us else (None, None)
    origin = None if origin_s is None else round(origin_s * 1e9)
    return Trace(Path(f"{window}.xplane.pb"), host_name, window, planes, origin, start, stop, 1000, salvage)


def us(microseconds: float) -> int:
    """Return ns."""
    return round(microseconds * 1000)


def _build_line(number: int, spec: LineSpec, names: Names) -> Line:
    return Line(
        id=number,
        name=spec.name,
        start_ns=np.array([us(event[1]) for event in spec.events], np.int64),
        duration_ns=np.array([us(event[2]) for event in spec.events], np.int64),
        name_index=np.array([names.of(event[0]) for event in spec.events], index_type(0)),
        stats=Stats([event[3] if len(event) > 3 else {} for event in spec.events]),
    )
