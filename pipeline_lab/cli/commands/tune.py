"""``pipeline-lab tune``: search for a faster pipeline; the model proposes, races decide."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_lab.cli.arguments import (
    AddOption,
    ModuleOption,
    SetOption,
    StartedScript,
    StoreOption,
    WorkloadOption,
    apply_settings,
    choose_options,
)
from pipeline_lab.cli.output import print_json, say, show_report
from pipeline_lab.errors import OptionsError, RunFailedError

if TYPE_CHECKING:
    from pipeline_lab.options.tune_options import TuneOptions
    from pipeline_lab.runs.store import RunStore
    from pipeline_lab.tuning.script.script_result import ScriptTuning
    from pipeline_lab.tuning.search_result import RecordedSearch

TryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--try",
        metavar="KNOB=VALUES",
        help="Search only these values, such as prefetch=2,8; an argument of your own workload can be searched too. May be repeated.",
        show_default=False,
    ),
]


def tune(
    script: StartedScript = None,
    module: ModuleOption = False,
    preset: Annotated[str | None, typer.Option(help="Start from a preset.", show_default=False)] = None,
    options: Annotated[
        Path | None, typer.Option(help="Start from a JSON file of options, or from a run.", show_default=False)
    ] = None,
    workload: WorkloadOption = None,
    settings: SetOption = None,
    added: AddOption = None,
    tries: TryOption = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Total time for runs and races: 90s, 15m, 2h.", show_default="15m, for a script 5m"
        ),
    ] = None,
    configurations: Annotated[
        int | None,
        typer.Option(help="Maximum number of measured configurations, including the start.", show_default="8"),
    ] = None,
    max_memory: Annotated[
        int | None,
        typer.Option(metavar="MB", help="Memory for buffers and caches.", show_default="half of the machine's"),
    ] = None,
    max_threads: Annotated[
        int | None, typer.Option(help="Threads that read and map in parallel.", show_default="no limit")
    ] = None,
    may_reorder: Annotated[
        bool, typer.Option("--may-reorder", help="Also try pipelines that give up deterministic order.")
    ] = False,
    explore: Annotated[
        bool, typer.Option("--explore", help="Let Optuna propose changes, for pipelines that the model cannot predict.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Measure on every machine of a Ray cluster.", show_default=False),
    ] = None,
    gpus_per_trial: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --ray: GPUs per trial, so that one machine can measure several at a time.",
            show_default="all of a machine",
        ),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Continue a stopped search.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the search.", show_default=False)] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Search for a faster pipeline: profile, predict, race the best predictions, continue from the winner.

    With a script its own pipeline is searched: changes are verified on its data and raced inside its training.
    """
    from pipeline_lab.cli.following import follow_tune, stop_requests
    from pipeline_lab.options.tune_options import read_tune_options
    from pipeline_lab.runs.record import RunKind
    from pipeline_lab.runs.store import open_store
    from pipeline_lab.tuning.opened_search import read_search
    from pipeline_lab.tuning.search_launch import launch_tune, resume_tune

    opened = open_store(store)
    of_options = {
        "--preset": preset,
        "--options": options,
        "--workload": workload,
        "--set": settings or None,
        "--add": added or None,
        "--try": tries or None,
        "--max-memory": max_memory,
        "--max-threads": max_threads,
        "--explore": explore or None,
    }
    of_cluster = {"--ray": ray, "--gpus-per-trial": gpus_per_trial}
    if script and resume is None:
        _refuse(of_options, f"{script[0]} is searched as it is")
        of_script: dict[str, Any] = {"name": name, "budget_s": None if budget is None else parse_budget_s(budget)}
        of_script |= {"max_configurations": configurations, "may_reorder": may_reorder}
        of_script |= {"ray": ray, "gpus_per_trial": gpus_per_trial}
        tune_script(script, opened, of_script, is_module=module, as_json=as_json)
        return
    if resume is not None:
        others = {
            "--budget": budget,
            "--configurations": configurations,
            "--may-reorder": may_reorder or None,
            "--name": name,
            "SCRIPT": script or None,
        }
        _refuse({**of_options, **of_cluster, **others}, "--resume continues with the search's own options")
        with stop_requests() as requests:
            folder = resume_tune(opened, opened.find_id(resume, RunKind.TUNE))
            follow_tune(folder, requests)
    else:
        start = apply_settings(choose_options(preset, options, workload, store), settings, store, added)
        given = {
            "budget_s": None if budget is None else parse_budget_s(budget),
            "max_configurations": configurations,
            "max_memory_mb": max_memory,
            "max_threads": max_threads,
            "ray": ray,
            "gpus_per_trial": gpus_per_trial,
            "name": name,
            "only": None if tries is None else dict(map(parse_try, tries)),
        }
        wanted = {key: value for key, value in given.items() if value is not None}
        document = {"start": start.model_dump(mode="json"), "may_reorder": may_reorder, "explore": explore, **wanted}
        chosen: TuneOptions = read_tune_options(document)
        with stop_requests() as requests:
            folder = launch_tune(opened, chosen)
            follow_tune(folder, requests)
    found = read_search(folder)
    if as_json:
        print_json(found.to_json())
    else:
        show_report(found)
    _tell_end(found)


