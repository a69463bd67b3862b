"""``pipeline-lab doctor``: what works on this machine, what does not, what to do."""

from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from pipeline_lab.cli.arguments import JsonOption, StoreOption
from pipeline_lab.cli.output import messages, print_json, results

if TYPE_CHECKING:
    from pipeline_lab.cli.checks import Check


def doctor(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Check Python, TensorFlow, GPU, profiler, disk and store; says what to do about what does not work."""
    from pipeline_lab.cli.checks import find_gpus, probe_tensorflow, quick_checks, tensorflow_checks
    from pipeline_lab.runs.store import open_store

    found = list(quick_checks(open_store(store)))
    with messages().status("Starting TensorFlow; this takes some seconds …"):
        found += tensorflow_checks(probe_tensorflow, find_gpus())
    if as_json:
        print_json([check.to_json() for check in found])
    else:
        results().print(_table(found))
    if any(check.needed and not check.works for check in found):
        raise typer.Exit(1)


def _table(checks: "list[Check]") -> Table:
    table = Table.grid(padding=(0, 2))
    for check in checks:
        mark = "[green]works[/]" if check.works else "[red]broken[/]" if check.needed else "[yellow]missing[/]"
        advice = f"\n→ {check.advice}" if check.advice else ""
        table.add_row(mark, Text(check.name, style="bold"), Text(check.found + advice))
    return table
