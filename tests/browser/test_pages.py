"""Every page in a real browser: it opens, says what it should, fits the screen, and can be looked at."""

import json
import re

import pytest
from playwright.sync_api import expect

from pipeline_lab.ui.serving.routes import DRAWING_LIBRARY
from tests.browser.acting import choose_row, open_button
from tests.browser.conftest import (
    BACKGROUNDS,
    check_accessible,
    check_look,
    end_all,
    go,
    open_tab,
    serve,
    settle,
    shoot,
    show_in,
    visit,
    visit_in_every_look,
)

SECTIONS = (
    "Input stalls",
    "Idle gaps",
    "File sampling",
    "Memory",
    "Steps and loss",
    "XProf",
    "Options and source",
)


def test_every_page_opens_and_fits(server, recorded, page, shots):
    pages = {
        "home": ("/", "Why is your accelerator waiting?"),
        "new": ("/new?from=preset:optimised", "Which pipeline do you want to try?"),
        "open": ("/open", "What is in a log?"),
        "runs": ("/runs", "Which runs are there?"),
        "run": (f"/run?run={recorded.done.id}", "baseline"),
        "help": ("/help", "What do the terms mean, and how is the app set up?"),
        "failed": (f"/run?run={recorded.failed.id}", "synthetic"),
    }
    accessible = {"open": ["light"], "help": ["light"], "failed": []}
    for turn, (name, (path, title)) in enumerate(pages.items()):
        for look in visit_in_every_look(page, server.url + path, turn):
            expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
            shoot(page, shots, f"{name}-{look}.png")
            check_look(page, name, look, accessible.get(name, BACKGROUNDS))


def test_nothing_moves_when_the_picture_of_the_first_page_comes(server, page):
    """It is drawn last, into a box that is as high before."""
    for width in (1000, 400):
        page.set_viewport_size({"width": width, "height": 900})
        visit(page, server.url)
        box = page.locator(".st-key-before-and-after")
        kept, drawn = box.evaluate("box => [parseFloat(getComputedStyle(box).minHeight), box.offsetHeight]")
        assert drawn == pytest.approx(kept, abs=2)


