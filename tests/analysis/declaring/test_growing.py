"""Rows that go behind those of a table, where it lies."""

import gc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.declaring import growing, tables
from pipeline_lab.analysis.declaring.growing import append

SCHEMA = pa.schema([("host", pa.string()), ("window", pa.int32()), ("share", pa.float64()), ("flag", pa.bool_())])
row = st.tuples(
    st.none() | st.text(max_size=3),
    st.none() | st.integers(0, 9),
    st.floats(allow_nan=False),
    st.none() | st.booleans(),
)
parts = st.lists(st.lists(row, min_size=1, max_size=20), min_size=2, max_size=8)


def make(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def addresses(table: pa.Table) -> list[int]:
    return [buffer.address for column in table.columns for buffer in column.chunk(0).buffers() if buffer is not None]


@given(parts, st.integers(0, 5))
@pytest.mark.slow
def test_tables_grow_as_if_they_were_put_under_each_other(parts: list[list[tuple[Any, ...]]], skip: int) -> None:
    whole, rows = make(parts[0]).slice(skip), parts[0][skip:]
    shorter = []
    for part in parts[1:]:
        shorter.append((whole, list(rows)))
        new = make([*part[:skip], *part]).slice(len(part[:skip]))  # does not begin at its buffer's start
        whole, rows = append(whole, new), rows + part
        whole.validate(full=True)
        assert [column.num_chunks for column in whole.columns] == [1] * len(SCHEMA)
    for table, expected in [*shorter, (whole, rows)]:
        assert [tuple(one.values()) for one in table.to_pylist()] == expected


def test_two_tables_that_grow_from_one_do_not_write_over_each_other() -> None:
    one, two, three = (make([(name, number, 0.0, True)]) for number, name in enumerate("abc"))
    both = append(one, two)
    longer, other = append(both, three), append(both, one)
    assert longer.column("host").to_pylist() == ["a", "b", "c"]
    assert other.column("host").to_pylist() == ["a", "b", "a"]


def test_most_rows_are_not_copied() -> None:
    window = tables.build(SCHEMA, 100, host="a", window=np.arange(100), share=0.5, flag=True)
    whole, copies = append(window, window), 0
    for _ in range(200):
        longer = append(whole, window)
        copies += addresses(longer) != addresses(whole)
        whole = longer
    assert whole.num_rows == 20_200
    assert copies < 40  # where one column or another gets more room


def test_what_is_no_longer_needed_takes_no_memory() -> None:
    before = len(growing._growing)
    whole = append(make([("a", 0, 0.0, True)]), make([("b", 1, 0.0, True)]))
    assert len(growing._growing) == before + 1
    del whole
    gc.collect()
    assert len(growing._growing) == before


def test_more_text_than_a_column_holds_lies_in_two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pa.table({"host": ["a" * 100]})
    whole = append(text, text)
    monkeypatch.setattr(growing, "MOST_TEXT", 250)
    longer = append(whole, text)
    assert longer.column("host").to_pylist() == ["a" * 100] * 3
    assert longer.column("host").num_chunks > 1
    assert append(longer, text).num_rows == 4


def test_columns_of_other_types_lie_in_one_piece() -> None:
    numbered = [pa.table({"host": pa.array([host]).dictionary_encode()}) for host in "ab"]
    longer = append(append(*numbered), numbered[0])
    assert longer.column("host").to_pylist() == ["a", "b", "a"]
    assert longer.column("host").num_chunks == 1


def test_an_empty_table_becomes_the_other_one_in_one_piece() -> None:
    rows = pa.concat_tables([pa.table({"step": [1]}), pa.table({"step": [2]})])
    for longer in (append(rows.slice(0, 0), rows), append(rows.combine_chunks(), rows.slice(0, 0))):
        assert longer.column("step").to_pylist() == [1, 2]
        assert longer.column("step").num_chunks == 1
