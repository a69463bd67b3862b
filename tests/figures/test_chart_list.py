"""Every chart of the catalog keeps the same promises."""

import re
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

import pipeline_lab
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import CHARTS, Chart, charts_of, find_chart
from pipeline_lab.figures.theme import THEMES, Mode, caption_of, dark_colors, notes_of
from pipeline_lab.ui.run import live
from tests.support import results

DIAGNOSIS = results.diagnosis()
LONG = results.diagnosis(
    evaluation=results.evaluation(passes=1000),
    job_steps=results.job_steps(6000),
    steps=results.steps(6000),
    input_stalls=results.input_stalls(6000),
    step_breakdown=results.step_breakdown(6000),
    idle_gaps=results.idle_gaps(6000),
    file_sampling=results.file_sampling(400, 60),
    memory=results.memory(20_000),
    profiler_cost=results.profiler_cost(6000),
)

every_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
both_modes = pytest.mark.parametrize("mode", ["light", "dark"])


def draw(chart: Chart, diagnosis=DIAGNOSIS, mode: Mode = "light") -> go.Figure:
    figure = chart.draw(diagnosis, mode)
    assert isinstance(figure, go.Figure)
    return figure


def test_a_chart_is_found_by_its_name_and_never_by_its_place() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in Path(pipeline_lab.__file__).parent.rglob("*.py")}
    assert [str(path) for path, source in sources.items() if re.search(r"CHARTS\[|charts_of\([^)]*\)\[", source)] == []


def marks(figure: go.Figure) -> int:
    """Count what a browser would have to draw as elements of its own."""
    return sum(len(trace.x) if trace.x is not None else 0 for trace in figure.data if trace.type != "heatmap")


@pytest.mark.slow
@every_chart
@both_modes
def test_a_chart_has_a_title_and_axis_titles_with_units(chart, mode):
    figure = draw(chart, mode=mode)
    assert 4 < len(figure.layout.title.text) <= 45
    titles = [axis.title.text for axis in [*figure.select_xaxes(), *figure.select_yaxes()]]
    unitless = {"", "Step", "File", "Label", "Loss", "File (what tells the names apart)", "Number of waits"}
    for title in titles:
        assert title in unitless | {"Buffer"} or re.search(r"\(.+\)$|order of time$", title), title


@every_chart
def test_a_chart_says_what_is_seen_for_those_who_cannot_see_it(chart):
    assert chart.description.endswith(".")
    assert len(chart.description) > 40


@pytest.mark.slow
@every_chart
def test_a_caption_says_what_there_is_to_see_in_these_data(chart):
    for diagnosis in (DIAGNOSIS, LONG):
        caption = caption_of(draw(chart, diagnosis))
        assert caption.endswith(".")
        assert 20 < len(caption) <= 140, caption
        assert "nan" not in caption


@pytest.mark.slow
@every_chart
def test_a_long_run_is_bounded_and_says_so(chart):
    figure = draw(chart, LONG)
    assert marks(figure) <= 3000
    assert len(figure.layout.shapes) <= 101
    joined = {
        "step-phases",
        "idle-by-cause",
        "step-parts",
        "wait-distribution",
        "pipeline-stages",
        "hosts",
        "labels-over-time",
        "padding-over-time",
    }
    assert chart.name in joined or notes_of(figure), "something was left out and the chart does not say so"


@every_chart
def test_a_part_that_was_not_measured_gives_its_reason(chart):
    drawing = chart.draw(results.bare_diagnosis(), "light")
    assert isinstance(drawing, Unavailable)
    assert "run it again" in drawing.reason


def test_the_parts_of_a_step_are_not_drawn_where_its_device_was_not_recorded():
    unseen = replace(DIAGNOSIS, source=replace(DIAGNOSIS.source, unseen_device=True))
    for name in ("step-parts", "step-parts-over-time"):
        drawing = find_chart(name).draw(unseen, "light")
        assert isinstance(drawing, Unavailable)
        assert "CUPTI" in drawing.reason


@pytest.mark.slow
@every_chart
@both_modes
def test_background_and_text_belong_to_the_mode(chart, mode):
    layout = draw(chart, mode=mode).layout.template.layout
    assert layout.paper_bgcolor == THEMES[mode].paper
    assert layout.font.color == THEMES[mode].ink


@pytest.mark.slow
@every_chart
def test_a_chart_survives_json(chart):
    assert "NaN" not in draw(chart).to_json()


def test_a_chart_is_found_by_its_name_wherever_it_stands_in_the_list():
    assert all(find_chart(chart.name) is chart for chart in CHARTS)
    assert [find_chart(name).name for name in live.SO_FAR] == list(live.SO_FAR)


def test_names_are_unique_and_every_section_has_charts():
    assert len({chart.name for chart in CHARTS}) == len(CHARTS)
    assert all(charts_of(section) for section in Topic)


def colors_by_name(figure: go.Figure) -> dict[str, str]:
    return {trace.name: trace.marker.color for trace in figure.data if trace.name}


@both_modes
@pytest.mark.slow
def test_a_cause_has_one_color_in_all_charts(mode):
    by_name = {chart.name: draw(chart, mode=mode) for chart in CHARTS}
    timeline = colors_by_name(by_name["device-timeline"])
    bars = by_name["idle-by-cause"].data[0]
    causes = dict(zip(bars.y, bars.marker.color, strict=True))
    assert {name: timeline[name] for name in causes} == causes
    assert timeline["input wait"] == THEMES[mode].categories[GapCause.INPUT_WAIT]
    assert by_name["stall-over-time"].data[-1].line.color == timeline["input wait"]


@every_chart
def test_a_light_chart_in_dark_colors_is_the_dark_chart(chart):
    dark = dark_colors()
    light_color = re.compile("|".join(map(re.escape, dark)))
    recolored = light_color.sub(lambda found: dark[found[0]], draw(chart).to_json())
    assert recolored == draw(chart, mode="dark").to_json()


@pytest.mark.parametrize("name", ["stall-over-time", "stall-per-step"])
def test_no_chart_draws_waits_that_nothing_tells_of(name: str) -> None:
    """The columns of the steps hold 0 there, as in a log of JAX."""
    why = Unavailable("No input waits in this trace.")
    unknown = replace(DIAGNOSIS, job_steps=Unavailable("No run."), input_stalls=why)
    assert find_chart(name).draw(unknown, "light") == why
