import importlib.util
import shutil

import pytest

from pipeline_lab.figures.memory import memory_over_time
from pipeline_lab.report.images import MISSING, draw_image, image_support
from tests.support import results

FIGURE = memory_over_time(results.memory(), results.profiler_cost())


def test_without_kaleido_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert image_support() is MISSING
    assert draw_image(FIGURE) is MISSING
    assert "pip install kaleido" in MISSING.reason


def test_without_a_browser_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert image_support() is MISSING


def test_with_both_the_figure_is_drawn_at_its_height(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(type(FIGURE), "to_image", lambda _, **how: asked.update(how) or b"<svg>")
    assert draw_image(FIGURE, "svg") == b"<svg>"
    assert (asked["format"], asked["height"]) == ("svg", FIGURE.layout.height)
