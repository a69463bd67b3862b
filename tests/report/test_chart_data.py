import json

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.comparison.recorded_runs import compare_runs
from pipeline_lab.figures.chart_list import CHARTS
from pipeline_lab.figures.comparing.chart_lists import COMPARISON_CHARTS
from pipeline_lab.report.renderers.html import figure_json, patch_between, script_json
from tests.support import results
from tests.support.recorded import recorded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


def apply(document, patch):
    copy = json.loads(json.dumps({"root": document}))
    for path, value in patch:
        *parents, last = ["root", *path]
        place = copy
        for key in parents:
            place = place[key]
        place[last] = value
    return copy["root"]


@pytest.mark.slow
@given(JSON, JSON)
def test_a_patch_turns_one_document_into_the_other(old, new) -> None:
    assert apply(old, patch_between(old, new)) == new


@pytest.mark.slow
@given(JSON)
def test_equal_documents_need_no_patch(document) -> None:
    assert patch_between(document, document) == []


@pytest.mark.slow
def test_dark_charts_are_light_ones_with_other_colors() -> None:
    """The patch must stay small, or reports would carry every chart twice."""
    comparison = compare_runs(recorded(), recorded("optimised", 0.6))
    drawings = [(chart, results.diagnosis()) for chart in CHARTS] + [(chart, comparison) for chart in COMPARISON_CHARTS]
    for chart, subject in drawings:
        light, dark = (figure_json(chart.draw(subject, mode)) for mode in ("light", "dark"))
        patch = patch_between(light, dark)
        assert apply(light, patch) == dark
        assert len(script_json(patch)) < 5000, chart.name


@pytest.mark.slow
def test_tags_of_the_charts_own_are_kept() -> None:
    for chart in CHARTS:
        figure = chart.draw(results.diagnosis(), "light")
        assert isinstance(figure, go.Figure)
        shown_as_text = json.dumps(figure_json(figure)).count("&lt;") - figure.to_json(engine="json").count("&lt;")
        assert not shown_as_text, chart.name


def test_names_cannot_bring_links_or_tags_into_charts() -> None:
    figure = go.Figure(go.Bar(x=['<a href="https://example.org">x</a>', "a<br>b"], y=[1, 2]))
    figure.update_layout(title_text="<b>Title</b><img>")
    document = figure_json(figure)
    assert document["data"][0]["x"] == ['&lt;a href="https://example.org">x&lt;/a>', "a<br>b"]
    assert document["layout"]["title"]["text"] == "<b>Title</b>&lt;img>"


def test_numbers_that_json_lacks_become_null() -> None:
    document = figure_json(go.Figure(go.Scatter(x=[1.0, None], y=[float("inf"), 2.0])))
    assert json.loads(script_json(document))["data"][0]["y"] == [None, 2.0]


def test_arrays_travel_in_their_compact_form() -> None:
    document = figure_json(go.Figure(go.Scatter(y=np.arange(1000, dtype=np.float64))))
    assert set(document["data"][0]["y"]) == {"dtype", "bdata"}


@pytest.mark.slow
@given(st.text())
def test_json_in_a_script_element_cannot_close_it(text: str) -> None:
    written = script_json({"text": text})
    assert not set("<>&") & set(written)
    assert json.loads(written)["text"] == text
