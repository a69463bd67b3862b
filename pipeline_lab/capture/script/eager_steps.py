"""Which functions of a script take gradients op by op, a call of them for each step: where ``@tf.function`` belongs."""

import ast
import linecache
import re
from collections import Counter
from collections.abc import Hashable
from types import FrameType

from pipeline_lab.runs.run_events import EagerStepEvent
from pipeline_lab.worker.recipe.places import CallSite, find_site

SELDOM = 4
"""A place that takes this many times fewer gradients than another one belongs to something else than the steps."""
OF_KERAS, OF_TENSORFLOW = "run_eagerly=True", "tf.config.run_functions_eagerly(True)"
"""Switches that let steps run op by op, for a debugger."""
_WRITTEN = {OF_KERAS: r"\brun_eagerly *= *True\b", OF_TENSORFLOW: r"\brun_functions_eagerly\( *True *\)"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class EagerSteps:
    """Counts gradients that are taken outside of any function, by the line that takes them."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._sites: dict[Hashable, CallSite] = {}
        self._switch: EagerStepEvent | None = None

    def note_switch(self, switch: str, frame: FrameType | None) -> None:
        """Note that a frame was reached where steps run op by op because of a switch."""
        site = find_site(frame)
        if site is not None and self._switch is None:
            self._switch = EagerStepEvent("", site.file, _find_line(site.file, _WRITTEN[switch]), switch)

    def note(self, frame: FrameType | None) -> None:
        """Note that a frame was reached to take gradients."""
        site = find_site(frame)
        if site is None:
            return
        key = (site.file, site.line)
        self._sites.setdefault(key, site)
        self._counts[key] += 1

    @property
    def found(self) -> list[EagerStepEvent]:
        """The switch that is to blame, or what took gradients most, in the order of their first ones."""
        if self._switch is not None:
            return [self._switch]
        most = max(self._counts.values(), default=0)
        often = [describe(site) for key, site in self._sites.items() if self._counts[key] * SELDOM >= most]
        return list({(each.file, each.line): each for each in often}.values())


def describe(site: CallSite) -> EagerStepEvent:
    """Name the function around a place, or the place itself where a loop lies between the two."""
    function = _find_step("".join(linecache.getlines(site.file)), site.line)
    if function is None:
        return EagerStepEvent("", site.file, site.line)
    return EagerStepEvent(site.scope.replace("<locals>.", ""), site.file, function.lineno)


def _find_line(file: str, written: str) -> int:
    """Return the first line of a file that says something; 0 where none does."""
    return next((number for number, line in enumerate(linecache.getlines(file), 1) if re.search(written, line)), 0)


def _find_step(source: str, line: int) -> ast.stmt | None:
    """Return the innermost function around a line; None where a loop in it is, too, or the source cannot be read."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    around = [node for node in nodes if isinstance(node, (*_FUNCTIONS, *_LOOPS)) and _holds(node, line)]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    return innermost if isinstance(innermost, _FUNCTIONS) else None


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
