"""Logs sent to the app: whole ones become runs, everything else leaves nothing behind."""

import asyncio
import errno
import json
import signal
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette

from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving import server, uploads
from pipeline_lab.ui.serving.access import middleware
from pipeline_lab.ui.serving.routes import ROUTES
from tests.support.asgi import finish

HOST = "localhost:8501"
OWN = f"http://{HOST}"
HANG_UP = None


@pytest.fixture
def store(tmp_path, monkeypatch) -> RunStore:
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path / "profiles"))
    monkeypatch.setattr(uploads, "_uploads", {})
    return RunStore(tmp_path / "profiles")


async def ask(
    method: str, path: str, body: Iterable[bytes | None] = (b"",), origin: str = OWN, size: int | None = None
):
    """Send a request in pieces, with turns for others between them; `HANG_UP` breaks the connection."""
    app, answers, pieces = Starlette(routes=ROUTES, middleware=middleware()), [], list(body)

    async def receive():
        await asyncio.sleep(0)
        piece = pieces.pop(0)
        if piece is HANG_UP:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        answers.append(message)

    headers = [(b"host", HOST.encode())] + ([(b"origin", origin.encode())] if origin else [])
    headers += [(b"content-length", str(size).encode())] if size is not None else []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "http_version": "1.1",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "scheme": "http",
        "server": ("127.0.0.1", 8501),
        "client": ("127.0.0.1", 50_000),
    }
    await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in answers[1:])
    return answers[0]["status"], json.loads(text or b"{}")


def begin() -> str:
    status, answer = finish(ask("POST", uploads.URL))
    assert status == 200
    return answer["id"]


def put(upload_id: str, name: str, *body: bytes | None, **options) -> tuple[int, dict]:
    return finish(ask("PUT", f"{uploads.URL}/{upload_id}/{name}", body or (b"abc",), **options))


def left_behind(store: RunStore) -> list[Path]:
    return [path for path in store.root.rglob("*") if path != store.arrivals]


def test_a_whole_upload_becomes_an_unkept_run(store):
    upload_id = begin()
    assert put(upload_id, "host.xplane.pb", b"ab", b"cd") == (200, {"received": 4})
    folder = uploads.finish(store, upload_id)
    record = store.read(folder.id)
    assert (record.name, record.tags, record.options, record.status.state) == ("host.xplane.pb", ("log",), None, "done")
    assert (folder.opened / "plugins/profile/opened/host.xplane.pb").read_bytes() == b"abcd"
    assert opened_logs.is_unkept(folder)
    assert not list(store.arrivals.iterdir())


def test_a_folder_keeps_its_sessions(store):
    upload_id = begin()
    for host in ("a", "b"):
        put(upload_id, f"my logs/plugins/profile/2026_01_02/{host}.xplane.pb")
    folder = uploads.finish(store, upload_id)
    assert folder.opened.joinpath("my_logs/plugins/profile/2026_01_02/b.xplane.pb").is_file()
    assert store.read(folder.id).name == "my logs"


def test_more_than_one_block_arrives_in_order(store, monkeypatch):
    monkeypatch.setattr(uploads, "BLOCK", 10)
    upload_id, pieces = begin(), [bytes([index]) * 7 for index in range(20)]
    put(upload_id, "log.zip", *pieces)
    assert (uploads.finish(store, upload_id).opened / "log.zip").read_bytes() == b"".join(pieces)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", f"{OWN}.evil.example", "http://localhost:1", "http://[", "null", ""]
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_only_the_apps_own_page_may_send(store, origin, method):
    upload_id = begin()
    path = uploads.URL if method == "POST" else f"{uploads.URL}/{upload_id}"
    status, answer = finish(ask(method, path + "/x.zip" * (method == "PUT"), origin=origin))
    assert status == 403
    assert "own page" in answer["error"]
    assert put(upload_id, "x.zip")[0] == 200
    assert len(list(store.arrivals.iterdir())) == 1


@pytest.mark.parametrize("announced", [True, False])
def test_too_large_is_refused_in_one_sentence_and_leaves_nothing(store, monkeypatch, announced):
    monkeypatch.setenv("PIPELINE_LAB_UPLOAD_LIMIT_MB", "1")
    upload_id = begin()
    assert put(upload_id, "first.zip", b"x" * 600_000)[0] == 200
    status, answer = put(upload_id, "second.zip", b"x" * 300_000, b"x" * 300_000, size=600_000 if announced else None)
    assert status == 413
    assert "exceeds the upload limit of 1 MB" in answer["error"]
    assert "PIPELINE_LAB_UPLOAD_LIMIT_MB" in answer["error"]
    assert left_behind(store) == []


def test_a_connection_that_breaks_leaves_nothing(store):
    upload_id = begin()
    put(upload_id, "first.xplane.pb")
    assert put(upload_id, "second.xplane.pb", b"half", HANG_UP)[0] == 499
    assert left_behind(store) == []
    assert put(upload_id, "third.xplane.pb")[0] == 404


