"""The app as its users meet it: ``streamlit run app.py`` and a headless Chromium.

One server and one browser for the whole session, a fresh browser context for each test. The server has a store, a
queue and a fake worker of its own. ``PIPELINE_LAB_SHOTS`` names a folder for screenshots.
"""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import psutil
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.needs import find_chromium
from tests.support.patience import PATIENCE_S, TRIES, until
from tests.support.ports import free_port
from tests.support.run_folders import make_run

ROOT = Path(__file__).parents[2]
FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
ONE_PRIORITY = ROOT / "tests" / "support" / "one_priority"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--max-opt=1",  # pages are short-lived: what optimizing compilers would cost, they never save
]
NOTE_TALK = """(() => {  // what the page told the server, and how much of it was before the last it heard
  window.labTalk = { said: 0, saidAt: 0, answered: 0 };
  const Plain = window.WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', () => { window.labTalk.answered = window.labTalk.said });
    }
    send(message) {
      window.labTalk.said++;
      window.labTalk.saidAt = performance.now();
      super.send(message);
    }
  };
})()"""
SETTLED = """([quiet, patience]) => new Promise((resolve, reject) => {
  const start = performance.now(), between = 20; let looks = 0;
  const isAnswered = () => {  // not everything is, but what makes a script run
    const { said, saidAt, answered } = window.labTalk ?? {};
    return said === answered || performance.now() - saidAt > 3000;
  };
  const calm = () => {
    const app = document.querySelector('[data-testid="stApp"]');
    return app && isAnswered() && app.getAttribute('data-test-script-state') === 'notRunning'
      && app.getAttribute('data-test-connection-state') === 'CONNECTED'
      && !document.querySelector(
        '[data-stale="true"], [data-testid="stAppSkeleton"], [data-testid="stSkeleton"], .lab-chart:not(.js-plotly-plot)'
      );
  };
  const look = () => {
    looks = calm() ? looks + 1 : 0;  // no time: a page that is busy looks rarely
    if (looks * between > quiet) return resolve();
    if (performance.now() - start > patience) return reject(new Error('the page never came to rest'));
    setTimeout(look, between);
  };
  look();
})"""

VIOLATIONS = """(settings) => axe.run(...settings).then((found) => found.violations
  .filter((one) => ['serious', 'critical'].includes(one.impact))
  .map(({ id, help, nodes }) => [id, help, nodes.slice(0, 3).map((node) => [node.target, node.failureSummary])]))"""

FOCUSED = """() => {
  let one = document.activeElement
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement
  return one?.getAttribute('aria-label') ?? one?.innerText?.trim() ?? ''
}"""

GO = """(url) => {
  history.pushState({}, '', url);
  dispatchEvent(new PopStateEvent('popstate'));
}"""
"""Lets the app go to another page, as it does when a visitor goes back."""
PATIENCE_MS = 1000 * PATIENCE_S
expect.set_options(timeout=PATIENCE_MS)


class Look(NamedTuple):
    """How a page is looked at: the color scheme, and the width in pixels."""

    scheme: Literal["light", "dark"]
    width: int

    def __str__(self) -> str:
        return f"{self.scheme}-{self.width}"


BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}
NARROW = 400
LOOKS = (Look("light", 1280), Look("dark", 1280), Look("light", NARROW))


@dataclass(frozen=True)
class Server:
    """A running app.

    Attributes:
        url: Where it answers.
        store: Its run store.
        started_in_s: Time from the command to the first answer.
        restart: Ends it, and starts it again at the same address.
    """

    url: str
    store: RunStore
    started_in_s: float
    restart: Callable[[], None]

    def get(self, path: str) -> tuple[int, bytes]:
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()


@contextmanager
def serve(folder: Path, *, headless: bool = True, **environment: str) -> Iterator[Server]:
    """Start ``streamlit run app.py`` with everything it writes inside a folder, and end it with the block."""
    port = free_port()
    own = {
        "PIPELINE_LAB_STORE": str(folder / "profiles"),
        "PIPELINE_LAB_RUNTIME": str(folder / "runtime"),
        "PIPELINE_LAB_CACHE": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ONE_PRIORITY), os.environ.get("PYTHONPATH")))),
        **environment,
    }
    options = ["--server.port", str(port), "--server.headless", str(headless).lower()]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    url, running = f"http://127.0.0.1:{port}", list[subprocess.Popen[bytes]]()

    def start() -> None:
        with (folder / f"server-{port}.log").open("ab") as log:
            running.append(subprocess.Popen(command, cwd=ROOT, env={**os.environ, **own}, stdout=log, stderr=log))
        wait_for_answer(url, running[0])

    def end() -> None:
        process = running.pop()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)

    def restart() -> None:
        end()
        start()

    begun_s = time.monotonic()
    try:
        start()
        yield Server(url, RunStore(folder / "profiles"), time.monotonic() - begun_s, restart)
    finally:
        if running:
            end()


