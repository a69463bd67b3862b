"""Each test has a lab of its own."""

from tests.support.lab import lab

__all__ = ["lab"]
