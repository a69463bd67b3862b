"""Results on their way to another process: the tables of all of them go over as one for each schema.

What one window says stands in a dozen tables of a few rows, and pickling each of these takes longer than finding it out.
"""

import io
import pickle
from contextvars import ContextVar
from dataclasses import field
from typing import Any

import pyarrow as pa

from pipeline_lab.data_classes import dataclass


def pack(value: object) -> bytes:
    """Return a value, such as a list of results, for :func:`unpack` in another process of this program."""
    content = io.BytesIO()
    packer = _Packer(content, pickle.HIGHEST_PROTOCOL)
    packer.dump(value)
    whole = [pa.concat_tables(kept.tables).combine_chunks() for kept in packer.kept.values()]
    return pickle.dumps((whole, content.getvalue()), pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> Any:
    """Return what was packed; its tables are parts of those that came over."""
    whole, content = pickle.loads(packed)  # noqa: S301 (a process of this program made it)
    before = _came_over.set(whole)
    try:
        return pickle.loads(content)  # noqa: S301
    finally:
        _came_over.reset(before)


_came_over: ContextVar[list[pa.Table]] = ContextVar("came_over")
"""The tables of what is being unpacked."""


def _cut(place: int, first: int, rows: int) -> pa.Table:
    return _came_over.get()[place].slice(first, rows)


@dataclass
class _Kept:
    """The tables of one schema.

    Attributes:
        place: Of the schema, among others.
        tables: In the order in which they were met.
        rows: Of all of them.
    """

    place: int
    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0


class _Packer(pickle.Pickler):
    """Leaves tables out, and collects them by their schema."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.kept: dict[pa.Schema, _Kept] = {}

    def reducer_override(self, value: object) -> Any:
        if not isinstance(value, pa.Table):
            return NotImplemented
        kept = self.kept.setdefault(value.schema, _Kept(len(self.kept)))
        first = kept.rows
        kept.tables.append(value)
        kept.rows += value.num_rows
        return _cut, (kept.place, first, value.num_rows)
