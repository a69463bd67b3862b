"""``pipeline-lab analyze``: a run, a log directory, a trace file or an archive → diagnosis."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pipeline_lab.cli.arguments import HtmlOption, StoreOption
from pipeline_lab.cli.html import write_html
from pipeline_lab.cli.output import messages, print_json, results

if TYPE_CHECKING:
    pass


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
        write_html(diagnosis, html)
    if as_json:
        print_json(diagnosis.to_json())
        return
    from pipeline_lab.cli.summary import summarise

    results().print(summarise(diagnosis))
