"""``pipeline-lab analyze``: a run, a log directory, a trace file or an archive → diagnosis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.analysis.diagnosis.executors import TraceExecutor, in_turn, processes_if_many
from pipeline_lab.cli.arguments import HtmlOption, StoreOption
from pipeline_lab.cli.output import messages, print_json, reading, results, write_html
from pipeline_lab.errors import OptionsError

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis
    from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck


def analyze(
    path: Annotated[
        str,
        typer.Argument(
            help="A run (its id, its name, or `latest`), a run folder, a log directory, a trace file or an archive.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole diagnosis as one JSON object.")] = False,
    xprof: Annotated[bool, typer.Option("--xprof", help="Also run XProf, and explain differences.")] = False,
    html: HtmlOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of traces to read in parallel, one process each.",
            min=1,
            show_default="1; from 400 small traces on, one for every 200, at most one per core",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Read traces on every machine of a Ray cluster.", show_default=False),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Diagnose why the device waited: the verdict, then the numbers behind it."""
    from pipeline_lab.runs.store import find_path

    found, spread = find_path(path, store), _spread(workers, ray, store)
    if not (as_json or xprof or html):
        from pipeline_lab.report.kept_overview import overview_at
        from pipeline_lab.report.renderers.terminal import render_terminal

        content = overview_at(found, spread=spread, while_reading=reading)
        results().print(render_terminal(content), crop=False)  # keep commands on one line
        return
    from pipeline_lab.advice.analyzing import analyze_path

    diagnosis = analyze_path(found, spread=spread, while_reading=reading)
    check = _ask_xprof(found, diagnosis) if xprof else None
    if html is not None:
        write_html(diagnosis, html)
    if as_json:
        print_json(diagnosis.to_json() | ({"xprof": check.to_json()} if check else {}))
        return
    from pipeline_lab.report.overview import overview, xprof_section
    from pipeline_lab.report.renderers.terminal import render_terminal

    beside = [] if check is None else [xprof_section(check)]
    results().print(render_terminal(overview(diagnosis), *beside), crop=False)


def _spread(workers: int | None, ray: str | None, store: Path | None) -> TraceExecutor:
    """Return who reads the traces."""
    if workers is not None and ray is not None:
        raise OptionsError("--workers uses processes of this machine and --ray a cluster; choose one.")
    if workers is None and ray is None:
        return processes_if_many()
    if workers == 1:
        return in_turn
    from pipeline_lab.runs.store import open_store
    from pipeline_lab.tuning.executors.local import spread_over

    return spread_over(ray, open_store(store), workers)


def _ask_xprof(path: Path, diagnosis: "Diagnosis") -> "CrossCheck":
    with messages().status("Running XProf …"):
        from pipeline_lab.analysis.xprof.cross_check import cross_check_saved

        return cross_check_saved(path, diagnosis)
