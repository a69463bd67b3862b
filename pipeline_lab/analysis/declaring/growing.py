"""Tables that grow at their end: new rows go behind those that are there, where room was left for them.

So a row is copied a few times in all, however often rows are added, and each table lies in one piece. Shorter tables stay what they
were: they end before the new rows.
"""

import weakref
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.declaring.columns import NUMBERS, BoolArray, bits_of, pack

SPARE = 2
"""Memory that is too small is replaced by what is needed and one n-th more."""
MOST_TEXT = 2**31 - 1
"""Bytes of text that a column of Arrow's ``string`` holds."""


def append(whole: pa.Table, new: pa.Table) -> pa.Table:
    """Put two tables of one schema under each other; a third one goes behind these rows if it is appended to what is returned.

    Tables with columns of other types are copied; too much text becomes two pieces.
    """
    if not (whole.num_rows and new.num_rows):
        return whole if whole.num_rows else new.combine_chunks()
    kept, growing = _growing.pop(id(whole), (None, None))
    if whole.schema != new.schema or not _TYPES.issuperset(whole.schema.types):
        return pa.concat_tables([whole, new]).combine_chunks()
    try:
        if growing is None or kept is None or kept() is not whole:
            growing = _GrowingTable(whole.schema)
            growing.add(whole)
        longer = growing.add(new)
    except OverflowError:
        return pa.concat_tables([whole, new])
    _growing[id(longer)] = weakref.ref(longer, partial(_forget, id(longer))), growing
    return longer


_TYPES = {*NUMBERS, pa.bool_(), pa.string()}


class _GrowingTable:
    """The memory of a table, and how many rows lie in it."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._rows = schema, 0
        self._columns = [_GrowingColumn(kind) for kind in schema.types]

    def add(self, table: pa.Table) -> pa.Table:
        pieces = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]
        arrays = [grown.add(self._rows, piece) for grown, piece in zip(self._columns, pieces, strict=True)]
        self._rows += table.num_rows
        return pa.Table.from_arrays(arrays, schema=self._schema)


_growing: dict[int, tuple[weakref.ref[pa.Table], _GrowingTable]] = {}
"""What can be added to, by the identity of the table that holds all of its rows."""


def _forget(identity: int, reference: weakref.ref[pa.Table]) -> None:
    if identity in _growing and _growing[identity][0] is reference:
        del _growing[identity]


class _Memory:
    """Bytes with room for more behind them."""

    def __init__(self) -> None:
        self._held: NDArray[np.uint8] = np.empty(0, np.uint8)

    def put(self, begin: int, content: NDArray[np.generic]) -> pa.Buffer:
        """Write behind the first bytes; return those and what was written."""
        new = np.frombuffer(content, np.uint8)
        end = begin + len(new)
        if end > len(self._held):
            larger = np.empty(end + end // SPARE, np.uint8)
            larger[:begin] = self._held[:begin]
            self._held = larger
        self._held[begin:end] = new
        return pa.py_buffer(self._held[:end])

    def put_bits(self, begin: int, bits: BoolArray) -> pa.Buffer:
        """Do the same for bits."""
        byte, within = divmod(begin, 8)
        before = np.unpackbits(self._held[byte : byte + 1], count=within, bitorder="little")
        return self.put(byte, pack(np.concatenate((before.astype(np.bool_), bits))))


class _GrowingColumn:
    """One column: its numbers, truth values, or where its texts end; the texts; which rows are not null."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._content, self._texts = _Memory(), _Memory()
        self._texts_end = 0
        self._known: _Memory | None = None

    def add(self, rows: int, column: pa.Array) -> pa.Array:
        """Write a column behind the first rows; return all of them."""
        validity = self._add_known(rows, column)
        if self._kind == pa.string():
            buffers = self._add_texts(rows, column)
        elif self._kind == pa.bool_():
            buffers = [self._content.put_bits(rows, bits_of(column, 1))]
        else:
            kind = np.dtype(NUMBERS[self._kind])
            numbers = np.frombuffer(column.buffers()[1], kind, count=column.offset + len(column))[column.offset :]
            buffers = [self._content.put(rows * kind.itemsize, numbers)]
        return pa.Array.from_buffers(self._kind, rows + len(column), [validity, *buffers])

    def _add_known(self, rows: int, column: pa.Array) -> pa.Buffer | None:
        if self._known is None:
            if not column.null_count:
                return None
            self._known = _Memory()
            self._known.put_bits(0, np.ones(rows, np.bool_))
        known = bits_of(column, 0) if column.null_count else np.ones(len(column), np.bool_)
        return self._known.put_bits(rows, known)

    def _add_texts(self, rows: int, column: pa.Array) -> list[pa.Buffer]:
        ends, texts = column.buffers()[1:]
        offsets = np.frombuffer(ends, np.int32, count=column.offset + len(column) + 1)[column.offset :].astype(np.int64)
        text = np.frombuffer(texts or b"", np.uint8)[offsets[0] : offsets[-1]]
        begin, moved = self._texts_end, offsets - offsets[0] + self._texts_end
        if moved[-1] > MOST_TEXT:
            raise OverflowError(f"a column holds no more than {MOST_TEXT:,} bytes of text")
        self._texts_end = int(moved[-1])
        return [self._content.put(4 * rows, moved.astype(np.int32)), self._texts.put(begin, text)]
