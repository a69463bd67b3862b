"""The tab What if in a real browser: a slider answers at once, and the prediction races."""

import re

import pytest
from playwright.sync_api import expect

from pipeline_lab.advice.forecasts import plan_race
from pipeline_lab.runs.launch.launcher import cancel
from pipeline_lab.runs.record import RunState
from tests.browser.conftest import settle, shoot, visit
from tests.browser.test_jobs import run_id_of, wait_for_state
from tests.support.measured import mapped, measured, options
from tests.support.measured_run import make_measured_run
from tests.support.races import PlantedArm, make_race
from tests.support.run_folders import set_state


@pytest.fixture(scope="module")
def made(server):
    """Write a run whose serial map takes 20 ms of a step, and a race that an earlier prediction was held against."""
    store = server.store
    run = make_measured_run(store)
    race = make_race(
        store,
        PlantedArm([20.0] * 30),
        PlantedArm([10.4] * 30),
        options=plan_race(measured(), [options(mapped(2))], pairs=30),
    )
    yield run
    for folder in (run, race):
        set_state(folder, RunState.DONE)
        store.remove(folder.id)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_the_tab_fits_and_answers_at_once(server, made, page, shots, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    visit(page, f"{server.url}/run?run={made.id}&section=What+if")
    expect(page.get_by_text("Limited by map, 20 ms.")).to_be_visible()
    expect(page.get_by_text("Predictions of this store that were raced: 1.")).to_be_visible()
    slider = page.get_by_role("slider", name="Parallel calls of map")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Limited by map, 10 ms.")).to_be_visible()
    settle(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    shoot(page, shots, f"what-if-{scheme}-{width}.png")
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_the_verdicts_button_brings_the_changes_into_view_and_a_prediction_is_raced(server, made, page):
    visit(page, f"{server.url}/run?run={made.id}")
    page.locator(".st-key-try-suggestions button").click()
    expect(page.get_by_role("tab", name="What if")).to_have_attribute("aria-selected", "true")
    page.wait_for_function("document.querySelector('.st-key-sections').getBoundingClientRect().top < 120")
    page.get_by_role("slider", name="Parallel calls of map").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Limited by map, 10 ms.")).to_be_visible()
    page.get_by_role("button", name="Race it").first.click()
    expect(page.get_by_role("heading", name=re.compile("against map.num_parallel_calls = 2"), level=1)).to_be_visible()
    page.wait_for_url(lambda url: run_id_of(url) != made.id)
    race = run_id_of(page.url)
    cancel(server.store.folder(race))
    wait_for_state(server, race, RunState.CANCELLED)