def test_nothing_of_streamlits_own_covers_the_page(page, tmp_path):
    """It offers skills to whoever has a coding agent and opens the app on a machine of their own."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    try:
        with serve(tmp_path, headless=False, HOME=str(home), BROWSER="true") as own:
            visit(page, own.url)
            expect(page.get_by_role("heading", name="Why is your accelerator waiting?")).to_be_visible()
            expect(page.locator(".stSkillsNudge")).to_have_count(0)
            [log] = tmp_path.glob("server-*.log")
            assert log.read_text().startswith("Open http://localhost:")
    finally:
        end_all(tmp_path)


def test_a_link_opens_a_runs_section(server, recorded, page, shots):
    visit(page, f"{server.url}/run?run={recorded.done.id}&section=File+sampling")
    expect(page.get_by_role("tab", name="File sampling")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("figure", name=re.compile("Where the samples came from"))).to_be_visible()
    check_accessible(page, "a section")
    shoot(page, shots, "section-link.png")


def test_every_section_of_a_run_can_be_reached_and_says_what_was_not_measured_in_place_of_its_chart(
    server, recorded, page, shots
):
    visit(page, f"{server.url}/run?run={recorded.done.id}")
    for section in SECTIONS:
        open_tab(page, section)
        if section != SECTIONS[0]:
            page.wait_for_url(re.compile(section.split()[0]))
        settle(page)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        shoot(page, shots, f"section-{section.split()[0].lower()}.png")
        if section == "Idle gaps":
            missing = page.locator("[class*=st-key-missing-]").filter(visible=True)
            expect(missing.first).to_be_visible()
            assert len(missing.first.inner_text()) > 30


def test_a_library_that_did_not_come_is_asked_for_again(server, recorded, page, complaints):
    asked = []

    def refuse_once(route):
        asked.append(route.request.url)
        route.continue_() if len(asked) > 1 else route.abort()

    page.route(f"**{DRAWING_LIBRARY}*", refuse_once)
    page.goto(f"{server.url}/run?run={recorded.done.id}")
    expect(page.locator(".lab-chart.js-plotly-plot").first).to_be_visible()
    assert len(asked) > 1
    complaints[:] = [each for each in complaints if "ERR_FAILED" not in each]


def test_charts_and_timeline_of_an_open_page_follow_its_theme(server, recorded, page):
    visit(page, f"{server.url}/run?run={recorded.done.id}")
    chart = page.locator(".lab-chart .main-svg").first
    for scheme in ("light", "dark", "light"):
        show_in(page, scheme)
        expect(chart).to_have_css("background", re.compile(re.escape(BACKGROUNDS[scheme])))


def test_the_preview_follows_the_form(server, page):
    visit(page, f"{server.url}/new?from=preset:baseline")
    source = page.get_by_test_id("stCode").last
    expect(source).to_contain_text("2048")
    page.get_by_text("shuffle buffer_size 2048").click()
    buffer = page.get_by_role("spinbutton", name="Buffer size")
    buffer.fill("4321")
    buffer.press("Tab")
    settle(page)
    expect(source).to_contain_text("4321")
    page.get_by_role("button", name="Remove batch, stage 6").click()
    settle(page)
    expect(page.get_by_text("a batch stage is missing")).to_be_visible()
    expect(page.get_by_role("button", name="Launch")).to_be_disabled()


def test_a_run_is_found_chosen_and_opened(server, recorded, page):
    visit(page, f"{server.url}/runs")
    page.get_by_placeholder("name, state, preset or tag").fill(f"failed {recorded.failed.id}")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 run in")).to_be_visible()
    choose_row(page, 1, open_button(page))
    open_button(page).click()
    expect(page.get_by_role("heading", name="synthetic", level=1)).to_be_visible()
    page.wait_for_url(re.compile(f"run={recorded.failed.id}"))


def test_a_link_that_names_nothing_ends_in_a_sentence_and_a_way_on(server, recorded, page):
    links = {  # neighbors say different things
        f"/run?run={recorded.done.id}&section=nosuch&view=1-x&pick=gap@y": recorded.done.id,
        "/compare?runs=nosuch,other": "There is no run",
        "/new?from=preset:nosuch": "is not a preset",
        "/race?arms=preset:nosuch": "The link names items that do not exist: preset:nosuch.",
        "/tune?start=nosuch": "The link names items that do not exist: nosuch.",
        "/run?run=nosuch": "There is no run",
    }
    for number, (link, words) in enumerate(links.items()):
        (go if number else visit)(page, server.url + link)
        expect(page.get_by_text(words).first).to_be_visible()
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect(page.get_by_text("For a bug report")).to_have_count(0)
    check_accessible(page, "a link to nothing")
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("heading", name="Which runs are there?", level=1)).to_be_visible()


def test_back_and_forward_work(server, page):
    runs = page.get_by_role("heading", name="Which runs are there?", level=1)
    form = page.get_by_role("heading", name="Which pipeline do you want to try?", level=1)
    visit(page, server.url + "/")
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(runs).to_be_visible()
    page.get_by_role("link", name="New run").click()
    expect(form).to_be_visible()
    page.go_back()
    expect(runs).to_be_visible()
    settle(page)
    page.go_forward()
    expect(form).to_be_visible()


def test_what_users_typed_is_shown_as_typed(server, recorded, page):
    name = "<img src=x onerror=alert(1)> $x$ :red[no] `c` **b**"
    server.store.rename(recorded.cancelled.id, name)
    visit(page, f"{server.url}/run?run={recorded.cancelled.id}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_text("Canceled after 25 steps.")).to_be_visible()


def test_custom_routes_answer_under_streamlit_run(server, recorded):
    status, body = server.get("/api/lab/health")
    assert status == 200
    assert json.loads(body)["status"] == "ok"
    assert server.get(f"/api/lab/runs/{recorded.done.id}/files/steps.arrows")[1] == recorded.done.steps.read_bytes()
