"""Small helpers for the Arrow tables inside results: build, put on the common axis, merge."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_lab.analysis.intervals import IntArray

Part = TypeVar("Part")

_TIMES = ("start_ns", "end_ns")


def build(schema: pa.Schema, rows: int, **columns: Any) -> pa.Table:
    """Make a table of that schema; a column given as one value (or None) holds it in every row."""
    arrays = []
    for field in schema:
        value = columns[field.name]
        if value is None or isinstance(value, str | int | float):
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
        else:
            arrays.append(pa.array(value, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def concat(schema: pa.Schema, tables: Iterable[pa.Table], order: tuple[str, ...] = ("start_ns",)) -> pa.Table:
    """Put tables of one schema under each other, sorted by ``order`` and then by everything else that tells rows apart."""
    whole = pa.concat_tables([schema.empty_table(), *tables])
    ties = [name for name in ("host", "device", "window", "step") if name in schema.names and name not in order]
    return whole.sort_by([(name, "ascending") for name in (*order, *ties)]).combine_chunks()


def place(part: Part, window: int, shift_ns: int) -> Part:
    """Return a part of one trace with its tables on the common axis, as rows of that window."""
    tables = {
        field.name: _place_table(value, window, shift_ns)
        for field in fields(part)  # type: ignore[arg-type]
        if isinstance(value := getattr(part, field.name), pa.Table)
    }
    return replace(part, **tables) if tables else part  # type: ignore[type-var]


def _place_table(table: pa.Table, window: int, shift_ns: int) -> pa.Table:
    for index, field in enumerate(table.schema):
        if field.name == "window":
            numbers = pa.array(np.full(table.num_rows, window), field.type)
            table = table.set_column(index, field, numbers)
        elif field.name in _TIMES:
            table = table.set_column(index, field, pc.add(table.column(index), shift_ns))
    return table


def ints(table: pa.Table, column: str) -> IntArray:
    """Return a column without nulls as int64."""
    return np.asarray(table.column(column).to_numpy(), np.int64)


def intervals(table: pa.Table) -> IntArray:
    """Return the ``start_ns`` and ``end_ns`` columns, shape (n, 2)."""
    return np.stack((ints(table, "start_ns"), ints(table, "end_ns")), axis=1)


def mask(table: pa.Table, keep: NDArray[np.bool_]) -> pa.Table:
    return table.filter(pa.array(keep))
