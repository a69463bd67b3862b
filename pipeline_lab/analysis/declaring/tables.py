"""Small helpers for the Arrow tables inside results: build, read, put on the common axis, merge.

Arrays go in and out as buffers; see :mod:`~pipeline_lab.analysis.declaring.columns`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals
from pipeline_lab.analysis.declaring import growing
from pipeline_lab.analysis.declaring.columns import BoolArray, FloatArray, bits_of, is_repeated, make_column, numbers_of

Part = TypeVar("Part")

_TIMES = ("start_ns", "end_ns")


def build(schema: pa.Schema, rows: int, **columns: Any) -> pa.Table:
    """Make a table of that schema.

    Args:
        schema: The columns.
        rows: Number of rows.
        columns: One array, list or column of a table for each; a single value (or None) stands in every row, and of
            `Partly` known numbers the others are null.
    """
    arrays = [make_column(field.type, rows, columns[field.name]) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def empty(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([], schema)


def ints(table: pa.Table, column: str) -> IntArray:
    """Return a column of whole numbers as int64; nulls read as whatever lies there."""
    return numbers_of(table.column(column)).astype(np.int64, copy=False)


def or_zero(table: pa.Table, column: str) -> IntArray:
    """Return a column of whole numbers as int64, nulls as 0."""
    values = ints(table, column)
    return values if not table.column(column).null_count else np.where(valid(table, column), values, 0)


def floats(table: pa.Table, column: str) -> FloatArray:
    """Return a column of numbers as float64, nulls as NaN."""
    values = numbers_of(table.column(column)).astype(np.float64)
    if table.column(column).null_count:
        values[~valid(table, column)] = np.nan
    return values


def bools(table: pa.Table, column: str) -> BoolArray:
    """Return a column of truth values; nulls read as whatever lies there."""
    return np.concatenate([np.empty(0, np.bool_), *(bits_of(chunk, 1) for chunk in table.column(column).chunks)])


def valid(table: pa.Table, column: str) -> BoolArray:
    """Say which rows of a column are not null."""
    known = [
        np.ones(len(chunk), np.bool_) if chunk.null_count == 0 else bits_of(chunk, 0)
        for chunk in table.column(column).chunks
    ]
    return np.concatenate([np.empty(0, np.bool_), *known])


def name_numbers(table: pa.Table, columns: Sequence[str]) -> tuple[list[tuple[str, ...]], IntArray]:
    """Return the different texts of some columns together, and which of them stands in each row, without a null among them."""
    known: list[tuple[str, ...]] = [()]
    numbers = np.zeros(table.num_rows, np.int64)
    for column in columns:
        words, number = _number_texts(table.column(column).combine_chunks())
        known = [(*before, word) for before in known for word in words]
        numbers = numbers * len(words) + number
    return known, numbers


def _number_texts(texts: pa.Array) -> tuple[list[str], IntArray]:
    """Return the different texts, and which of them stands in each row."""
    if is_repeated(texts):
        return texts[:1].to_pylist(), np.zeros(len(texts), np.int64)
    if len(texts) <= FEW_TEXTS:
        places: dict[str, int] = {}
        numbers = [places.setdefault(text, len(places)) for text in texts.to_pylist()]
        return list(places), np.array(numbers, np.int64)
    encoded = texts.dictionary_encode()
    indices = np.frombuffer(encoded.indices.buffers()[1], np.int32, count=len(encoded))
    return encoded.dictionary.to_pylist(), indices.astype(np.int64)


FEW_TEXTS = 1000
"""Texts that are numbered in less time than it takes to load Arrow's functions, which a small log can do without."""


def intervals(table: pa.Table) -> IntArray:
    """Return the ``start_ns`` and ``end_ns`` columns, shape (n, 2)."""
    return as_intervals(ints(table, "start_ns"), ints(table, "end_ns"))


