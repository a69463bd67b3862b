"""A search in a real browser, in light and dark and on a phone, looked at."""

import pytest
from playwright.sync_api import expect

from pipeline_lab.runs.record import RunState
from tests.browser.conftest import check_look, settle, shoot, visit, visit_in_every_look
from tests.support.run_folders import set_state
from tests.support.worlds import make_search


@pytest.fixture(scope="module")
def made(server):
    """Write a search that is over and one that goes on."""
    store = server.store
    before = {record.id for record in store.runs()}
    over, going = make_search(store), make_search(store, stops_after=3)
    set_state(going, RunState.RUNNING)
    yield over, going
    set_state(going, RunState.DONE)
    for record in store.runs():
        if record.id not in before:
            store.remove(record.id)


def test_a_search_opens_and_fits(server, made, page, shots):
    over, going = made
    pages = {
        "tune-form": "/tune?start=preset:baseline",
        "tune": f"/run?run={over.id}",
        "tune-going": f"/run?run={going.id}",
    }
    for turn, (name, path) in enumerate(pages.items()):
        for look in visit_in_every_look(page, server.url + path, turn):
            shoot(page, shots, f"{name}-{look}.png")
            check_look(page, name, look, ["dark"])


def test_the_winner_opens_in_the_form(server, made, page):
    over, _ = made
    visit(page, f"{server.url}/run?run={over.id}")
    page.get_by_role("button", name="Open the winner in the form").click()
    settle(page)
    expect(page.get_by_role("heading", name="Which pipeline do you want to try?", exact=True, level=1)).to_be_visible()
    expect(page.get_by_text("private_threadpool_size = 4")).to_be_visible()
