"""``pipeline-lab fix``: what to change in a training script, proved on its own data and raced in its training, as a diff."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.cli.arguments import ModuleOption, StartedScript, StoreOption
from pipeline_lab.cli.output import print_json, say
from pipeline_lab.errors import OptionsError

if TYPE_CHECKING:
    from pipeline_lab.tuning.script.script_result import ScriptTuning


def fix(
    script: StartedScript = None,
    module: ModuleOption = False,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="CHANGE",
            help="Make this change instead of searching for one: prefetch, 'train.py:41 cache' or 'train.py:41 num_parallel_calls=8'. May be repeated.",
            show_default=False,
        ),
    ] = None,
    may_reorder: Annotated[
        bool, typer.Option("--may-reorder", help="Also consider changes that alter the order of examples.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="A recorded run of the script, instead of a new one.", show_default=False),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Time to record the training, to prove and to race: 90s, 15m.")
    ] = "5m",
    race: Annotated[bool, typer.Option(help="Race the changes inside the script's own training.")] = True,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the change into the files; keeps a backup where git does not.")
    ] = False,
    found_before: Annotated[
        str | None,
        typer.Option("--from", metavar="SEARCH", help="Take what an earlier fix or tune found.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Find what to change in a training script, prove that its model sees the same examples, and print the diff.

    The script runs several times: to record it, to verify each change, and to race the changes. These trainings write what they always
    write, such as checkpoints; the script's source changes only with --apply.
    """
    from pipeline_lab.cli.commands.tune import check_end, parse_budget_s, search_script
    from pipeline_lab.runs.record import RunKind
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import find_path, find_store, open_store
    from pipeline_lab.tuning.script.script_result import read_script_tuning

    if found_before is not None:
        found = read_script_tuning(RunFolder(find_path(found_before, find_store(store), RunKind.TUNE)))
    elif not script:
        raise OptionsError("Specify a training script, such as: pipeline-lab fix train.py")
    else:
        wanted = {
            "name": f"fix {Path(script[0]).name}",
            "budget_s": parse_budget_s(budget),
            "max_configurations": 2,
            "may_reorder": may_reorder,
            "changes": change or [],
            "run": None if run is None else str(find_path(run, find_store(store)).absolute()),
            "races": race,
        }
        found = search_script(script, open_store(store), wanted, is_module=module)
    check_end(found)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found, said="" if found_before is not None else found.sentence)
    if apply:
        _write(found, is_asked=not race)
    if not as_json:
        say("Next: [bold]{}[/]", _next(found, applied=apply))


def _print(found: "ScriptTuning", said: str) -> None:
    """Print what is proposed; what the search has said already while it ran is not said again."""
    fix = found.fix
    if fix is None:
        return
    typer.echo(fix.diff, nl=False)
    for change in fix.changes:
        say("[bold]{}[/] {} ({}).", change.words, change.effect.capitalize(), change.risk)
        for also in change.also:
            say("  {}", also)
    if fix.changes:
        say("[bold]Proof:[/] {}", fix.proof)
        say("[bold]Gain:[/] {}", fix.gain)
    if note := fix.note.removesuffix(said).strip():
        say("[bold]{}[/]", note)
    if fix.left:
        say("Left alone:")
    for left in fix.left:
        say("  {} {}", left.words, left.reason)


def _next(found: "ScriptTuning", *, applied: bool) -> str:
    """Return the command that comes next: write the change, see what it did, or look at the run where there is none."""
    from pipeline_lab.runs.store import store_option

    fix = found.fix
    if fix is None or not fix.changes or not fix.is_sure:
        return f"pipeline-lab {'analyze' if fix else 'report'} {shlex.quote(fix.run if fix else found.id)}"
    if not applied:
        return found.fix_command
    folder = Path(found.options.folder)
    there = "" if folder == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    return f"{there}pipeline-lab watch {store_option(found.path)}{found.options.command}"


def _write(found: "ScriptTuning", *, is_asked: bool) -> None:
    """Write the change into the files; one of which nobody knows whether it helps only where that is asked for."""
    from pipeline_lab.tuning.script.fixing import apply

    fix = found.fix
    if fix is None or not fix.changes:
        return
    if not (fix.is_sure or is_asked):
        raise OptionsError(
            f"Nothing is written: whether it helps is not decided. Give more time with --budget, or write it all the same with "
            f"--no-race. The diff is in {found.id}."
        )
    for file, backup in apply(fix.files):
        say("Written: {}{}", str(file), f"; the old one is {backup.name}." if backup else "; git has the old one.")
