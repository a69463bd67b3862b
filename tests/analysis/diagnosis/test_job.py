"""The analyses of what the job notes about itself: steps, calibration, profiler cost, memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.machine import process_memory, profiler_cost
from pipeline_lab.analysis.steps import calibration, job_steps, step_rows
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_events import CalibrationEvent, OwnPythonEvent, WindowEvent
from pipeline_lab.runs.run_tables import RESOURCES, SAMPLES, STEPS

EPOCH = 1_700_000_000_000_000_000


def steps(*rows: tuple[bool, int, int, int, int], away: int = 0) -> pa.Table:
    """Return steps given as (warm-up, start, wait, end, window), ms since the origin; ``away`` ms before the last one."""
    made = [
        {
            "step": number,
            "warmup": warmup,
            "start_ns": EPOCH + start * 10**6,
            "wait_ns": wait * 10**6,
            "end_ns": EPOCH + end * 10**6,
            "loss": 0.5,
            "accuracy": 0.9,
            "window": window,
            "rss_bytes": 100 + number,
            "away_ns": away * 10**6 if number == len(rows) - 1 else 0,
        }
        for number, (warmup, start, wait, end, window) in enumerate(rows)
    ]
    return pa.Table.from_pylist(made, schema=STEPS.schema)


def window(name: str, started: int, stopped: int, flushed: int, *, shortened: bool = False) -> WindowEvent:
    times = (EPOCH + at * 10**6 for at in (started, stopped, flushed))
    return WindowEvent(name, 1, 2, *times, 10, 20, 1000, 500, 900, shortened)


RUN = steps(
    (True, 0, 80, 90, -1),  # warm-up
    (False, 100, 4, 110, -1),  # 20 ms to the next step, 10 of them Python
    (False, 120, 4, 130, 0),
    (False, 140, 4, 150, -1),
    (False, 160, 4, 200, -1),  # the last step ends with itself
)


def test_a_step_lasts_to_the_start_of_the_next_one():
    found = job_steps.measure_job_steps(RUN, SAMPLES.schema.empty_table(), EPOCH)
    assert [length / 10**6 for length in found.table.column("step_ns").to_pylist()] == [100, 20, 20, 20, 40]
    assert (found.count, found.total_ns, found.wait_total_ns) == (4, 100_000_000, 16_000_000)
    assert found.median_ns == 20_000_000
    assert found.table.column("start_ns").to_pylist()[1] == 100_000_000
    assert found.table.column("compute_ns").to_pylist()[1] == 6_000_000
    assert found.table.column("profiled").to_pylist() == [False, False, True, False, False]


def test_steps_to_which_a_clock_that_was_set_back_left_no_time_have_no_numbers():
    table = steps((True, 500, 4, 510, -1), (False, 20, 4, 30, -1), (False, 40, 4, 50, -1))
    with pytest.raises(TraceIncompleteError, match="have no length"):
        job_steps.measure_job_steps(table, SAMPLES.schema.empty_table(), EPOCH)


def test_an_evaluation_between_two_steps_belongs_to_none():
    table = steps((False, 0, 4, 10, -1), (False, 20, 4, 30, -1), (False, 540, 4, 550, -1), away=500)
    found = job_steps.measure_job_steps(table, SAMPLES.schema.empty_table(), EPOCH)
    assert [length / 10**6 for length in found.table.column("step_ns").to_pylist()] == [20, 20, 10]
    older = table.set_column(9, STEPS.schema.field(9), pa.nulls(3, pa.int64()))
    assert [length / 10**6 for length in step_rows.divide_time(older).step_ns] == [20, 520, 10]


def test_breaks_last_from_an_epochs_last_call_to_the_next_ones_first_request():
    """Two epochs of two steps after the warm-up; an evaluation of 500 ms lies in the last break, a checkpoint of 30 in the first."""
    table = steps(
        (True, 0, 4, 10, -1),  # its epoch ends in the warm-up
        *((False, start, 4, start + 10, -1) for start in (100, 120, 170, 190, 740)),
        away=500,
    )
    assert job_steps.measure_job_steps(table, SAMPLES.schema.empty_table(), EPOCH).break_total_ns == 0, "not counted"
    of_epochs = table.set_column(
        table.schema.names.index("epoch"), STEPS.schema.field("epoch"), pa.array([0, 1, 1, 2, 2, 3], pa.int32())
    )
    found = job_steps.measure_job_steps(of_epochs, SAMPLES.schema.empty_table(), EPOCH)
    assert found.break_total_ns == (40 + 40) * 10**6
    checkpoints = EPOCH + np.array([[0, 20], [135, 165]], np.int64) * 10**6
    found = job_steps.measure_job_steps(of_epochs, SAMPLES.schema.empty_table(), EPOCH, checkpoints=checkpoints)
    assert found.break_total_ns == (10 + 40) * 10**6


def _on_a_device(*rows: tuple[int, int, int, int]) -> pa.Table:
    """Rows of (request, wait, end of the call, result there), ms."""
    table = steps(*((False, request, wait, end, -1) for request, wait, end, _ in rows))
    ready = pa.array([EPOCH + ready * 10**6 for *_, ready in rows], pa.int64())
    return table.set_column(table.column_names.index("ready_ns"), "ready_ns", ready)


def _parts_ms(table: pa.Table) -> list[tuple[float, ...]]:
    rows = step_rows.divide_time(table)
    return [
        tuple(part / 10**6 for part in parts)
        for parts in zip(rows.start_ns - EPOCH, rows.wait_ns, rows.compute_ns, rows.between_ns, strict=True)
    ]


def test_steps_that_are_launched_ahead_of_the_device_take_the_devices_time():
    """A step takes the device 20 ms; the host needs 1 ms for a batch, 1 ms for the call and 2 ms of Python."""
    table = _on_a_device((0, 1, 2, 21), (4, 1, 6, 41), (8, 1, 10, 61), (21, 1, 23, 81))
    assert _parts_ms(table) == [(0, 1, 20, 0), (21, 0, 20, 0), (41, 0, 20, 0), (61, 0, 20, 0)]


def test_python_between_steps_counts_as_far_as_the_device_waits_for_it():
    """A step takes the device 5 ms; the host needs 1 ms for a batch, 1 ms for the call and 18 ms of Python."""
    table = _on_a_device((0, 1, 2, 6), (20, 1, 22, 26), (40, 1, 42, 46))
    assert _parts_ms(table) == [(0, 1, 5, 14), (20, 1, 5, 14), (40, 1, 5, 0)]


def test_a_wait_for_a_batch_counts_as_far_as_the_device_has_nothing_to_do():
    """With prefetch_to_device, a batch comes when the device is done with the step before; or a little later."""
    assert _parts_ms(_on_a_device((0, 0, 1, 20), (1, 19, 21, 40), (21, 22, 44, 60))) == [
        (0, 0, 20, 0),
        (20, 0, 20, 0),
        (40, 3, 17, 0),
    ]


def test_rows_of_older_runs_on_a_device_do_not_overlap():
    """Their end is when the result was read, after the next step had been launched."""
    older = steps((False, 0, 1, 42, -1), (False, 21, 1, 63, -1), (False, 42, 1, 63, -1))
    assert _parts_ms(older) == [(0, 1, 20, 0), (21, 1, 20, 0), (42, 1, 20, 0)]


def test_examples_per_second_need_the_sample_probe():
    samples = pa.table({"step": [0, 1, 1, 2, 3, 4], "file": [0] * 6, "record": [0] * 6}, schema=SAMPLES.schema)
    assert (
        job_steps.measure_job_steps(RUN, samples, EPOCH).examples_per_second == 50.0
    )  # five after the warm-up in 0.1 s
    assert job_steps.measure_job_steps(RUN, SAMPLES.schema.empty_table(), EPOCH).examples_per_second is None


def test_examples_of_a_step_that_is_not_over_do_not_count_yet():
    samples = pa.table({"step": [0, 1, 1, 2, 3, 4, 5, 5], "file": [0] * 8, "record": [0] * 8}, schema=SAMPLES.schema)
    assert job_steps.measure_job_steps(RUN, samples, EPOCH).examples_per_second == 50.0


def test_a_job_in_its_warm_up_has_no_steps_yet():
    with pytest.raises(TraceIncompleteError, match="after the warm-up"):
        job_steps.measure_job_steps(steps((True, 0, 1, 2, -1)), SAMPLES.schema.empty_table(), EPOCH)


def test_calibration_stands_beside_the_median_step_outside_of_windows():
    event = CalibrationEvent(5e6, 5, 9e6, 5, None)
    found = calibration.read_calibration(JobEvents([event]), RUN)
    assert (found.device_only_ns, found.pipeline_only_ns, found.step_ns) == (5e6, 9e6, 20e6)
    assert found.utilisation_percent == 25.0


def test_what_a_step_takes_in_training_is_comparable_where_the_same_function_was_timed_alone():
    alone = CalibrationEvent(5e6, 5, 9e6, 5, None, of_calls=True)
    assert calibration.read_calibration(JobEvents([alone]), RUN).busy_ns == 6e6
    assert calibration.read_calibration(JobEvents([replace(alone, of_calls=False)]), RUN).busy_ns is None
    unknown = RUN.set_column(RUN.schema.get_field_index("wait_ns"), "wait_ns", pa.nulls(RUN.num_rows, pa.int64()))
    assert calibration.read_calibration(JobEvents([alone]), unknown).busy_ns is None


def test_a_step_whose_time_is_set_needs_no_correction() -> None:
    found = calibration.read_calibration(JobEvents([CalibrationEvent(12e6, 0, 9e6, 5, None)]), RUN)
    assert found.device_only_ns == 12e6


def test_a_step_alone_takes_no_longer_than_one_in_training_whose_batch_is_there():
    """Steps of 20 ms have their result 6 ms after their batch; 12 ms alone were those of a process that was not warm."""
    found = calibration.read_calibration(JobEvents([CalibrationEvent(12e6, 5, 9e6, 5, None)]), RUN)
    assert found.device_only_ns == 6e6


def test_a_step_that_took_longer_alone_than_in_training_is_not_believed():
    with pytest.raises(TraceIncompleteError, match=r"compute-only step took longer \(99 ms\) than in training"):
        calibration.read_calibration(JobEvents([CalibrationEvent(99e6, 4, 6e6, 5, None)]), RUN)


LAUNCHED = steps(
    (True, 0, 1, 40, -1),
    *((False, start, 1, start + 4, -1) for start in range(60, 360, 60)),
    (False, 360, 1, 420, -1),
)
"""Steps of 60 ms whose call returns after 4, of a script that waits for no result."""


def test_where_calls_return_before_the_result_only_compute_and_between_together_are_known():
    rows = step_rows.divide_time(LAUNCHED, launches_ahead=True)
    assert not rows.is_divided.any()
    found = job_steps.measure_job_steps(LAUNCHED, SAMPLES.schema.empty_table(), EPOCH, rows=rows)
    assert found.table.column("compute_ns").null_count == LAUNCHED.num_rows
    assert (found.table.column("step_ns").to_pylist()[1:], found.table.column("wait_ns").null_count) == ([60e6] * 6, 0)
    assert step_rows.divide_time(LAUNCHED).is_divided.all()


def test_results_that_were_waited_for_divide_a_step_wherever_it_ran():
    rows = step_rows.divide_time(_on_a_device((0, 1, 2, 21), (4, 1, 6, 41)), launches_ahead=True)
    assert rows.is_divided.all()


def test_a_step_alone_is_not_taken_for_the_time_of_its_launch():
    event = CalibrationEvent(55e6, 5, 9e6, 5, None)
    assert calibration.read_calibration(JobEvents([event]), LAUNCHED).device_only_ns == 3e6
    divided = step_rows.divide_time(LAUNCHED, launches_ahead=True)
    found = calibration.read_calibration(JobEvents([event]), LAUNCHED, rows=divided)
    assert (found.device_only_ns, found.step_ns) == (55e6, 60e6)
    slower = CalibrationEvent(63e6, 5, 9e6, 5, None)
    assert calibration.read_calibration(JobEvents([slower]), LAUNCHED, rows=divided).device_only_ns == 60e6


def test_set_times_that_vary_are_compared_by_their_means():
    """Steps of 10, 10, 10 and 70 ms without a wait: their mean is 25 ms, 2.5 times the median."""
    table = steps((False, 0, 0, 10, -1), (False, 10, 0, 20, -1), (False, 20, 0, 30, -1), (False, 30, 0, 100, -1))
    found = calibration.read_calibration(JobEvents([CalibrationEvent(20e6, 0, 9e6, 5, None)]), table, times_vary=True)
    assert (found.device_only_ns, found.step_ns, found.utilisation_percent) == (20e6, 10e6, 80.0)


def test_without_calibration_it_is_said_how_to_get_it():
    with pytest.raises(TraceIncompleteError, match=r"training\.calibrate"):
        calibration.read_calibration(JobEvents([CalibrationEvent(None, 0, 6e6, 5, None)]), RUN)


def test_profiler_cost_compares_steps_inside_outside_and_during_a_flush():
    # 3 plain steps of 10 ms, 3 recorded ones of 12 ms, 3 during the flush of 15 ms
    rows = [(False, n * 10, 0, n * 10, -1) for n in range(3)]
    rows += [(False, 30 + n * 12, 0, 30 + n * 12, 0) for n in range(3)]
    rows += [(False, 66 + n * 15, 0, 66 + n * 15, -1) for n in range(3)] + [(False, 111, 0, 121, -1)]
    found = profiler_cost.measure_profiler_cost(JobEvents([window("window-0001", 30, 66, 105)]), steps(*rows), EPOCH)
    assert (found.plain_step_ns, found.profiled_step_ns, found.flushing_step_ns) == (10e6, 12e6, 15e6)
    assert found.profiled_steps == 3
    assert found.windows.column("start_ns").to_pylist() == [30_000_000]
    assert found.windows.column("rss_growth_bytes").to_pylist() == [400]


def test_too_few_steps_give_no_median():
    found = profiler_cost.measure_profiler_cost(JobEvents([window("window-0001", 120, 130, 131)]), RUN, EPOCH)
    assert found.profiled_step_ns is None


def test_no_window_is_said():
    with pytest.raises(TraceIncompleteError, match="at least one window"):
        profiler_cost.measure_profiler_cost(JobEvents(), RUN, EPOCH)


def test_memory_joins_samples_by_the_clock_and_by_the_step():
    resources = pa.table(
        {
            "time_ns": [EPOCH - 10**6, EPOCH + 125 * 10**6],
            "rss_bytes": [50, 300],
            "cpu_percent": [0.0, 0.0],
            "other_cpu_percent": [0.0, 0.0],
            "gpu_memory_bytes": [None, None],
            "gpu_percent": [None, None],
            "gpu_clock_mhz": [None, None],
            "gpu_slowed": [None, None],
            "children_cpu_percent": [0.0, 0.0],
            "flushing": [False, False],
        },
        schema=RESOURCES.schema,
    )
    data = [DataFile("a", 10, 7000), DataFile("vectors.npy", 4, 500)]
    found = process_memory.measure_memory(RUN, resources, JobEvents([window("w", 100, 120, 135)]), EPOCH, data)
    assert found.data_bytes == 7500
    assert (found.process_start_bytes, found.process_peak_bytes) == (50, 900)  # the window saw the peak
    assert found.table.column("rss_bytes").to_pylist() == [50, 100, 101, 300, 102, 103, 104]
    assert found.table.column("flushing").to_pylist() == [False, False, False, True, True, False, False]


def test_memory_of_a_long_run_keeps_every_peak(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process_memory, "MAX_ROWS", 3)
    long = steps(*((False, n, 0, n, -1) for n in range(9)))
    found = process_memory.measure_memory(long, RESOURCES.schema.empty_table(), JobEvents(), EPOCH)
    assert found.table.column("rss_bytes").to_pylist() == [102, 105, 108]


def test_no_memory_is_said():
    with pytest.raises(TraceIncompleteError, match="pipeline-lab run"):
        process_memory.measure_memory(STEPS.schema.empty_table(), RESOURCES.schema.empty_table(), JobEvents(), EPOCH)


@pytest.mark.parametrize(
    ("function", "seen", "of", "place"),
    [
        ("Monitor.on_train_batch_end", 6, 10, "Monitor.on_train_batch_end (train.py:35)"),
        ("<module>", 6, 10, "train.py:35"),
        ("Monitor.on_train_batch_end", 4, 10, None),
        ("Monitor.on_train_batch_end", 4, 4, None),
    ],
)
def test_a_place_is_named_where_most_of_the_scripts_own_python_was_seen(
    function: str, seen: int, of: int, place: str | None
) -> None:
    assert job_steps._place_of(OwnPythonEvent(function, "/home/train.py", 35, seen, of)) == place
