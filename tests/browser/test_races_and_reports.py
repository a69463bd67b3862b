"""Races, comparisons, exports and notes in a real browser, in light and dark, looked at."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pipeline_lab.runs.record import RunState
from tests.browser.acting import choose_row, open_button
from tests.browser.conftest import BACKGROUNDS, check_look, settle, shoot, shoot_view, visit, visit_in_every_look
from tests.browser.test_jobs import finish, run_id_of
from tests.support.run_folders import set_state
from tests.support.saved_runs import make_saved_run, make_watched_race

TAG = "side by side"
"""Finds the runs of this module among those that other tests left in the table."""


@pytest.fixture(scope="module")
def made(server):
    """Write a finished race, one that goes on, and three runs."""
    store = server.store
    race, going = make_watched_race(store), make_watched_race(store, 20)
    set_state(going, RunState.RUNNING)
    runs = [make_saved_run(store, *each) for each in (("baseline", 1.0), ("optimised", 0.5), ("synthetic", 1.1))]
    for run in runs:
        store.tag(run.id, (TAG,))
    yield race, going, runs
    for folder in (race, going, *runs):
        set_state(folder, RunState.DONE)
        store.remove(folder.id)


def test_races_and_comparisons_open_and_fit(server, made, page, shots):
    race, going, runs = made
    pages = {
        "race-form": ("/race?arms=preset:baseline,preset:optimised", "Which pipeline is faster?"),
        "race": (f"/run?run={race.id}", "words"),
        "race-going": (f"/run?run={going.id}", "words"),
        "compare": (f"/compare?runs={runs[0].id},{runs[1].id}", "How do runs differ?"),
        "compare-three": (f"/compare?runs={','.join(run.id for run in runs)}", "How do runs differ?"),
        "compare-empty": ("/compare", "How do runs differ?"),
    }
    accessible = {"race-form": ["light"], "race": BACKGROUNDS, "race-going": BACKGROUNDS, "compare": ["dark"]}
    for turn, (name, (path, title)) in enumerate(pages.items()):
        for look in visit_in_every_look(page, server.url + path, turn):
            expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
            shoot(page, shots, f"{name}-{look}.png")
            check_look(page, name, look, accessible.get(name, []))


def test_a_race_is_started_watched_left_and_found_again(server, page, shots):
    visit(page, f"{server.url}/race?arms=preset:baseline,preset:optimised")
    page.get_by_role("spinbutton", name="Pairs").fill("20")
    page.keyboard.press("Tab")
    settle(page)
    page.get_by_role("button", name="Start the race").click()
    expect(page.get_by_text(re.compile(r"Racing: \d+ rounds"))).to_be_visible()
    page.wait_for_url(re.compile("run="))
    race = page.url
    page.goto("about:blank")
    finish(server, run_id_of(race))
    visit(page, race)
    expect(page.get_by_role("heading", name=re.compile("optimised is faster than baseline"))).to_be_visible()
    shoot_view(page, shots, "race-over.png")


def test_what_the_form_shows_races_against_a_preset(server, page):
    visit(page, f"{server.url}/new?preset=baseline")
    page.get_by_role("button", name="Race against …").click()
    expect(page.get_by_role("heading", name="Which pipeline is faster?", exact=True, level=1)).to_be_visible()
    expect(page.get_by_text("Choose at least two arms")).to_be_visible()
    arms = page.get_by_role("combobox", name="Arms, the baseline first")
    arms.fill("Preset optimised")
    page.get_by_role("option", name="Preset optimised").click()
    page.keyboard.press("Escape")  # while the list of options is open, the rest of the page is hidden
    expect(page.get_by_role("button", name="Start the race")).to_be_enabled()


def test_a_report_is_saved_and_notes_are_in_it(server, made, page, shots):
    *_, runs = made
    visit(page, f"{server.url}/run?run={runs[0].id}")
    page.locator(".st-key-notes-edit").get_by_text("Notes", exact=True).click()
    page.get_by_role("textbox", name="Notes on this run").fill("<b>mine</b>\nand $more$")
    page.keyboard.press("Tab")  # the form takes over what was typed
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".st-key-notes")).to_have_text(re.compile(r"<b>mine</b>\s*and \$more\$"))
    shoot_view(page, shots, "notes-saved.png")
    settle(page, 500)
    with page.expect_download() as download:
        page.get_by_role("link", name="HTML").click()
    assert download.value.suggested_filename == f"{runs[0].id}.html"
    assert "&lt;b&gt;mine&lt;/b&gt;" in Path(download.value.path()).read_text(encoding="utf-8")


@pytest.mark.usefixtures("made")
def test_runs_that_are_chosen_are_compared(server, page):
    visit(page, f"{server.url}/runs?search={TAG}")
    compare = page.get_by_role("button", name="Compare 2 runs")
    for row, leads_to in ((1, open_button(page)), (2, compare)):
        choose_row(page, row, leads_to)
    compare.click()
    expect(page.get_by_role("heading", name="How do runs differ?", level=1)).to_be_visible()
    expect(page.get_by_text("What differs", exact=True)).to_be_visible()
