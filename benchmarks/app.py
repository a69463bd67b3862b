"""The app in a process of its own, for benchmarks that look at it through a browser."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

LONGEST_END_S = 30
ROOT = Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def serve_app(store: str, **environment: str) -> Iterator[str]:
    """Start the app on a store and yield its address once it answers; it ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.headless", "true"],
        cwd=ROOT,
        env={**os.environ, "PIPELINE_LAB_STORE": store, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _answers(f"http://127.0.0.1:{port}/_stcore/health"):
            if server.poll() is not None:
                raise RuntimeError(f"The app ended with code {server.returncode} before it answered.")
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(LONGEST_END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False
