"""``pipeline-lab fix``: what to change in a training script, proved on its own data, as a diff."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.cli.arguments import OF_THE_SCRIPT, ModuleOption, ScriptArgument, ScriptArguments, StoreOption
from pipeline_lab.cli.output import print_json, say
from pipeline_lab.errors import OptionsError, PipelineLabError, Unavailable
from pipeline_lab.units import format_percent

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Diagnosis
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.tuning.fixing import Fix
    from pipeline_lab.tuning.proof import Script

CONTEXT_SETTINGS = OF_THE_SCRIPT


def fix(
    script: ScriptArgument,
    arguments: ScriptArguments = None,
    module: ModuleOption = False,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="CHANGE",
            help="Make this change instead of what helps: prefetch, 'train.py:41 cache' or 'train.py:41 num_parallel_calls=8'. May be repeated.",
            show_default=False,
        ),
    ] = None,
    may_reorder: Annotated[
        bool, typer.Option("--may-reorder", help="Also changes that give the examples in another order.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="A recorded run of the script, instead of a new one.", show_default=False),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(metavar="TIME", help="Time to record the training, and again to race, at most: 90s, 15m."),
    ] = "60s",
    race: Annotated[bool, typer.Option(help="Race the changes inside the script's own training.")] = True,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the change into the files; keeps a backup where git does not.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Find what to change in a training script, prove that its model sees the same examples, and print the diff.

    The script runs for a while, and then again up to its training, once as it is and once or more with changes.
    """
    from pipeline_lab.cli.commands.tune import parse_time_s
    from pipeline_lab.runs.store import open_store
    from pipeline_lab.tuning.fixing import Wishes, find_fix, race_fix, to_json
    from pipeline_lab.tuning.proof import Script

    if not module and not Path(script).is_file():
        raise OptionsError(f"There is no script {script}; specify a Python file, or a module with -m.")
    started = Script(script, tuple(arguments or ()), module)
    seconds = parse_time_s(budget)
    folder = _recorded(started, run, seconds, store)
    wishes = Wishes(tuple(change or ()), may_reorder)
    found = find_fix(folder, started, wishes, _diagnose(folder), lambda sentence: say("{}", sentence))
    if race and found.changes:
        say("Racing them inside the script's own training, which is thrown away …")
        found = race_fix(found, started, open_store(store), seconds)
    if as_json:
        print_json({**to_json(found, Path.cwd()), "run": folder.id})
    else:
        _print(found)
    if apply and found.edited is not None:
        _write(found)
    if not as_json:
        say("Next: [bold]{}[/]", _next(found, started, folder, applied=apply))


def _recorded(started: "Script", run: str | None, seconds: float, store: Path | None) -> "RunFolder":
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import find_path, find_store, open_store
    from pipeline_lab.tuning.recorded_script import record_script

    if run is not None:
        return RunFolder(find_path(run, find_store(store)))
    say("Recording {} for up to {} s …", started.target, f"{seconds:g}")
    return record_script(started, open_store(store), seconds)


def _diagnose(folder: "RunFolder") -> "Diagnosis | Unavailable":
    """Return what holds the training up, and say it."""
    from pipeline_lab.advice.advising import analyze_path

    try:
        found = analyze_path(folder.path)
    except PipelineLabError as error:
        say("{}", str(error))
        return Unavailable(str(error))
    say("[bold]{}[/]", found.verdict.sentence)
    return found


def _print(found: "Fix") -> None:
    diff = found.diff(Path.cwd())
    if diff:
        typer.echo(diff, nl=False)
    for change in found.changes:
        say("[bold]{}[/] {} ({}).", change.words, change.effect.value.capitalize(), change.risk.value)
        for also in change.also:
            say("  {}", also)
    if found.proof is not None:
        say("[bold]Proof:[/] {}", found.proof.sentence)
        say("[bold]Gain:[/] {}", _gain(found))
    if found.note:
        say("[bold]{}[/]", found.note)
    if found.left:
        say("Left alone:")
    for left in found.left:
        say("  {} {}", left.change.words, left.reason)


def _next(found: "Fix", started: "Script", folder: "RunFolder", *, applied: bool) -> str:
    """Return the command that comes next: write the change, see what it did, or look at the run where there is none."""
    if found.edited is None or not found.changes:
        return f"pipeline-lab analyze {shlex.quote(folder.id)}"
    words = ["-m"] * started.is_module + [started.target, *started.arguments]
    command = "watch" if applied else f"fix --run {shlex.quote(folder.id)} --apply"
    return f"pipeline-lab {command} {shlex.join(words)}"


def _gain(found: "Fix") -> str:
    raced = found.gain.reason if isinstance(found.gain, Unavailable) else found.gain.sentence
    if isinstance(found.predicted, Unavailable):
        return f"{raced} {found.predicted.reason}"
    low, high = found.predicted.low_percent, found.predicted.high_percent
    bounds = f"({format_percent(low)} to {format_percent(high)})"
    return f"{raced} Predicted: a step is {format_percent(found.predicted.gain_percent)} shorter {bounds}."


def _write(found: "Fix") -> None:
    from pipeline_lab.tuning.fixing import apply

    assert found.edited is not None
    for file, backup in apply(found.edited):
        say("Written: {}{}", str(file), f"; the old one is {backup.name}." if backup else "; git has the old one.")
