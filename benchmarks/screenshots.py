"""Take the pictures of README and `docs/` from the app as it is: `python -m benchmarks.screenshots`.

They show the bundled samples and nothing else, in a browser of fixed size, so that they change only when the app or the samples
do. Needs Chromium.
"""

import base64
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from playwright.sync_api import Browser, FloatRect, Page, expect, sync_playwright

import pipeline_lab
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_bytes
from tests.browser.conftest import CHROMIUM_FLAGS, end_all, serve, settle, visit
from tests.needs import find_chromium

ROOT = Path(__file__).resolve().parents[1]
IMAGES, SAMPLES = ROOT / "docs" / "images", ROOT / "profiles" / "samples"
WIDTH, MARGIN, SCALE = 1200, 12, 1.5
BUDGET_BYTES = 1_500_000
PATIENCE_MS = 600_000
FIGURE = ".lab-chart"
CODE, TABS = (f'[data-testid="{each}"]' for each in ("stCode", "stTabs"))
NUMBERS = ".st-key-headline"
BASELINE, BOTH = "sample-baseline", "sample-baseline,sample-optimised"


@dataclass(frozen=True)
class Shot:
    """One picture.

    Attributes:
        name: Of its file, without the ending.
        path: The page.
        until: The picture ends below this; it is on the page once the page can be looked at.
        top: Where the picture begins.
        height: Of the picture at most, CSS pixels.
        scheme: ``light`` or ``dark``.
    """

    name: str
    path: str
    until: str
    top: str = "h1"
    height: int = 1150
    scheme: Literal["light", "dark"] = "light"


def section(name: str, title: str, until: str = f"{TABS} {FIGURE}", height: int = 1150) -> Shot:
    """Show one tab of the page of the baseline sample."""
    return Shot(name, f"/run?run={BASELINE}&section={quote(title)}", until, TABS, height)


SHOTS = (
    Shot("run", f"/run?run={BASELINE}", NUMBERS),
    Shot("run-dark", f"/run?run={BASELINE}", NUMBERS, scheme="dark"),
    Shot("new-run", "/new?from=preset:optimised", CODE),
    Shot("compare", f"/compare?runs={quote(BOTH)}", FIGURE, ".st-key-verdict"),
    section("stalls", "Input stalls"),
    section("stages", "Pipeline"),
    section("gaps", "Idle gaps"),
    section("sampling", "File sampling", f"{TABS} {FIGURE} >> nth=1"),
    section("what-if", "What if", "text=Predicted against measured"),
    section("timeline", "Timeline", ".timeline .strip"),  # the first steps selected, see _first_steps
)


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    wanted = set(sys.argv[1:]) or {shot.name for shot in SHOTS}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        try:
            with serve(folder, PIPELINE_LAB_WORKER=f"{sys.executable} -c pass") as server:
                expect.set_options(timeout=PATIENCE_MS)
                chromium = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
                for shot in SHOTS:
                    if shot.name in wanted:
                        file = IMAGES / f"{shot.name}.webp"
                        file.write_bytes(_take(shot, chromium, server.url))
                        print(f"{file.name}: {format_bytes(file.stat().st_size)}", flush=True)
                chromium.close()
        finally:
            end_all(folder)
    size = sum(file.stat().st_size for file in IMAGES.iterdir())
    print(f"{format_bytes(size)} in {IMAGES}")
    return int(size > BUDGET_BYTES)


def _take(shot: Shot, chromium: Browser, url: str) -> bytes:
    context = chromium.new_context(
        color_scheme=shot.scheme,
        viewport={"width": WIDTH, "height": 900},
        device_scale_factor=SCALE,
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    visit(page, url + shot.path + (f"&range={_first_steps()}" if shot.name == "timeline" else ""))
    expect(page.locator(shot.until).first).to_be_visible()
    clip = {**_frame(page, shot), "scale": SCALE}
    taken = context.new_cdp_session(page).send(
        "Page.captureScreenshot", {"format": "webp", "quality": 90, "clip": clip}
    )
    context.close()
    return base64.b64decode(taken["data"])


def _first_steps() -> str:
    """Return the stretch of time of the baseline's first recorded steps as the timeline's links write it."""
    steps = pipeline_lab.analyze(SAMPLES / BASELINE).steps
    assert not isinstance(steps, Unavailable)
    first = steps.table.slice(0, 3).to_pydict()
    return f"{first['start_ns'][0]}-{first['end_ns'][-1]}"


def _frame(page: Page, shot: Shot) -> FloatRect:
    """Make the window as high as its page, so that nothing has to be scrolled, and say what of it the picture shows."""
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": max(900, int(height) + 10)})
    settle(page, 1000)
    top, end = (page.locator(each).first.bounding_box() for each in (shot.top, shot.until))
    assert top
    assert end
    begin = top["y"] - MARGIN
    whole = end["y"] + end["height"] + MARGIN / 3 - begin
    return {"x": 0, "y": begin, "width": WIDTH, "height": min(shot.height, whole)}


if __name__ == "__main__":
    sys.exit(main())
