"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Folder of the runs; else PIPELINE_LAB_STORE, else ./profiles where it exists, else your data folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.", show_default=False)]
RunArgument = Annotated[str, typer.Argument(help="A run's id, as `runs list` shows it.", show_default=False)]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write a self-contained HTML report.", show_default=False),
]
