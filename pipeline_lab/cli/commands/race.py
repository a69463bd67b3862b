"""``pipeline-lab race``: option sets that take turns in one process, and a gate for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.cli.arguments import AddOption, HtmlOption, SetOption, StoreOption, WorkloadOption, apply_settings
from pipeline_lab.cli.output import exit_with, print_json, say, show_report, write_html
from pipeline_lab.errors import OptionsError, RunFailedError

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.run_folder import RunFolder


THROWN_AWAY = (
    "The training of [bold]{}[/] is run from its start until the answer is known, and then thrown away; files that the script "
    "writes until then, such as logs and checkpoints, stay."
)


def race(
    options: Annotated[
        list[str],
        typer.Argument(
            metavar="OPTIONS...",
            help="Two or more presets (with --workload its own), JSON files of options, or runs; the first is the baseline. "
            "With --change a script and, after --, its arguments.",
            show_default=False,
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="CHANGE",
            help="Race a script's pipeline against a copy with this change, such as 'train.py:41 num_parallel_calls=8' or prefetch; "
            "several in one candidate with ; between them. May be repeated.",
            show_default=False,
        ),
    ] = None,
    module: Annotated[bool, typer.Option("-m", help="The script is a module, as in `python -m`.")] = False,
    workload: WorkloadOption = None,
    settings: SetOption = None,
    added: AddOption = None,
    pairs: Annotated[int | None, typer.Option(help="Maximum number of rounds, at least 6.", show_default="30")] = None,
    block: Annotated[
        int | None, typer.Option(metavar="STEPS", help="Measured steps of an arm in a round.", show_default="10")
    ] = None,
    margin: Annotated[
        str | None, typer.Option(metavar="PCT", help="Smallest difference that matters.", show_default="3%")
    ] = None,
    fail_if_slower: Annotated[
        str | None,
        typer.Option(
            metavar="PCT",
            help="Exit with code 3 if a candidate is slower by more than this, 4 if undecided.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Maximum duration without warm-up.", show_default="600")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the race.", show_default=False)] = None,
    html: HtmlOption = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Race pipelines against the first one: blocks in random order in one process, until the answer is clear.

    --set applies to all of them. With --change, pipelines race inside a script's own training, whose result is discarded.
    """
    from pipeline_lab.comparison.gate import parse_percent
    from pipeline_lab.comparison.race_result import read_race
    from pipeline_lab.comparison.racing import choose_race, choose_script_race, find_arm
    from pipeline_lab.options.race_options import AnyRace
    from pipeline_lab.options.run_options import own_options
    from pipeline_lab.runs.launch.launcher import launch
    from pipeline_lab.runs.store import open_store

    opened = open_store(store)
    given = {
        "name": name,
        "pairs": pairs,
        "block_steps": block,
        "margin_percent": None if margin is None else parse_percent(margin),
        "fail_if_slower_percent": None if fail_if_slower is None else parse_percent(fail_if_slower),
        "max_seconds": seconds,
    }
    chosen: AnyRace
    if changes or module or options[0].endswith(".py"):
        if workload is not None or settings or added:
            raise OptionsError("A script races as it is; leave --workload, --set and --add out.")
        script, *arguments = options
        chosen = choose_script_race(script, arguments, changes or [], is_module=module, **given)
        say(THROWN_AWAY, chosen.command)
    else:
        own = None if workload is None else own_options(workload, str(Path.cwd()))
        arms = [apply_settings(find_arm(each, opened, own=own), settings, store, added) for each in options]
        chosen = choose_race(arms, **given)
    from pipeline_lab.cli.following import follow_run, stop_requests

    with stop_requests() as requests:
        folder = launch(opened, chosen)
        record = follow_run(folder, requests)
    check_end(folder, record)
    found = read_race(folder)
    if html is not None:
        write_html(found, html)
    if as_json:
        print_json(found.to_json())
    else:
        show_report(found)
        say("Next: [bold]pipeline-lab report {} --format html --output race.html[/]", folder.id)
    if found.gate is not None:
        exit_with(found.gate)


def check_end(folder: "RunFolder", record: "RunRecord") -> None:
    """Say that a race is done.

    Raises:
        RunFailedError: It is not.
    """
    from pipeline_lab.runs.record import RunState

    if record.status.state is not RunState.DONE:
        raise RunFailedError(f"Race {folder.id} {record.status.state.label}: {record.status.reason}")
    say("Done: race [bold]{}[/]", folder.id)
