import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from pipeline_lab.ui.serving import visitors
from pipeline_lab.ui.serving.visitors import (
    ACCOUNTS_VARIABLE,
    HEALTH,
    TOKEN_VARIABLE,
    KnownVisitors,
    account_of_peer,
    open_pages,
)
from tests.support.asgi import finish

OTHER = os.getuid() + 1


@pytest.mark.parametrize(("kind", "pages"), [("http", 0), ("websocket", 1)])
def test_pages_count_while_they_are_open(monkeypatch: pytest.MonkeyPatch, kind: str, pages: int) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "")
    counted: list[int] = []

    async def app(*_: object) -> None:
        counted.append(open_pages())
        raise ConnectionError

    with pytest.raises(ConnectionError):
        finish(KnownVisitors(app)({"type": kind, "path": "/"}, None, None))
    assert (counted, open_pages()) == ([pages], 0)


def visit(path: str = "/", *, client: str = "127.0.0.1", query: str = "", cookie: str = "", kind: str = "http") -> Any:
    """Return "served", the status of the answer, or the type of another message; with the headers of an answer."""
    happened: list[Any] = []

    async def app(*_: object) -> None:
        happened.append("served")

    async def send(message: dict[str, Any]) -> None:
        if message["type"] != "http.response.body":
            headers = {name.decode(): value.decode() for name, value in message.get("headers", ())}
            happened.append((message.get("status", message["type"]), headers))

    headers = [(b"cookie", cookie.encode())] if cookie else []
    scope = {"type": kind, "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
    finish(KnownVisitors(app)(scope | {"client": (client, 50_000), "server": (client, 8501)}, None, send))
    return happened[0]


@contextmanager
def connection(family: socket.AddressFamily, address: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    with closing(socket.socket(family)) as listener:
        listener.bind((address, 0))
        listener.listen()
        with closing(socket.create_connection(listener.getsockname()[:2])) as client:
            yield client, listener


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_tells_whose_connection_it_is(family: socket.AddressFamily, address: str) -> None:
    with connection(family, address) as (client, listener):
        ends = client.getsockname()[:2], listener.getsockname()[:2]
        assert account_of_peer(*ends) == os.getuid()
        client.shutdown(socket.SHUT_WR)  # the kernel shows what is half closed as root's, once nobody holds it
        assert account_of_peer(*ends) is None
    assert account_of_peer(*ends) is None


def test_an_ipv4_connection_to_an_ipv6_server_is_found() -> None:
    with connection(socket.AF_INET, "127.0.0.1") as (client, listener):
        (host, port), (own, own_port) = client.getsockname(), listener.getsockname()
        assert account_of_peer((f"::ffff:{host}", port), (f"::ffff:{own}", own_port)) == os.getuid()


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_another_account_of_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    assert visit(kind=kind) == "served"
    monkeypatch.setattr(visitors, "account_of_peer", lambda *_: OTHER)
    assert visit(kind=kind)[0] == (403 if kind == "http" else "websocket.close")
    assert visit(HEALTH) == "served"
    assert visit(f"/api/x{HEALTH}")[0] == 403
    monkeypatch.setattr(visitors, "account_of_peer", lambda *_: None)
    assert visit(kind=kind)[0] == (403 if kind == "http" else "websocket.close")


def test_the_account_of_a_proxy_can_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "account_of_peer", lambda *_: OTHER)
    monkeypatch.setenv(ACCOUNTS_VARIABLE, f"nobody-of-that-name, {OTHER}")
    assert visit() == "served"


def test_from_another_machine_the_token_opens_the_app_and_a_cookie_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "right")
    elsewhere = "192.0.2.7"
    assert visit(client=elsewhere)[0] == 403
    assert visit(client=elsewhere, query="token=wrong")[0] == 403
    status, headers = visit("//evil.example/runs", client=elsewhere, query="token=right&search=a+b")
    assert (status, headers["location"]) == (303, "/evil.example/runs?search=a+b")
    assert {"HttpOnly", "SameSite=lax"} <= {part.strip() for part in headers["set-cookie"].split(";")}
    kept = headers["set-cookie"].split(";")[0]
    assert visit(client=elsewhere, cookie=kept) == "served"
    assert visit(client=elsewhere, cookie=kept, kind="websocket") == "served"
    assert visit(client=elsewhere, cookie=kept.replace("right", "wrong"))[0] == 403
    assert visit(client=elsewhere, query="token=right", kind="websocket")[0] == "websocket.close"


def test_without_a_token_somebody_else_decides_who_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "")
    assert visit(client="192.0.2.7") == "served"
