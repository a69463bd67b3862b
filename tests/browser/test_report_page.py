"""The report in a real browser: from the disk, offline, in light and dark, on a phone and on paper."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from pipeline_lab.report.content import Subject
from pipeline_lab.report.renderers.html import HtmlReport
from pipeline_lab.report.subjects.run_report import RunReport
from tests.report.subjects import bare_report, comparison_report, hostile_run, race_report, run_report
from tests.support.patience import until

SUBJECTS = {
    "run": run_report,
    "comparison": comparison_report,
    "twenty": lambda: comparison_report(19),
    "race": race_report,
    "bare": bare_report,
    "hostile": lambda: RunReport(hostile_run(20)),
}
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 28)"
CHART_BACKGROUNDS = """() => [...document.querySelectorAll('.chart')]
  .map((chart) => chart.querySelector('.main-svg')).filter(Boolean)
  .map((drawing) => getComputedStyle(drawing).backgroundColor)"""


@dataclass
class Opened:
    """A page with all that went wrong and everything it asked for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def settle(self) -> None:
        self.page.wait_for_selector("html[data-charts=drawn]", state="attached")

    def check(self, *, width: int, background: str) -> None:
        """Check what every report promises at any width and in any mode, of the page and of each of its charts."""
        until(lambda: self.page.evaluate("document.documentElement.scrollWidth") <= width, "the page follows")
        assert self.background() == background
        until(lambda: self.chart_backgrounds() <= {background}, "the charts follow to another mode")
        until(lambda: max(self.widths(), default=0) < width, "the charts follow to another width")
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []

    def background(self) -> str:
        return str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def chart_backgrounds(self) -> set[str]:
        return set(self.page.evaluate(CHART_BACKGROUNDS))

    def widths(self) -> list[float]:
        return list(self.page.evaluate("[...document.querySelectorAll('.chart .main-svg')].map((e) => e.clientWidth)"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")

    def write(name: str, subject: Subject) -> Path:
        path = folder / f"{name}.html"
        path.write_bytes(HtmlReport().render(subject))
        return path

    return {name: write(name, make()) for name, make in SUBJECTS.items()}


@pytest.fixture
def open_report(tab: Page, pages: dict[str, Path]) -> Iterator[Callable[..., Opened]]:
    opened = Opened(tab)
    listeners: dict[str, Callable[[Any], None]] = {
        "pageerror": lambda error: opened.errors.append(str(error)),
        "console": lambda line: opened.errors.append(line.text) if line.type in ("error", "warning") else None,
        "request": lambda request: opened.requests.append(request.url),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)

    def open_(name: str, *, mode: Literal["light", "dark"] = "light", width: int = 1280) -> Opened:
        tab.emulate_media(media="screen", color_scheme=mode)
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(pages[name].as_uri())
        opened.settle()
        return opened

    yield open_
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    tab.goto("about:blank")


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_report_opens_without_an_error_a_request_or_a_scroll_bar(open_report, name) -> None:
    opened = open_report(name)
    opened.check(width=1280, background=LIGHT)
    opened.page.emulate_media(color_scheme="dark")
    opened.check(width=1280, background=DARK)
    opened.page.set_viewport_size({"width": 400, "height": 800})
    opened.check(width=400, background=DARK)
    assert opened.chart_backgrounds() or name == "bare"
    assert opened.page.evaluate("window.broken") is None


def test_every_chart_is_drawn_within_its_card(open_report) -> None:
    opened = open_report("run", width=400)
    charts = opened.page.locator(".chart")
    assert charts.count() > 15
    for index in range(charts.count()):
        box, card = (charts.nth(index).locator(f"xpath={path}").bounding_box() for path in (".", ".."))
        assert box["x"] + box["width"] <= card["x"] + card["width"] + 1
        assert charts.nth(index).locator(".main-svg").count() >= 1
    assert max(opened.widths()) < 400


def test_a_report_opens_dark_in_the_dark_and_on_paper_light_unfolded_and_within_the_page(open_report) -> None:
    opened = open_report("run", mode="dark")
    opened.check(width=1280, background=DARK)
    folded = opened.page.locator("details:not([open])")
    assert folded.count() > 0
    opened.page.emulate_media(media="print")
    until(lambda: folded.count() == 0, "the page follows")
    until(lambda: opened.chart_backgrounds() == {LIGHT}, "the page follows")
    assert opened.background() == LIGHT
    assert max(opened.widths()) <= 700
    opened.page.emulate_media(media="screen")
    until(lambda: folded.count() > 0, "the page follows")
    until(lambda: opened.chart_backgrounds() == {DARK}, "the page follows")
    assert opened.page.pdf(format="A4", print_background=True).startswith(b"%PDF")


def test_any_chart_is_saved_as_an_image_and_can_be_zoomed(open_report) -> None:
    opened = open_report("run")
    for kind, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with opened.page.expect_download() as download:
            opened.page.get_by_role("button", name=kind).first.click()
        assert Path(download.value.path()).read_bytes().startswith(start)
    assert opened.errors == []
    chart = opened.page.locator("#chart-stall-over-time")
    chart.scroll_into_view_if_needed()
    start = "document.querySelector('#chart-stall-over-time').layout.xaxis.range[0]"
    before = opened.page.evaluate(start)
    box = chart.locator(".nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    opened.page.mouse.up()
    until(lambda: opened.page.evaluate(start) > before, "the page follows")
