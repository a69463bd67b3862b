"""``pipeline-lab analyze``: a run, a log directory, a trace file or an archive → diagnosis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pipeline_lab.cli.arguments import HtmlOption, StoreOption
from pipeline_lab.cli.output import messages, print_json, results, say

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis


def analyze(
    path: Annotated[
        str,
        typer.Argument(
            help="A run's id, a run folder, a log directory, a trace file or an archive.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole diagnosis as one JSON object.")] = False,
    html: HtmlOption = None,
    store: StoreOption = None,
) -> None:
    """Say why the device waited: the verdict first, then the numbers behind it."""
    from pipeline_lab.comparison.opening import find_path

    found = find_path(path, store)
    with messages().status(f"Reading {escape(found.name)} …"):
        from pipeline_lab.analysis.saved import diagnose_saved

        diagnosis = diagnose_saved(found)
    if html is not None:
        _write_html(diagnosis, html)
    if as_json:
        print_json(diagnosis.to_json())
        return
    from pipeline_lab.cli.summary import summarise

    results().print(summarise(diagnosis))


def _write_html(diagnosis: "Diagnosis", path: Path) -> None:
    from pipeline_lab.comparison.opening import open_recorded
    from pipeline_lab.report.catalogue import find_format
    from pipeline_lab.report.export import write_report
    from pipeline_lab.report.report_on import report_on

    say("Report: {}", str(write_report(report_on([open_recorded(diagnosis)]), find_format("html"), path)))
