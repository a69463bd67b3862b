"""Warm-up, first epoch and later ones; ms."""

import pyarrow as pa
import pytest

from pipeline_lab.analysis.steps.step_phases import Phase, StepPhases, measure_phases
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_tables import SAMPLES, STEPS

MS = 1_000_000


def phases(lengths: list[int], *, warmup: int, batch: int, records: int | None, epoch: int | None = None) -> StepPhases:
    """Divide steps that wait for half of their time, on batches from one file of that many records."""
    n, start = len(lengths), 0
    rows = []
    for step, length in enumerate(lengths):
        row = {"step": step, "warmup": step < warmup, "start_ns": start, "wait_ns": length * MS // 2}
        rows.append(row | {"end_ns": start + length * MS, "window": -1})
        start += length * MS
    samples = [(step, 0, 0) for step in range(n) for _ in range(batch)]
    return measure_phases(
        pa.Table.from_pylist(rows, schema=STEPS.schema),
        pa.table(dict(zip(SAMPLES.schema.names, zip(*samples, strict=True), strict=True)), schema=SAMPLES.schema),
        [DataFile("f", records, 1)],
        epoch,
    )


def test_the_first_epoch_ends_when_as_many_examples_as_there_are_records_were_taken():
    # 12 records in batches of 4: steps 0 to 2 are the first epoch, step 0 is the warm-up
    found = phases([100, 30, 30, 10, 10], warmup=1, batch=4, records=12).phases
    assert [(one.phase, one.steps, one.first_step, one.median_ns / MS) for one in found] == [
        (Phase.WARMUP, 1, 0, 100),
        (Phase.FIRST_EPOCH, 2, 1, 30),
        (Phase.LATER_EPOCHS, 2, 3, 10),
    ]
    assert [(one.total_ns // MS, one.wait_ns // MS, one.wait_percent) for one in found[1:]] == [
        (60, 30, 50),
        (20, 10, 50),
    ]


def test_a_short_run_has_one_phase():
    assert [one.phase for one in phases([10, 10], warmup=0, batch=4, records=100).phases] == [Phase.FIRST_EPOCH]


def test_unknown_sizes_are_said():
    with pytest.raises(TraceIncompleteError, match="sample_probe"):
        phases([10], warmup=0, batch=4, records=None)


def test_the_first_epoch_is_as_long_as_what_a_shard_reads():
    # one of two shards of 24 records, in batches of 4: three steps are an epoch, not six
    found = phases([30] * 3 + [10] * 6, warmup=0, batch=4, records=24, epoch=12).phases
    assert [(one.phase, one.steps) for one in found] == [(Phase.FIRST_EPOCH, 3), (Phase.LATER_EPOCHS, 6)]


def watched(lengths: list[int], *, epochs: list[int] | None = None, first_wait: int | None = None) -> StepPhases:
    """Divide the steps of a script that was watched; they wait for half their time, first ones of an epoch for more."""
    rows, start = [], 0
    for step, length in enumerate(lengths):
        epoch = 0 if epochs is None else epochs[step]
        is_first = epochs is not None and step > 0 and epochs[step - 1] != epoch
        wait = first_wait if is_first and first_wait is not None else length // 2
        row = {"step": step, "warmup": step < 1, "start_ns": start, "wait_ns": wait * MS, "epoch": epoch, "window": -1}
        rows.append(row | {"end_ns": start + length * MS})
        start += length * MS
    samples = pa.Table.from_batches([], schema=SAMPLES.schema)
    return measure_phases(pa.Table.from_pylist(rows, schema=STEPS.schema), samples, [])


def test_a_pass_of_a_watched_script_is_an_epoch() -> None:
    found = watched([100, *[30] * 9, *[10] * 20], epochs=[0] * 10 + [1] * 10 + [2] * 10).phases
    assert [(one.phase, one.steps, one.median_ns / MS) for one in found] == [
        (Phase.WARMUP, 1, 100),
        (Phase.FIRST_EPOCH, 9, 30),
        (Phase.LATER_EPOCHS, 20, 10),
    ]


def test_a_cache_that_completes_inside_a_repeated_pass_divides_the_job() -> None:
    noise = [step * 7919 % 5 for step in range(300)]
    found = watched([200, *(60 + extra for extra in noise[:120]), *(12 + extra for extra in noise[:180])]).phases
    assert [(one.phase, one.steps) for one in found] == [
        (Phase.WARMUP, 1),
        (Phase.BEFORE_CHANGE, 120),
        (Phase.AFTER_CHANGE, 180),
    ]


def test_neither_noise_nor_a_swing_nor_single_long_steps_divide_a_job() -> None:
    wobble = [20 + step * 7919 % 7 for step in range(300)]
    swing = [20 if step // 30 % 2 else 40 for step in range(300)]
    outliers = [500 if step % 40 == 0 else 20 for step in range(300)]
    drift = [20 + step // 75 for step in range(300)]
    for lengths in (wobble, swing, outliers, drift):
        assert [one.phase for one in watched(lengths).phases] == [Phase.WARMUP, Phase.FIRST_EPOCH]


def test_beginnings_of_epochs_are_counted_and_what_they_cost() -> None:
    lengths = ([400] + [10] * 9) * 3
    found = watched(lengths, epochs=[step // 10 for step in range(30)], first_wait=395).boundaries
    assert found is not None
    assert (found.count, found.wait_ns) == (2, 2 * 390 * MS)
    assert found.share == pytest.approx(780 / (sum(lengths) - 400))


def test_waits_that_nobody_knows_are_not_zero() -> None:
    row = {"warmup": False, "wait_ns": None, "epoch": 0, "window": -1}
    rows = [row | {"step": step, "start_ns": step * 10 * MS, "end_ns": (step + 1) * 10 * MS} for step in range(5)]
    samples = pa.Table.from_batches([], schema=SAMPLES.schema)
    (found,) = measure_phases(pa.Table.from_pylist(rows, schema=STEPS.schema), samples, []).phases
    assert found.wait_percent is None
    first, later = rows[:3], [row | {"epoch": 1, "wait_ns": 4 * MS} for row in rows[3:]]
    unknown, known = measure_phases(pa.Table.from_pylist(first + later, schema=STEPS.schema), samples, []).phases
    assert (unknown.wait_percent, known.wait_percent) == (None, 40.0), (
        "what one phase is known to wait says nothing of another"
    )
