"""Checks before a job starts, without loading TensorFlow or the user's code."""

import importlib
import importlib.util
import re
from importlib.machinery import PathFinder
from pathlib import Path

from pipeline_lab.errors import DataError, OptionsError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.script_start import ScriptStart
from pipeline_lab.runs.data_files.found_features import check_depth
from pipeline_lab.runs.machine.limits import usable_memory_bytes
from pipeline_lab.workloads.module import ModuleWorkload


def check_room(options: RunOptions) -> None:
    """Refuse a job that does not fit into this machine's memory.

    Raises:
        OptionsError: Its table is larger.
    """
    why = options.workload.no_room(usable_memory_bytes())
    if why is not None:
        raise OptionsError(why)


def check_launchable(options: RunOptions) -> None:
    """Refuse a job that is sure to fail.

    Raises:
        OptionsError: It does not fit into memory, its module does not exist, or the pattern of its files would search
            without end.
    """
    check_room(options)
    workload = options.workload
    if isinstance(workload, ModuleWorkload):
        start = Path(workload.folder or Path.cwd())
        if not _is_there(workload.module.partition(".")[0], start):
            raise OptionsError(no_such_module(workload.module, start))
    if workload.users_pattern:
        try:
            check_depth(workload.users_pattern)
        except DataError as error:
            raise OptionsError(str(error)) from None


def check_script(options: ScriptStart) -> None:
    """Refuse a script that does not exist.

    Raises:
        OptionsError: There is no such file, or no such module.
    """
    if options.is_module:
        if not _is_there(options.script.partition(".")[0], Path(options.folder)):
            raise OptionsError(no_such_module(options.script, Path(options.folder)))
    elif not options.path.is_file():
        raise OptionsError(no_such_script(options.script, options.path))


_INTERPRETER = re.compile(r"python[\d.]*")


def no_such_script(name: str, path: Path) -> str:
    """Return the sentence for a script that is no file.

    Args:
        name: As it was given.
        path: Where it would be.
    """
    if path.is_dir():
        return f"{name} is a folder; specify a Python file in it, or a module with -m."
    if _INTERPRETER.fullmatch(path.name):
        return f"There is no script {name}; leave Python out, and specify the file that it would run."
    return f"There is no script {name}; specify a Python file, or a module with -m."


def no_such_module(name: str, start: Path) -> str:
    """Return the sentence for a module that Python does not find.

    Args:
        name: The module.
        start: The folder that Python searches first.
    """
    return (
        f"There is no module {name} in {start}, nor among the installed packages; write package.module:function "
        "and start where Python finds it."
    )


def _is_there(package: str, start: Path) -> bool:
    """Say whether Python finds a top-level module or package, without running it."""
    importlib.invalidate_caches()
    if PathFinder.find_spec(package, [str(start)]) is not None:
        return True
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # created at run time, without a spec
        return True
