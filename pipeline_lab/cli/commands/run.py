"""``pipeline-lab run``: one job to its end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.cli.arguments import (
    AddOption,
    SetOption,
    StoreOption,
    WorkloadOption,
    apply_settings,
    choose_options,
    limit_length,
)
from pipeline_lab.cli.output import print_json, say
from pipeline_lab.errors import RunFailedError

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.run_folder import RunFolder


def run(
    preset: Annotated[str | None, typer.Option(help="A preset, as `presets` lists them.", show_default=False)] = None,
    options: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file of options, as `options PRESET` prints it, or a run to repeat.", show_default=False
        ),
    ] = None,
    workload: WorkloadOption = None,
    settings: SetOption = None,
    added: AddOption = None,
    steps: Annotated[int | None, typer.Option(help="Training steps after the warm-up.", show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Train for this many seconds instead of a number of steps.", show_default=False)
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the id.")] = False,
) -> None:
    """Run one job and print its id; Ctrl-C cancels it and keeps what was recorded."""
    from pipeline_lab.cli.closing import tell_next
    from pipeline_lab.cli.commands.runs import run_document
    from pipeline_lab.runs.launch.launcher import launch
    from pipeline_lab.runs.store import open_store

    chosen = limit_length(
        apply_settings(choose_options(preset, options, workload, store), settings, store, added), steps, seconds
    )
    from pipeline_lab.cli.following import follow_run, stop_requests

    with stop_requests() as requests:
        folder = launch(open_store(store), chosen)
        record = follow_run(folder, requests)
    if as_json:
        print_json(run_document(folder, record))
    else:
        typer.echo(folder.id)
    check_end(folder, record)
    if record.status.reason:
        say("{}", record.status.reason)
    tell_next(folder)


def check_end(folder: "RunFolder", record: "RunRecord") -> None:
    """Continue only if a run succeeded.

    Raises:
        RunFailedError: It did not succeed.
    """
    from pipeline_lab.runs.record import RunState

    status = record.status
    if status.state is not RunState.DONE:
        raise RunFailedError(f"Run {folder.id} {_HOW[status.state]}: {status.reason}")


_HOW = {"failed": "failed", "cancelled": "was canceled", "lost": "was lost"}
