"""What the charts of the pipeline say beyond the promises that all charts keep."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline_lab.analysis.input.pipeline_stages import join_stages
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.marks import event_place, stage_at
from pipeline_lab.figures.pipeline_charts import (
    NO_PARALLELISM,
    buffers_over_time,
    critical_path,
    parallelism_over_time,
)
from pipeline_lab.figures.pipeline_flow import pipeline_stages
from pipeline_lab.figures.theme import caption_of, color, notes_of
from pipeline_lab.runs.run_documents import WrittenCall
from tests.support import results

NONE = Unavailable("Nothing was measured; run it again.")


def boxes(figure):
    """Return text, row and stage number of each box, from the top."""
    found = [
        (text, row, stage_at(place))
        for bars in figure.data
        if bars.type == "scatter"
        for text, row, place in zip(bars.text, bars.y, bars.ids, strict=True)
    ]
    return sorted(found, key=lambda box: box[1])


def test_the_stage_that_caused_most_of_the_wait_is_marked_and_named():
    figure = pipeline_stages(results.tf_data(), NONE, results.written())
    (blamed,) = (bars for bars in figure.data if bars.name == "caused most of the wait")
    assert blamed.marker.line.color == color("input_wait", "light")
    (text,) = (text for text, row, _ in boxes(figure) if row in blamed.y)
    assert text.startswith("<b>map(decode, 2)</b>")
    assert caption_of(figure).startswith(
        "map(decode, 2) causes 94.8 % of the wait"
    )  # 1100 of 1160 ms with a known cause


def test_nobody_is_blamed_for_a_wait_that_is_not_worth_a_change():
    figure = pipeline_stages(replace(results.tf_data(), observed_ns=10**14), NONE, results.written())
    assert "takes most thread time" in caption_of(figure)
    assert not any(bars.showlegend for bars in figure.data)


def test_boxes_stand_in_the_order_of_the_code_and_lead_to_their_stages():
    stages = join_stages(results.tf_data(), NONE, results.written())
    drawn = boxes(pipeline_stages(results.tf_data(), NONE, results.written()))
    assert [stages[number].name for _, _, number in drawn] == ["TFRecord", "ParallelMapV2", "BatchV2", "Prefetch"]
    assert [row for _, row, _ in drawn] == [0, 1, 2, 3]
    assert "put in by TensorFlow" in drawn[-1][0]
    assert stage_at(event_place("gap", 12)) is None


def test_an_arrow_carries_the_wait_of_all_that_is_upstream_of_it():
    arrows = pipeline_stages(results.tf_data(), NONE, results.written()).layout.annotations[:4]
    assert [round(arrow.y) for arrow in arrows] == [1, 2, 3, 4], (
        "each stage leads to the next, the last to the training step"
    )
    widths = [arrow.arrowwidth for arrow in arrows]
    assert widths == sorted(widths), "nothing is lost on the way to the training step"
    assert widths[1] > 3 * widths[0], "the map causes the wait, not the files"


def test_inputs_of_one_stage_stand_beside_each_other():
    branch = replace(
        results.tf_data().stages[4], number=5, path="Root::Prefetch::BatchV2::Range", parent=2, name="Range"
    )
    tf_data = results.tf_data()
    figure = pipeline_stages(replace(tf_data, stages=(*tf_data.stages, branch)), NONE, results.written())
    names = [text for text, _, _ in boxes(figure)]
    place = next(number for number, text in enumerate(names) if "Range" in text)
    arrow = figure.layout.annotations[place]
    batch = next(number for number, text in enumerate(names) if "batch" in text)
    assert round(arrow.y) == batch
    lefts = {
        row: base
        for bars in figure.data
        if bars.type == "bar" and bars.base
        for row, base in zip(bars.y, bars.base, strict=True)
    }
    assert lefts[place] > lefts[batch] == 0


def test_buffers_show_how_full_they_were():
    figure = pipeline_stages(results.tf_data(), NONE, results.written())
    (fill,) = (bars for bars in figure.data if bars.xaxis == "x3" and bars.hovertext)
    assert list(fill.x) == [pytest.approx(0.05)]
    assert list(fill.hovertext) == ["0.1 elements ready of 2"]


def test_the_model_alone_is_enough_for_the_stages():
    figure = pipeline_stages(NONE, results.live_model(), NONE)
    (times,) = (bars for bars in figure.data if bars.xaxis == "x2")
    assert [length for _, length in sorted(zip(times.y, times.x, strict=True))] == [pytest.approx(5.12), 24.0, 0.1]
    assert figure.layout.xaxis2.title.text == "Thread time per batch (ms)"
    assert max(figure.layout.xaxis2.tickvals) <= 24.0, "the axis ends where the data do"


def test_buffers_are_not_joined_across_time_that_was_not_recorded():
    tf_data = results.tf_data(10)
    later = tf_data.history.set_column(1, "window", [[0] * 5 + [1] * 5])
    figure = buffers_over_time(replace(tf_data, history=later.cast(tf_data.history.schema)), NONE, NONE)
    assert np.flatnonzero(np.isnan(figure.data[0].x)).tolist() == [5]


def test_without_trace_and_model_the_reason_stands():
    for drawing in (pipeline_stages(NONE, NONE, NONE), buffers_over_time(NONE, NONE, NONE)):
        assert drawing == NONE


def test_critical_path_bars_add_up_to_the_exposed_wait():
    figure = critical_path(results.tf_data(), NONE)
    (bars,) = figure.data
    assert sum(bars.x) == pytest.approx(1200.0)
    assert figure.layout.yaxis.ticktext[-1] == "DecodeJpeg<br>ParallelMapV2"
    assert len(set(bars.y)) == len(bars.y)
    assert notes_of(figure) == ["Of 1.2 s in which the device idled for input."]
    assert figure.layout.xaxis.title.text == "Exposed wait (ms)"
    assert all(" ms · " in text for text in bars.text), "labels have the unit of their axis"


def test_no_exposed_wait_needs_no_explanation():
    tf_data = results.tf_data()
    path = replace(tf_data.critical_path, exposed_ns=0, shares=())
    assert isinstance(critical_path(replace(tf_data, critical_path=path), NONE), Unavailable)


def test_buffers_come_with_their_limits_from_the_model_or_else_the_trace():
    live = buffers_over_time(NONE, results.live_model(), NONE)
    assert [line.name for line in live.data] == ["Prefetch", "limit of Prefetch", "MapAndBatch"]
    assert "8 GB" in notes_of(live)[0]
    traced = buffers_over_time(results.tf_data(), NONE, results.written())
    assert [line.name for line in traced.data] == ["Prefetch", "limit of Prefetch"]


def test_both_pictures_of_a_buffer_speak_of_the_same_average():
    model = results.live_model()
    prefetch = next(stage for stage in model.stages if stage.name == "Prefetch")
    model = replace(model, stages=tuple(replace(s, buffered_elements=None) for s in model.stages if s is not prefetch))
    model = replace(model, stages=(replace(prefetch, buffered_elements=0.75, buffer_limit=3.0), *model.stages))
    assert "0.75 of 3 elements ready" in caption_of(buffers_over_time(NONE, model, NONE))
    flow = pipeline_stages(NONE, model, NONE)
    assert "25 %" in [each.text for each in flow.layout.annotations]


def test_a_pipeline_without_parallel_stages_says_so():
    assert parallelism_over_time(results.tf_data(), NONE, NONE) == NO_PARALLELISM


def test_trace_and_model_are_joined_by_place():
    tf_data, model = results.tf_data(), results.live_model()
    renamed = replace(
        model, stages=tuple(replace(s, path=s.path.replace("MapAndBatch", "BatchV2")) for s in model.stages)
    )
    stages = join_stages(tf_data, renamed, results.written())
    batch = next(stage for stage in stages if stage.name == "BatchV2")
    assert (batch.work_ns, batch.written, batch.element_bytes) == (24e6, (WrittenCall("batch(32)"),), 400_000.0)
    read = next(stage for stage in stages if stage.name == "TFRecord")
    assert read.work_ns == 100e6 / 40  # only the trace has it there
