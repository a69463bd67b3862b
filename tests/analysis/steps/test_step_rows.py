"""The time of a job divided among its steps."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.steps.step_rows import StepDivider, divide_time

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


@given(rows=STEPS, lengths=st.lists(st.integers(0, 8), max_size=4), other=st.none() | st.integers(0, 7))
def test_the_steps_of_a_job_in_progress_are_divided_as_all_of_them_at_once(
    rows: list[tuple[int, int, int, int, int | None]], lengths: list[int], other: int | None
) -> None:
    divider = StepDivider()
    for length in sorted(lengths):
        divider.divide(table(rows[: max(1, length)]))
    if other is not None and other < len(rows):  # another file of that name
        rows = [*rows[:other], (5, 6, 7, 8, None), *rows[other + 1 :]]
    found, wanted = divider.divide(table(rows)), divide_time(table(rows))
    for part in ("start_ns", "wait_ns", "compute_ns", "between_ns", "step_ns", "is_divided"):
        assert getattr(found, part).tolist() == getattr(wanted, part).tolist()
