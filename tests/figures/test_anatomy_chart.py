from dataclasses import replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import pytest

from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown, sum_up
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures import anatomy_chart
from pipeline_lab.figures.anatomy_chart import CONTENDED, CUT, make_room_for_legend, step_anatomy, window_with_steps
from pipeline_lab.figures.theme import caption_of, notes_of
from pipeline_lab.units import NS_PER_MS
from tests.advice.test_advising import later
from tests.support import results


def suggesting(*suggestions: Suggestion) -> Diagnosis:
    found = results.diagnosis()
    return replace(found, verdict=replace(found.verdict, suggestions=suggestions))


def test_the_parts_stand_side_by_side_and_add_up_to_the_mean_step() -> None:
    found = suggesting()
    figure = step_anatomy(found)
    assert not isinstance(figure, Unavailable)
    assert not isinstance(found.step_breakdown, Unavailable)
    assert not isinstance(found.steps, Unavailable)
    edge = 0.0
    for bar in (each for each in figure.data if each.xaxis is None):
        assert bar.base[0] == pytest.approx(edge)
        edge += bar.x[0]
    step_ms = found.step_breakdown.total_ns / found.steps.count / NS_PER_MS
    assert edge == pytest.approx(step_ms)
    assert figure.layout.xaxis.range == (0, pytest.approx(step_ms))
    assert caption_of(figure) == "Input wait fills 60 % of a step."
    assert f"Mean of {found.steps.count} recorded steps" in notes_of(figure)[0]


def test_a_suggestion_with_a_prediction_is_drawn_as_a_shorter_step() -> None:
    hint = Suggestion("Look at the model", "", 50.0)  # no options to carry out: the most that could be saved
    useful = Suggestion("Add <b>prefetch</b>.", "", 25.0, options={"name": "a"})
    figure = step_anatomy(suggesting(useful, hint))
    assert not isinstance(figure, Unavailable)
    predicted = next(bar for bar in figure.data if bar.name == "predicted")
    assert predicted.x[0] == pytest.approx(0.75 * figure.layout.xaxis.range[1])
    assert "Add &lt;b&gt;prefetch&lt;/b&gt;: <b>" in figure.layout.annotations[0].text
    for others in ((hint,), (hint, useful)):  # a strip of anything but the first would contradict what to try first
        without = step_anatomy(suggesting(*others))
        assert not isinstance(without, Unavailable)
        assert len(without.data) == len(figure.data) - 1


def test_the_caption_names_the_idle_time_beside_the_work() -> None:
    found = suggesting()
    assert not isinstance(found.step_breakdown, Unavailable)
    busy = replace(StepBreakdown(input_wait_ns=38, device_compute_ns=62), table=found.step_breakdown.table)
    figure = step_anatomy(replace(found, step_breakdown=busy))
    assert not isinstance(figure, Unavailable)
    assert caption_of(figure).startswith("Device compute fills ")
    assert ", input wait " in caption_of(figure)


def test_below_the_step_one_window_shows_when_the_device_worked() -> None:
    figure = step_anatomy(suggesting())
    assert not isinstance(figure, Unavailable)
    window = [bar for bar in figure.data if bar.xaxis == "x2"]
    assert {bar.name for bar in window} >= {"busy", "input wait"}
    spans = sorted((base, base + length) for bar in window for base, length in zip(bar.base, bar.x, strict=True))
    assert spans[0][0] == 0
    assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(spans)), "nothing overlaps"
    assert spans[-1][1] == pytest.approx(figure.layout.xaxis2.range[1])
    named = [bar.name for bar in figure.data if bar.showlegend is not False]
    assert len(named) == len(set(named)), "the legend names each color once"
    bare = step_anatomy(replace(suggesting(), idle_gaps=Unavailable("no window")))
    assert not isinstance(bare, Unavailable)
    assert "xaxis2" not in bare.layout
    assert notes_of(bare)[1] == "No strip of a recorded window: no window"


def test_of_very_many_windows_only_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    read = anatomy_chart.row_segments

    def count(*row: Any) -> Any:
        nonlocal looked_at
        looked_at += 1
        return read(*row)

    monkeypatch.setattr(anatomy_chart, "row_segments", count)
    found = replace(suggesting(), idle_gaps=results.idle_gaps(10_000))
    assert window_with_steps(found) is not None
    assert 30 < looked_at <= anatomy_chart.MOST_LOOKED_AT + 1, (
        "a charts page of a long run does not take longer and longer"
    )


