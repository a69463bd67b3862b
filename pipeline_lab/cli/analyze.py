"""``pipeline-lab analyze``: a run, a log directory, a trace file or an archive → diagnosis."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipeline_lab.cli.arguments import StoreOption
from pipeline_lab.cli.output import messages, print_json, results
from pipeline_lab.errors import StoreError, TraceReadError


def analyze(
    path: Annotated[
        str,
        typer.Argument(
            help="A run's id, a run folder, a log directory, a trace file or an archive.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole diagnosis as one JSON object.")] = False,
    store: StoreOption = None,
) -> None:
    """Say why the device waited: the verdict first, then the numbers behind it."""
    found = _find(path, store)
    with messages().status(f"Reading {escape(found.name)} …"):
        from pipeline_lab.analysis.diagnosis import diagnose

        diagnosis = diagnose(found)
    if as_json:
        print_json(diagnosis.to_json())
        return
    from pipeline_lab.cli.summary import summarise

    results().print(summarise(diagnosis))


def _find(path: str, store: Path | None) -> Path:
    from pipeline_lab.runs.store import open_store

    if Path(path).exists():
        return Path(path)
    opened = open_store(store)
    try:
        return opened.folder(path).path
    except StoreError:
        raise TraceReadError(
            f"There is no file or folder {path!r}, and no run of that id in {opened.root}; "
            "`pipeline-lab runs list` shows the runs."
        ) from None
