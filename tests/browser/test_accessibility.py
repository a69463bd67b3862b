"""What axe finds on the pages, in light and dark: names for screen readers, contrast, order, roles.

Source code is left out: Streamlit neither lets its colors be chosen nor its box be reached by the keyboard.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe

from pipeline_lab.runs.record import RunState
from tests.browser.conftest import show_in, visit
from tests.support.run_folders import set_state
from tests.support.saved_runs import make_saved_run, make_watched_race
from tests.support.worlds import make_search

WEIGHTY = ("serious", "critical")
LOOKED_AT = {"exclude": [["[data-testid='stCode']"]]}
EVERYWHERE = ("/", "/new?from=preset:optimised", "/runs", "/run?run={run}", "/run?run={race}", "/run?run={going}")
FORMS = ("/open", "/race?arms=preset:baseline", "/help", "/run?run={run}&section=File+sampling", "/run?run=nosuch")
RESULTS = ("/compare?runs={runs}", "/tune", "/run?run={search}")


@pytest.fixture(scope="module")
def made(server, recorded):
    """Write two runs to compare, a race that is over and one that goes on, and a search; return their ids."""
    store = server.store
    before = {record.id for record in store.runs()}
    pair = [make_saved_run(store, *each) for each in (("baseline", 1.0), ("optimised", 0.5))]
    race, going, search = make_watched_race(store), make_watched_race(store, 20), make_search(store)
    set_state(going, RunState.RUNNING)
    yield {
        "run": recorded.done.id,
        "runs": ",".join(run.id for run in pair),
        "race": race.id,
        "going": going.id,
        "search": search.id,
    }
    set_state(going, RunState.DONE)
    for record in store.runs():
        if record.id not in before:
            store.remove(record.id)


@pytest.mark.parametrize(
    ("paths", "schemes"),
    [(EVERYWHERE, ("dark", "light")), (FORMS, ("light",)), (RESULTS, ("dark",))],
    ids=["everywhere", "forms", "results"],
)
def test_no_page_has_a_serious_violation(server, made, page, paths, schemes):
    found = []
    for path in paths:
        page.emulate_media(color_scheme=schemes[0])
        visit(page, server.url + path.format(**made))
        for scheme in schemes:
            show_in(page, scheme)
            for violation in Axe().run(page, LOOKED_AT).response["violations"]:
                if violation["impact"] in WEIGHTY:
                    nodes = [(node["target"], node["failureSummary"]) for node in violation["nodes"]]
                    found.append((path, scheme, violation["id"], violation["help"], nodes[:3]))
    assert found == [], str(found)[:3000]
