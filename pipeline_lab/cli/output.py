"""Output of the command line: results to standard output, everything else to standard error; and a gate's exit code."""

import json
import re
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.status import Status

from pipeline_lab.report.plain_text import plain, plain_json

if TYPE_CHECKING:
    from pipeline_lab.comparison.gate import Gate

_WIDE = 160


class _SafeConsole(Console):
    """A console that prints no control characters of names and other texts, which would reach the terminal as commands."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


class _Trimmed(StringIO):
    """Standard output without trailing spaces."""

    def write(self, text: str) -> int:
        sys.stdout.write(re.sub(r" +(?=\n)", "", text))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def messages() -> Console:
    """Return the console for progress and messages."""
    return _SafeConsole(stderr=True, highlight=False, soft_wrap=True)


def results() -> Console:
    """Return the console for results; output to a file or a pipe is not cut to 80 columns."""
    console = _SafeConsole(highlight=False)
    return console if console.is_terminal else _SafeConsole(highlight=False, width=_WIDE, file=_Trimmed())


def say(markup: str, *texts: str) -> None:
    """Write a message; ``{}`` in the markup stands for text that is printed literally."""
    messages().print(markup.format(*map(escape, texts)))


def print_json(document: Any) -> None:
    """Print a result as JSON."""
    typer.echo(plain_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)))


def write_html(result: object, path: Path) -> None:
    """Write the HTML report of a diagnosis, a comparison or a race, and say where it is."""
    from pipeline_lab.report.formats import find_format, write_report
    from pipeline_lab.report.report_on import report_result

    say("Report: {}", str(write_report(report_result(result), find_format("html"), path)))


def show_report(result: object) -> None:
    """Print the short form of the report of a comparison, a race or a search."""
    from pipeline_lab.report.renderers.terminal import render_terminal
    from pipeline_lab.report.report_on import report_result

    content = report_result(result).content()
    results().print(render_terminal(content), crop=False)  # keep commands on one line


THRESHOLD_CROSSED, UNDECIDED = 3, 4


def exit_with(gate: "Gate") -> NoReturn:
    """Print the answer and exit: 0 passed, 3 crossed, 4 undecided."""
    from pipeline_lab.statistics.outcome import GateAnswer

    codes = {GateAnswer.PASSED: 0, GateAnswer.CROSSED: THRESHOLD_CROSSED, GateAnswer.UNDECIDED: UNDECIDED}
    messages().print(escape(gate.sentence))
    raise typer.Exit(codes[gate.answer])


def reading(name: str) -> AbstractContextManager[Status]:
    """Show that a log is being read, and that the first time on a machine takes some seconds longer."""
    from pipeline_lab.trace.compiled import is_compiled

    first = "" if is_compiled() else " (compiling the reader, once on this machine)"
    return messages().status(f"Reading {escape(name)} …{first}")