def take(table: pa.Table, rows: IntArray) -> pa.Table:
    """Return some rows of a table, in that order.

    Raises:
        IndexError: There is no such row.
    """
    if rows.max(initial=0) >= max(1, table.num_rows):
        raise IndexError(f"rows must be below {table.num_rows}")
    is_most = 2 * len(rows) >= table.num_rows > 0  # so that few rows do not keep the others in memory
    if is_most and (np.diff(rows) == 1).all():
        return table.slice(rows[0], len(rows)) if len(rows) < table.num_rows or rows[0] else table
    if len(rows) <= FEW_ROWS:
        return pa.concat_tables([table.slice(0, 0), *(table.slice(row, 1) for row in rows.tolist())]).combine_chunks()
    return table.take(make_column(pa.int64(), len(rows), rows))


FEW_ROWS = 100
"""Rows that are taken one by one in less time than it takes to load Arrow's functions, which most logs can do without."""


def replace_column(table: pa.Table, column: str, value: Any) -> pa.Table:
    """Return the table with other values in one column; see :func:`build`."""
    return _set_column(table, table.schema.get_field_index(column), value)


def _set_column(table: pa.Table, index: int, value: Any) -> pa.Table:
    field = table.schema.field(index)
    return table.set_column(index, field, make_column(field.type, table.num_rows, value))


def concat(schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """Put tables of one schema under each other, sorted by start and then by whatever tells rows apart."""
    wanted = list(parts)
    if not _is_appending.get() or not wanted:
        return _sorted(schema, wanted)
    return _append(schema, wanted[0], _sorted(schema, wanted[1:]))


def _append(schema: pa.Schema, whole: pa.Table, new: pa.Table) -> pa.Table:
    """Put sorted tables under each other, without sorting where all of the second one comes after the first."""
    if not new.num_rows or not whole.num_rows:
        return whole if whole.num_rows else new
    if "start_ns" not in schema.names or ints(whole.slice(whole.num_rows - 1), "start_ns") >= ints(
        new.slice(0, 1), "start_ns"
    ):
        return _sorted(schema, [whole, new])
    return growing.append(whole, new)


def _sorted(schema: pa.Schema, parts: list[pa.Table]) -> pa.Table:
    whole = pa.concat_tables([empty(schema), *parts]).combine_chunks()
    if "start_ns" in schema.names:
        start = ints(whole, "start_ns")
        if (start[1:] > start[:-1]).all():
            return whole
        order = np.argsort(start, kind="stable")
        if (start[order][1:] > start[order][:-1]).all():  # nothing else has to tell rows apart
            return take(whole, order).combine_chunks()
    keys = [name for name in ("start_ns", "host", "device", "window", "step", "rank") if name in schema.names]
    return whole.sort_by([(name, "ascending") for name in keys]).combine_chunks()


_is_appending: ContextVar[bool] = ContextVar("whether the first of several tables is sorted", default=False)


@contextmanager
def appending() -> Iterator[None]:
    """Let :func:`concat` take its first table as sorted, and not sort it again where the others come after it."""
    token = _is_appending.set(True)
    try:
        yield
    finally:
        _is_appending.reset(token)


def place(part: Part, window: int, shift_ns: int) -> Part:
    """Return a part of one trace with its tables on the common axis, as rows of that window."""
    tables = {
        field.name: _place_table(value, window, shift_ns)
        for field in fields(part)  # type: ignore[arg-type]
        if isinstance(value := getattr(part, field.name), pa.Table)
    }
    return replace(part, **tables) if tables else part  # type: ignore[type-var]


def _place_table(table: pa.Table, window: int, shift_ns: int) -> pa.Table:
    if not table.num_rows:
        return table
    for name in ("window", *_TIMES):
        index = table.schema.get_field_index(name)
        if index >= 0:
            value = window if name == "window" else numbers_of(table.column(index)) + shift_ns
            table = _set_column(table, index, value)
    return table
