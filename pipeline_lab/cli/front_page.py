"""The help of all commands, written without Typer: loading what draws its help takes longer than all the rest.

Each command's line is its own: the first paragraph of its function's docstring, or the ``help`` of a group, read from its
module without importing that. Help of a single command is Typer's.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

COMMANDS = (
    "app",
    "run",
    "presets",
    "options",
    "analyze",
    "compare",
    "race",
    "what_if",
    "tune",
    "fix",
    "report",
    "code",
    "events",
    "capture",
    "doctor",
    "watch",
    "runs",
)
"""Modules of ``commands/`` in the order of the help; each holds a function of its own name, whose docstring is its help."""

SUMMARY = "Why is the accelerator waiting for its input, what should change, and did the change work?"
OPTIONS = (
    ("--version", "Print the version and exit."),
    ("--install-completion", "Install completion for the current shell."),
    ("--show-completion", "Show completion for the current shell, to copy it or customize the installation."),
    ("--help, -h", "Show this message and exit."),
)
Style = Callable[[str, str], str]
_WIDEST = 100
_BOLD, _CYAN, _DIM = "1", "1;36", "2"


def print_front_page(program: str) -> None:
    """Print the help of all commands, as far as the terminal or a pipe takes it."""
    text = write_front_page(program)
    try:
        sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_front_page(program: str) -> str:
    """Return the help of all commands as wide as the terminal, in color where it goes to one."""
    width = max(40, min(_WIDEST, shutil.get_terminal_size().columns))
    is_colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    style = _in_color if is_colored else _plain
    commands = [(name.replace("_", "-"), summarize(name)) for name in COMMANDS]
    lines = [
        "",
        f" {style('Usage:', _BOLD)} {program} [OPTIONS] COMMAND [ARGS]...",
        "",
        *(f" {line}" for line in textwrap.wrap(SUMMARY, width - 2)),
        "",
        *_panel("Options", OPTIONS, width, style),
        *_panel("Commands", commands, width, style),
    ]
    return "\n".join(lines) + "\n"


def summarize(name: str) -> str:
    """Return what a command does, as its own help begins."""
    text = (Path(__file__).parent / "commands" / f"{name}.py").read_text(encoding="utf-8")
    group = re.search(rf'^{name} = typer\.Typer\(help="(.+?)"', text, re.MULTILINE)
    found = group or re.search(rf'^def {name}\(.*?^    """(.+?)(?:\n\n|""")', text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{name} has no docstring"
    return " ".join(found[1].split())


def _panel(title: str, rows: Sequence[tuple[str, str]], width: int, style: Style) -> Iterator[str]:
    column = max(len(name) for name, _ in rows) + 2
    yield style(f"╭─ {title} {'─' * (width - len(title) - 5)}╮", _DIM)
    for name, text in rows:
        for number, line in enumerate(textwrap.wrap(text, width - column - 4)):
            left = (name if not number else "").ljust(column)
            yield f"{style('│', _DIM)} {style(left, _CYAN)}{line.ljust(width - column - 4)} {style('│', _DIM)}"
    yield style(f"╰{'─' * (width - 2)}╯", _DIM)


def _in_color(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(text: str, _code: str) -> str:
    return text
