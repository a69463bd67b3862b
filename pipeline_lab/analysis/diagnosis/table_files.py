"""The Arrow files of a result's tables: of a table that grows, only the rows that are new, or have changed, are written.

A table lies in one file, or in several with the rows one after another. Files never change: the tables of the next result keep those whose
rows they still begin with, and the others get files of their own. As files are kept only where more rows lie in them than follow, there
are few of them, and each row is written about as often as its table has doubled since.
"""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import pyarrow as pa

from pipeline_lab.data_classes import dataclass

LAST_ROWS = 256
"""Rows at the end of a table that get a file of their own once it has grown: the last ones may change with what comes next."""
FEW_ROWS = 4 * LAST_ROWS
"""Rows that are not worth several files."""


@dataclass(frozen=True)
class _Part:
    """A file, and which rows of its table lie in it."""

    file: str
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class _Written:
    table: pa.Table
    parts: tuple[_Part, ...]


class TableFiles:
    """Writes the tables of one result after another.

    Args:
        folder: Of these tables alone, as :meth:`end_result` deletes what else lies there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._serial = itertools.count()
        self._there: set[str] = set()
        self._now: dict[str, _Written] = {}
        self._before: dict[str, _Written] = {}

    def write(self, table: pa.Table, name: str) -> list[str]:
        """Write a table; return the names of its files, in the order of their rows.

        Args:
            table: The rows.
            name: Of the table, the same in each result.

        Raises:
            OSError: It cannot be written.
        """
        if not self._now:
            self._there = {file.name for file in self.folder.iterdir()}
        before = self._before.get(name)
        kept = [] if before is None else _still_the_same(before, table)
        kept = list(takewhile(lambda part: part.file in self._there, kept))
        new = [
            _Part(f"{name}.{next(self._serial)}.arrow", begin, end)
            for begin, end in _divide(kept, table.num_rows, has_grown=before is not None)
        ]
        for part in new:
            with (self.folder / part.file).open("xb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(_rows(table, part))
        self._now[name] = _Written(table, (*kept, *new))
        return [part.file for part in self._now[name].parts]

    def end_result(self) -> None:
        """Begin with the next result, and delete the files that neither the last one nor the one before it consists of."""
        still_read = {part.file for each in (self._now, self._before) for one in each.values() for part in one.parts}
        for file in self.folder.iterdir():
            if file.name not in still_read:
                with contextlib.suppress(OSError):
                    file.unlink()
        self._before, self._now = self._now, {}


def read_table(folder: Path, files: Sequence[str]) -> pa.Table:
    """Map a table that was written into files.

    Raises:
        OSError: One of them is missing.
        ValueError: One is damaged.
    """
    try:
        return pa.concat_tables([_map(folder / Path(file).name) for file in files])
    except pa.ArrowException as error:
        raise ValueError(f"damaged: {error}") from None


def _map(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _still_the_same(before: _Written, table: pa.Table) -> list[_Part]:
    """Return the files that a table begins with, but for those with no more rows than follow."""
    kept: list[_Part] = []
    if table.schema == before.table.schema:
        shared = _shared_rows(before.table, table)
        for part in before.parts:
            is_there = part.end <= shared or _rows(before.table, part).equals(_rows(table, part))
            if part.end > table.num_rows or not is_there:
                break
            kept.append(part)
    while kept and kept[-1].end < table.num_rows and kept[-1].end - kept[-1].begin <= table.num_rows - kept[-1].end:
        kept.pop()
    return kept


def _rows(table: pa.Table, part: _Part) -> pa.Table:
    return table.slice(part.begin, part.end - part.begin)


def _shared_rows(one: pa.Table, other: pa.Table) -> int:
    """Return with how many rows two tables of one schema begin that lie in the same memory."""
    if any(pa.types.is_nested(each) or pa.types.is_dictionary(each) for each in one.schema.types):
        return 0
    return min(map(_shared_of_column, one.columns, other.columns), default=0)


def _shared_of_column(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int:
    rows = 0
    for chunk, like in zip(one.chunks, other.chunks, strict=False):
        if chunk is not like and _place(chunk) != _place(like):
            break
        rows += min(len(chunk), len(like))
        if len(chunk) != len(like):
            break
    return rows


def _place(chunk: pa.Array) -> tuple[int, ...]:
    """Return where a chunk begins."""
    return (chunk.offset, *(0 if each is None else each.address for each in chunk.buffers()))


def _divide(kept: Sequence[_Part], rows: int, *, has_grown: bool) -> Iterator[tuple[int, int]]:
    """Yield which rows go into a file each, those after the ones that are kept."""
    begin = kept[-1].end if kept else 0
    middle = rows - LAST_ROWS if has_grown and rows - begin > FEW_ROWS else begin
    bounds = sorted({begin, middle, rows})
    yield from itertools.pairwise(bounds if kept or rows else (0, 0))
