"""Who may talk to the app, and what they may do through it.

The app is for its own machine. Streamlit checks hosts on its WebSocket only, so every request is checked here; a name
that somebody else points at this machine is refused (DNS rebinding).

The app knows nobody by name. Where it answers this machine alone, whoever reaches it could launch, delete and open files
anyway; others only look, unless whoever started the app lets them do more. Paths on the server are open to this machine
alone, or as far as ``PIPELINE_LAB_PATHS`` names their folders. Code of the user's runs only where the app was started
with leave to, and no link and no opened file may name code, allowed or not.
"""

import glob
import itertools
import os
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.workloads.module import ModuleWorkload

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


_NO_PATHS = (
    "Paths on the server are off, because the app answers other machines too; name the folders that may be opened in "
    "PIPELINE_LAB_PATHS."
)


def why_no_paths() -> str:
    """Say why no path on the server may be opened; empty where some may."""
    allowed = _allowed_folders()
    return "" if allowed or (allowed is None and is_local()) else _NO_PATHS


def check_path(path: Path) -> None:
    """Refuse a path that may not be opened, links followed.

    Raises:
        StoreError: It may not.
    """
    if reason := why_no_paths():
        raise StoreError(reason)
    allowed, path = _allowed_folders(), path.resolve()
    if allowed is not None and not any(path.is_relative_to(folder) for folder in allowed):
        raise StoreError(f"{path} lies outside the folders that PIPELINE_LAB_PATHS allows.")


def check_pattern(pattern: str) -> None:
    """Refuse a pattern of files that would look into folders that may not be opened.

    Raises:
        StoreError: It would.
    """
    parts = Path(pattern).parts
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    if ".." in parts[len(fixed) :]:
        raise StoreError("Write the pattern without '..' behind a wildcard.")
    check_path(Path(*fixed))


def _allowed_folders() -> list[Path] | None:
    """Return the folders of ``PIPELINE_LAB_PATHS``, none if it is empty; None if it is not set."""
    named = os.environ.get("PIPELINE_LAB_PATHS")
    if named is None:
        return None
    return [Path(folder).expanduser().resolve() for folder in named.split(os.pathsep) if folder.strip()]


def is_local() -> bool:
    """Say whether the app answers this machine alone."""
    return st.get_option("server.address") in LOCAL_HOSTS


CHANGES_VARIABLE = "PIPELINE_LAB_ALLOW_CHANGES"
_LOOK_ONLY = (
    "This app only shows runs, because it answers other machines too; who started it can let everybody launch, open and "
    f"delete with {CHANGES_VARIABLE}=1."
)


def why_read_only() -> str:
    """Say why nothing may be changed; empty where all may be."""
    allowed = os.environ.get(CHANGES_VARIABLE)
    if allowed is None:
        return "" if is_local() else _LOOK_ONLY
    return "" if allowed not in ("", "0") else f"This app only shows runs; it was started with {CHANGES_VARIABLE}=0."


CODE_VARIABLE = "PIPELINE_LAB_ALLOW_CODE"


def may_run_code() -> bool:
    return os.environ.get(CODE_VARIABLE, "0") not in ("", "0")


def runs_code(options: RunOptions) -> bool:
    return options.workload.is_code


def check_brought(options: RunOptions) -> RunOptions:
    """Return options that a link or a file brought, if they name no code.

    Raises:
        OptionsError: They do.
    """
    if isinstance(options.workload, ModuleWorkload):
        raise OptionsError(
            f"They run {options.workload.target}, and code cannot come by a link or a file; choose the workload `module` "
            "in the form and name it there."
        )
    return options


def check_code(options: RunOptions) -> None:
    """Refuse options that the app may not launch.

    Raises:
        OptionsError: They run code of the user's, and the app was started without leave.
    """
    if isinstance(options.workload, ModuleWorkload) and not may_run_code():
        raise OptionsError(
            f"{options.workload.target} is code of your own, which the app only runs when it was started so: "
            f"pipeline-lab app --allow-code, or {CODE_VARIABLE}=1. The command line runs it too."
        )


def check_launch(options: RunOptions) -> RunOptions:
    """Return the options, if the app may launch them.

    Raises:
        OptionsError: They run code of the user's, or read files of this machine, and the app was started without leave.
    """
    check_code(options)
    if runs_code(options):
        return options  # code opens what it likes
    workload = options.workload
    try:
        if pattern := getattr(workload, "pattern", None):
            check_pattern(pattern)
        if folder := getattr(workload, "folder", None):
            check_path(Path(folder).expanduser())  # as the job does, in a folder and not in a pattern
    except (StoreError, RuntimeError) as error:  # the latter for the home of somebody who is not there
        raise OptionsError(str(error)) from None
    return options
