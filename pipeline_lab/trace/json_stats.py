"""Decode the arguments of a Chrome trace's events, again whenever somebody asks for one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace import json_scan
from pipeline_lab.trace.json_events import parse
from pipeline_lab.trace.schema import BoolArray, IntArray
from pipeline_lab.trace.stats import as_float, as_int
from pipeline_lab.trace.wire import ByteArray


@dataclass(frozen=True, eq=False)
class JsonStats:
    """Decodes the arguments of one thread's events (a `schema.StatSource`).

    Attributes:
        data: The file.
        begin: Position of each event, shape (n,).
    """

    data: ByteArray
    begin: IntArray

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        values, known = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        for k, value in enumerate(self._values(rows, stat)):
            number = as_int(value)
            if number is None and isinstance(value, str) and value.isdecimal() and len(value) <= 20:
                number = as_int((int(value) + 2**63) % 2**64 - 2**63)
            if number is not None:
                values[k], known[k] = number, True
        return values, known

    def floats(self, rows: IntArray, stat: str) -> NDArray[np.float64]:
        values = (math.nan if value is None else as_float(str(value)) for value in self._values(rows, stat))
        return np.fromiter(values, np.float64, len(rows))

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        return [None if value is None else str(value) for value in self._values(rows, stat)]

    def _values(self, rows: IntArray, stat: str) -> Iterator[int | float | str | None]:
        for begin in self.begin[np.asarray(rows, np.int64)].tolist():
            end = json_scan.object_end(self.data, begin, len(self.data))
            args = (parse(self.data, begin, end) or {}).get("args")
            value = args.get(stat) if isinstance(args, dict) else None
            yield value if isinstance(value, int | float | str) else None
