"""The routes beside the pages, asked the way a server would ask them."""

import json

import pytest
from starlette.applications import Starlette

from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving.access import HEADERS, OwnOrigins, SmallUploadsOnly, allowed_hosts, middleware
from pipeline_lab.ui.serving.routes import FILES, ROUTES, file_url, opened_url, window_url
from tests.support.asgi import finish
from tests.support.run_folders import make_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path / "profiles"))
    folder = make_run(RunStore(tmp_path / "profiles"))
    window = folder.window("2026_01_01_12_00_00")
    window.mkdir(parents=True)
    (window / "host.xplane.pb").write_bytes(b"\x0a\x03abc")
    return folder


def get(path: str, host: str = "localhost:8501") -> tuple[int, dict[str, str], bytes]:
    """Ask the routes for a path and return status, headers and body."""
    app = Starlette(routes=ROUTES, middleware=middleware())
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode()), (b"accept-encoding", b"gzip")],
        "http_version": "1.1",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "scheme": "http",
        "server": ("127.0.0.1", 8501),
        "client": ("127.0.0.1", 50_000),
    }
    finish(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return messages[0]["status"], headers, b"".join(message.get("body", b"") for message in messages[1:])


def test_health_tells_the_version():
    status, _, body = get("/api/lab/health")
    assert status == 200
    assert set(json.loads(body)) == {"status", "version"}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_runs_own_files_come_whole_and_uncompressed(run, name):
    FILES[name](run).touch()
    status, headers, body = get(file_url(run.id, name))
    assert (status, body) == (200, FILES[name](run).read_bytes())
    assert headers["content-encoding"] == "identity"
    assert headers["content-disposition"].startswith("attachment")


def test_a_windows_trace_comes_whole(run):
    status, _, body = get(window_url(run.id, "2026_01_01_12_00_00", "host.xplane.pb"))
    assert (status, body) == (200, b"\x0a\x03abc")


def test_the_files_of_an_opened_log_come_whole(run):
    session = run.opened / "logs" / "plugins"
    session.mkdir(parents=True)
    (session / "_a@b.pb").write_bytes(b"log")
    assert get(opened_url(run.id, "logs/plugins/_a@b.pb"))[::2] == (200, b"log")
    assert get(opened_url(run.id, "logs/plugins"))[0] == 404
    assert get(opened_url(run.id, "../run.json"))[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/lab/runs/nothing/files/run.json",
        "/api/lab/runs/../files/run.json",
        "/api/lab/runs/{id}/files/../../secret",
        "/api/lab/runs/{id}/files/.reserve",
        "/api/lab/runs/{id}/files/worker.log",
        "/api/lab/runs/{id}/windows/../run.json",
        "/api/lab/runs/{id}/windows/2026_01_01_12_00_00/..",
        "/api/lab/runs/{id}/windows/2026_01_01_12_00_00/nothing.pb",
        "/api/lab/runs/..%2f{id}/files/run.json",
    ],
)
def test_nothing_else_is_handed_out(run, path):
    assert get(path.replace("{id}", run.id))[0] == 404


def test_a_link_that_leads_out_of_the_run_is_refused(run, tmp_path):
    (tmp_path / "secret").write_text("secret")
    run.log.symlink_to(tmp_path / "secret")
    assert get(file_url(run.id, "worker.log"))[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8501", "localhost.evil.example", ""])
def test_a_foreign_host_is_refused(host):
    assert get("/api/lab/health", host)[0] == 400


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9000"])
def test_this_machine_is_served_with_careful_headers(host):
    status, headers, _ = get("/api/lab/health", host)
    assert status == 200
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= headers.items()


def test_more_hosts_can_be_named(monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_HOSTS", "lab.example, other")
    assert allowed_hosts() == ["localhost", "127.0.0.1", "lab.example", "other"]


@pytest.mark.parametrize(
    ("host", "origin", "is_served"),
    [
        ("localhost:8501", "http://[", False),
        ("localhost:8501", "http://localhost:8501", True),
        ("localhost:8501", "http://localhost:9999", False),
        ("localhost:8501", "http://127.0.0.1:8501", False),
        ("Lab.example", "https://lab.example", True),
        ("localhost:8501", None, True),
        ("localhost:8501", "http://evil.example", False),
        ("localhost:8501", "http://localhost.evil.example:8501", False),
        ("localhost:8501", "null", False),
    ],
)
def test_only_our_own_pages_may_open_a_connection(host, origin, is_served):
    happened = []

    async def app(*_):
        happened.append("served")

    async def send(message):
        happened.append(message["type"])

    headers = [(b"host", host.encode())] + ([] if origin is None else [(b"origin", origin.encode())])
    finish(OwnOrigins(app)({"type": "websocket", "headers": headers}, None, send))
    assert happened == (["served"] if is_served else ["websocket.close"])


@pytest.mark.parametrize(
    ("path", "size", "changes", "is_served"),
    [
        ("/_stcore/upload_file/a/b", "1000", "1", True),
        ("/_stcore/upload_file/a/b", "2000000", "1", False),
        ("/_stcore/upload_file/a/b", None, "1", False),
        ("/_stcore/upload_file/a/b", "1000", "0", False),
        ("/api/lab/uploads/a/b", "2000000", "1", True),
    ],
)
def test_streamlits_own_upload_takes_options_only(monkeypatch, path, size, changes, is_served):
    monkeypatch.setenv("PIPELINE_LAB_ALLOW_CHANGES", changes)
    happened = []

    async def app(*_):
        happened.append("served")

    async def send(message):
        happened.append(message.get("status"))

    headers = [] if size is None else [(b"content-length", size.encode())]
    finish(SmallUploadsOnly(app)({"type": "http", "method": "PUT", "path": path, "headers": headers}, None, send))
    assert happened[0] == ("served" if is_served else 403)
