"""Jobs in a real browser: launched, watched, stopped, found again."""

import re

import pytest
from playwright.sync_api import expect

from pipeline_lab.runs.launch.launcher import cancel
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import read_record
from tests.browser.conftest import open_tab, settle, shoot_view, tab_to, visit
from tests.browser.fake_worker import FINISH, REAL
from tests.support.patience import until

ENDED = [state for state in RunState if not state.is_live]


@pytest.fixture(autouse=True)
def no_job_left(server):
    """Cancel what a test leaves running, so that the next one does not wait for it."""
    yield
    live = [record.id for record in server.store.runs() if record.status.state.is_live]
    for run_id in live:
        cancel(server.store.folder(run_id))
    for run_id in live:
        wait_for_state(server, run_id, *ENDED)


def launch(page, server, **fields: str) -> str:
    """Launch a synthetic job from the form, some of its fields filled in, and return its id."""
    visit(page, f"{server.url}/new?from=preset:synthetic")
    for label, value in fields.items():
        field = page.get_by_label(label, exact=True)
        field.fill(value)
        field.press("Tab")
        settle(page)
    page.get_by_role("button", name="Launch").click()
    expect(page.get_by_role("heading", name=fields.get("Name", "synthetic"), level=1)).to_be_visible()
    page.wait_for_url(re.compile("run="))
    return run_id_of(page.url)


def run_id_of(url: str) -> str:
    """Return the id of the run whose page has that address."""
    return url.rpartition("run=")[2].partition("&")[0]


def finish(server, run_id: str) -> None:
    """Let a job come to its end."""
    (server.store.folder(run_id).path / FINISH).touch()


def wait_for_state(server, run_id: str, *states: RunState) -> None:
    until(lambda: read_record(server.store.folder(run_id)).status.state in states, " or ".join(states))


def test_a_job_is_watched_from_launch_to_verdict(server, page, shots):
    run_id = launch(page, server, Name="watched", Steps="800")
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"step \d+ of 800"))
    expect(page.get_by_role("figure", name=re.compile("Input wait over the run"))).to_be_visible()
    shoot_view(page, shots, "live.png")
    page.reload()
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"step \d+ of 800"))
    finish(server, run_id)
    wait_for_state(server, run_id, RunState.DONE)
    expect(page.locator(".st-key-verdict")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_contain_text("ms")
    settle(page)


def test_charts_of_a_live_job_are_drawn_in_place(server, page, shots):
    launch(page, server)
    drawn = page.get_by_role("figure", name=re.compile("Input wait over the run")).locator("svg.main-svg").first
    expect(drawn).to_be_visible()
    drawing, ticks = drawn.element_handle(), drawn.text_content()
    shoot_view(page, shots, "live-in-place.png")
    expect(drawn).not_to_have_text(ticks)
    assert drawing.evaluate("drawing => drawing.isConnected"), "the chart was built anew"


def test_a_job_is_launched_and_cancelled_with_the_keyboard_alone(server, page):
    visit(page, f"{server.url}/new?from=preset:synthetic")
    tab_to(page, "Launch")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="synthetic", level=1)).to_be_visible()
    page.wait_for_url(re.compile("run="))
    run_id = run_id_of(page.url)
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    wait_for_state(server, run_id, RunState.CANCELLED)


def test_a_job_is_cancelled_and_keeps_what_it_recorded(server, page):
    run_id = launch(page, server)
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"step [\d,]+ of"))
    page.get_by_role("button", name="Cancel").click()
    wait_for_state(server, run_id, RunState.CANCELLED)
    expect(page.get_by_text("canceled", exact=True)).to_be_visible()
    expect(page.locator(".st-key-verdict")).to_be_visible()


def test_a_second_job_waits_for_the_first(server, page, other_page):
    first, second = page, other_page
    running = launch(first, server, Name="first")
    expect(first.get_by_test_id("stProgress")).to_contain_text(re.compile(r"step [\d,]+ of"))
    waiting = launch(second, server, Name="second")
    expect(second.get_by_test_id("stProgress")).to_contain_text("1 run ahead")
    first.get_by_role("button", name="Cancel").click()
    wait_for_state(server, running, RunState.CANCELLED)
    finish(server, waiting)
    wait_for_state(server, waiting, RunState.DONE)
    expect(second.locator(".st-key-verdict")).to_be_visible()


def test_a_failing_job_says_why_without_a_traceback(server, page):
    launch(page, server, Name="fail")
    expect(page.get_by_text("The file /data/a_*b*.tfrecord is damaged at record 7.")).to_be_visible()
    expect(page.get_by_text("Traceback: planted")).not_to_be_visible()
    page.get_by_text("For a bug report").click()
    expect(page.get_by_text("Traceback: planted")).to_be_visible()


def test_a_job_outlives_the_app_and_is_found_again(server, page):
    run_id = launch(page, server)
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"step [\d,]+ of"))
    server.restart()
    expect(page.get_by_test_id("stProgress")).to_contain_text(re.compile(r"step [\d,]+ of"))
    finish(server, run_id)
    wait_for_state(server, run_id, RunState.DONE)
    expect(page.locator(".st-key-verdict")).to_be_visible()


@pytest.mark.tensorflow
def test_a_real_job_runs_from_launch_to_charts(server, page, shots):
    launch(page, server, Name=REAL, Steps="60")
    expect(page.locator(".st-key-verdict")).to_be_visible()
    open_tab(page, "Idle gaps")
    expect(page.get_by_role("figure", name=re.compile("When the device worked"))).to_be_visible()
    settle(page)
    shoot_view(page, shots, "real.png")
