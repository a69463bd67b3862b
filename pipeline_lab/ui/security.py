"""Who may talk to the app, and what browsers may do with its pages.

The app is for its own machine. Streamlit checks hosts on its WebSocket only, so every request is checked here; a name
that somebody else points at this machine is refused (DNS rebinding).
"""

import os
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

LOCAL_HOSTS = ("localhost", "127.0.0.1")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; worker-src 'self' blob:; "
        "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
    ),
}
"""Nothing is loaded from, sent to or framed by any other site. Streamlit's front end needs the inline parts."""


class SecurityHeaders:
    """Add :data:`HEADERS` to every response that does not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class OwnOrigins:
    """Refuse WebSockets that pages of other sites open.

    Streamlit refuses them too, but asks a site on the Internet for this machine's address first.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_foreign = scope["type"] == "websocket" and not _is_own(Headers(scope=scope).get("origin"))
        await (WebSocketClose(1008) if is_foreign else self._app)(scope, receive, send)


def _is_own(origin: str | None) -> bool:
    """Say whether a page of this app, or no page at all, opens the connection."""
    if origin is None:
        return True
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:  # no address at all
        return False
    return any(host == own or (own.startswith("*") and host.endswith(own[1:])) for own in allowed_hosts())


def allowed_hosts() -> list[str]:
    """Return the host names under which the app answers: the local ones and ``PIPELINE_LAB_HOSTS`` (with commas)."""
    named = os.environ.get("PIPELINE_LAB_HOSTS", "").split(",")
    return [*LOCAL_HOSTS, *(host.strip() for host in named if host.strip())]


def middleware() -> list[Middleware]:
    """Return what every request passes through, outermost first."""
    return [
        Middleware(SecurityHeaders),
        Middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts()),
        Middleware(OwnOrigins),
    ]
