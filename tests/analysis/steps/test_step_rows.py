"""The time of a job divided among its steps."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.steps.step_rows import divide_time

MOMENTS = st.integers(0, 1_000)
STEPS = st.lists(st.tuples(MOMENTS, MOMENTS, MOMENTS, MOMENTS, st.none() | MOMENTS), min_size=1, max_size=8)


def table(rows: list[tuple[int, int, int, int, int | None]]) -> pa.Table:
    names = ("start_ns", "wait_ns", "end_ns", "away_ns", "ready_ns")
    return pa.table(
        {name: pa.array(column, pa.int64()) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    )


@given(rows=STEPS)
def test_no_part_of_a_step_is_negative_whatever_its_clock_did(
    rows: list[tuple[int, int, int, int, int | None]],
) -> None:
    found = divide_time(table(rows))
    assert min(map(np.min, (found.wait_ns, found.compute_ns, found.between_ns))) >= 0
    assert (np.diff(found.start_ns) >= found.wait_ns[:-1] + found.compute_ns[:-1]).all()


@pytest.mark.parametrize("back", [0, 50])
def test_time_stands_still_until_a_clock_that_was_set_back_is_there_again(back: int) -> None:
    rows = [(0, 4, 9, 0, None), (10, 4, 19, 0, None), (20 - back, 4, 29 - back, 0, None), (30, 4, 39, 0, None)]
    found = divide_time(table(rows))
    assert found.step_ns.tolist() == ([10, 10, 10, 9] if not back else [10, 0, 20, 9])
    assert int(found.step_ns.sum()) == 39
