"""The timeline in a real browser: reached from a gap and left again, zoomed, searched, walked by keys, kept in the link."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import expect

from pipeline_lab.figures.theme import THEMES
from pipeline_lab.ui import timeline
from tests.browser.acting import choose_row, click_until
from tests.browser.conftest import (
    FOCUSED,
    check_accessible,
    check_look,
    settle,
    shoot,
    tab_to,
    visit,
    visit_in_every_look,
)

TRACE = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"
AXIS = Path(timeline.__file__).with_name("time_axis.js")
TILE = """() => { const root = [...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.timeline'))
  .find(Boolean) ?? document.querySelector('.timeline'); return root?.dataset.tile ?? '' }"""


def open_trace(server, page, trace: Path) -> str:
    """Open a trace as a run and return the link to its page."""
    visit(page, server.url + "/open")
    page.get_by_label("Or a path on this machine").fill(str(trace))
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_url(re.compile(r"/run\?run="))
    return page.url.partition("&")[0]


FILL = "bar => getComputedStyle(bar).fill"


def hexadecimal(color: str) -> str:
    """Write ``rgb(196, 82, 15)`` as ``#c4520f``."""
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", color)[:3])


def parameters(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


def wait_for_tile(page, before: str = "") -> str:
    page.wait_for_function(f"(before) => {{ const tile = ({TILE})(); return tile && tile !== before }}", arg=before)
    return page.evaluate(TILE)


@pytest.fixture(scope="module")
def link(server, tab, tmp_path_factory) -> str:
    """Open a recorded trace once and return the link to its run."""
    copy = shutil.copy(TRACE, tmp_path_factory.mktemp("traces") / "timeline.xplane.pb")
    return open_trace(server, tab, copy)


def test_the_timeline_opens_and_fits(link, page, shots):
    for look in visit_in_every_look(page, link + "&section=Timeline"):
        wait_for_tile(page)
        settle(page)
        check_look(page, "the timeline", look)
        shoot(page, shots, f"timeline-{look}.png")


def test_a_gap_is_reached_from_its_table_explained_and_left_again(link, page, shots):
    visit(page, link + "&section=Idle+gaps")
    details = page.get_by_role("region", name="Selection")
    choose_row(page, 1, details.get_by_role("heading"))
    expect(details.get_by_role("heading")).to_have_text(re.compile("Idle gap of .* m?s: "))
    expect(details).to_contain_text("Divides into")
    expect(details.get_by_role("table")).to_be_visible()
    settle(page)
    shoot(page, shots, "timeline-gap.png")
    page.wait_for_url(re.compile("section=Timeline"))
    details.get_by_role("button", name="Back to Idle gaps").click()
    expect(page.get_by_role("tab", name="Idle gaps")).to_have_attribute("aria-selected", "true")


def test_a_gap_is_reached_from_its_chart_and_left_again_with_the_browser(link, page):
    visit(page, link + "&section=Idle+gaps")
    chart = page.get_by_role("figure", name=re.compile("When the device worked and when it waited"))
    chart.scroll_into_view_if_needed()
    settle(page)
    busy = THEMES["light"].categories["busy"]
    bars = chart.locator(".barlayer .point path").filter(visible=True).all()
    gaps = [bar.bounding_box() for bar in bars if hexadecimal(bar.evaluate(FILL)) != busy]
    widest = max(gaps, key=lambda box: box["width"])
    middle = widest["x"] + widest["width"] / 2, widest["y"] + widest["height"] / 2
    details = page.get_by_role("region", name="Selection")
    click_until(page, details.get_by_role("heading").is_visible, lambda: middle if chart.is_visible() else None)
    expect(details.get_by_role("heading")).to_have_text(re.compile("Idle gap of .*s: "))
    page.go_back()
    expect(page.get_by_role("tab", name="Idle gaps")).to_have_attribute("aria-selected", "true")


def test_a_row_of_the_pipeline_opens_its_stage_however_short_its_bar_and_the_link_keeps_it(link, page, shots):
    visit(page, link + "&section=Pipeline")
    chart = page.get_by_role("figure", name=re.compile("The pipeline that ran"))
    chart.scroll_into_view_if_needed()
    settle(page)
    bars = chart.locator(".barlayer .point path").filter(visible=True).all()
    shortest = min(bars, key=lambda bar: bar.bounding_box()["width"])
    shortest.scroll_into_view_if_needed()
    middle = shortest.bounding_box()["y"] + shortest.bounding_box()["height"] / 2
    row = [box for box in (bar.bounding_box() for bar in bars) if box["y"] < middle < box["y"] + box["height"]]
    box = max(row, key=lambda box: box["width"])
    click_until(page, lambda: "stage=" in page.url, lambda: (box["x"] + box["width"] / 2, middle))
    number = parameters(page)["stage"]
    chosen = page.get_by_role("combobox", name=re.compile("Stage details"))
    expect(chosen).to_have_value(re.compile(rf"{number}\. "))
    settle(page)
    shoot(page, shots, "pipeline-stage.png")
    page.reload()
    expect(chosen).to_have_value(re.compile(rf"{number}\. "))
    chosen.scroll_into_view_if_needed()
    settle(page)
    chosen.click()
    page.get_by_role("option", name=re.compile(r"^1\. ")).click()
    page.wait_for_url(re.compile("stage=1(&|$)"))
    expect(page.get_by_text("Place, the consumer first")).to_be_visible()


def test_wheel_drag_and_keys_move_the_view_and_the_link_keeps_it(link, page):
    visit(page, link + "&section=Timeline")
    tile = wait_for_tile(page)
    timeline = page.get_by_role("application", name="Timeline of the run")
    timeline.focus()
    box = timeline.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    tile = wait_for_tile(page, tile)
    page.keyboard.down("Shift")
    drag(page, box["x"] + box["width"] / 2, box["x"] + box["width"] / 4, box["y"] + 60)
    page.keyboard.up("Shift")
    tile = wait_for_tile(page, tile)
    for key in ("+", "ArrowRight", "w", "d", "s"):
        page.keyboard.press(key)
        tile = wait_for_tile(page, tile)
    for key in ("ArrowDown", "ArrowDown", "."):
        page.keyboard.press(key)
    expect(page.get_by_role("region", name="Selection").get_by_role("heading")).to_be_visible()
    page.wait_for_url(re.compile("pick="))
    wanted = parameters(page)
    page.reload()
    wait_for_tile(page)
    settle(page)
    expect(page.get_by_role("region", name="Selection").get_by_role("heading")).to_be_visible()
    assert parameters(page) == wanted
    assert page.evaluate(TILE) == wanted["view"]
    tile = page.evaluate(TILE)
    timeline.focus()
    page.keyboard.press("f")
    wait_for_tile(page, tile)
    page.keyboard.press("0")
    expect(page.get_by_text(re.compile("^The whole run: "))).to_be_visible()


def test_a_range_is_dragged_summed_up_marked_and_kept_by_the_link(link, page, shots):
    page.set_viewport_size({"width": 1280, "height": 2000})  # all of it in view
    page.goto(link + "&section=Timeline")
    tile = wait_for_tile(page)
    settle(page)
    timeline, chosen = (
        page.get_by_role("application", name="Timeline of the run"),
        page.get_by_role("region", name="Selection"),
    )
    box = timeline.bounding_box()
    drag(page, box["x"] + 200, box["x"] + 500, box["y"] + 60)
    expect(chosen.get_by_role("heading")).to_have_text(re.compile("Range of .*s"))
    expect(chosen.get_by_role("table", name=re.compile("by cause"))).to_contain_text("busy")
    start, end = map(int, chosen_range(page))
    drag(page, box["x"] + 500, box["x"] + 600, box["y"] + 60)
    page.wait_for_function("(end) => !new URL(location).searchParams.get('range').endsWith(end)", arg=f"-{end}")
    assert int(chosen_range(page)[0]) == start, "its right edge was moved"
    page.keyboard.press("m")
    expect(page.get_by_role("list", name="Marks")).to_contain_text("A: ")
    map_box = page.locator(".minimap").bounding_box()
    drag(page, map_box["x"] + 300, map_box["x"] + 700, map_box["y"] + 15)
    tile = wait_for_tile(page, tile)
    page.keyboard.press("?")
    expect(page.get_by_role("region", name="Keyboard and mouse")).to_contain_text("zoom in and out")
    settle(page)
    shoot(page, shots, "timeline-range.png")
    check_accessible(page, "the timeline with a range, a mark and its keys")
    page.keyboard.press("?")
    page.wait_for_url(re.compile("marks="))
    page.reload()
    wait_for_tile(page)
    settle(page)
    expect(chosen.get_by_role("heading")).to_have_text(re.compile("Range of .*s"))
    page.get_by_role("button", name="Remove mark A").click()
    expect(page.get_by_role("list", name="Marks")).to_be_hidden()
    timeline.focus()
    page.keyboard.press("Escape")
    expect(chosen).to_be_empty()


def drag(page, start: float, end: float, y: float) -> None:
    page.mouse.move(start, y)
    page.mouse.down()
    page.mouse.move(end, y, steps=4)
    page.mouse.up()


def chosen_range(page) -> list[str]:
    """Return start and end of the chosen range, once the link has it."""
    page.wait_for_url(re.compile("range="))
    return parameters(page)["range"].split("-")


def test_the_timeline_is_reached_with_the_keyboard_alone_though_a_tab_is_disabled_for_a_moment(link, page):
    visit(page, link)
    tab_to(page, "Input stalls")
    tab = page.get_by_role("tab", name="Input stalls")
    tab.evaluate("tab => tab.removeAttribute('tabindex')")  # as Streamlit does when it builds the page anew
    page.wait_for_function("document.activeElement === document.body")
    tab.evaluate("tab => tab.setAttribute('tabindex', 0)")
    page.wait_for_function(f"({FOCUSED})() === 'Input stalls'")
    page.keyboard.press("End")
    page.wait_for_function(f"({FOCUSED})() === 'Options and source'")
    for name in ("XProf", "What if", "Timeline"):
        settle(page)
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(f"({FOCUSED})() === '{name}'")
    tile = wait_for_tile(page)
    settle(page)
    tab_to(page, page.get_by_role("application").get_attribute("aria-label"))
    page.keyboard.press("+")
    wait_for_tile(page, tile)


def test_an_event_is_found_by_its_name(link, page, shots):
    page.goto(link + "&section=Timeline")
    wait_for_tile(page)
    page.get_by_label("Find an event by its name").fill("parallelmap")
    expect(page.get_by_role("list", name="Event names found")).to_contain_text("ParallelMap")
    page.get_by_role("button", name="Next match").click()
    chosen = page.get_by_role("region", name="Selection")
    expect(chosen.get_by_role("heading")).to_contain_text("ParallelMap")
    first = parameters(page).get("pick")
    page.get_by_role("button", name="Next match").click()
    page.wait_for_function("(first) => new URL(location).searchParams.get('pick') !== first", arg=first)
    settle(page)
    shoot(page, shots, "timeline-search.png")


def test_long_times_are_told_in_minutes_and_hours(page) -> None:
    """Of a day, marks an hour and half a second apart."""
    told = "[duration(86100e9), duration(150e9), duration(1.5e9), moment(7200e9, 3600e9), moment(3723.5e9, 5e8), moment(1.5e9, 5e8)]"
    written = page.evaluate(f"() => {{ {AXIS.read_text(encoding='utf-8')}\n return {told} }}")
    assert written == ["23 h 55 min", "2 min 30 s", "1.5 s", "2:00:00", "1:02:03.5", "1.5 s"]
