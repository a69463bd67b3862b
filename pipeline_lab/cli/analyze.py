"""``pipeline-lab analyze``: a run, a log directory, a trace file or an archive → diagnosis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.cli.arguments import HtmlOption, StoreOption
from pipeline_lab.cli.html import write_html
from pipeline_lab.cli.output import messages, print_json, results
from pipeline_lab.cli.reading import reading

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis
    from pipeline_lab.analysis.xprof_comparison import CrossCheck


def analyze(
    path: Annotated[
        str,
        typer.Argument(
            help="A run's id, a run folder, a log directory, a trace file or an archive.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole diagnosis as one JSON object.")] = False,
    xprof: Annotated[bool, typer.Option("--xprof", help="Also ask XProf, and say why its numbers differ.")] = False,
    html: HtmlOption = None,
    store: StoreOption = None,
) -> None:
    """Say why the device waited: the verdict first, then the numbers behind it."""
    from pipeline_lab.runs.finding import find_path

    found = find_path(path, store)
    with reading(found.name):
        from pipeline_lab.advice.advising import advise
        from pipeline_lab.analysis.saved import diagnose_saved
        from pipeline_lab.runs.single import check_is_one

        check_is_one(found)
        diagnosis = advise(diagnose_saved(found))
    check = _ask_xprof(found, diagnosis) if xprof else None
    if html is not None:
        write_html(diagnosis, html)
    if as_json:
        print_json(diagnosis.to_json() | ({"xprof": check.to_json()} if check else {}))
        return
    from pipeline_lab.cli.summary import summarise
    from pipeline_lab.cli.xprof_table import xprof_table

    results().print(summarise(diagnosis), crop=False)  # a command goes on to its end
    if check is not None:
        results().print(xprof_table(check))


def _ask_xprof(path: Path, diagnosis: "Diagnosis") -> "CrossCheck":
    with messages().status("Asking XProf …"):
        from pipeline_lab.analysis.cross_check import cross_check_saved

        return cross_check_saved(path, diagnosis)
