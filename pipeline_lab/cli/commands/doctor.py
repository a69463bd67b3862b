"""``pipeline-lab doctor``: what works on this machine, what does not, what to do. TensorFlow runs in a separate process."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from pipeline_lab.cli.arguments import JsonOption, StoreOption
from pipeline_lab.cli.output import messages, print_json, results

if TYPE_CHECKING:
    from pipeline_lab.cli.checks import Check


def doctor(
    gpu: Annotated[bool, typer.Option("--gpu", help="Also measure what only a real GPU shows; takes minutes.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Check Python, TensorFlow, GPU, profiler, disk and store, and advise on what does not work."""
    from pipeline_lab.cli.checks import ask_tensorflow, gpu_checks, has_gpu, job_checks, tensorflow_checks
    from pipeline_lab.cli.quick_checks import quick_checks
    from pipeline_lab.runs.machine.nvidia import find_gpus
    from pipeline_lab.runs.store import open_store

    found = list(quick_checks(open_store(store)))
    with messages().status("Measuring with TensorFlow …" if gpu else "Starting TensorFlow; this takes a few seconds …"):
        answers, gpus = ask_tensorflow(on_gpu=gpu), find_gpus()
        found += tensorflow_checks(answers, gpus)
    if gpu:
        found += gpu_checks(answers, gpus)
        if has_gpu(answers):
            with messages().status("Running a short job …"):
                found += job_checks()
    if as_json:
        print_json([check.to_json() for check in found])
    else:
        results().print(_table(found))
    if any(check.needed and not check.works for check in found) or (gpu and not has_gpu(answers)):
        raise typer.Exit(1)


def _table(checks: "list[Check]") -> Table:
    table = Table.grid(padding=(0, 2))
    for check in checks:
        mark = "[green]works[/]" if check.works else "[red]broken[/]" if check.needed else "[yellow]missing[/]"
        advice = f"\n→ {check.advice}" if check.advice else ""
        table.add_row(mark, Text(check.name, style="bold"), Text(check.found + advice))
    return table
