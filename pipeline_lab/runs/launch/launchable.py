"""Whether a job can start at all, as far as that shows without loading TensorFlow or the user's code."""

import importlib
import importlib.util
from importlib.machinery import PathFinder
from pathlib import Path

from pipeline_lab.errors import DataError, OptionsError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.found_features import check_depth
from pipeline_lab.runs.machine import usable_memory_bytes
from pipeline_lab.workloads.module import ModuleWorkload


def check_room(options: RunOptions) -> None:
    """Refuse a job that cannot fit into this machine's memory.

    Raises:
        OptionsError: Its table is larger.
    """
    why = options.workload.no_room(usable_memory_bytes())
    if why is not None:
        raise OptionsError(why)


def check_launchable(options: RunOptions) -> None:
    """Refuse a job that is bound to fail.

    Raises:
        OptionsError: It cannot fit into this machine's memory, its module is not there, or its files are named by a
            pattern that would search without end.
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


def no_such_module(name: str, start: Path) -> str:
    """Say that Python does not find a module.

    Args:
        name: Of the module.
        start: The folder in which Python looks first.
    """
    return (
        f"There is no module {name} in {start}, nor among the installed packages; write package.module:function, "
        "and start where Python finds it."
    )


def _is_there(package: str, start: Path) -> bool:
    """Say whether Python finds a top-level module or package; nothing of it is run."""
    importlib.invalidate_caches()
    if PathFinder.find_spec(package, [str(start)]) is not None:
        return True
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # it was made by hand and cannot say where it is from
        return True
