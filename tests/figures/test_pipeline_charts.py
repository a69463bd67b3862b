"""What the charts of the pipeline say beyond the promises that all charts keep."""

from dataclasses import replace

import pytest

from pipeline_lab.analysis.input.pipeline_stages import join_stages
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.marks import event_place, stage_at
from pipeline_lab.figures.pipeline_charts import (
    NO_PARALLELISM,
    buffers_over_time,
    critical_path,
    parallelism_over_time,
    pipeline_stages,
)
from pipeline_lab.figures.theme import color, notes_of
from pipeline_lab.runs.run_documents import WrittenCall
from tests.support import results

NONE = Unavailable("Nothing was measured; run it again.")


def test_the_stage_that_caused_most_of_the_wait_has_the_color_of_input_waits():
    figure = pipeline_stages(results.tf_data(), NONE, results.written())
    blamed = next(bar for bar in figure.data if bar.marker.color == color("input_wait", "light"))
    assert [path.rpartition("::")[2] for path in blamed.y] == ["ParallelMapV2"]
    assert blamed.text[0].endswith("94.8 % of wait")  # 1100 of 1160 ms whose cause the trace holds
    labels = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert "map(decode, 2)" in labels[blamed.y[0]]
    assert "put in by TensorFlow" in labels["Root::Prefetch"]


def test_a_bar_names_its_stage_by_the_number_in_the_whole_pipeline():
    stages = join_stages(results.tf_data(), NONE, results.written())
    figure = pipeline_stages(results.tf_data(), NONE, results.written())
    named = {path: stage_at(place) for bars in figure.data for path, place in zip(bars.y, bars.ids, strict=True)}
    assert named == {stage.path: number for number, stage in enumerate(stages)}
    assert stage_at(event_place("gap", 12)) is None


def test_the_model_alone_is_enough_for_the_stages():
    figure = pipeline_stages(NONE, results.live_model(), NONE)
    (bars,) = figure.data
    assert dict(zip((path.rpartition("::")[2] for path in bars.y), bars.x, strict=True)) == {
        "Root": 0.01,
        "Prefetch": 0.1,
        "MapAndBatch": 24.0,
        "TFRecord": pytest.approx(5.12),
    }


def test_without_trace_and_model_the_reason_stands():
    for drawing in (pipeline_stages(NONE, NONE, NONE), buffers_over_time(NONE, NONE, NONE)):
        assert drawing == NONE


def test_critical_path_bars_add_up_to_the_exposed_wait():
    figure = critical_path(results.tf_data(), NONE)
    (bars,) = figure.data
    assert sum(bars.x) == pytest.approx(1200.0)
    assert figure.layout.yaxis.ticktext[-1] == "DecodeJpeg · ParallelMapV2"
    assert len(set(bars.y)) == len(bars.y)
    assert notes_of(figure) == ["Of 1.2 s in which the device idled for input."]


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
