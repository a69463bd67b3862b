"""Clicks that may meet a page while it is redrawn, as a busy machine lets them."""

import itertools
import time
from collections.abc import Callable

from playwright.sync_api import Locator, Page

from tests.support.patience import until

FIRST_PATIENCE_S = 5.0
"""How long a click may take to show before it counts as lost; twice as long after each that was."""


def click_until(page: Page, has_led: Callable[[], bool], find_place: Callable[[], tuple[float, float] | None]) -> None:
    """Click into the page until that has led to something.

    Args:
        page: To click into.
        has_led: Looks whether it has.
        find_place: Says where to click; None while there is no such place.
    """
    patience_s = (FIRST_PATIENCE_S * 2**number for number in itertools.count())

    def click() -> None:
        if (place := find_place()) is not None:
            page.mouse.click(*place)
        deadline_s = time.monotonic() + next(patience_s)
        while not has_led() and time.monotonic() < deadline_s:
            page.wait_for_timeout(20)

    until(has_led, "the click has led to something", click)


def open_button(page: Page) -> Locator:
    """Return the button that opens the chosen run; that of a menu is called "Open" too."""
    return page.get_by_test_id("stBaseButton-primary").filter(has_text="Open")


def choose_row(page: Page, row: int, leads_to: Locator) -> None:
    """Choose a row of the page's first table, the first being 1, until what that leads to is in view."""
    table = page.get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()

    def place_of_row() -> tuple[float, float] | None:
        box = table.bounding_box() if table.is_visible() else None
        return box and (box["x"] + 18, box["y"] + 17 + 35 * row)

    click_until(page, leads_to.is_visible, place_of_row)
