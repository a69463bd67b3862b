"""What machine the tests run on, found out without the code under test."""

import platform


def on_x86_linux() -> bool:
    """Say whether compiled loops must run without LLVM here."""
    return platform.system() == "Linux" and platform.machine() == "x86_64"
