import importlib.util
import shutil
import sys
import types

import plotly.graph_objects as go
import pytest

from pipeline_lab.figures.job_charts import memory_over_time
from pipeline_lab.report.formats import find_format
from pipeline_lab.report.renderers.chart_images import MISSING, ImageError, draw_images, image_support
from tests.report.subjects import bare_report, run_report
from tests.support import results

FIGURE = memory_over_time(results.memory(), results.profiler_cost())
assert isinstance(FIGURE, go.Figure)


class FakeKaleido:
    """Answers as kaleido does, and keeps what it was asked."""

    asked: list[dict[str, object]]
    started = 0

    def __init__(self, **how: object) -> None:
        assert how == {"n": 1, "mathjax": False}
        type(self).started += 1

    async def __aenter__(self) -> "FakeKaleido":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def calc_fig(self, _: go.Figure, opts: dict[str, object]) -> bytes:
        if opts["width"] != 900:
            raise RuntimeError("no")
        self.asked.append(opts)
        return b"<svg>"


@pytest.fixture
def kaleido(monkeypatch: pytest.MonkeyPatch) -> type[FakeKaleido]:
    """Put a fake kaleido, and a browser, where the real ones would be."""
    fake, errors = types.ModuleType("kaleido"), types.ModuleType("kaleido.errors")
    FakeKaleido.asked, FakeKaleido.started = [], 0
    vars(fake)["Kaleido"] = FakeKaleido
    vars(errors)["KaleidoError"] = type("KaleidoError", (Exception,), {})
    monkeypatch.setitem(sys.modules, "kaleido", fake)
    monkeypatch.setitem(sys.modules, "kaleido.errors", errors)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    return FakeKaleido


@pytest.mark.slow
def test_without_kaleido_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert image_support() is MISSING
    assert "pip install 'kaleido>=" in MISSING.reason
    for report_format in (find_format("png"), find_format("svg")):
        assert report_format.missing() is MISSING
        with pytest.raises(ImageError, match="Chart images need kaleido and Chromium"):
            report_format.files(run_report())


def test_without_a_browser_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert image_support() is MISSING


def test_all_figures_are_drawn_at_their_heights_by_one_browser(kaleido: type[FakeKaleido]) -> None:
    low = go.Figure(FIGURE).update_layout(height=200)
    assert draw_images({"high": FIGURE, "low": low}, "svg") == {"high": b"<svg>", "low": b"<svg>"}
    assert [each["height"] for each in kaleido.asked] == [FIGURE.layout.height, 200]
    assert {each["format"] for each in kaleido.asked} == {"svg"}
    assert kaleido.started == 1


def test_a_browser_that_fails_is_one_sentence(kaleido: type[FakeKaleido], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lab.report.renderers.chart_images.WIDTH", 1)
    with pytest.raises(ImageError, match=r"Chromium did not draw the charts \(RuntimeError: no\)"):
        draw_images({"memory": FIGURE}, "png")
    assert not kaleido.asked


def test_a_report_without_charts_is_one_sentence(kaleido: type[FakeKaleido]) -> None:
    with pytest.raises(ImageError, match="no chart to draw"):
        find_format("svg").files(bare_report())
    assert not kaleido.started


@pytest.mark.slow
def test_every_chart_of_a_report_becomes_a_file_called_after_it(kaleido: type[FakeKaleido]) -> None:
    files = find_format("svg").files(run_report())
    assert {"step-time.svg", "pipeline-stages.svg"} <= set(files)
    assert len(kaleido.asked) == len(files)
