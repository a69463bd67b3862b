"""Results come out of a parcel as they went in, whatever tables they hold."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.packing import pack, unpack

NUMBERS = pa.schema([("start_ns", pa.int64()), ("share", pa.float64())])
NAMES = pa.schema([("name", pa.string()), ("known", pa.bool_())])


@dataclass(frozen=True, eq=False)
class Kept:
    name: str
    table: pa.Table
    inner: tuple[Any, ...] = ()


def numbers(starts: list[int]) -> pa.Table:
    return tables.build(NUMBERS, len(starts), start_ns=starts, share=0.5)


def names(words: list[str | None]) -> pa.Table:
    return tables.build(NAMES, len(words), name=words, known=[word is not None for word in words])


@given(st.lists(st.tuples(st.lists(st.integers(0, 2**40)), st.lists(st.none() | st.text())), max_size=6))
def test_each_table_comes_back_with_its_own_rows(rows: list[tuple[list[int], list[str | None]]]) -> None:
    given_ = [Kept("one", numbers(starts), (names(words), "text", None)) for starts, words in rows]
    found = unpack(pack(given_))
    assert len(found) == len(given_)
    for before, after in zip(given_, found, strict=True):
        assert (after.name, after.inner[1:]) == ("one", ("text", None))
        assert after.table.equals(before.table)
        assert after.inner[0].equals(before.inner[0])
        assert tables.ints(after.table, "start_ns").tolist() == tables.ints(before.table, "start_ns").tolist()
        assert tables.bools(after.inner[0], "known").tolist() == tables.bools(before.inner[0], "known").tolist()


def test_a_table_that_two_results_share_is_there_for_both() -> None:
    shared = numbers([1, 2])
    one, other = unpack(pack([Kept("a", shared), Kept("b", shared)]))
    assert one.table.equals(other.table)


def test_what_has_no_tables_is_packed_as_well() -> None:
    assert unpack(pack({"a": [1, 2.5, None]})) == {"a": [1, 2.5, None]}