def test_what_lies_outside_of_steps_is_cut_out_and_the_axis_says_so() -> None:
    found = suggesting()
    assert not isinstance(found.steps, Unavailable)
    whole = step_anatomy(found)
    assert not isinstance(whole, Unavailable)
    assert "outside" not in whole.layout.xaxis2.title.text, "steps fill the window"
    table = found.steps.table
    for kept, steps, cuts in (
        (table.slice(0, 1), 1, 0),
        (pa.concat_tables([table.slice(0, 1), table.slice(2, 1)]), 2, 1),
    ):
        figure = step_anatomy(replace(found, steps=replace(found.steps, table=kept)))
        assert not isinstance(figure, Unavailable)
        assert figure.layout.xaxis2.range[1] * NS_PER_MS == pytest.approx(steps * results.STEP_NS)
        assert figure.layout.xaxis2.title.text.startswith("One recorded window, without the time outside of steps")
        lines = [one.x0 * NS_PER_MS for one in figure.layout.shapes if one.name == CUT]
        assert lines == [pytest.approx(results.STEP_NS)] * cuts
        ends = max(
            base + length
            for bar in figure.data
            if bar.xaxis == "x2"
            for base, length in zip(bar.base, bar.x, strict=True)
        )
        assert ends <= figure.layout.xaxis2.range[1] + 1e-9


def test_a_prediction_below_the_work_drawn_says_why() -> None:
    notes = []
    for gain in (45.0, 95.0):  # 30 % of the step is work
        change = Suggestion("Write a function.", "Each op costs less in one; and more.", gain, options={"name": "a"})
        found = suggesting(change)
        launching = replace(found.verdict, verdict_class=VerdictClass.DISPATCH_BOUND)
        figure = step_anatomy(replace(found, verdict=launching))
        assert not isinstance(figure, Unavailable)
        notes.append(" ".join(notes_of(figure)))
        assert next(bar for bar in figure.data if bar.name == "predicted").showlegend, "the legend says what is hatched"
    assert "Each op costs less" not in notes[0]
    assert "Predicted to take less than the work drawn: Each op costs less in one." in notes[1]


def test_a_legend_of_many_names_takes_no_height_from_the_strips() -> None:
    found = suggesting()
    assert not isinstance(found.step_breakdown, Unavailable)
    many = StepBreakdown(input_wait_ns=30, host_to_device_ns=10, device_compute_ns=20, dispatch_ns=20, python_ns=20)
    few, more = (
        step_anatomy(found),
        step_anatomy(replace(found, step_breakdown=replace(many, table=found.step_breakdown.table))),
    )
    assert not isinstance(few, Unavailable)
    assert not isinstance(more, Unavailable)
    named = [sum(bar.showlegend is not False for bar in figure.data) for figure in (few, more)]
    assert named[0] <= 4 < named[1]
    assert more.layout.height > few.layout.height
    short, long = (
        go.Figure([go.Bar(name=name) for name in ("a", "b", "c", each)], {"height": 100}) for each in ("d", "d" * 20)
    )
    make_room_for_legend(short)
    make_room_for_legend(long)
    assert (short.layout.height, long.layout.height) == (100, 138), "on a phone nothing stands beside a long name"


def test_what_is_too_thin_to_see_is_not_in_the_legend() -> None:
    found = suggesting()
    assert not isinstance(found.idle_gaps, Unavailable)
    gaps = found.idle_gaps.gaps
    for name, value in (("cause", GapCause.DISPATCH.value), ("duration_ns", 1000)):
        index = gaps.schema.get_field_index(name)
        first = gaps.column("window").to_pylist().index(2)  # the window in the middle of the run
        values = [*gaps.column(name).to_pylist()]
        values[first] = value
        gaps = gaps.set_column(index, gaps.schema.field(name), pa.array(values, gaps.schema.field(name).type))
    figure = step_anatomy(replace(found, idle_gaps=replace(found.idle_gaps, gaps=gaps)))
    assert not isinstance(figure, Unavailable)
    thin = [bar for bar in figure.data if bar.xaxis == "x2" and bar.name == GapCause.DISPATCH.label]
    assert thin
    assert not any(bar.showlegend for bar in thin)


def test_of_several_hosts_the_strip_is_that_of_the_verdict() -> None:
    table = results.step_breakdown().table
    both = pa.concat_tables([table, table])
    wait_ns = both.column("input_wait_ns").to_numpy().copy()
    wait_ns[table.num_rows :] *= 2
    names = [host for host in ("a", "b") for _ in range(table.num_rows)]
    for name, values in {"host": names, "input_wait_ns": wait_ns, "collective_ns": [1] * len(names)}.items():
        index = both.schema.get_field_index(name)
        both = both.set_column(index, both.schema.field(name), pa.array(values, both.schema.field(name).type))
    hosts = replace(results.hosts(), common_steps=table.num_rows)
    figure = step_anatomy(replace(suggesting(), step_breakdown=sum_up(both), hosts=hosts))
    assert not isinstance(figure, Unavailable)
    wait = next(bar for bar in figure.data if bar.xaxis is None and bar.name == "input wait")
    assert wait.x[0] == pytest.approx(wait_ns.max() / NS_PER_MS)
    assert "of the host that came last" in notes_of(figure)[0]


