"""How long people wait: for the app's first page, and from a launch to the first training step.

`python -m benchmarks.startup [--repeats N]` prints medians; budgets: 3 s each (DESIGN: start → first page usable, and
launch → first step with a warm worker).
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.app import serve_app
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs.launch.launcher import launch, wait
from pipeline_lab.runs.launch.spare import ensure_spare
from pipeline_lab.runs.record import this_process
from pipeline_lab.runs.run_events import PhaseEvent, read_events
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.runs.store import RunStore

FIRST_BUTTON_SHOWS = (
    "() => [...document.querySelectorAll('button')].some(button => button.innerText.includes('New run'))"
)
"""Asked in each frame: a locator asks each half second only by the time that the page comes."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--warm-after", type=float, default=30, help="seconds that a spare gets to load TensorFlow")
    arguments = parser.parse_args()
    print(f"{'what':<58} {'median':>8}  all (s)")
    _row("app start -> first page usable", [_first_page() for _ in range(arguments.repeats)])
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder))
        for preset in ("synthetic", "baseline", "optimised"):
            times = [_first_step(store, preset, arguments.warm_after) for _ in range(arguments.repeats)]
            _row(f"launch of {preset}, warm -> calibration begins", [time[0] for time in times])
            _row(f"launch of {preset}, warm -> first warm-up step done", [time[1] for time in times])
    return 0


def _row(what: str, times: list[float]) -> None:
    print(f"{what:<58} {statistics.median(times):>7.2f}s  {' '.join(f'{time:.2f}' for time in times)}", flush=True)


def _first_page() -> float:
    """Start the app on an empty store and wait until its first page can be used, seconds; the browser is up before."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as store:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        begun = time.perf_counter()
        try:
            with serve_app(store) as url:
                page.goto(url)
                page.wait_for_function(FIRST_BUTTON_SHOWS, polling="raf")
                return time.perf_counter() - begun
        finally:
            chromium.close()


def _first_step(store: RunStore, preset: str, warm_after_s: float) -> tuple[float, float]:
    """Launch with a warm spare; seconds to the start of the calibration, and to the end of the first step after."""
    ensure_spare(this_process())
    time.sleep(warm_after_s)
    begun_ns = time.time_ns()
    folder = launch(store, set_options(find_preset(preset).options, [("training.steps", "3")]))
    record = wait(folder)
    phases = {event.phase: event.time_ns for event in read_events(folder.events) if isinstance(event, PhaseEvent)}
    steps = read_table(folder.steps, STEPS)
    if not steps.num_rows:
        raise SystemExit(f"{preset}: {record.status.state}: {record.status.reason}")
    return (phases["calibrating"] - begun_ns) / 1e9, (steps.column("end_ns")[0].as_py() - begun_ns) / 1e9


if __name__ == "__main__":
    sys.exit(main())
