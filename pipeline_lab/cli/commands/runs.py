"""``pipeline-lab runs``: the run store."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from pipeline_lab.cli.arguments import JsonOption, RunArgument, StoreOption
from pipeline_lab.cli.output import print_json, results, say
from pipeline_lab.report.plain_text import plain
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration

if TYPE_CHECKING:
    from pipeline_lab.runs.record import ListedRun, RunRecord, RunStatus
    from pipeline_lab.runs.run_folder import RunFolder


def run_document(folder: "RunFolder", record: "RunRecord") -> dict[str, Any]:
    """Return what is known of a run without opening its traces; times in seconds since the epoch.

    ``steps`` is None where they are not counted: in a race, and in a job recorded from outside.
    """
    status = record.status
    return {
        "schema_version": 1,
        "id": folder.id,
        "name": record.name,
        "path": str(folder.path),
        "state": status.state.value,
        "reason": status.reason,
        "created_s": status.created_s,
        "started_s": status.started_s,
        "ended_s": status.ended_s,
        "exit_code": status.exit_code,
        "steps": _count_steps(folder, record),
        "windows": len(folder.windows()),
        "tags": list(record.tags),
        "notes": record.notes,
    }


def _count_steps(folder: "RunFolder", record: "RunRecord") -> int | None:
    from pipeline_lab.runs.record import RunKind
    from pipeline_lab.runs.run_events import last_steps

    counted = last_steps(folder.events)
    return 0 if counted is None and record.kind is RunKind.RUN else counted


runs = typer.Typer(help="List, show, cancel, tag, rename and delete runs.", no_args_is_help=True)


@runs.command("list")
def list_runs(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """List all runs, newest first, the bundled samples last."""
    from pipeline_lab.runs.store import describe_unreadable, find_store

    opened = find_store(store)
    records, unreadable = opened.survey()
    if unreadable:
        say("{}", describe_unreadable(unreadable))
    if as_json:
        print_json([run_document(opened.folder(record.id), opened.read(record.id)) for record in records])
        return
    if not records:
        say("No runs in {} yet; `pipeline-lab run --preset baseline` makes one.", str(opened.root))
        return
    rows = list(map(_row, records))
    if len(rows) > MOST_IN_A_TABLE:
        _print_plainly([TITLES, *rows])
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(
        TITLES[0], no_wrap=True, min_width=max(len(record.id) for record in records)
    )  # ids are for copying
    for title in TITLES[1:]:
        table.add_column(title)
    for row in rows:
        table.add_row(*map(Text, row))
    results().print(table)


TITLES = ("Run", "Name", "State", "Created", "Took", "Tags")
MOST_IN_A_TABLE = 500
"""Most rows of a table that is fitted to the terminal; more would take seconds."""


def _print_plainly(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns of one width each, however wide the terminal is."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    typer.echo("\n".join(lines))


@runs.command()
def show(run: RunArgument, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Show one run: state, times, options, what it ran on."""
    from pipeline_lab.runs.store import find_store

    opened = find_store(store)
    record = opened.read(opened.find_id(run))
    document = run_document(opened.folder(record.id), record)
    if as_json:
        print_json(document | {"options": record.options, "environment": record.environment})
        return
    table = Table.grid(padding=(0, 2))
    steps = _steps(opened.folder(record.id), document["steps"])
    for name, value in _facts(record, steps, document["windows"], document["path"]):
        table.add_row(Text(name, style="bold"), Text(value))
    results().print(table)


@runs.command()
def tag(
    run: RunArgument,
    tags: Annotated[list[str] | None, typer.Argument(help="The run's new tags; none clears them.")] = None,
    store: StoreOption = None,
) -> None:
    """Set a run's tags."""
    from pipeline_lab.runs.store import find_store

    opened = find_store(store)
    record = opened.tag(opened.find_id(run), tuple(tags or ()))
    say("Tags of {}: {}.", record.id, ", ".join(record.tags) or "none")


@runs.command()
def rename(
    run: RunArgument,
    name: Annotated[str, typer.Argument(help="Its new name; the id stays the same.", show_default=False)],
    store: StoreOption = None,
) -> None:
    """Rename a run."""
    from pipeline_lab.runs.store import find_store

    opened = find_store(store)
    record = opened.rename(opened.find_id(run), name)
    say("{} is now called {}.", record.id, record.name)


@runs.command("rm")
def remove(
    ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of the runs.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Also delete runs written by a newer Pipeline Lab.")] = False,
    store: StoreOption = None,
) -> None:
    """Delete runs with all their files; one in progress must be canceled first."""
    from pipeline_lab.runs.store import find_store

    opened = find_store(store)
    for run_id in ids:
        opened.remove(run_id, even_if_newer=force)
        say("Deleted {}.", run_id)


@runs.command()
def cancel(
    ids: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="The runs: their ids, names, or `latest`.", show_default=False)
    ],
    store: StoreOption = None,
) -> None:
    """Stop runs that are queued or running; what they recorded is kept."""
    from pipeline_lab.runs.launch import launcher
    from pipeline_lab.runs.store import find_store

    opened = find_store(store)
    for run_id in map(opened.find_id, ids):
        state = opened.read(run_id).status.state
        if not state.is_live:
            say("{} is already over ({}).", run_id, state.label)
            continue
        launcher.cancel(opened.folder(run_id))
        say("{} stops after the current step; what it recorded is kept.", run_id)


def _row(record: "ListedRun") -> tuple[str, ...]:
    status = record.status
    return (
        record.id,
        record.name,
        status.state.label,
        _moment(status.created_s),
        _took(status),
        ", ".join(record.tags),
    )


def _steps(folder: "RunFolder", counted: int | None) -> str:
    """Say how many steps a job has taken, or, if not counted, how many its windows contain."""
    if counted is not None:
        return str(counted)
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
    from pipeline_lab.errors import Unavailable

    diagnosis = SavedDiagnosis(folder.path).load_latest()
    if diagnosis is None:
        return "not counted"
    return diagnosis.steps.reason if isinstance(diagnosis.steps, Unavailable) else f"{diagnosis.steps.count} in windows"


def _facts(record: "RunRecord", steps: str, windows: int, path: str) -> list[tuple[str, str]]:
    status = record.status
    facts = [
        ("Run", record.id),
        ("Name", record.name),
        ("State", f"{status.state.label}. {status.reason}" if status.reason else status.state.label),
        ("Created", _moment(status.created_s)),
        ("Took", _took(status)),
        ("Steps", steps),
        ("Windows", str(windows)),
        ("Tags", ", ".join(record.tags)),
        ("Notes", record.notes),
        ("Stages", " → ".join(_stages(record))),
        *[_fact(name, value) for name, value in record.environment.items() if value and not isinstance(value, dict)],
        ("Folder", path),
    ]
    return [(name, value) for name, value in facts if value]


def _fact(name: str, value: Any) -> tuple[str, str]:
    if name.endswith("_bytes"):
        return name.removesuffix("_bytes"), format_bytes(value)
    return name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _stages(record: "RunRecord") -> list[str]:
    pipeline = (record.options or {}).get("pipeline", {})
    return [str(stage.get("stage")) for stage in pipeline.get("stages", ())]


def _moment(epoch_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(epoch_s))


def _took(status: "RunStatus") -> str:
    return "" if (took_s := status.took_s) is None else format_duration(took_s * NS_PER_S)
