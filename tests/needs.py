"""What some tests need and a machine may lack: they are left out with one line that says so; in CI they fail.

``python -m tests.needs`` prints the Debian packages that this machine lacks, for whoever installs them.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REFERENCE_TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"


@dataclass(frozen=True)
class Need:
    """Something outside the project that the tests with a marker need.

    Attributes:
        marker: The tests' marker.
        thing: What they need, as a sentence names it.
        find: Returns its path, or None where it is missing.
        way: How to get it.
        package: The Debian package that has it; empty if none does.
    """

    marker: str
    thing: str
    find: Callable[[], str | None]
    way: str
    package: str = ""

    def __str__(self) -> str:
        return f"{self.thing} is missing; {self.way}"


def find_chromium() -> str | None:
    """Return the path of the browser that the tests drive."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def _find_reference_traces() -> str | None:
    return str(REFERENCE_TRACES) if REFERENCE_TRACES.is_dir() else None


NEEDS = (
    Need("browser", "Chromium", find_chromium, "install it with `sudo apt-get install chromium`", "chromium"),
    Need("pretend_gpu", "g++", lambda: shutil.which("g++"), "install it with `sudo apt-get install g++`", "g++"),
    Need(
        "reference_traces",
        "the folder of reference captures",
        _find_reference_traces,
        f"place it at {REFERENCE_TRACES}",
    ),
)


def is_required() -> bool:
    """Return whether tests fail where something is missing, rather than being left out."""
    return "CI" in os.environ


def find_missing() -> dict[str, Need]:
    """Return what this machine lacks, by marker."""
    return {need.marker: need for need in NEEDS if need.find() is None}


def describe_left_out(counts: dict[str, int]) -> list[str]:
    """Return a line per need for the number of tests that were left out, by marker."""
    needs = {need.marker: need for need in NEEDS}
    return [f"Left out {count} {marker} test{'s' * (count != 1)}: {needs[marker]}." for marker, count in counts.items()]


if __name__ == "__main__":
    print(*[need.package for need in find_missing().values() if need.package])