def test_a_cancelled_upload_leaves_nothing(store):
    upload_id = begin()
    put(upload_id, "first.xplane.pb")
    assert finish(ask("DELETE", f"{uploads.URL}/{upload_id}"))[0] == 200
    assert left_behind(store) == []


def test_a_disk_too_small_is_told_before_the_first_byte(store, monkeypatch):
    upload_id = begin()
    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda _: SimpleNamespace(free=uploads.SPARE_BYTES + 1000))
    assert put(upload_id, "log.zip", b"x", size=1000)[0] == 200
    status, answer = put(upload_id, "more.zip", b"x", size=1001)
    assert status == 507
    assert "free some space" in answer["error"]
    assert left_behind(store) == []


def test_a_disk_that_fills_up_is_one_sentence_and_leaves_nothing(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    upload_id = begin()
    monkeypatch.setattr(uploads, "_write", full)
    status, answer = put(upload_id, "log.zip")
    assert status == 507
    assert "disk is full" in answer["error"]
    assert left_behind(store) == []


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd",
        "..%2f..%2fx.pb",
        "/etc/passwd",
        "a/../../b.pb",
        "..\\..\\x.pb",
        ".bashrc",
        "a\0b",
        "x" * 900,
    ],
)
def test_no_name_leads_out_of_the_upload(store, name):
    upload_id = begin()
    assert put(upload_id, name)[0] == 200
    folder = uploads.finish(store, upload_id)
    files = [path for path in left_behind(store) if path.is_file() and path.name not in ("run.json", ".unkept")]
    assert len(files) == 1
    assert files[0].is_relative_to(folder.opened)


@pytest.mark.parametrize("upload_id", ["nothing", "..", "%2e%2e", "0" * 32])
def test_an_id_that_was_not_given_out_is_refused(store, upload_id):
    assert put(upload_id, "x.pb")[0] == 404
    assert not store.root.exists()


@pytest.mark.usefixtures("store")
def test_one_name_twice_is_refused():
    upload_id = begin()
    put(upload_id, "a b.zip")
    status, answer = put(upload_id, "a_b.zip")
    assert status == 409
    assert "one archive" in answer["error"]


def test_two_uploads_at_once_do_not_mix(store):
    async def both():
        ids = [(await ask("POST", uploads.URL))[1]["id"] for _ in range(2)]
        sent = [ask("PUT", f"{uploads.URL}/{one}/log.zip", [bytes([65 + k])] * 50) for k, one in enumerate(ids)]
        return ids, await asyncio.gather(*sent)

    ids, answers = finish(both())
    assert [status for status, _ in answers] == [200, 200]
    folders = [uploads.finish(store, one) for one in ids]
    assert [(folder.opened / "log.zip").read_bytes() for folder in folders] == [b"A" * 50, b"B" * 50]


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (["log.zip"], "log.zip"),
        (["logs/a/x.pb"], "x.pb"),
        (["logs/a/x.pb", "logs/b/x.pb"], "logs"),
        (["x.pb", "y.pb"], "2 files"),
    ],
)
def test_a_log_is_named_after_what_was_sent(names, title):
    assert uploads.title(names) == title


@pytest.mark.parametrize(("named", "limit"), [("", 2048), ("10", 10), ("0.5", 0.5), ("lots", 2048)])
def test_the_limit_can_be_named(monkeypatch, named, limit):
    monkeypatch.setenv("PIPELINE_LAB_UPLOAD_LIMIT_MB", named)
    assert uploads.limit_bytes() == limit * 1_000_000


def test_uploads_that_nobody_finishes_make_way(store):
    ids = [finish(ask("POST", uploads.URL))[1]["id"] for _ in range(uploads.MOST_UPLOADS)]
    status, answer = finish(ask("POST", uploads.URL))
    assert (status, "uploads are under way" in answer["error"]) == (429, True)
    uploads._uploads[ids[0]].heard_s -= uploads.SILENT_S + 1
    assert finish(ask("POST", uploads.URL))[0] == 200
    assert not (store.arrivals / ids[0]).exists()


def test_what_nobody_finished_goes_with_the_app(store):
    put(begin(), "log.zip")
    assert len(list(store.arrivals.iterdir())) == 1

    async def serve_and_end():
        async with server.lifespan(None):
            pass

    before = signal.getsignal(signal.SIGINT)
    try:
        finish(serve_and_end())
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(store.arrivals.iterdir())


def test_a_second_interrupt_leaves_nothing_half_received_either(store, monkeypatch):
    put(begin(), "log.zip")
    ended = []
    monkeypatch.setattr(server.os, "_exit", ended.append)
    server._end(signal.SIGINT, None)
    assert ended == [server.INTERRUPTED]
    assert not list(store.arrivals.iterdir())
