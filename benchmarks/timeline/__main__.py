"""How long a zoom of the timeline takes: from the key to the painted picture, in a real browser.

`python -m benchmarks.timeline TRACE` opens a trace in an app of its own (`python -m benchmarks.trace.grow` makes one of
any size) and prints medians; budget: 0.3 s per zoom at 8.9 million events (DESIGN).
"""

import argparse
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.app import serve_app

BUDGET_MS = 300
ZOOMS = "+" * 16 + "-" * 8
PREPARING_MS = 900_000
NEXT_TILE = """(timeline, before) => new Promise((done) => {
  const look = () => { const tile = timeline.dataset.tile; tile && tile !== before ? done(tile) : requestAnimationFrame(look) };
  look();
})"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    trace = parser.parse_args().trace.resolve()
    with tempfile.TemporaryDirectory() as store, sync_playwright() as playwright, serve_app(store) as url:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        whole, asking = _zoom(chromium.new_page(), url, trace)
        chromium.close()
    print(f"{'zooms of ' + trace.name:<40} {'median':>8} {'longest':>8}   budget {BUDGET_MS} ms")
    print(f"{'key to painted':<40} {statistics.median(whole):>5.0f} ms {max(whole):>5.0f} ms")
    print(f"{'of which to ask and paint':<40} {statistics.median(asking):>5.0f} ms {max(asking):>5.0f} ms")
    return 0


def _zoom(page: Page, url: str, trace: Path) -> tuple[list[float], list[float]]:
    """Open the trace, zoom in and out by the keyboard; ms of each zoom, and the part that the page spent on its view."""
    page.set_default_timeout(PREPARING_MS)
    page.goto(url + "/open")
    page.get_by_label("Or a path on this machine").fill(str(trace))
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_url(re.compile(r"/run\?run="))
    page.goto(page.url.partition("&")[0] + "&section=Timeline")
    timeline = page.locator(".timeline")
    tile = timeline.evaluate(NEXT_TILE, "")
    page.get_by_role("application", name="Timeline of the run").focus()
    whole, asking = [], []
    for key in ZOOMS:
        begun_ms = page.evaluate("performance.now()")
        page.keyboard.press(key)
        tile = timeline.evaluate(NEXT_TILE, tile)
        whole.append(page.evaluate("performance.now()") - begun_ms)
        asking.append(float(timeline.get_attribute("data-view-ms") or "nan"))
    return whole, asking


if __name__ == "__main__":
    sys.exit(main())
