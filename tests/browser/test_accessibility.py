"""What axe finds on the pages, in light and dark: names for screen readers, contrast, order, roles.

Source code is left out: Streamlit neither lets its colours be chosen nor its box be reached by the keyboard.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import visit

WEIGHTY = ("serious", "critical")
LOOKED_AT = {"exclude": [["[data-testid='stCode']"]]}
EVERYWHERE = ("/", "/new?from=preset:optimised", "/runs", "/run?run={run}")


@pytest.mark.parametrize(
    ("scheme", "paths"),
    [
        ("light", (*EVERYWHERE, "/open", "/compare", "/race", "/help", "/run?run={run}&section=File+sampling")),
        ("dark", EVERYWHERE),
    ],
)
def test_no_page_has_a_serious_violation(server, recorded, new_page, scheme, paths):
    page = new_page(scheme, 1280)
    found = []
    for path in paths:
        visit(page, server.url + path.format(run=recorded.done.id))
        for violation in Axe().run(page, LOOKED_AT).response["violations"]:
            if violation["impact"] in WEIGHTY:
                nodes = [(node["target"], node["failureSummary"]) for node in violation["nodes"]]
                found.append((path, violation["id"], violation["help"], nodes[:3]))
    assert found == []
