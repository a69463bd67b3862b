"""Runs side by side: everything that has a time is drawn on one axis, the baseline and its candidates alike."""

from itertools import pairwise

import pytest

from pipeline_lab.comparison.recorded_runs import compare_runs
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparing.chart_lists import COMPARISON_CHARTS
from pipeline_lab.figures.comparing.overlaid_runs import accuracy_by_run, anatomy_by_run, wait_by_run
from pipeline_lab.figures.theme import caption_of
from tests.support import results
from tests.support.recorded import recorded

COMPARISON = compare_runs(recorded(), recorded("optimised", 0.6))
overlays = pytest.mark.parametrize(
    "chart",
    [chart for chart in COMPARISON_CHARTS if "over its" in chart.description],
    ids=lambda chart: chart.name,
)


@overlays
def test_a_chart_over_time_has_a_line_for_each_run(chart) -> None:
    figure = chart.draw(COMPARISON, "light")
    assert [line.name for line in figure.data] == ["optimised", "baseline"], "the baseline is on top"
    assert caption_of(figure).endswith(".")
    assert "nan" not in caption_of(figure)


def test_steps_and_waits_over_the_runs_are_among_them() -> None:
    names = {chart.name for chart in overlays.args[1]}
    assert names >= {"step-time-by-run", "wait-by-run", "memory-over-time-by-run", "loss-by-run", "accuracy-by-run"}


def test_what_no_run_recorded_is_said() -> None:
    plain = results.diagnosis(job_steps=results.job_steps(accuracy=False))
    found = accuracy_by_run(compare_runs(recorded(diagnosis=plain), recorded("optimised", diagnosis=plain)))
    assert found == Unavailable("The runs did not record their accuracy.")
    drawn = wait_by_run(COMPARISON)
    assert not isinstance(drawn, Unavailable)
    assert caption_of(drawn) == "A typical step waits 18 ms in optimised, 30 ms in baseline."


def test_below_the_steps_each_run_shows_the_same_length_of_time() -> None:
    figure = anatomy_by_run(COMPARISON)
    assert not isinstance(figure, Unavailable)
    bars = [bar for bar in figure.data if bar.xaxis == "x2"]
    assert list(figure.layout.yaxis2.ticktext) == ["baseline", "optimised"]
    for row in (0, 1):
        spans = sorted(
            (base, base + length)
            for bar in bars
            for base, length, place in zip(bar.base, bar.x, bar.y, strict=True)
            if place == row
        )
        assert spans[0][0] == 0
        assert spans[-1][1] == pytest.approx(figure.layout.xaxis2.range[1])
        assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(spans)), "nothing overlaps"
    named = [bar.name for bar in figure.data if bar.showlegend is not False]
    assert len(named) == len(set(named)), "the legend names each color once"
    without = recorded(diagnosis=results.diagnosis(idle_gaps=Unavailable("no")))
    bare = anatomy_by_run(compare_runs(without, recorded("optimised", 0.6)))
    assert not isinstance(bare, Unavailable)
    assert "xaxis2" not in bare.layout
