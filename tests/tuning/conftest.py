"""Each test has a lab of its own."""

from tests.support.lab import lab as lab