def end_all(folder: Path) -> None:
    """End what servers of this folder left running: spare workers, jobs, analyses."""
    for process in psutil.process_iter():
        try:
            if process.environ().get("PIPELINE_LAB_RUNTIME") == str(folder / "runtime"):
                process.kill()
        except psutil.Error:
            continue


def wait_for_answer(url: str, process: subprocess.Popen) -> None:
    def answers() -> bool:
        assert process.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=PATIENCE_S).close()
        except OSError:
            return False
        return True

    until(answers, "the server answers")


@pytest.fixture(scope="session")
def app_folder(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("app")
    yield folder
    end_all(folder)


@pytest.fixture(scope="session")
def server(app_folder) -> Iterator[Server]:
    """Serve the app with a fake worker and three recorded runs: done, failed, cancelled."""
    with serve(app_folder, PIPELINE_LAB_WORKER=f"{sys.executable} {FAKE_WORKER}") as running:
        yield running


@dataclass(frozen=True)
class Recorded:
    done: RunFolder
    failed: RunFolder
    cancelled: RunFolder


@pytest.fixture(scope="session")
def recorded(server) -> Recorded:
    store = server.store
    failed = make_run(store, "synthetic", RunState.FAILED, reason="The file /data/a_*b*.tfrecord is damaged.")
    cancelled = make_run(store, "unequal-files", RunState.CANCELLED, steps=30, reason="Canceled after 25 steps.")
    return Recorded(make_run(store, "baseline"), failed, cancelled)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as found:
        yield found


@pytest.fixture(scope="session")
def browser(playwright) -> Iterator[Browser]:
    found = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS)
    yield found
    found.close()


