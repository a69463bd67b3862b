"""How long the app's pages take on a large store, and a sample's page until its first picture: `python -m benchmarks.pages [--runs 5000]`.

The store's runs are copies of the bundled samples under names of their own. Each page is opened by its link in the navigation,
once as the app's first visit to it and then again and again; a page counts as there when Streamlit is at rest. With 5,000 runs
it takes about two minutes; what was measured is printed even where it is cut short. Needs Chromium.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from pipeline_lab.analysis.diagnosis.saved import DOCUMENT
from tests.browser.conftest import CHROMIUM_FLAGS, end_all, serve, settle, visit
from tests.needs import find_chromium

SAMPLES = Path(__file__).resolve().parents[1] / "profiles" / "samples"
PAGES = ("Runs", "New run", "Compare", "Race", "Tune", "Help", "Open a log", "Pipeline Lab")
BUDGET_S = 0.5
LIST_BUDGET_S = 1.0
"""For lists of the whole store, and for a page's first picture."""
PICTURE = "first picture"
LONGEST_MS = 60_000
FLAGS = [flag for flag in CHROMIUM_FLAGS if not flag.startswith("--js-flags")]
"""Scripts are compiled as in a visitor's browser; the tests' pages are too short-lived for that."""
QUIET_MS = 150
"""At rest means nothing has changed for so long; it is taken off again."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--visits", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        fill(folder / "profiles", arguments.runs)
        print(f"{arguments.runs} runs, {len(os.sched_getaffinity(0))} cores", flush=True)
        page = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS).new_page()
        page.set_viewport_size({"width": 1280, "height": 900})
        page.set_default_timeout(LONGEST_MS)
        times: dict[str, list[float]] = {}
        try:
            with _serving(folder, page):
                measure(page, arguments.visits, times)
            with _serving(folder, page):
                for _ in range(2):
                    _note(times, "Runs, the app started again", page, lambda: _open(page, "Runs"))
                    _open(page, "Help")
                    settle(page, QUIET_MS)
        finally:
            end_all(folder)
            _print(times)
    return int(any(statistics.median(later) > _budget_s(what) for what, (_, *later) in times.items() if later))


@contextmanager
def _serving(folder: Path, page: Page) -> Iterator[None]:
    """Serve the app and open its help; the page leaves it before it ends."""
    with serve(folder, PIPELINE_LAB_WORKER=f"{sys.executable} -c pass") as server:
        visit(page, server.url + "/help")
        try:
            yield
        finally:
            page.goto("about:blank")


def _print(times: dict[str, list[float]]) -> None:
    print(f"budget {BUDGET_S} s, {LIST_BUDGET_S} s for lists and pictures")
    print(f"{'what':40} {'first visit':>12} {'later, median':>14}  all later (s)")
    for what, (first, *later) in times.items():
        middle = f"{statistics.median(later):13.2f}s" if later else f"{'–':>14}"
        over = " over" if later and statistics.median(later) > _budget_s(what) else ""
        print(f"{what:40} {first:11.2f}s {middle}  {' '.join(f'{each:.2f}' for each in later)}{over}", flush=True)


def _budget_s(what: str) -> float:
    return LIST_BUDGET_S if what.startswith("Runs") or PICTURE in what else BUDGET_S


def fill(store: Path, count: int) -> None:
    """Copy the samples' records; their tables of steps and their analyses are links to the same bytes."""
    samples = sorted(path.parent for path in SAMPLES.glob("*/run.json"))
    steps = {sample: shutil.copy(sample / "steps.arrows", store.parent / f"{sample.name}.arrows") for sample in samples}
    analyses = {sample: store.parent / f"{sample.name}-analysis" for sample in samples}
    for sample, copy in analyses.items():
        shutil.copytree(sample / "analysis", copy)
    for number in range(count):
        sample = samples[number % len(samples)]
        folder = store / f"20260101-{number:06d}-{sample.name.removeprefix('sample-')}"
        folder.mkdir(parents=True)
        record = json.loads((sample / "run.json").read_text(encoding="utf-8"))
        record |= {"name": f"{record['name']} {number}"}
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
        os.link(steps[sample], folder / "steps.arrows")
        (folder / "analysis").symlink_to(analyses[sample])
    for file in (*steps.values(), *(copy / DOCUMENT for copy in analyses.values())):
        os.utime(file, (1.7e9, 1.7e9))  # the runs are long over


def measure(page: Page, visits: int, times: dict[str, list[float]]) -> None:
    """Note the seconds of each visit of each page, and of each search in the list of runs."""
    for number in range(visits + 1):
        for name in PAGES:
            _note(times, name, page, lambda name=name: _open(page, name))
            if name == "Runs":
                _note(times, "Runs, a search", page, lambda number=number: _search(page, f"optimised {42 + number}"))
        for name in ("Run", "Compare"):
            times.setdefault(f"{name} of the samples, {PICTURE}", []).append(_until_picture(page, name))


def _note(times: dict[str, list[float]], what: str, page: Page, act: Callable[[], None]) -> None:
    times.setdefault(what, []).append(_timed(page, act))


def _until_picture(page: Page, name: str) -> float:
    """Open the samples' run or comparison by the home page's buttons, and wait for its first chart."""
    if not page.locator(".st-key-see-sample").count():
        _open(page, "Pipeline Lab")
    settle(page, QUIET_MS)
    begun = time.perf_counter()
    page.locator(".st-key-see-sample button" if name == "Run" else ".st-key-compare-samples button").click()
    page.wait_for_url(f"**/{name.lower()}?**")
    page.locator(".st-key-verdict .js-plotly-plot .main-svg").first.wait_for()
    took = time.perf_counter() - begun
    settle(page, QUIET_MS)
    return took


def _open(page: Page, name: str) -> None:
    """Click a page's link, and wait until its title stands there: the page before is at rest for a moment, too."""
    title = page.locator("h1").first.inner_text()
    page.get_by_role("link", name=name, exact=True).first.click()
    page.wait_for_function("(before) => document.querySelector('h1')?.innerText !== before", arg=title)


def _search(page: Page, words: str) -> None:
    page.get_by_role("textbox", name="Search").fill(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**search=**")


def _timed(page: Page, act: Callable[[], None]) -> float:
    begun = time.perf_counter()
    act()
    settle(page, QUIET_MS)
    return time.perf_counter() - begun - QUIET_MS / 1000


if __name__ == "__main__":
    sys.exit(main())
