"""How long the app's pages take on a large store, and a sample's page until its first picture: `python -m benchmarks.pages [--runs 5000]`.

The store's runs are copies of the bundled samples under names of their own. Each page is opened by its link in the navigation,
once as the app's first visit to it and then again and again; a page counts as there when Streamlit is at rest. Needs Chromium.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
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
        page = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS).new_page()
        page.set_default_timeout(300_000)
        try:
            with serve(folder, PIPELINE_LAB_WORKER=f"{sys.executable} -c pass") as server:
                visit(page, server.url + "/help")
                times = measure(page, arguments.visits)
            with serve(folder, PIPELINE_LAB_WORKER=f"{sys.executable} -c pass") as server:
                visit(page, server.url + "/help")
                times["Runs, the app started again"] = [_timed(page, lambda: _open(page, "Runs")) for _ in range(2)]
        finally:
            end_all(folder)
    print(
        f"{arguments.runs} runs, {len(os.sched_getaffinity(0))} cores; budget {BUDGET_S} s, {LIST_BUDGET_S} s for lists and pictures"
    )
    print(f"{'what':28} {'first visit':>12} {'later, median':>14}  all later (s)")
    for what, (first, *later) in times.items():
        print(
            f"{what:28} {first:11.2f}s {statistics.median(later):13.2f}s  {' '.join(f'{each:.2f}' for each in later)}"
        )
    return int(any(statistics.median(later) > _budget_s(what) for what, (_, *later) in times.items()))


def _budget_s(what: str) -> float:
    return LIST_BUDGET_S if what.startswith("Runs") or PICTURE in what else BUDGET_S


def fill(store: Path, count: int) -> None:
    """Copy the samples' records and tables of steps, as links to the same bytes."""
    samples = sorted(path.parent for path in SAMPLES.glob("*/run.json"))
    steps = {sample: shutil.copy(sample / "steps.arrows", store.parent / f"{sample.name}.arrows") for sample in samples}
    documents = {
        sample: shutil.copy(sample / "analysis" / DOCUMENT, store.parent / f"{sample.name}.json") for sample in samples
    }
    for number in range(count):
        sample = samples[number % len(samples)]
        folder = store / f"20260101-{number:06d}-{sample.name.removeprefix('sample-')}"
        folder.mkdir(parents=True)
        record = json.loads((sample / "run.json").read_text(encoding="utf-8"))
        record |= {"name": f"{record['name']} {number}"}
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
        os.link(steps[sample], folder / "steps.arrows")
        (folder / "analysis").mkdir()
        os.link(documents[sample], folder / "analysis" / DOCUMENT)
    for file in (*steps.values(), *documents.values()):
        os.utime(file, (1.7e9, 1.7e9))  # the runs are long over


def measure(page: Page, visits: int) -> dict[str, list[float]]:
    """Return the seconds of each visit of each page, and of each search in the list of runs."""
    times: dict[str, list[float]] = {}
    for _ in range(visits + 1):
        for name in PAGES:
            times.setdefault(name, []).append(_timed(page, lambda name=name: _open(page, name)))
            if name == "Runs":
                times.setdefault("Runs, a search", []).append(_timed(page, lambda: _search(page, "optimised 42")))
        for name in ("Run", "Compare"):
            times.setdefault(f"{name} of the samples, {PICTURE}", []).append(_until_picture(page, name))
    return times


def _until_picture(page: Page, name: str) -> float:
    """Open the samples' run or comparison by the home page's buttons, and wait for its first chart."""
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
    page.get_by_role("link", name=name, exact=True).first.click()


def _search(page: Page, words: str) -> None:
    page.get_by_role("textbox", name="Search").fill(words)
    page.keyboard.press("Enter")


def _timed(page: Page, act: Callable[[], None]) -> float:
    begun = time.perf_counter()
    act()
    settle(page, QUIET_MS)
    return time.perf_counter() - begun - QUIET_MS / 1000


if __name__ == "__main__":
    sys.exit(main())
