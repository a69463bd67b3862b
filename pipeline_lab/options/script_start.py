"""A user's script as a command line starts it: what a race inside it, and a search for a better one, have in common."""

import shlex
from pathlib import Path

from pydantic import Field

from pipeline_lab.fields import Options


class ScriptStart(Options):
    """A script, its arguments and where it is run."""

    script: str = Field(min_length=1, max_length=4096)
    """Path of the script, or name of the module."""
    is_module: bool = False
    """Run as ``python -m``."""
    arguments: tuple[str, ...] = ()
    """The script's own."""
    folder: str = Field(min_length=1, max_length=4096)
    """Where it is run."""

    @property
    def path(self) -> Path:
        """Where the script lies."""
        return Path(self.folder) / self.script

    @property
    def source(self) -> str:
        """The script's text; empty for a module, and where it cannot be read."""
        try:
            return "" if self.is_module else self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    @property
    def command(self) -> str:
        """The script as a command line starts it."""
        return shlex.join([*(["-m"] if self.is_module else []), self.script, *self.arguments])
