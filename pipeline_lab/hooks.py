"""What the façade, which is above all rooms, lends to the rooms below it.

Results are made in rooms that know nothing of reports; they only say that they can be displayed. The run store's launcher
starts the worker, a watched script the closing words of the command line, the command line the app; they name a program by
what it does. The façade says how results are shown (:func:`show_with`) and which module each program is
(:func:`start_with`).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

Describe = Callable[[object], str]
DescribeRichly = Callable[[object], dict[str, str]]

_shown_by: list[tuple[Describe, DescribeRichly]] = []


def show_with(briefly: Describe, richly: DescribeRichly) -> None:
    """Say how results are shown from now on.

    Args:
        briefly: Returns the text that ``print`` shows.
        richly: Returns what a notebook shows, by media type.
    """
    _shown_by[:] = [(briefly, richly)]


class Displayed:
    """A result that notebooks show as the short form of its report, and ``print`` as some thirty lines of text."""

    def __repr__(self) -> str:
        return _shown_by[0][0](self) if _shown_by else object.__repr__(self)

    def _repr_mimebundle_(self, **_include_exclude: Any) -> dict[str, str]:
        return _shown_by[0][1](self) if _shown_by else {"text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]


class Program(Enum):
    """What is started; the value says what it does."""

    WORKER = "runs one job"
    SCRIPT_RACE = "races changed pipelines inside a script's own training"
    CAPTURE = "records windows of a job that runs already"
    CLOSING = "says what was found in a run that has just been recorded"


_modules: dict[Program, str] = {}


def start_with(modules: Mapping[Program, str]) -> None:
    """Say which module each program is."""
    _modules.update(modules)


def module_of(program: Program) -> str:
    """Return the name of the module that a program is."""
    return _modules[program]
