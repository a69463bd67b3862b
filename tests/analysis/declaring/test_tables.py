import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import Partly

SCHEMA = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),
        ("share", pa.float64()),
        ("flag", pa.bool_()),
    ]
)
rows = st.lists(
    st.tuples(
        st.none() | st.text(max_size=3),
        st.integers(0, 9),
        st.integers(-(2**60), 2**60),
        st.floats(allow_nan=False),
        st.booleans(),
    ),
    max_size=20,
)


def make(values: list[tuple[str | None, int, int, float, bool]]) -> pa.Table:
    host, window, start, share, flag = (list(column) for column in zip(*values, strict=True)) if values else ([],) * 5
    columns = {"host": host, "window": np.array(window, np.int64), "start_ns": np.array(start, np.int64)}
    return tables.build(SCHEMA, len(values), **columns, share=np.array(share, float), flag=np.array(flag, bool))


@given(rows, st.integers(0, 5))
@pytest.mark.slow
def test_what_goes_in_comes_out_and_pyarrow_agrees(values: list[tuple[str | None, int, int, float, bool]], skip: int):
    table = make(values)
    table.validate(full=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == values
    part = pa.concat_tables([table.slice(skip), table])  # chunks that do not begin at their buffer's start
    kept = [*values[skip:], *values]
    assert tables.ints(part, "window").tolist() == [row[1] for row in kept]
    assert tables.ints(part, "start_ns").tolist() == [row[2] for row in kept]
    assert tables.floats(part, "share").tolist() == [row[3] for row in kept]
    assert tables.bools(part, "flag").tolist() == [row[4] for row in kept]
    assert tables.valid(part, "host").tolist() == [row[0] is not None for row in kept]


def test_single_values_stand_in_every_row_and_hidden_ones_are_null():
    table = tables.build(
        SCHEMA,
        3,
        host="a",
        window=Partly(np.array([1, 2, 3]), np.array([True, False, True])),
        start_ns=7,
        share=None,
        flag=True,
    )
    table.validate(full=True)
    assert table.column("host").to_pylist() == ["a"] * 3
    assert table.column("window").to_pylist() == [1, None, 3]
    assert table.column("start_ns").to_pylist() == [7] * 3
    assert table.column("flag").to_pylist() == [True] * 3
    assert np.isnan(tables.floats(table, "share")).all()


def test_concat_sorts_by_time():
    table = make([("a", 0, 30, 0.0, True), ("b", 1, 10, 0.0, True)])
    assert tables.ints(tables.concat(SCHEMA, [table, table]), "start_ns").tolist() == [10, 10, 30, 30]
    assert tables.concat(SCHEMA, []).num_rows == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=2)), max_size=12))
def test_texts_have_the_same_numbers_however_many_there_are(rows: list[tuple[str, str]]):
    schema = pa.schema([("host", pa.string()), ("name", pa.string())])
    table = tables.build(schema, len(rows), host=[host for host, _ in rows], name=[name for _, name in rows])

    def named() -> list[tuple[str, ...]]:
        known, numbers = tables.name_numbers(table, ["host", "name"])
        return [known[number] for number in numbers]

    with pytest.MonkeyPatch.context() as patch:
        few = named()
        patch.setattr(tables, "FEW_TEXTS", -1)
        assert named() == few == rows


@given(st.lists(st.integers(0, 4), max_size=12))
def test_rows_are_taken_in_their_order_however_many_they_are(rows: list[int]):
    table = make([(text, number, number, 0.5, True) for number, text in enumerate(["a", None, "c", "", "e"])])
    wanted = [table.to_pylist()[row] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        for few in (tables.FEW_ROWS, -1):
            patch.setattr(tables, "FEW_ROWS", few)
            taken = tables.take(table, np.array(rows, np.int64))
            assert taken.to_pylist() == wanted
            assert tables.take(table, np.arange(5)) is table
            for first in (1, 2):
                assert tables.take(table, np.arange(first, 5)).to_pylist() == table.to_pylist()[first:]


@pytest.mark.parametrize("rows", [[-1], [-1, 0, 1, 2, 3], [3, 4, 5], [5]])
def test_a_row_that_is_not_there_cannot_be_taken(rows: list[int]):
    table = make([("a", number, number, 0.5, True) for number in range(5)])
    with pytest.MonkeyPatch.context() as patch:
        for few in (tables.FEW_ROWS, -1):
            patch.setattr(tables, "FEW_ROWS", few)
            with pytest.raises(IndexError):
                tables.take(table, np.array(rows, np.int64))
