"""Ask routes the way a server would, without one."""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.routing import BaseRoute

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; on a thread of its own, since a browser test may hold this one's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@dataclass(frozen=True)
class Answer:
    """What came back; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(routes: Sequence[BaseRoute], path: str) -> Answer:
    """Send one GET request; ``path`` may carry a query."""
    path, _, query = path.partition("?")
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
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost:8501")],
        "http_version": "1.1",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "scheme": "http",
        "server": ("127.0.0.1", 8501),
        "client": ("127.0.0.1", 50_000),
    }
    finish(Starlette(routes=list(routes))(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return Answer(messages[0]["status"], headers, b"".join(message.get("body", b"") for message in messages[1:]))
