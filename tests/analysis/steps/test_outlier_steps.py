"""Outliers among steps whose lengths can be checked by eye; ms unless a name says otherwise."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.analysis.activity.intervals import EMPTY, IntArray
from pipeline_lab.analysis.steps.local_level import NEIGHBORS, LevelKeeper, local_level
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps, find_in_job, find_in_recorded, is_outlier
from pipeline_lab.analysis.steps.step_breakdown import PARTS, PARTS_TABLE, sum_up
from pipeline_lab.analysis.steps.step_rows import divide_time
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_tables import RESOURCES, STEPS

MS = 1_000_000
SECOND = 1_000 * MS


def job(
    waits: list[int],
    *,
    warmup: int = 0,
    resources: list[tuple[int, float]] = (),
    flushes: IntArray = EMPTY,
    saving: IntArray = EMPTY,
    ending: IntArray = EMPTY,
) -> OutlierSteps:
    """Look at steps that wait so long and then train for 10 ms, without any time in between."""
    n = len(waits)
    length = [wait + 10 for wait in waits]
    start = SECOND + (np.cumsum(length) - length) * MS
    columns = {name: [None] * n for name in STEPS.schema.names} | {
        "step": list(range(n)),
        "warmup": [step < warmup for step in range(n)],
        "start_ns": start,
        "wait_ns": np.array(waits) * MS,
        "end_ns": start + np.array(length) * MS,
        "loss": [0.0] * n,
        "accuracy": [0.0] * n,
        "window": [-1] * n,
        "rss_bytes": [0] * n,
        "away_ns": [0] * n,
    }
    columns = {name: columns.get(name, [None] * n) for name in STEPS.schema.names}
    load = {name: [None] * len(resources) for name in RESOURCES.schema.names} | {
        "time_ns": [SECOND + time * MS for time, _ in resources],
        "other_cpu_percent": [other for _, other in resources],
    }
    steps, load = pa.table(columns, schema=STEPS.schema), pa.table(load, schema=RESOURCES.schema)
    return find_in_job(steps, load, flushes, SECOND, saving=saving, ending=ending)


def rows(found: OutlierSteps) -> list[tuple[int, int, str, int]]:
    """Return step, level, cause and what the cause explains, in ms."""
    return [
        (row["step"], row["level_ns"] // MS, row["cause"], row["excess_ns"] // MS) for row in found.table.to_pylist()
    ]


def test_a_step_that_waits_far_longer_than_the_others():
    found = job([0] * 20 + [40] + [0] * 20)
    assert rows(found) == [(20, 10, "input_wait", 40)]
    assert (found.looked_at, found.steps_ns // MS, found.excess_ns // MS) == (41, 450, 40)


def test_many_steps_take_little_memory():
    length = np.full(200_000, 10 * MS)
    length[100_000] *= 10
    tracemalloc.start()
    try:
        assert np.flatnonzero(is_outlier(length, local_level(length))).tolist() == [100_000]
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_the_warmup_is_left_out():
    assert rows(job([500, 500] + [0] * 20, warmup=2)) == []


def test_a_new_level_is_no_outlier():
    assert rows(job([0] * 40 + [30] * 40)) == []


def test_steps_that_always_vary_have_no_outliers():
    assert rows(job([(step * 7) % 11 for step in range(60)])) == []


def test_a_step_under_a_flush_is_blamed_on_it_unless_it_waited():
    # step 20 lasts from 200 to 250 ms and waits for nothing; the flush lies over it
    table = job([0] * 20 + [40] + [0] * 20, flushes=np.array([[SECOND + 190 * MS, SECOND + 300 * MS]]))
    assert rows(table)[0][2] == "input_wait"


def test_a_step_beside_a_checkpoint_is_blamed_on_it():
    saving = np.array([[SECOND + 205 * MS, SECOND + 245 * MS]])
    assert rows(job([0] * 20 + [40] + [0] * 20, saving=saving))[0][2] == "checkpoint"
    assert rows(job([0] * 20 + [40] + [0] * 20, saving=saving + 100 * MS))[0][2] == "input_wait"


def test_a_step_that_ends_an_iterator_is_blamed_on_it():
    ending = np.array([[SECOND + 205 * MS, SECOND + 245 * MS]])
    assert rows(job([0] * 20 + [40] + [0] * 20, ending=ending))[0][2] == "iterator_end"
    assert rows(job([0] * 20 + [40] + [0] * 20, ending=ending + 100 * MS))[0][2] == "input_wait"


def test_a_step_while_other_programs_took_the_processor_is_blamed_on_them():
    load = [(100, 5.0), (200, 5.0), (300, 180.0), (400, 5.0), (500, 5.0)]
    assert rows(job([0] * 20 + [40] + [0] * 20, resources=load))[0][2] == "other_programs"


def test_compute_and_python_of_steps_without_a_result_are_not_told_apart():
    """Steps of 60 ms whose call returns after 3 ms; one takes 200 ms. Nobody waits for results."""
    length = np.array([60] * 20 + [200] + [60] * 20) * MS
    start = SECOND + np.cumsum(length) - length
    table = [
        {"step": n, "warmup": False, "start_ns": at, "wait_ns": 0, "end_ns": at + 3 * MS, "window": -1, "away_ns": 0}
        for n, at in enumerate(start.tolist())
    ]
    made = pa.Table.from_pylist(table, schema=STEPS.schema)
    samples = RESOURCES.schema.empty_table()
    assert rows(find_in_job(made, samples, EMPTY, SECOND))[0][2] == "python"
    assert rows(find_in_job(made, samples, EMPTY, SECOND, rows=divide_time(made, launches_ahead=True))) == [
        (20, 60, "compute_or_python", 140)
    ]


def test_too_few_steps_are_said():
    with pytest.raises(TraceIncompleteError, match="at least 10 steps"):
        job([0] * 9)


def recorded(*hosts: list[dict[str, int]]) -> OutlierSteps:
    """Look at recorded steps given by their parts in ms."""
    table = []
    for number, steps in enumerate(hosts):
        start = 0
        for step, parts in enumerate(steps):
            length = sum(parts.values()) * MS
            columns = {part: parts.get(part.removesuffix("_ns"), 0) * MS for part in PARTS}
            table.append(
                {
                    "host": f"h{number}",
                    "window": 0,
                    "step": step,
                    "start_ns": start,
                    "end_ns": start + length,
                    **columns,
                }
            )
            start += length
    return find_in_recorded(sum_up(pa.Table.from_pylist(table, schema=PARTS_TABLE)))


def test_a_recorded_step_is_explained_by_the_part_that_it_has_more_of():
    usual = {"device_compute": 10, "dispatch": 2}
    saving = {"device_compute": 11, "dispatch": 2, "checkpoint": 30, "python": 5}
    assert rows(recorded([usual] * 12 + [saving] + [usual] * 12)) == [(12, 12, "checkpoint", 30)]


def test_each_host_has_its_own_level():
    found = recorded([{"device_compute": 10}] * 12, [{"device_compute": 30}] * 12)
    assert (rows(found), found.looked_at) == ([], 24)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 100), min_size=10, max_size=60), st.integers(2, 9))
def test_scaling_time_changes_no_outlier(lengths: list[int], factor: int):
    length = np.array(lengths, np.int64)
    outlier = is_outlier(length, local_level(length))
    assert (outlier == is_outlier(factor * length, local_level(factor * length))).all()
    assert outlier.sum() <= len(length) / 2


@given(st.lists(st.integers(0, 2**40), max_size=80))
def test_a_level_is_the_median_of_the_steps_around(lengths: list[int]):
    half = NEIGHBORS // 2
    around = [lengths[max(0, step - half) : step + half + 1] for step in range(len(lengths))]
    assert local_level(np.array(lengths, np.int64)).tolist() == [float(np.median(steps)) for steps in around]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=120),
    st.lists(st.integers(0, 120), max_size=4),
    st.integers(0, 150),
)
def test_levels_of_a_job_in_progress_are_those_of_all_steps_at_once(lengths: list[int], seen: list[int], other: int):
    length, levels = np.array(lengths, np.int64), LevelKeeper()
    for known in seen:
        levels.find(length[:known])
    if other < len(length):  # the last step's length changes with what follows
        length = length.copy()
        length[other] += 5
    assert levels.find(length).tolist() == local_level(length).tolist()


def test_the_level_of_a_step_is_found_anew_where_one_of_its_neighbors_has_changed():
    length = np.random.default_rng(7).integers(1, 100, 200)
    levels = LevelKeeper()
    for known in (1, 40, 100, 200):
        so_far = length[:known].copy()
        so_far[-1] += 50  # as the last step's length, which changes with the step that follows
        assert levels.find(so_far).tolist() == local_level(so_far).tolist()
    assert levels.find(length).tolist() == local_level(length).tolist()
