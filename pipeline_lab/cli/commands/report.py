"""``pipeline-lab report``: the same reports as in the app."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline_lab.cli.arguments import StoreOption
from pipeline_lab.cli.output import messages, say


def report(
    runs: Annotated[
        list[str],
        typer.Argument(help="One run, race, search or log; or several runs, the baseline first.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write; CSV, Parquet, PNG and SVG write a folder, or a zip if it ends in .zip. Missing folders are created.",
        ),
    ],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="html|markdown|json|csv|parquet|png|svg",
            help="Format; by default from the file's extension, else html.",
            show_default=False,
        ),
    ] = None,
    notes: Annotated[str, typer.Option(help="Notes to show in the report.")] = "",
    store: StoreOption = None,
) -> None:
    """Write a report of a run, a comparison of runs, a race, or a search."""
    from pipeline_lab.report.formats import find_format, format_of_file, write_report
    from pipeline_lab.report.report_on import report_on
    from pipeline_lab.tuning.opened_search import open_with_searches

    report_format = format_of_file(output.name) if format_name is None else find_format(format_name)
    with messages().status("Reading and writing …"):
        opened = [open_with_searches(run, store) for run in runs]
        written = write_report(report_on(opened, notes), report_format, output)
    say("Report: {}", str(written))
