"""Who reaches the app: the account that started it, or whoever has the link that it printed.

On the loopback address every account of the machine can connect. There the kernel tells which account owns the other end
of a connection (proc(5), ``/proc/net/tcp``), so that the owner needs no password, through an SSH tunnel neither. Elsewhere
a visitor brings the token of this start in the link, and a cookie keeps it.
"""

import ipaddress
import os
import pwd
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

HEALTH = "/_stcore/health"
"""Asked by whoever supervises a container; tells nothing."""
TOKEN_VARIABLE = "PIPELINE_LAB_TOKEN"  # noqa: S105 (a name)
ACCOUNTS_VARIABLE = "PIPELINE_LAB_ACCOUNTS"
PARAMETER = "token"
_ROOT = 0
_ESTABLISHED = "01"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_REFUSED = (
    "This app belongs to another account, or needs the token of its start: open the link that it printed, "
    f"or ask whoever started it. A proxy's account is allowed with {ACCOUNTS_VARIABLE}.\n"
)

_token = secrets.token_urlsafe(18)


def token() -> str:
    """Return the token of this start: ``PIPELINE_LAB_TOKEN``, or a random one; empty if none is needed."""
    return os.environ.get(TOKEN_VARIABLE, _token)


class KnownVisitors:
    """Serve the accounts of this machine that may use the app, and whoever brings the token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] in ("http", "websocket") and scope["path"] != HEALTH and not _is_known(scope):
            answer = _receive_token(scope) or _refuse(scope)
        with _open_page(scope) if scope["type"] == "websocket" else nullcontext():
            await answer(scope, receive, send)


_pages: set[int] = set()
"""The connections of open pages, each of which has one."""


@contextmanager
def _open_page(scope: Scope) -> Iterator[None]:
    _pages.add(id(scope))
    try:
        yield
    finally:
        _pages.discard(id(scope))


def open_pages() -> int:
    """Return how many pages are open in browsers."""
    return len(_pages)


def _is_known(scope: Scope) -> bool:
    if not token():
        return True
    client, server = scope.get("client"), scope.get("server")
    if client and server and _is_loopback(client[0]):
        if sys.platform != "linux":  # other systems do not tell the owner
            return True
        if account_of_peer(client, server) in _accounts():
            return True
    cookies = SimpleCookie(Headers(scope=scope).get("cookie", ""))
    kept = cookies.get(_cookie_name(scope))
    return kept is not None and _is_token(kept.value)


def _receive_token(scope: Scope) -> Response | None:
    """Return the way to the same page with the token in a cookie instead of the address; None without the right token."""
    fields = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    brought = dict(fields).get(PARAMETER, "")
    if scope["type"] != "http" or not _is_token(brought):
        return None
    rest = urlencode([(name, value) for name, value in fields if name != PARAMETER])
    response = RedirectResponse("/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else ""), status_code=303)
    response.set_cookie(_cookie_name(scope), brought, httponly=True, samesite="lax")
    return response


def _refuse(scope: Scope) -> Response | WebSocketClose:
    return WebSocketClose(1008) if scope["type"] == "websocket" else PlainTextResponse(_REFUSED, status_code=403)


def _is_token(brought: str) -> bool:
    return secrets.compare_digest(brought.encode(), token().encode())


def _cookie_name(scope: Scope) -> str:
    """Return a name of its own for each port: browsers send the cookies of one app of a host to all of them."""
    return f"pipeline-lab-{(scope.get('server') or ('', 0))[1]}"


def _accounts() -> set[int]:
    """Return the ids of the accounts that need no token: the app's own, root, and ``PIPELINE_LAB_ACCOUNTS``."""
    named = filter(None, map(str.strip, os.environ.get(ACCOUNTS_VARIABLE, "").split(",")))
    return {os.getuid(), _ROOT, *(int(name) if name.isdecimal() else _user_id(name) for name in named)}


def _user_id(name: str) -> int:
    with suppress(KeyError):
        return pwd.getpwnam(name).pw_uid
    return os.getuid()


def _is_loopback(address: str) -> bool:
    with suppress(ValueError):
        found = ipaddress.ip_address(address)
        return (getattr(found, "ipv4_mapped", None) or found).is_loopback
    return False


def account_of_peer(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the user id that owns the client's end of a connection; None if it is not found.

    Only an established connection tells: the kernel shows a closed one as root's.

    Args:
        client, server: Address and port of both ends, of this machine.
    """
    ends = [(_in_hex(*client, family), _in_hex(*server, family)) for family in (socket.AF_INET, socket.AF_INET6)]
    for local, remote, state, account in _connections():
        if state == _ESTABLISHED and (local, remote) in ends:
            return account
    return None


def _connections() -> Iterator[tuple[str, str, str, int]]:
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                yield fields[1], fields[2], fields[3], int(fields[7])


def _in_hex(address: str, port: int, family: socket.AddressFamily) -> str:
    """Write an address as the kernel's tables do, an IPv4 one in IPv6 as mapped: words in the machine's byte order."""
    found = ipaddress.ip_address(address)
    plain = getattr(found, "ipv4_mapped", None) or found
    if family == socket.AF_INET6:
        plain = ipaddress.ip_address(f"::ffff:{plain}") if plain.version == 4 else plain
    elif plain.version == 6:
        return ""
    words = [plain.packed[at : at + 4] for at in range(0, len(plain.packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"
