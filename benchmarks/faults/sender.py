"""Somebody's browser that uploads a log slowly."""

import http.client
import json
import time
from contextlib import suppress
from pathlib import Path

TRACE = Path(__file__).resolve().parents[2] / "tests" / "data" / "small_pipeline.xplane.pb"
PIECES, PAUSE_S, PATIENCE_S = 20, 0.5, 60.0


def send_slowly(port: int) -> None:
    """Send a capture in pieces to the app of a port, once it answers; what fails is the app's to say."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        with suppress(OSError, ValueError, KeyError, http.client.HTTPException):
            upload = _ask(port, "POST", "/api/lab/uploads")["id"]
            _ask(port, "PUT", f"/api/lab/uploads/{upload}/host.xplane.pb", TRACE.read_bytes())
            return
        time.sleep(0.1)


def _ask(port: int, method: str, path: str, body: bytes = b"") -> dict[str, str]:
    connection = http.client.HTTPConnection("localhost", port, timeout=PATIENCE_S)
    connection.putrequest(method, path)
    connection.putheader("Origin", f"http://localhost:{port}")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    size = -(-len(body) // PIECES)
    for begin in range(0, len(body), size or 1):
        connection.send(body[begin : begin + size])
        time.sleep(PAUSE_S)
    answer: dict[str, str] = json.loads(connection.getresponse().read())
    return answer
