"""What single charts say beyond the promises that all of them keep."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.idle.idle_gaps import OperationTime
from pipeline_lab.analysis.steps.job_steps import NO_JOB_WAITS
from pipeline_lab.analysis.steps.outlier_steps import OUTLIER_TABLE, OutlierSteps
from pipeline_lab.analysis.steps.step_breakdown import PARTS_TABLE, sum_up
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.idle_charts import hosts_side_by_side, idle_by_cause, step_parts_over_time
from pipeline_lab.figures.job_charts import learning, memory_by_allocator, memory_over_time, phases, step_time
from pipeline_lab.figures.sampling_charts import file_shares, sampling_over_time
from pipeline_lab.figures.stall_charts import stall_over_time, stall_over_windows, stall_per_step, wait_distribution
from pipeline_lab.figures.theme import caption_of, notes_of
from pipeline_lab.figures.timeline_chart import MAX_ROWS, device_timeline
from tests.support import results


def test_stacked_waits_add_up_to_the_wait():
    bars = stall_per_step(results.steps()).data
    assert [bar.name for bar in bars] == ["device idle meanwhile", "hidden behind device work"]
    assert set(np.add(bars[0].y, bars[1].y)) == {30.0}


@pytest.mark.slow
def test_marks_know_where_they_lie_in_the_timeline():
    gaps, steps = results.idle_gaps(), results.steps()
    named = [name for bar in device_timeline(gaps, steps).data for name in bar.ids or () if bar.name != "busy"]
    inside = gaps.gaps.filter(gaps.gaps.column("window").is_valid()).column("start_ns").to_pylist()
    assert sorted(named) == sorted(f"gap@{start}" for start in inside)
    starts = steps.table.column("start_ns").to_pylist()
    assert list(stall_per_step(steps).data[0].ids) == [f"step@{start}" for start in starts]
    joined = device_timeline(results.idle_gaps(3000), Unavailable("none")).data[0].ids
    assert all(re.fullmatch(r"\d+-\d+", name) for name in joined)


def test_few_steps_are_dots_and_strips_to_scale():
    table = results.steps().table.slice(0, 6)
    figure = stall_per_step(replace(results.steps(), table=table))
    assert {trace.type for trace in figure.data} == {"scatter"}
    assert figure.layout.xaxis.range == (0.5, 6.5)
    parts = step_parts_over_time(sum_up(results.step_breakdown().table.slice(0, 6)), Unavailable("none"))
    assert {bar.orientation for bar in parts.data} == {"h"}
    assert set(np.sum([bar.x for bar in parts.data], axis=0)) == {50.0}
    job = results.job_steps(12)
    assert step_time(job).data[0].mode == learning(job).data[0].mode == "markers"


def test_steps_whose_waits_were_not_timed_are_left_out_of_them():
    job = results.job_steps()
    place = job.table.schema.get_field_index("wait_ns")
    waits = job.table.column("wait_ns").to_pylist()
    timed = pa.array([None] * 10 + waits[10:], pa.int64())
    table = job.table.set_column(place, job.table.schema.field("wait_ns").with_nullable(True), timed)
    figure = stall_over_time(replace(job, table=table))
    assert caption_of(figure).startswith("A typical step waits 30 ms; the longest wait is 31.5 ms, ")
    assert min(figure.data[-1].x) > 0.8, "the tenth step begins there"


def test_waits_are_not_joined_across_time_without_steps():
    job = results.job_steps()
    later = np.where(np.arange(job.table.num_rows) < 50, 0, 10**10) + tables.ints(job.table, "start_ns")
    (line,) = stall_over_time(replace(job, table=tables.replace_column(job.table, "start_ns", later))).data
    assert len(line.x) == job.table.num_rows + 1
    assert np.flatnonzero(np.isnan(line.y)).tolist() == [50]


def test_a_step_that_takes_far_longer_leaves_the_others_readable():
    job = results.job_steps()
    length = tables.ints(job.table, "step_ns").copy()
    length[60] = 10**10
    figure = step_time(replace(job, table=tables.replace_column(job.table, "step_ns", length)))
    assert figure.layout.yaxis.range[1] == pytest.approx(3 * np.percentile(length[10:], 95) / 1e6, rel=0.05)
    assert any("up to 10 s, reach" in note for note in notes_of(figure))


def test_few_waits_are_dots():
    stalls = results.input_stalls()
    figure = wait_distribution(replace(stalls, table=stalls.table.slice(0, 7)))
    assert [trace.mode for trace in figure.data] == ["markers"]
    assert len(figure.data[0].x) == 7


def test_allocators_are_not_joined_across_time_that_was_not_recorded():
    found = results.allocators(10)
    windows = found.table.set_column(1, "window", [[0] * 4 + [1] * 6]).cast(found.table.schema)
    line = memory_by_allocator(replace(found, table=windows)).data[0]
    assert np.flatnonzero(np.isnan(line.x)).tolist() == [4]


def test_every_wait_is_in_the_histogram():
    stalls = results.input_stalls()
    assert sum(wait_distribution(stalls).data[0].y) == stalls.table.num_rows


def test_waits_of_one_length_still_make_a_histogram():
    stalls = results.input_stalls()
    same = stalls.table.set_column(4, "end_ns", [stalls.table.column("start_ns").to_numpy() + 1_000_000])
    bars = wait_distribution(type(stalls)(*[*list(vars(stalls).values())[:-1], same]))
    assert sum(bars.data[0].y) == same.num_rows


def test_without_job_steps_the_share_of_waiting_is_shown():
    assert set(stall_over_windows(results.steps()).data[0].y) == {60.0}


@pytest.mark.slow
def test_the_timeline_shows_every_window_up_to_a_limit():
    few = device_timeline(results.idle_gaps(), results.steps())
    assert len({label for bar in few.data if bar.type == "bar" for label in bar.y}) == 4
    assert any("6 s between windows" in note for note in notes_of(few))
    many = device_timeline(results.idle_gaps(3000), Unavailable("none"))
    assert len({label for bar in many.data for label in bar.y}) == MAX_ROWS


def test_host_compute_is_never_passed_off_as_a_device():
    gaps = results.idle_gaps(device="host compute")
    for figure in (idle_by_cause(gaps), device_timeline(gaps, results.steps())):
        assert any("host compute" in note for note in notes_of(figure))


def test_idle_shares_are_of_the_windows_without_the_time_between():
    bars = idle_by_cause(results.idle_gaps()).data[0]
    assert dict(zip(bars.y, bars.text, strict=True))["input wait"] == "1.2 s · 60 %"


def test_axis_and_labels_of_idle_time_have_one_unit():
    short = replace(results.idle_gaps(), by_cause_ns={GapCause.INPUT_WAIT: 90_000_000, GapCause.PYTHON: 400_000})
    figure = idle_by_cause(short)
    assert figure.layout.xaxis.title.text == "Device idle (ms)"
    assert [text.split(" · ")[0] for text in figure.data[0].text] == ["0.4 ms", "90 ms"]
    assert max(figure.layout.xaxis.tickvals) <= 90


def test_shards_are_labelled_by_what_tells_them_apart():
    assert list(file_shares(results.file_sampling(3)).data[0].x) == ["00000", "00001", "00002"]


@pytest.mark.slow
def test_joined_files_keep_all_samples():
    few, many = results.file_sampling(8), results.file_sampling(400)
    for sampling in (few, many):
        bars = next(trace for trace in file_shares(sampling).data if trace.name == "observed")
        assert np.isclose(bars.customdata[:, 0].sum(), 100)
        assert np.isclose(np.sum(bars.y), 0), "what some give too much, others give too little"
        grid = sampling_over_time(sampling).data[0].z
        assert np.sum(grid) == sum(sampling.timeline.column("samples").to_pylist())


def test_reads_are_not_passed_off_as_samples():
    assert any("reads" in note for note in notes_of(file_shares(results.file_sampling(probe=False))))


def test_memory_shows_windows_and_flushes_only_when_known():
    known = memory_over_time(results.memory(), results.profiler_cost())
    assert len(known.layout.shapes) == 4
    assert "window flushed to disk" in [trace.name for trace in known.data]
    assert len(memory_over_time(results.memory(), Unavailable("no profiler")).data) == 1


def test_warmup_and_profiled_steps_are_marked():
    figure = step_time(results.job_steps())
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (-0.5, 4.5)
    assert [len(trace.x) for trace in figure.data if trace.name == "profiled"] == [40]
    assert any("beyond the chart" in note for note in notes_of(figure))


def test_a_workload_without_accuracy_shows_its_loss_alone():
    assert len(learning(results.job_steps()).data) == 2
    assert len(learning(results.job_steps(accuracy=False)).data) == 1


def test_the_parts_of_a_step_are_stacked_to_its_length():
    figure = step_parts_over_time(results.step_breakdown(), results.outlier_steps())
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert {bar.name for bar in bars} == {"input wait", "device compute", "Python", "host operation"}
    assert set(np.sum([bar.y for bar in bars], axis=0)) == {50.0}


def test_outliers_carry_their_cause():
    # step 60 was recorded and is an outlier; 20 and 30 were not recorded
    outliers = results.outlier_steps(5)
    marks = [
        trace for trace in step_parts_over_time(results.step_breakdown(), outliers).data if trace.name == "outlier"
    ]
    assert [text for mark in marks for text in mark.customdata] == ["step 60, 50 ms: checkpoints"]
    (mark,) = [trace for trace in step_time(results.job_steps(), outliers=outliers).data if trace.name == "outlier"]
    assert (len(mark.x), set(mark.y)) == (5, {150.0})


def test_an_outlier_is_marked_on_its_own_step_where_windows_and_hosts_count_alike():
    # two hosts count their ten steps from 0 in each of four windows; step 3 of the second window took long on one of them
    table = results.step_breakdown().table
    table = tables.replace_column(table, "step", tables.ints(table, "step") % 10)
    both = [tables.replace_column(table, "host", host) for host in ("a", "b")]
    found = tables.take(both[1], np.array([13]))
    outlier = tables.build(
        OUTLIER_TABLE,
        1,
        host="b",
        step=tables.ints(found, "step"),
        start_ns=tables.ints(found, "start_ns"),
        length_ns=3 * results.STEP_NS,
        level_ns=results.STEP_NS,
        cause=["checkpoint"],
        excess_ns=2 * results.STEP_NS,
    )
    figure = step_parts_over_time(
        sum_up(tables.concat(PARTS_TABLE, both)), OutlierSteps("recorded steps", 80, outlier, 82 * results.STEP_NS)
    )
    (mark,) = [trace for trace in figure.data if trace.name == "outlier"]
    assert mark.x.tolist() == [28], "by time, each step of host a comes before that of host b"


def test_pointing_at_a_cause_names_the_operations():
    gaps = replace(
        results.idle_gaps(),
        by_operation=(
            OperationTime("DeserializeSparse", GapCause.HOST_OPERATION, 90_000_000),
            OperationTime("Cast", GapCause.HOST_OPERATION, 2_000_000),
        ),
    )
    bars = idle_by_cause(gaps).data[0]
    found = dict(zip(bars.y, bars.customdata, strict=True))
    assert found["host operation"] == "<br>DeserializeSparse: 90 ms<br>Cast: 2 ms"
    assert found["input wait"] == ""


def test_the_host_that_holds_the_others_back_comes_first():
    figure = hosts_side_by_side(results.hosts(3))
    assert list(figure.data[0].y) == ["worker-2", "worker-0", "worker-1"]
    assert np.sum([bar.x for bar in figure.data], axis=0).tolist() == [50.0, 50.0, 50.0]
    assert caption_of(figure) == "worker-2 holds the others back."


def test_phases_show_the_mean_step_and_its_wait():
    wait, rest = phases(results.step_phases()).data
    assert (list(wait.x), list(rest.x)) == ([30.0, 40.0, 20.0], [70.0, 20.0, 20.0])


def test_waits_that_nobody_knows_are_not_drawn_as_none():
    job, found = results.job_steps(), results.step_phases()
    assert stall_over_time(replace(job, table=tables.replace_column(job.table, "wait_ns", None))) == Unavailable(
        NO_JOB_WAITS
    )
    (whole,) = phases(replace(found, phases=tuple(replace(one, wait_ns=None) for one in found.phases))).data
    assert (list(whole.x), "not known" in whole.name) == ([100.0, 60.0, 40.0], True)
    (_, first, last) = found.phases
    wait, rest = phases(replace(found, phases=(replace(first, wait_ns=None), last))).data
    assert (list(wait.x), list(rest.x)) == ([None, 20.0], [60.0, 20.0])
