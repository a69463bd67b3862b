"""What the timeline costs: how large its views are, how long the server takes for one, and how long a zoom takes on the screen.

`python -m benchmarks.timeline TRACE` opens a trace in an app of its own (`python -m benchmarks.trace.grow` makes one of
any size) and prints medians and 95th percentiles. Budgets: a view at most 300 kB and 100 ms of the server at ten million
events, 0.3 s from the key to the painted picture.
"""

import argparse
import math
import random
import re
import shutil
import sys
import tempfile
import time
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import numpy as np
from playwright.sync_api import Page, Request, sync_playwright

from benchmarks.app import serve_app
from pipeline_lab.analysis.timeline.view import MAX_BYTES
from pipeline_lab.units import format_bytes

SERVER_MS, ZOOM_MS = 100, 300
ZOOMS = "+" * 16 + "-" * 8
RANDOM_VIEWS = 200
PREPARING_MS = 900_000
NEXT_TILE = """(timeline, [before, patience]) => new Promise((done, fail) => {
  const begun = performance.now();
  const look = () => {
    const tile = timeline.dataset.tile;
    if (tile && tile !== before) return done(tile);
    if (performance.now() - begun > patience) return fail(new Error(`nothing was painted: ${timeline.querySelector('.range')?.textContent}`));
    requestAnimationFrame(look);
  };
  look();
})"""
LONGEST_PAINT_MS = 30_000
SHORTEST_NS = 1e5
"""Of the random views."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    trace = parser.parse_args().trace.resolve()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright, _serve(scratch) as url:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page(viewport={"width": 1440, "height": 1000})
        asked: list[str] = []
        page.on("request", lambda request: _note(request, asked))
        zooms = _zoom(page, url, trace)
        chromium.close()
        server, size = _ask(asked[0])
    print(
        f"{f'timeline of {trace.name}, {format_bytes(trace.stat().st_size)}':<44} {'median':>9} {'p95':>9} {'most':>9}   budget"
    )
    for name, values, unit, budget in (
        ("key to painted", zooms, "ms", ZOOM_MS),
        (f"server, {RANDOM_VIEWS} random views", server, "ms", SERVER_MS),
        ("size of these", [one / 1000 for one in size], "kB", MAX_BYTES // 1000),
    ):
        figures = " ".join(f"{value:>6.0f} {unit}" for value in np.percentile(values, (50, 95, 100)))
        print(f"{name:<44} {figures}   {budget} {unit}")
    return 0


def _serve(scratch: str) -> AbstractContextManager[str]:
    places = {name: f"{scratch}/{name.lower()}" for name in ("STORE", "CACHE", "RUNTIME")}
    return serve_app(places["STORE"], **{f"PIPELINE_LAB_{name}": place for name, place in places.items()})


def _note(request: Request, asked: list[str]) -> None:
    if "/view?" in request.url:
        asked.append(request.url)


def _zoom(page: Page, url: str, trace: Path) -> list[float]:
    """Open the trace, zoom in and out by the keyboard; ms of each zoom."""
    page.set_default_timeout(PREPARING_MS)
    page.goto(url + "/open")
    page.get_by_label("Or a path on this machine").fill(str(trace))
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_url(re.compile(r"/run\?run="))
    page.goto(page.url.partition("&")[0] + "&section=Timeline")
    timeline = page.locator(".timeline")
    tile = timeline.evaluate(NEXT_TILE, ["", PREPARING_MS])
    page.get_by_role("application", name="Timeline of the run").focus()
    found = []
    for key in ZOOMS:
        begun_ms = page.evaluate("performance.now()")
        page.keyboard.press(key)
        tile = timeline.evaluate(NEXT_TILE, [tile, LONGEST_PAINT_MS])
        found.append(page.evaluate("performance.now()") - begun_ms)
    return found


def _ask(whole: str) -> tuple[list[float], list[int]]:
    """Ask for views of all lengths all over the run, given the question for all of it; ms and bytes of each."""
    base, query = whole.split("?")
    asked = {name: values[0] for name, values in parse_qs(query).items()}
    first, last = int(asked["start"]), int(asked["end"])
    chance, times, sizes = random.Random(1), [], []
    for _ in range(RANDOM_VIEWS):
        length = int(10 ** chance.uniform(math.log10(min(SHORTEST_NS, (last - first) / 2)), math.log10(last - first)))
        start = chance.randint(first, last - length)
        query = urlencode({**asked, "start": start, "end": start + length})
        begun = time.perf_counter()
        with urllib.request.urlopen(f"{base}?{query}") as answer:
            sizes.append(len(answer.read()))
        times.append(1000 * (time.perf_counter() - begun))
    return times, sizes


if __name__ == "__main__":
    sys.exit(main())
