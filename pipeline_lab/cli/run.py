"""``pipeline-lab run``: one job to its end."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.cli.arguments import StoreOption
from pipeline_lab.cli.choice import SetOption, apply_settings, choose_options, limit_length
from pipeline_lab.cli.output import messages, print_json, say
from pipeline_lab.errors import RunFailedError

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.store import RunFolder


def run(
    preset: Annotated[str | None, typer.Option(help="A preset, as `presets` lists them.", show_default=False)] = None,
    options: Annotated[
        Path | None, typer.Option(help="A JSON file of options, as `options PRESET` prints it.", show_default=False)
    ] = None,
    settings: SetOption = None,
    steps: Annotated[int | None, typer.Option(help="Training steps after the warm-up.", show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Train for this long instead of a number of steps.", show_default=False)
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the id.")] = False,
) -> None:
    """Run one job to its end and print its id; Ctrl-C cancels it and keeps what was recorded."""
    from pipeline_lab.cli.run_document import run_document
    from pipeline_lab.runs.launcher import launch
    from pipeline_lab.runs.store import open_store

    chosen = limit_length(apply_settings(choose_options(preset, options), settings), steps, seconds)
    with _stop_requests() as requests:
        folder = launch(open_store(store), chosen)
        record = _follow(folder, requests)
    if as_json:
        print_json(run_document(folder, record))
    else:
        typer.echo(folder.id)
    _tell_end(folder, record)


@dataclass
class _StopRequests:
    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:  # the run ends without us
            raise KeyboardInterrupt


@contextlib.contextmanager
def _stop_requests() -> Iterator[_StopRequests]:
    """Count Ctrl-C and its like instead of dying from it: the run is told to stop, and we stay to its end."""
    requests = _StopRequests()
    before = {number: signal.signal(number, requests.add) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(folder: "RunFolder", requests: _StopRequests) -> "RunRecord":
    from pipeline_lab.cli.progress import RunProgress
    from pipeline_lab.runs.launcher import cancel, follow

    told = False
    with RunProgress(messages()) as progress:
        progress.note(f"Run {folder.id}")
        for update in follow(folder):
            progress.show(update)
            if requests.count and not told:
                cancel(folder)
                progress.note("Cancelling; what was recorded is kept.")
                told = True
    return update.record


def _tell_end(folder: "RunFolder", record: "RunRecord") -> None:
    from pipeline_lab.runs.record import RunState

    status = record.status
    if status.state is not RunState.DONE:
        raise RunFailedError(f"Run {folder.id} {_HOW[status.state]}: {status.reason}")
    say("Done. See where the time went: [bold]pipeline-lab analyze {}[/]", str(folder.path))


_HOW = {"failed": "failed", "cancelled": "was cancelled", "lost": "was lost"}
