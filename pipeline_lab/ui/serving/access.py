"""Who may talk to the app, and what they may do through it.

The app serves its own machine. Streamlit checks hosts on its WebSocket only, so every request is checked here; host
names that others point at this machine are refused (DNS rebinding).

Whom it serves is decided in :mod:`~pipeline_lab.ui.serving.visitors`. On this machine that is the account that started it,
which could launch jobs and open or delete files anyway; from other machines it is view only unless it was started to allow more. Paths on the server can be opened
from this machine only, or in the folders that ``PIPELINE_LAB_PATHS`` names. Custom code runs only if the app was started
to allow it, and never from a link or an opened file.
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
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.ui.serving.visitors import KnownVisitors
from pipeline_lab.units import format_bytes
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
"""Nothing is loaded from, sent to or framed by another site. Streamlit's front end needs the inline parts."""


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
    """Refuse WebSockets opened by pages of other sites.

    Streamlit refuses them as well, but first asks an Internet site for this machine's address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_foreign = scope["type"] == "websocket" and _is_foreign(Headers(scope=scope))
        await (WebSocketClose(1008) if is_foreign else self._app)(scope, receive, send)


def _is_foreign(headers: Headers) -> bool:
    return "origin" in headers and not is_own_origin(headers)


def is_own_origin(headers: Headers) -> bool:
    """Say whether a page of this app asks: one from the host and port that it asks."""
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:  # not an address
        return False
    return bool(origin) and origin.lower() == headers.get("host", "").lower()


class SmallUploadsOnly:
    """Refuse what Streamlit's own upload would keep in memory; it takes nothing but options, from who may change things.

    Logs have an upload of their own, onto the disk.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _why_no_upload(scope) if scope["type"] == "http" else ""
        await (PlainTextResponse(refusal, status_code=403) if refusal else self._app)(scope, receive, send)


STREAMLIT_UPLOAD = "/_stcore/upload_file"
OPTIONS_BYTES = 1 << 20


def _why_no_upload(scope: Scope) -> str:
    if STREAMLIT_UPLOAD not in scope["path"] or scope["method"] not in ("PUT", "POST"):
        return ""
    size = Headers(scope=scope).get("content-length", "")
    if not size.isdecimal() or int(size) > OPTIONS_BYTES:
        return f"A file of options has at most {format_bytes(OPTIONS_BYTES)}, and its length is announced."
    return why_read_only()


def allowed_hosts() -> list[str]:
    """Return the host names that the app accepts: the local ones and ``PIPELINE_LAB_HOSTS`` (comma-separated)."""
    named = os.environ.get("PIPELINE_LAB_HOSTS", "").split(",")
    return [*LOCAL_HOSTS, *(host.strip() for host in named if host.strip())]


def middleware() -> list[Middleware]:
    """Return what every request passes through, outermost first."""
    return [
        Middleware(SecurityHeaders),
        Middleware(TrustedHostMiddleware, allowed_hosts=allowed_hosts()),
        Middleware(KnownVisitors),
        Middleware(OwnOrigins),
        Middleware(SmallUploadsOnly),
    ]


_NO_PATHS = (
    "Paths on the server are disabled because the app also serves other machines; list the folders to allow in "
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
        raise StoreError(f"{path} is outside the folders that PIPELINE_LAB_PATHS allows.")


def check_pattern(pattern: str) -> None:
    """Refuse a pattern of files that would look into folders that may not be opened.

    Raises:
        StoreError: It would.
    """
    parts = Path(pattern).parts
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    if ".." in parts[len(fixed) :]:
        raise StoreError("Use no '..' after a wildcard in the pattern.")
    check_path(Path(*fixed))


def _allowed_folders() -> list[Path] | None:
    """Return the folders of ``PIPELINE_LAB_PATHS``, none if it is empty; None if it is not set."""
    named = os.environ.get("PIPELINE_LAB_PATHS")
    if named is None:
        return None
    return [Path(folder).expanduser().resolve() for folder in named.split(os.pathsep) if folder.strip()]


def is_local() -> bool:
    """Say whether the app serves only this machine."""
    return st.get_option("server.address") in LOCAL_HOSTS


CHANGES_VARIABLE = "PIPELINE_LAB_ALLOW_CHANGES"
_LOOK_ONLY = (
    "This app is view only because it also serves other machines; to allow everyone to launch, open and delete, start "
    f"it with {CHANGES_VARIABLE}=1."
)


def why_read_only() -> str:
    """Say why nothing may be changed; empty where changes are allowed."""
    allowed = os.environ.get(CHANGES_VARIABLE)
    if allowed is None:
        return "" if is_local() else _LOOK_ONLY
    return "" if allowed not in ("", "0") else f"This app is view only; it was started with {CHANGES_VARIABLE}=0."


CODE_VARIABLE = "PIPELINE_LAB_ALLOW_CODE"


def may_run_code() -> bool:
    return os.environ.get(CODE_VARIABLE, "0") not in ("", "0")


def runs_code(options: RunOptions) -> bool:
    return options.workload.is_code


def check_brought(options: RunOptions) -> RunOptions:
    """Return options from a link or a file, if they name no code.

    Raises:
        OptionsError: They do.
    """
    if isinstance(options.workload, ModuleWorkload):
        raise OptionsError(
            f"These options run {options.workload.target}. Code cannot come from a link or a file; choose the workload "
            "`module` in the form and enter it there."
        )
    return options


def check_code(options: RunOptions) -> None:
    """Refuse options that the app may not launch.

    Raises:
        OptionsError: They run custom code, which the app was not started to allow.
    """
    if isinstance(options.workload, ModuleWorkload) and not may_run_code():
        raise OptionsError(
            f"{options.workload.target} is custom code, which the app runs only if started with pipeline-lab app --allow-code "
            f"or {CODE_VARIABLE}=1. The command line runs it as well."
        )


def check_launch(options: RunOptions) -> RunOptions:
    """Return the options, if the app may launch them.

    Raises:
        OptionsError: They run custom code or read files of this machine, which the app was not started to allow.
    """
    check_code(options)
    if runs_code(options):
        return options  # code can open anything
    workload = options.workload
    try:
        if pattern := getattr(workload, "pattern", None):
            check_pattern(pattern)
        if folder := getattr(workload, "folder", None):
            check_path(Path(folder).expanduser())  # as the job does for a folder, unlike for a pattern
    except (StoreError, RuntimeError) as error:  # RuntimeError: the home folder of an unknown user
        raise OptionsError(str(error)) from None
    return options