def new_context(browser: Browser) -> BrowserContext:
    """Return a context whose pages keep still and have the patience of all tests."""
    context = browser.new_context(
        color_scheme="light", viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(NOTE_TALK)
    return context


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """Collect foreign requests and errors of the test's pages, of which there shall be none."""
    found: list[str] = []
    yield found
    assert not found


@contextmanager
def watching(page: Page, complaints: list[str]) -> Iterator[Page]:
    """Note what a page asks of others, and what goes wrong in it."""

    def ask(request: Request) -> None:
        if not is_local(request.url):
            complaints.append(f"asked {request.url}")

    def say(message: ConsoleMessage) -> None:
        if not is_harmless(message.text):
            complaints.append(message.text)

    page.on("request", ask)
    page.on("console", say)
    yield page
    page.remove_listener("request", ask)
    page.remove_listener("console", say)


@pytest.fixture
def other_page(page, complaints) -> Iterator[Page]:
    """Return a second page, a session of its own, in the process of the first one, which has the app's code compiled."""
    with page.expect_popup() as opened:
        page.evaluate("() => { window.open('/_stcore/health') }")
    with watching(opened.value, complaints) as found:
        yield found
        found.close()


@pytest.fixture(scope="session")
def tab(browser) -> Iterator[Page]:
    """Open the one tab for all tests that need no more: it keeps the app's code compiled, which takes a new one seconds."""
    context = new_context(browser)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(tab, server, complaints) -> Iterator[Page]:
    """Return a page as a fresh one would be; it fails on foreign requests."""
    tab.emulate_media(media="screen", color_scheme="light")
    tab.set_viewport_size({"width": 1280, "height": 900})
    with watching(tab, complaints):
        yield tab
        tab.unroute_all(behavior="ignoreErrors")
        if is_local(tab.url):
            tab.evaluate("localStorage.clear(), sessionStorage.clear()")
    tab.goto(f"{server.url}/_stcore/health")  # an empty page would end the process that has the app's code compiled


def is_local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:"))


def is_harmless(text: str) -> bool:
    return "Security Policy" not in text and "Invalid" not in text


def visit(page: Page, url: str) -> float:
    """Open an address and wait until the page is at rest; return the seconds it took."""
    start = time.monotonic()
    page.goto(url)
    settle(page)
    return time.monotonic() - start


def go(page: Page, url: str) -> None:
    """Let an open page go to an address as it does by the app's own links, which spares the browser a second of loading."""
    page.evaluate(GO, url)
    settle(page)


def visit_in_every_look(page: Page, url: str, turn: int = 0) -> Iterator[Look]:
    """Open an address in one of the looks, in another each turn, and let the page follow to the others; yield each.

    After the first turn the app goes there by itself.
    """
    for number in range(len(LOOKS)):
        look = LOOKS[(turn + number) % len(LOOKS)]
        page.set_viewport_size({"width": look.width, "height": 900})
        if number == 0:
            page.emulate_media(color_scheme=look.scheme)
            if turn:
                go(page, url)
            else:
                visit(page, url)
        show_in(page, look.scheme)
        yield look


def show_in(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Let an open page follow to a color scheme."""
    page.emulate_media(color_scheme=scheme)
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUNDS[scheme])
    settle(page)


def check_look(page: Page, name: str, look: Look, accessible: Container[str] = ()) -> None:
    """Check that the page is no wider than what is in view, shows no exception, and in some color schemes its accessibility."""
    expect(page.get_by_test_id("stException")).to_have_count(0)
    fits = "document.documentElement.scrollWidth <= window.innerWidth"
    until(lambda: page.evaluate(fits), f"{name} is not too wide in {look}", lambda: page.wait_for_timeout(20))
    if look.width > NARROW and look.scheme in accessible:
        check_accessible(page, f"{name} in {look}")


def check_accessible(page: Page, name: str) -> None:
    """Check that axe finds nothing serious on the page: names for screen readers, contrast, order, roles.

    Source code is left out: Streamlit neither lets its colors be chosen nor its box be reached by the keyboard. What is found only
    while a live page is slow to follow, and fades, does not count.
    """
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE_SCRIPT)
    found: list[object] = []
    for _ in range(TRIES):
        found = page.evaluate(VIOLATIONS, [{"exclude": [["[data-testid='stCode']"]]}, {"resultTypes": ["violations"]}])
        if not found:
            return
        settle(page, 500)
    raise AssertionError(f"{name}: {found}"[:3000])


def settle(page: Page, quiet_ms: int = 150) -> None:
    page.evaluate(SETTLED, [quiet_ms, PATIENCE_MS])


def wait_until(page: Page, is_so: Callable[[], object]) -> None:
    """Let the page go on until something outside of it is so, as on the disk."""
    until(is_so, "what the page led to", lambda: page.wait_for_timeout(20))


def open_tab(page: Page, name: str) -> None:
    """Choose a tab; a click that meets the page while it is redrawn may be lost, so it is repeated until it took."""
    tab = page.get_by_role("tab", name=name)

    def click() -> None:
        tab.click()
        page.wait_for_timeout(200)

    until(lambda: tab.get_attribute("aria-selected") == "true", f"the tab {name!r} is open", click)
    settle(page)


def tab_to(page: Page, name: str) -> None:
    """Press the Tab key until what has that name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"the Tab key never reached {name!r}")


@pytest.fixture(scope="session")
def shots() -> Path | None:
    """Return where screenshots go: ``PIPELINE_LAB_SHOTS``, or None, as nobody looks at those of a gate."""
    named = os.environ.get("PIPELINE_LAB_SHOTS")
    if named is None:
        return None
    Path(named).mkdir(parents=True, exist_ok=True)
    return Path(named)


def shoot_view(page: Page, shots: Path | None, name: str) -> None:
    """Take a picture of what is in view, if pictures are wanted."""
    if shots is not None:
        page.screenshot(path=shots / name)


def shoot(page: Page, shots: Path | None, name: str) -> None:
    """Take a picture of the whole page, its charts drawn, if pictures are wanted."""
    if shots is None:
        return
    width = page.viewport_size["width"]
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": min(max(900, int(height) + 10), 6000)})
    page.wait_for_timeout(500)
    shoot_view(page, shots, name)
    page.set_viewport_size({"width": width, "height": 900})
