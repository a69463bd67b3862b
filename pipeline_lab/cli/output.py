"""Where the command line writes: results to standard output, everything else to standard error."""

import json
import re
import sys
from io import StringIO
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

_WIDE = 160


class _Trimmed(StringIO):
    """Standard output without the blanks that fill lines up to the width of a screen."""

    def write(self, text: str) -> int:
        sys.stdout.write(re.sub(r" +(?=\n)", "", text))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def messages() -> Console:
    """Return the console for progress and messages."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def results() -> Console:
    """Return the console for results that people read; what goes into a file or a pipe is not cut to 80 columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE, file=_Trimmed())


def say(markup: str, *texts: str) -> None:
    """Write a message; ``{}`` in the markup stands for a text that is printed as it is."""
    messages().print(markup.format(*map(escape, texts)))


def print_json(document: Any) -> None:
    """Print a result as JSON."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
