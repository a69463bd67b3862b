"""Parts of the package that a room starts although they lie above it.

The run store's launcher starts the worker, a watched script the closing words of the command line. They name a part by
what it does; the façade, which is above all rooms, says which module that is (:func:`start_with`).
"""

from collections.abc import Mapping
from enum import Enum


class Program(Enum):
    """What is started; the value says what it does."""

    WORKER = "runs one job"
    CAPTURE = "records windows of a job that runs already"
    CLOSING = "says what was found in a run that has just been recorded"


_modules: dict[Program, str] = {}


def start_with(modules: Mapping[Program, str]) -> None:
    """Say which module each program is."""
    _modules.update(modules)


def module_of(program: Program) -> str:
    """Return the name of the module that a program is."""
    return _modules[program]
