"""Opening a log in a real browser: chosen, dropped or named; sent, analyzed, shown; kept or thrown away."""

import gzip
import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import open_tab, settle, shoot, show_in, visit, wait_until

DATA = Path(__file__).parents[1] / "data"
TRACE = DATA / "small_pipeline.xplane.pb"


def runs(server) -> list[str]:
    return [run.name for run in server.store.runs() if "log" in run.tags]


def test_a_chosen_trace_is_sent_analyzed_shown_and_kept(server, page, shots, tmp_path):
    log = shutil.copy(TRACE, tmp_path / "chosen.xplane.pb")
    visit(page, server.url + "/open")
    for scheme in ("light", "dark"):
        show_in(page, scheme)
        expect(page.locator("input.files")).to_be_attached()
        shoot(page, shots, f"open-{scheme}.png")
    page.locator("input.files").set_input_files(log)
    expect(page.get_by_role("heading", name="chosen.xplane.pb", level=1)).to_be_visible()
    assert re.search(r"/run\?run=\d{8}-", page.url)
    for scheme in ("dark", "light"):
        show_in(page, scheme)
        expect(page.get_by_text("leaves the training computation idle").first).to_be_visible()
        shoot(page, shots, f"opened-{scheme}.png")
    page.get_by_role("button", name="Keep").click()
    settle(page)
    expect(page.get_by_text("not kept")).to_have_count(0)
    assert "chosen.xplane.pb" in runs(server)


def test_a_dropped_archive_is_opened_and_thrown_away(server, page, tmp_path):
    log = tmp_path / "my log.zip"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(TRACE, "logs/plugins/profile/2026_01_02/host.xplane.pb")
    visit(page, server.url + "/open")
    data = page.evaluate_handle(
        """([name, bytes]) => { const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], name)); return data }""",
        [log.name, list(log.read_bytes())],
    )
    page.locator(".zone").dispatch_event("drop", {"dataTransfer": data})
    expect(page.get_by_role("heading", name="my log.zip", level=1)).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="What is in a log?", level=1)).to_be_visible()
    assert "my log.zip" not in runs(server)


def test_a_folder_is_sent_with_its_sessions(server, page, tmp_path):
    session = tmp_path / "train logs" / "plugins" / "profile" / "2026_01_02"
    session.mkdir(parents=True)
    for host in ("a", "b"):
        shutil.copy(TRACE, session / f"{host}.xplane.pb")
    (tmp_path / "train logs" / "model.ckpt").write_bytes(b"weights")
    visit(page, server.url + "/open")
    page.locator("input.folder").set_input_files(tmp_path / "train logs")
    expect(page.get_by_role("heading", name="train logs", level=1)).to_be_visible()
    run = next(run for run in server.store.runs() if run.name == "train logs")
    files = [path.name for path in server.store.folder(run.id).opened.rglob("*") if path.is_file()]
    assert sorted(files) == ["a.xplane.pb", "b.xplane.pb"]


def test_a_log_of_another_tool_or_too_large_is_one_sentence_on_the_page(server, page, tmp_path, shots):
    log = tmp_path / "worker0.pt.trace.json.gz"
    log.write_bytes(gzip.compress(b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X"}]}'))
    visit(page, server.url + "/open")
    page.locator("input.files").set_input_files(log)
    expect(page.get_by_text("PyTorch")).to_be_visible()
    expect(page.get_by_text("Received")).to_have_count(0)
    expect(page.get_by_role("heading", name="What is in a log?", level=1)).to_be_visible()
    settle(page)
    shoot(page, shots, "open-bad.png")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_text("PyTorch")).to_have_count(0)
    assert log.name not in runs(server)
    page.locator("input.files").set_input_files(hollow(tmp_path / "large.zip", 3_000_000_000))
    expect(page.get_by_role("status").get_by_text("exceeds the upload limit of 2.05 GB")).to_be_visible()


def test_a_cancelled_upload_leaves_nothing_and_the_next_one_opens(server, page, tmp_path, shots):
    before = {run.id for run in server.store.runs()}
    visit(page, server.url + "/open")
    with sending_slowly(page):
        page.locator("input.files").set_input_files(hollow(tmp_path / "large.zip", 1_500_000_000))
        wait_until(page, lambda: bytes_arrived(server) > 0)
        shoot(page, shots, "open-sending.png")
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Canceled; nothing was saved.")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    wait_until(page, lambda: not list(server.store.arrivals.iterdir()))
    assert {run.id for run in server.store.runs()} == before
    shoot(page, shots, "open-cancelled.png")
    page.locator("input.files").set_input_files(shutil.copy(TRACE, tmp_path / "next.xplane.pb"))
    expect(page.get_by_role("heading", name="next.xplane.pb", level=1)).to_be_visible()


@contextmanager
def sending_slowly(page) -> Iterator[None]:
    """Let a page send 5 MB in a second, so that a large file is still under way whenever somebody cancels."""
    network = page.context.new_cdp_session(page)
    limits = {"offline": False, "latency": 0, "downloadThroughput": -1}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", limits | {"uploadThroughput": 5_000_000})
    yield
    network.send("Network.emulateNetworkConditions", limits | {"uploadThroughput": -1})
    network.detach()


def test_cancelling_before_the_first_byte_leaves_nothing(server, page, tmp_path):
    held = []
    visit(page, server.url + "/open")
    page.route("**/api/lab/uploads", lambda route: held.append((route, route.fetch())))
    page.locator("input.files").set_input_files(shutil.copy(TRACE, tmp_path / "early.xplane.pb"))
    wait_until(page, lambda: held)
    assert len(list(server.store.arrivals.iterdir())) == 1
    page.get_by_role("button", name="Cancel").click()
    ((route, answer),) = held
    route.fulfill(response=answer)
    expect(page.get_by_text("Canceled; nothing was saved.")).to_be_visible()
    wait_until(page, lambda: not list(server.store.arrivals.iterdir()))


def hollow(path: Path, size_bytes: int) -> Path:
    """Make a file of that size that takes no room."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def bytes_arrived(server) -> int:
    arrivals = server.store.arrivals
    return sum(path.stat().st_size for path in arrivals.rglob("*") if path.is_file()) if arrivals.is_dir() else 0


def test_xprof_is_asked_on_request(server, page, tmp_path, shots):
    log = shutil.copy(TRACE, tmp_path / "for-xprof.xplane.pb")
    visit(page, server.url + "/open")
    page.get_by_label("Or a path on this machine").fill(str(log))
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_role("heading", name="for-xprof.xplane.pb", level=1)).to_be_visible()
    open_tab(page, "XProf")
    page.get_by_role("button", name="Run XProf").click()
    expect(page.get_by_text("Why they differ")).to_be_visible()
    settle(page)
    shoot(page, shots, "beside-xprof.png")
