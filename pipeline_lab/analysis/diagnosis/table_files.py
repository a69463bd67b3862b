"""The Arrow files of a result's tables: of a table that grows, only the rows that are new, or have changed, are written.

A table lies in one file, or in several with the rows one after another. The tables of the next result take over the files whose rows they
still begin with, as links, so that nobody who maps the earlier ones notices. As files are taken over only where more rows lie in them than
follow, there are few of them, and each row is written about as often as its table has doubled since.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

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
    folder: Path
    parts: tuple[_Part, ...]


class TableFiles:
    """Writes the tables of one result after another."""

    def __init__(self) -> None:
        self._written: dict[str, _Written] = {}

    def write(self, table: pa.Table, folder: Path, name: str) -> list[str]:
        """Write a table into a new folder; return the names of its files, in the order of their rows.

        Args:
            table: The rows.
            folder: Where nothing of that name lies yet.
            name: Of the table, the same in each result.

        Raises:
            OSError: It cannot be written.
        """
        before = self._written.get(name)
        kept = [] if before is None else _link(_still_there(before, table), before.folder, folder)
        new = list(_divide(name, kept, table.num_rows, has_grown=before is not None))
        for part in new:
            with (folder / part.file).open("xb") as file, pa.ipc.new_file(file, table.schema) as writer:  # never a link
                writer.write_table(_rows(table, part))
        self._written[name] = _Written(table, folder, (*kept, *new))
        return [part.file for part in (*kept, *new)]


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


def _still_there(before: _Written, table: pa.Table) -> list[_Part]:
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


def _link(parts: list[_Part], before: Path, folder: Path) -> list[_Part]:
    """Take files over into another folder; none where the file system has no links, or they are gone."""
    try:
        for part in parts:
            os.link(before / part.file, folder / part.file)
    except OSError:
        for part in parts:
            with contextlib.suppress(OSError):
                (folder / part.file).unlink()
        return []
    return parts


def _divide(name: str, kept: Sequence[_Part], rows: int, *, has_grown: bool) -> Iterator[_Part]:
    """Yield the files that the rows after those of others go into."""
    begin = kept[-1].end if kept else 0
    middle = rows - LAST_ROWS if has_grown and rows - begin > FEW_ROWS else begin
    bounds = sorted({begin, middle, rows})
    for first, end in itertools.pairwise(bounds if kept or rows else (0, 0)):
        yield _Part(f"{name}.{first}.arrow" if first else f"{name}.arrow", first, end)
