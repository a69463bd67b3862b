"""Columns of Arrow tables as buffers.

pyarrow's own conversions (``pa.array``, ``pa.scalar``, ``to_numpy``, …) import pandas wherever it is installed, which takes longer
than the whole analysis of a run.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

NUMBERS = {
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


class Partly(NamedTuple):
    """Numbers of which some are not known; what stands in their places means nothing.

    Loading NumPy's masked arrays takes longer than making most columns.
    """

    values: NDArray[Any]
    is_known: BoolArray

    @property
    def known(self) -> NDArray[Any]:
        """The numbers that are known, shape (n_known,)."""
        return self.values[self.is_known]


def finite(values: FloatArray) -> Partly:
    """Say of numbers that those that are finite are known."""
    return Partly(values, np.isfinite(values))


def make_column(kind: pa.DataType, rows: int, value: Any) -> pa.Array:
    """Make a column; a single value (or None) stands in every row, and of `Partly` known numbers the others are null."""
    if value is None:
        return pa.nulls(rows, kind)
    if isinstance(value, pa.ChunkedArray):
        return value.combine_chunks()
    if kind == pa.string():
        return _repeated(value, rows) if isinstance(value, str) else strings(value)
    validity = None
    if isinstance(value, Partly):
        validity, value = None if value.is_known.all() else pa.py_buffer(pack(value.is_known)), value.values
    if kind == pa.bool_():
        return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(pack(np.full(rows, value, np.bool_)))])
    content = np.asarray(value, NUMBERS[kind])
    content = np.ascontiguousarray(content) if content.ndim else np.full(rows, content)
    assert len(content) == rows
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(content)])


def _repeated(text: str, rows: int) -> pa.Array:
    encoded = text.encode()
    offsets = np.arange(rows + 1, dtype=np.int32) * len(encoded)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(encoded * rows)])


def strings(values: Sequence[str | None]) -> pa.Array:
    """Return texts, and nulls, as a column; few of them differ as a rule."""
    encoded = {value: b"" if value is None else value.encode() for value in set(values)}
    texts = list(map(encoded.__getitem__, values))
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, texts), np.int32, len(texts)), out=offsets[1:])
    known = [value is not None for value in values] if None in encoded else None
    validity = None if known is None else pa.py_buffer(pack(np.array(known, np.bool_)))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def is_repeated(texts: pa.Array) -> bool:
    """Say whether one text, and no null, stands in every row, of which there is one."""
    if not len(texts) or texts.null_count:
        return False
    end, text = texts.buffers()[1:]
    offsets = np.frombuffer(end, np.int32, count=texts.offset + len(texts) + 1)[texts.offset :]
    lengths = np.diff(offsets)
    if (lengths != lengths[:1]).any():
        return False
    each = np.frombuffer(text or b"", np.uint8)[offsets[0] : offsets[-1]].reshape(len(texts), -1)
    return bool((each == each[:1]).all())


def pack(flags: BoolArray) -> NDArray[np.uint8]:
    """Return truth values as Arrow keeps them, the first one in the lowest bit."""
    return np.packbits(flags, bitorder="little")


def numbers_of(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return the numbers of a column, shape (n,); nulls read as whatever lies there."""
    kind = NUMBERS[column.type]
    parts = [
        np.frombuffer(chunk.buffers()[1], kind, count=chunk.offset + len(chunk))[chunk.offset :]
        for chunk in column.chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def bits_of(chunk: pa.Array, buffer: int) -> BoolArray:
    """Read one of an array's bit maps: 0 holds which rows are not null, 1 the truth values."""
    if not len(chunk):
        return np.empty(0, np.bool_)
    end = chunk.offset + len(chunk)
    bits = np.frombuffer(chunk.buffers()[buffer], np.uint8, count=(end + 7) // 8)
    return np.unpackbits(bits, bitorder="little")[chunk.offset : end].astype(np.bool_)