def tune_script(words: list[str], store: "RunStore", wanted: dict[str, Any], *, is_module: bool, as_json: bool) -> None:
    """Search for better input of a script, and show what was found."""
    found = search_script(words, store, wanted, is_module=is_module)
    if as_json:
        print_json(found.to_json())
    elif found.steps:
        show_report(found)
    _tell_end(found)


WRITES_AS_EVER = "[bold]{}[/] is run several times. What it writes, such as checkpoints and logs, it writes each time: keep what you need."


def search_script(words: list[str], store: "RunStore", wanted: dict[str, Any], *, is_module: bool) -> "ScriptTuning":
    """Search for better input of a script to its end.

    Args:
        words: The script and its arguments.
        store: Takes the search.
        wanted: Its other options; those that are None keep their defaults.
        is_module: The script is a module.

    Raises:
        OptionsError: There is no such script.
    """
    from pipeline_lab.cli.following import follow_tune, stop_requests
    from pipeline_lab.options.tune_options import read_script_tune
    from pipeline_lab.tuning.script.script_result import read_script_tuning
    from pipeline_lab.tuning.search_launch import launch_script_tune

    script, *arguments = words
    document = {"script": script, "arguments": arguments, "is_module": is_module, "folder": str(Path.cwd())}
    given = {key: value for key, value in wanted.items() if value is not None}
    with stop_requests() as requests:
        folder = launch_script_tune(store, read_script_tune({**document, **given}))
        say(WRITES_AS_EVER, script)
        follow_tune(folder, requests)
    return read_script_tuning(folder)


def _refuse(given: Mapping[str, object], because: str) -> None:
    """Refuse options that would be ignored.

    Raises:
        OptionsError: One is given.
    """
    named = [option for option, value in given.items() if value is not None]
    if named:
        raise OptionsError(f"{because}; leave {' and '.join(named)} out.")


def parse_try(text: str) -> tuple[str, list[str]]:
    """Read ``prefetch=2,8`` into a knob and its values.

    Raises:
        OptionsError: There is no ``=``.
    """
    knob, equals, values = text.partition("=")
    if not equals:
        raise OptionsError(f"--try takes KNOB=VALUE,VALUE, such as prefetch=2,8; {text!r} has no '='.")
    return knob.strip(), [value.strip() for value in values.split(",")]


def parse_budget_s(text: str) -> float:
    """Read ``90``, ``90s``, ``15m`` or ``2h`` into seconds.

    Raises:
        OptionsError: It is not such a time, or none.
    """
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "s")
    try:
        seconds = float(number) * _SECONDS[unit]
    except (ValueError, KeyError):
        raise OptionsError(f"{text!r} is not a duration; use 90s, 15m or 2h.") from None
    if not seconds > 0:
        raise OptionsError(f"A budget of {text!r} leaves no time; use 90s, 15m or 2h.")
    return seconds


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def check_end(found: "RecordedSearch") -> None:
    """Go on only with a search that came to its end.

    Raises:
        RunFailedError: It did not; says why, and how it goes on.
    """
    from pipeline_lab.runs.record import RunState
    from pipeline_lab.runs.store import store_option

    if found.state is not RunState.DONE:
        told = f"Search {found.id}: {found.state.label}. {found.record.status.reason}"
        resume = f" Continue with: pipeline-lab tune {store_option(found.path)}--resume {found.id}"
        raise RunFailedError(told if found.state is RunState.FAILED else told + resume)


def _tell_end(found: "RecordedSearch") -> None:
    from pipeline_lab.tuning.script.script_result import ScriptTuning
    from pipeline_lab.tuning.space import START

    check_end(found)
    if isinstance(found, ScriptTuning):
        if found.fix is not None and found.fix.is_sure:
            say("Done. Write the change into the files: [bold]{}[/]", found.fix_command)
        return
    if found.winner_name == START:
        what = "No faster pipeline was found" if found.had_time else "Nothing was raced"
        say("Done. {}; the whole search: [bold]pipeline-lab report {}[/]", what, found.id)
        return
    whose = "winner" if found.winner_was_raced else "model's choice, which was not raced"
    say("Done. The source of the {}: [bold]pipeline-lab code {}[/]", whose, found.id)