def test_the_window_is_that_of_the_host_that_the_others_wait_for() -> None:
    found = suggesting()
    gaps = found.idle_gaps
    assert not isinstance(gaps, Unavailable)

    def twice(table: pa.Table) -> pa.Table:
        other = table.set_column(0, "host", pa.array(["worker-1"] * table.num_rows, table.column("host").type))
        return pa.concat_tables([table, other])

    assert gaps.busy.column_names[0] == gaps.gaps.column_names[0] == gaps.mixed.column_names[0] == "host"
    both = replace(gaps, busy=twice(gaps.busy), gaps=twice(gaps.gaps), mixed=twice(gaps.mixed))
    shown = window_with_steps(replace(found, idle_gaps=both))
    last = window_with_steps(replace(found, idle_gaps=both, hosts=results.hosts()))
    assert shown is not None
    assert last is not None
    assert [shown.segments.host, last.segments.host] == [results.HOST, "worker-1"]


def test_where_the_verdict_is_about_all_steps_the_picture_names_both_lengths() -> None:
    found = suggesting()
    assert found.verdict.step is not None
    judged = replace(found.verdict.step, mean_ns=80e6)
    figure = step_anatomy(replace(found, verdict=replace(found.verdict, step=judged)))
    assert not isinstance(figure, Unavailable)
    assert notes_of(figure)[0].endswith("recorded steps, 50 ms; over all 195 steps of the job it is 80 ms.")


def test_where_the_verdict_is_about_later_epochs_the_picture_says_which_steps_are_judged() -> None:
    found = suggesting()
    assert found.verdict.step is not None
    assert not isinstance(found.job_steps, Unavailable)
    epochs = replace(later(found), job_steps=replace(found.job_steps, count=120))
    judged = replace(found.verdict.step, mean_ns=80e6)
    figure = step_anatomy(replace(found, verdict=replace(found.verdict, step=judged), later_epochs=epochs))
    assert not isinstance(figure, Unavailable)
    (note,) = notes_of(figure)
    assert "recorded steps of the whole job" in note
    assert note.endswith("over the 120 steps that are judged it is 80 ms.")


def test_a_single_step_is_no_mean() -> None:
    found = suggesting()
    assert not isinstance(found.step_breakdown, Unavailable)
    single = replace(found.step_breakdown, table=found.step_breakdown.table.slice(0, 1))
    figure = step_anatomy(replace(found, step_breakdown=single))
    assert not isinstance(figure, Unavailable)
    assert notes_of(figure)[0].startswith("One recorded step")


def test_without_a_breakdown_the_reason_is_given() -> None:
    bare = results.bare_diagnosis()
    assert step_anatomy(bare) == bare.step_breakdown


def test_the_recorded_steps_behind_a_part_show_on_hover() -> None:
    found = suggesting()
    assert not isinstance(found.step_breakdown, Unavailable)
    table = found.step_breakdown.table
    waits = pa.array([(10 + 2 * row) * NS_PER_MS for row in range(table.num_rows)], pa.int64())  # 10, 12, … ms
    table = table.set_column(table.schema.get_field_index("input_wait_ns"), "input_wait_ns", waits)
    figure = step_anatomy(replace(found, step_breakdown=sum_up(table)))
    assert not isinstance(figure, Unavailable)
    count, last = table.num_rows, table.column("step")[-1].as_py()
    said = figure.data[0].hovertemplate
    assert f"single steps: 10 ms to {8 + 2 * count} ms, median {9 + count} ms; longest in step {last}" in said


def test_what_the_pipeline_takes_from_the_work_is_hatched_at_its_end() -> None:
    found = suggesting()
    contended = replace(found.verdict, verdict_class=VerdictClass.HOST_CONTENTION, lost_percent=20.0)
    figure = step_anatomy(replace(found, verdict=contended))
    assert not isinstance(figure, Unavailable)
    drawn = {bar.name: bar for bar in figure.data if bar.xaxis is None}
    work, taken = drawn["device compute"], drawn[CONTENDED]
    assert taken.x[0] == pytest.approx(0.2 * figure.layout.xaxis.range[1])
    assert taken.base[0] + taken.x[0] == pytest.approx(work.base[0] + work.x[0])
    plain = step_anatomy(found)
    assert not isinstance(plain, Unavailable)
    assert CONTENDED not in {bar.name for bar in plain.data}


def test_a_prediction_below_the_rest_of_the_step_says_why() -> None:
    large = Suggestion("Cache.", "", 75.0, options={"name": "a"})  # of 50 ms, of which 30 are waiting: 12.5 ms are left
    figure = step_anatomy(suggesting(large))
    assert not isinstance(figure, Unavailable)
    assert any("alone it takes 16 ms" in note for note in notes_of(figure))
