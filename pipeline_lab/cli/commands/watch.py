"""``pipeline-lab watch``: run a training script unchanged and record windows of it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from pipeline_lab.cli.arguments import OF_THE_SCRIPT, ModuleOption, ScriptArgument, ScriptArguments, StoreOption
from pipeline_lab.errors import OptionsError

CONTEXT_SETTINGS = OF_THE_SCRIPT


def watch(
    script: ScriptArgument,
    arguments: ScriptArguments = None,
    module: ModuleOption = False,
    every: Annotated[float, typer.Option(help="Seconds between window starts.", min=1.0)] = 20.0,
    seconds: Annotated[float, typer.Option(help="Length of a window in seconds.", min=0.05)] = 1.0,
    name: Annotated[
        str | None, typer.Option(help="Name of the run; by default the command.", show_default=False)
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="After the script's last line, also time the step on one batch (on copies of its variables) and the pipeline without the step.",
            show_default="where fit trained a model that the script still has, and the data does not come from a generator",
        ),
    ] = None,
    samples: Annotated[
        bool,
        typer.Option(
            "--samples",
            help="After the script's last line, also find the file and record of each example, by rebuilding its dataset with record numbers instead of data.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print neither the run's id nor the verdict.")] = False,
    store: StoreOption = None,
) -> None:
    """Run a training script unchanged and record short windows of it; the app shows the run live.

    The script keeps its process, streams, signals and exit code; when it has ended, the verdict goes to standard error.
    """
    from pipeline_lab.runs.launch.runtime import module_command

    if seconds > every / 2:
        raise OptionsError(
            f"Windows of {seconds:g} s every {every:g} s would profile more than half of the job; record at most half."
        )
    if not module and not Path(script).is_file():
        from pipeline_lab.runs.launch.launchable import no_such_script

        raise OptionsError(no_such_script(script, Path(script)))
    options = ["--every", str(every), "--seconds", str(seconds)]
    options += [f"--name={name}"] if name else []
    options += [f"--store={store}"] if store else []
    options += ["--quiet"] if quiet else []
    options += [] if calibrate is None else ["--calibrate" if calibrate else "--no-calibrate"]
    options += ["--samples"] if samples else []
    options += ["-m"] if module else []
    command = module_command("pipeline_lab.capture.watch_script", *options, script, *_without_dashes(arguments or []))
    os.execv(command[0], command)  # noqa: S606 (no shell: the script takes this process's place)


def _without_dashes(arguments: list[str]) -> list[str]:
    """Return the script's own arguments, which may follow a ``--`` as they do in ``fix`` and ``tune``."""
    return arguments[1:] if arguments[:1] == ["--"] else arguments
