"""From a function or class of the user's to the options of a job that imports and calls it in a process of its own."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions, own_options, read_options

WRAPPER = "pipeline_lab.worker.own_dataset:OwnDataset"
"""What calls a function that returns a bare dataset."""


def options_of_function(function: Callable[..., Any]) -> RunOptions:
    """Return the options that run a function which returns a dataset, or a class that makes a whole workload.

    Raises:
        OptionsError: Another process could not import it.
    """
    target, folder = find_target(function)
    if inspect.isclass(function):
        return own_options(target, folder)
    document = own_options(WRAPPER, folder).model_dump(mode="json")
    document["workload"]["arguments"] = {"function": target}
    return read_options(document | {"name": target})


def find_target(function: Callable[..., Any]) -> tuple[str, str]:
    """Return ``package.module:name`` of a function or class, and the folder in which Python finds the module.

    Raises:
        OptionsError: It is not at the top of a module that lies in a file.
    """
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None or not name.isidentifier():
        raise OptionsError(
            f"{name or function!r} cannot be imported by the process that measures it; put it at the top of a Python file, "
            "not into a function or a notebook."
        )
    path = Path(file).resolve()
    if module.__name__ == "__main__":
        return f"{path.stem}:{name}", str(path.parent)
    depth = len(module.__name__.split(".")) - (path.name != "__init__.py")
    return f"{module.__name__}:{name}", str(path.parents[depth])
