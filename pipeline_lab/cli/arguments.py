"""Options that several commands share, and the run options that they stand for."""

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_lab.errors import OptionsError, TraceReadError

if TYPE_CHECKING:
    from pipeline_lab.options.run_options import RunOptions

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Folder of the runs; else PIPELINE_LAB_STORE, else ./profiles where it exists, else your data folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.", show_default=False)]
RunArgument = Annotated[
    str, typer.Argument(help="A run: its id as `runs list` shows it, its name, or `latest`.", show_default=False)
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write a self-contained HTML report.", show_default=False),
]


WorkloadOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="MODULE:FUNCTION",
        help="A function that returns a dataset, or a class with its own step; presets then refer to those it defines.",
        show_default=False,
    ),
]
OF_THE_SCRIPT = {"allow_interspersed_args": False}
"""Settings of a command that starts a script: what follows the script's name are the script's own arguments."""
ScriptArgument = Annotated[
    str, typer.Argument(metavar="SCRIPT", help="The script, or with -m a module.", show_default=False)
]
ScriptArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS...", help="The script's own arguments, optionally after --.", show_default=False),
]
StartedScript = Annotated[
    list[str] | None,
    typer.Argument(metavar="SCRIPT...", help="The script and, after --, its own arguments.", show_default=False),
]
ModuleOption = Annotated[bool, typer.Option("-m", help="SCRIPT is a module, as in `python -m`.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change one option, such as pipeline.prefetch.buffer_size=2; may be repeated.",
        show_default=False,
    ),
]
AddOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add",
        metavar="STAGE[=VALUE]",
        help="Add a stage at its usual place, such as prefetch or shuffle=2048; may be repeated.",
        show_default=False,
    ),
]


def choose_options(preset: str | None, file: Path | None, workload: str | None, store: Path | None) -> "RunOptions":
    """Return the options of a preset, a JSON file, a run, or a custom workload, which has its own presets.

    Presets are the bundled ones and those of the store.

    Raises:
        OptionsError: Neither or both are named, or what is named is not valid.
    """
    from pipeline_lab.options.run_options import own_options
    from pipeline_lab.runs.saved_presets import find_any_preset
    from pipeline_lab.runs.store import open_store

    if preset is not None and file is not None:
        raise OptionsError("--preset and --options exclude each other; give one of them and change it with --set.")
    if workload is not None and file is not None:
        raise OptionsError("--workload and --options exclude each other; the file may name the workload.")
    if workload is not None:
        return own_options(workload, str(Path.cwd()), preset)
    if preset is not None:
        return find_any_preset(open_store(store), preset).options
    if file is not None:
        return _options_of(file, store)
    raise OptionsError(
        "Specify what to run: --preset NAME (`pipeline-lab presets` lists them), --options FILE or --workload MODULE:FUNCTION."
    )


def _options_of(source: Path, store: Path | None) -> "RunOptions":
    """Return the options in a JSON file or of a run.

    Raises:
        OptionsError: It is neither, or its options are not valid.
    """
    from pipeline_lab.advice.recorded_options import options_of
    from pipeline_lab.errors import Unavailable
    from pipeline_lab.options.run_options import read_options_file
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import find_path

    with contextlib.suppress(TraceReadError):  # no such run, so it must be a file
        found = find_path(source, store)
        if found.is_dir():
            recorded = options_of(RunFolder(found))
            if isinstance(recorded, Unavailable):
                raise OptionsError(recorded.reason)
            return recorded
    return read_options_file(source)


STEP_TIMES = "training.step_times_ms"


def apply_settings(
    options: "RunOptions", settings: list[str] | None, store: Path | None = None, added: list[str] | None = None
) -> "RunOptions":
    """Return options with each stage added and each ``PATH=VALUE`` applied; only the whole has to be valid.

    Step times may be given as a run or capture, whose steps are then repeated.

    Raises:
        OptionsError: A setting has no ``=``, or its path or value does not fit.
        TraceReadError: The run or capture that step times are to come from cannot be read.
    """
    from pipeline_lab.options.run_options import set_options

    pairs = []
    for setting in settings or ():
        path, equals, value = setting.partition("=")
        if not equals:
            raise OptionsError(f"--set takes PATH=VALUE, such as training.steps=50; {setting!r} has no '='.")
        path = path.strip()
        pairs.append((path, _copy_step_times(value, store) if path == STEP_TIMES and _names_a_run(value) else value))
    return set_options(options, pairs, added or ())


def _names_a_run(value: str) -> bool:
    """Say whether step times are not given as numbers, such as ``[20, 35.5]`` or ``3x20,35.5``."""
    return re.fullmatch(r"[\d\s.,x\[\]]*", value) is None


def _copy_step_times(run: str, store: Path | None) -> str:
    from pipeline_lab.advice.repeated_steps import read_repeated_steps
    from pipeline_lab.runs.store import find_path

    return str(list(read_repeated_steps(find_path(run, store))))


def limit_length(options: "RunOptions", steps: int | None, seconds: float | None) -> "RunOptions":
    """Return options that train for that many steps or seconds; unchanged if neither is given.

    Raises:
        OptionsError: Both are given, or the number is out of range.
    """
    from pipeline_lab.options.run_options import read_options

    if steps is None and seconds is None:
        return options
    document = options.model_dump(mode="json")
    document["training"] |= {"steps": steps, "seconds": seconds}
    return read_options(document)
