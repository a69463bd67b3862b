"""The whole row of a stage can be clicked, and nothing else about its chart changes."""

import pytest

from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.marks import INVISIBLE, add_row_targets, stage_at
from pipeline_lab.figures.pipeline_charts import pipeline_stages
from pipeline_lab.figures.timeline_chart import device_timeline
from tests.support import results

NONE = Unavailable("Nothing was measured; run it again.")


def test_each_row_leads_to_its_stage_up_to_the_end_of_the_chart():
    figure = pipeline_stages(results.tf_data(), NONE, results.written())
    drawn = figure.data
    add_row_targets(figure)
    assert figure.data[: len(drawn)] == drawn
    targets = figure.data[len(drawn) :]
    led = {path: stage_at(place) for bars in targets for path, place in zip(bars.y, bars.ids, strict=True)}
    assert led == {path: stage_at(place) for bars in drawn for path, place in zip(bars.y, bars.ids, strict=True)}
    ends = [(target.base, [target.base + length for length in target.x]) for target in targets]
    assert ends == [(figure.layout.xaxis.range[1], pytest.approx(bars.x)) for bars in drawn]
    assert {(bars.offset, bars.width, bars.marker.color) for bars in targets} == {(-0.5, 1, INVISIBLE)}


def test_a_row_says_in_its_color_what_its_bar_says():
    figure = pipeline_stages(results.tf_data(), NONE, results.written())
    drawn = figure.data
    add_row_targets(figure)
    for bars, target in zip(drawn, figure.data[len(drawn) :], strict=True):
        assert target.hovertext == bars.hovertext
        assert target.hoverlabel.bgcolor == bars.marker.color
        assert target.text is None


def test_marks_that_are_no_stages_stay_as_they_are():
    figure = device_timeline(results.idle_gaps(), results.steps())
    before = figure.to_json()
    add_row_targets(figure)
    assert figure.to_json() == before
