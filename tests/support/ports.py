"""Ports for servers of tests."""

import contextlib
import random
import socket

PORTS = range(20_000, 32_000)
"""Below those that the system gives to clients, of which one might take a port before its server does."""


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    while True:
        port = random.SystemRandom().choice(PORTS)  # every test begins with the same seed
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port
