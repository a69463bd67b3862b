"""Which functions of a script take gradients op by op, a call of them for each step: where ``@tf.function`` belongs."""

import ast
import linecache
import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from types import FrameType

from pipeline_lab.runs.run_events import EagerStepEvent
from pipeline_lab.worker.recipe.places import CallSite, find_site, is_users

SELDOM = 4
"""A place that takes this many times fewer gradients than another one belongs to something else than the steps."""
OF_KERAS, OF_TENSORFLOW = "run_eagerly=True", "tf.config.run_functions_eagerly(True)"
"""Switches that let steps run op by op, for a debugger."""
_NAMES = {OF_KERAS: "run_eagerly", OF_TENSORFLOW: "run_functions_eagerly"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class EagerSteps:
    """Counts gradients that are taken outside of any function, by the line that takes them."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._sites: dict[Hashable, CallSite] = {}
        self._switches: Counter[str] = Counter()

    def note_switch(self, switch: str) -> None:
        """Note that gradients are taken op by op because of a switch."""
        self._switches[switch] += 1

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
        most = max((*self._counts.values(), *self._switches.values()), default=0)
        for switch, count in self._switches.items():
            if count * SELDOM >= most:
                return [EagerStepEvent("", *_find_switch(switch), switch)]
        often = [describe(site) for key, site in self._sites.items() if self._counts[key] * SELDOM >= most]
        return list({(each.file, each.line): each for each in often}.values())


def describe(site: CallSite) -> EagerStepEvent:
    """Name the function around a place, or the place itself where a loop lies between the two."""
    function = _find_step("".join(linecache.getlines(site.file)), site.line)
    if function is None:
        return EagerStepEvent("", site.file, site.line)
    return EagerStepEvent(site.scope.replace("<locals>.", ""), site.file, function.lineno)


def _find_switch(switch: str) -> tuple[str, int]:
    """Return the file and line of the user's that sets a switch; nothing where none does, or several."""
    places = [(file, line) for file in users_files() for line in _lines_that_set(_NAMES[switch], file)]
    return places[0] if len(places) == 1 else ("", 0)


def users_files() -> set[str]:
    """Return the user's files that are loaded."""
    return {file for module in list(sys.modules.values()) if is_users(file := getattr(module, "__file__", None) or "")}


def _lines_that_set(name: str, file: str) -> Iterator[int]:
    """Yield the lines of a file where an argument or attribute of that name, or what a function of that name is given, is not false."""
    for node in _nodes("".join(linecache.getlines(file))):
        match node:
            case ast.keyword(arg=found, value=value):
                pass
            case ast.Assign(targets=[ast.Attribute(attr=found)], value=value):
                pass
            case ast.Call(func=ast.Attribute(attr=found) | ast.Name(id=found), args=[value, *_]):
                pass
            case _:
                continue
        if found == name and not (isinstance(value, ast.Constant) and not value.value):
            yield value.lineno


def _find_step(source: str, line: int) -> ast.stmt | None:
    """Return the innermost function around a line; None where a loop in it is, too, or the source cannot be read."""
    around = [node for node in _nodes(source) if isinstance(node, (*_FUNCTIONS, *_LOOPS)) and _holds(node, line)]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    return innermost if isinstance(innermost, _FUNCTIONS) else None


def _nodes(source: str) -> list[ast.AST]:
    """Return all parts of a source; none where it cannot be read."""
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return []


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
