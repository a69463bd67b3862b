"""Where in the user's files a call stands: found while it runs, written out later.

While the script runs only a code object and the index of an instruction are kept, and the range of one that is met again is
not looked up again, which costs microseconds; text is read from the source when the recipe is written.
"""

import ast
import contextlib
import functools
import itertools
import linecache
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.recipe import SourcePlace, is_installed

_PACKAGE = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_LIBRARIES = tuple(
    f"{path}{os.sep}"
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_NEVER_SHOWN = tuple(f"{os.sep}{name}{os.sep}" for name in ("tensorflow", "keras", "tf_keras"))
_GENERATED, _AUTOGRAPH = "__autograph_generated_file", f"{os.sep}autograph{os.sep}"
MAX_TEXT = 60
"""Characters of a call that are shown."""


@functools.cache
def _is_library(file: str) -> bool:
    """Say whether a file is none of the user's: of a package, of Python, of this package."""
    return file.startswith(("<frozen ", _PACKAGE, *_LIBRARIES)) or is_installed(file)


def is_users(file: str) -> bool:
    """Say whether a file is one of the user's, or code that was typed in."""
    return bool(file) and not _is_library(file)


@functools.cache
def is_framework(file: str) -> bool:
    """Say whether a file is one of TensorFlow, Keras or this package."""
    is_shown = not any(part in file for part in _NEVER_SHOWN)
    return file.startswith(("<frozen ", _PACKAGE)) or (is_installed(file) and not is_shown)


@dataclass(frozen=True)
class CallSite:
    """An instruction of the user's, or a line of it where AutoGraph rewrote the function.

    Attributes:
        file: Of the user's.
        line: That ran.
        code: Of the function around; None where it was rewritten.
        instruction: Offset of the instruction in it.
        scope: Qualified name of the function around.
        is_direct: Whether the user called what noted it, rather than something of a library.
    """

    file: str
    line: int
    code: CodeType | None
    instruction: int
    scope: str
    is_direct: bool

    @functools.cached_property
    def key(self) -> tuple[object, ...]:
        """What tells sites apart, but not two frames of a function.

        A range of the source and not the instruction: Python 3.11 calls ``enumerate`` by another one once it has run often.
        """
        is_known = self.code is not None and self.instruction >= 0
        return (self.file, self.line, *(_range(self) if is_known else (self.instruction,)), self.scope)


def find_site(frame: FrameType | None, until: CodeType | None = None) -> CallSite | None:
    """Find the user's call that led to a frame.

    Args:
        frame: Where to begin; frames of this package do not count.
        until: Code whose callers do not count either.

    Returns:
        The innermost one outside of all packages; where there is none, outside of TensorFlow, Keras and this package.
    """
    is_direct = True
    second: CallSite | None = None
    while frame is not None and frame.f_code is not until:
        file = frame.f_code.co_filename
        if _GENERATED in file:
            if (site := _site_before_rewriting(frame, is_direct)) is not None:
                return site
        elif not _is_library(file):
            return _site(frame, is_direct)
        elif second is None and not is_framework(file):
            second = _site(frame, is_direct)
        is_direct = is_direct and (file.startswith(_PACKAGE) or _AUTOGRAPH in file)
        frame = frame.f_back
    return second


def _site(frame: FrameType, is_direct: bool) -> CallSite:
    code = frame.f_code
    return CallSite(code.co_filename, frame.f_lineno, code, frame.f_lasti, code.co_qualname, is_direct)


def _site_before_rewriting(frame: FrameType, is_direct: bool) -> CallSite | None:
    """Return the user's line behind one of a file that AutoGraph made of a function."""
    caller, steps = frame.f_back, 0
    while caller is not None and steps < 8:
        source_map = getattr(caller.f_locals.get("converted_f"), "ag_source_map", None)
        if source_map:
            for made, origin in source_map.items():
                if made.filename == frame.f_code.co_filename and made.lineno == frame.f_lineno:
                    name = (origin.function_name or frame.f_code.co_name).removeprefix("tf__")
                    return CallSite(origin.loc.filename, origin.loc.lineno, None, -1, name, is_direct)
        caller, steps = caller.f_back, steps + 1
    return None


def before_rewriting(code: CodeType) -> tuple[str, int, int] | None:
    """Return file, first and last line that AutoGraph made a function of; None where it made none."""
    if _GENERATED not in code.co_filename:
        return None
    from tensorflow.python.autograph.impl import api

    for factories in list(api._TRANSPILER._cache._cache.values()):
        for factory in list(factories.values()):
            if getattr(factory.module, "__file__", "") == code.co_filename:
                lines = {line for *_, line in code.co_lines()}
                found = [origin.loc for made, origin in factory.source_map.items() if made.lineno in lines]
                if found:
                    return found[0].filename, min(loc.lineno for loc in found), max(loc.lineno for loc in found)
    return None


@dataclass(frozen=True)
class WrittenSite:
    """A call site in words.

    Attributes:
        place: Its range.
        text: The call as it stands there, shortened; empty where the source cannot be read.
    """

    place: SourcePlace
    text: str


def write_site(site: CallSite, method: str) -> WrittenSite:
    """Read the range and the text of a call from the source.

    Args:
        site: Where it is.
        method: What is called; it tells calls of one line apart where only the line is known.
    """
    line, end_line, column, end_column = _range(site)
    lines = linecache.getlines(site.file)
    tree = _parse(site.file, len(lines))
    node = None if tree is None else _find_node(tree, (line, end_line, column, end_column), method)
    if node is None:
        return WrittenSite(SourcePlace(site.file, line, end_line, column, end_column, line, site.scope), "")
    name_line, text = _describe(node, lines, is_method=site.is_direct)
    place = SourcePlace(
        site.file,
        node.lineno,
        node.end_lineno or node.lineno,
        node.col_offset,
        node.end_col_offset,
        name_line,
        site.scope,
    )
    return WrittenSite(place, text)


def _range(site: CallSite) -> tuple[int, int, int | None, int | None]:
    """Return first line, last line, first column, column after the last; columns None where Python does not tell."""
    found = None if site.code is None or site.instruction < 0 else _position(site.code, site.instruction)
    return (site.line, site.line, None, None) if found is None else found


@functools.lru_cache(maxsize=1024)
def _position(code: CodeType, instruction: int) -> tuple[int, int, int | None, int | None] | None:
    """Return the range of an instruction; Python goes through all before it, which takes ms in a long script."""
    positions = itertools.islice(code.co_positions(), instruction // 2, None)
    line, end_line, column, end_column = next(positions, (None, None, None, None))
    return None if line is None else (line, end_line or line, column, end_column)


@functools.lru_cache(maxsize=64)
def _parse(file: str, _lines: int) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _find_node(tree: ast.Module, where: tuple[int, int, int | None, int | None], method: str) -> ast.expr | None:
    """Return the expression of exactly a range, or the call of a method that begins or ends on a line."""
    line, end_line, column, end_column = where
    calls = []
    for node, told in _expressions(tree):
        span = (told.lineno, told.end_lineno, told.col_offset, told.end_col_offset)
        if column is not None and span == (line, end_line, column, end_column):
            return node
        if column is not None and _method_span(node) == (line, end_line, column, end_column):
            return node
        if column is None and isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0):
            calls.append(node)
    named = [call for call in calls if _name_of(call) == method]
    return next((call for call in named if _name_line(call) == line), named[0] if named else None)


def _expressions(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr | ast.stmt]]:
    """Yield each expression and what Python tells the range of: of what a loop goes through that may be the whole loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            yield node, node
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield node.iter, node


def _method_span(node: ast.expr) -> tuple[int, int, int, int] | None:
    """Return the range of a method's call without its owner: what Python tells where the two stand on different lines."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    function = node.func
    column = (function.end_col_offset or 0) - len(function.attr.encode())
    return function.end_lineno or 0, node.end_lineno or 0, column, node.end_col_offset or 0


def _name_of(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _name_line(call: ast.Call) -> int:
    return call.func.end_lineno or call.lineno


def _describe(node: ast.expr, lines: list[str], *, is_method: bool) -> tuple[int, str]:
    """Return the line of a call's name, and the call without what stands before it.

    Args:
        node: The expression.
        lines: Of the file.
        is_method: It is one of ``tf.data``: ``.map(load)``; else its owner tells more: ``model.fit(dataset)``.
    """
    if not isinstance(node, ast.Call):
        return node.lineno, _short(_segment(lines, node))
    given: list[ast.expr | ast.keyword] = sorted(
        [*node.args, *node.keywords], key=lambda each: (each.lineno, each.col_offset)
    )
    arguments = ", ".join(_segment(lines, each) for each in given)
    function, name_line = node.func, _name_line(node)
    if not isinstance(function, ast.Attribute):
        return name_line, _short(f"{ast.unparse(function)}({arguments})")
    path, _, owner = ast.unparse(function.value).rpartition(".") if _is_dotted(function.value) else ("", "", "")
    is_class = owner[:1].isupper()
    if path and not is_class:  # a function of a module
        return name_line, _short(f"{function.attr}({arguments})")
    return name_line, _short(f"{'' if is_method and not is_class else owner}.{function.attr}({arguments})")


def _is_dotted(node: ast.expr) -> bool:
    """Say whether an expression is a name, or names joined by dots."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _segment(lines: list[str], node: ast.expr | ast.keyword) -> str:
    """Return an expression's source on one line."""
    line, end_line = node.lineno, node.end_lineno or node.lineno
    found = [text.encode() for text in lines[line - 1 : end_line]]
    found[-1] = found[-1][: node.end_col_offset]
    found[0] = found[0][node.col_offset :]
    return " ".join(" ".join(text.decode(errors="replace").split()) for text in found)


def _short(words: str) -> str:
    return words if len(words) <= MAX_TEXT else f"{words[: MAX_TEXT - 1].rstrip()}…"


def source_of(file: str) -> str:
    """Return the text of a user's file; empty where it cannot be read."""
    return "".join(linecache.getlines(file))


def end_of(code: CodeType) -> int:
    """Return the last line of a function."""
    return max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)


_OF_EPOCHS = ("EpochIterator", "DataHandler")
"""How the classes are called that go through data for Keras 3 and Keras 2."""


def describe_frame_owner(frame: FrameType | None) -> Any:
    """Return what Keras was given to read, where a frame belongs to what goes through it for Keras; None elsewhere."""
    while frame is not None:
        if frame.f_code.co_name == "__init__" and type(frame.f_locals.get("self")).__name__.endswith(_OF_EPOCHS):
            given = frame.f_locals
            return given.get("x", (given.get("kwargs") or {}).get("x"))
        frame = frame.f_back
    return None


_ENUMERATING = ("_enumerate_iterator", "enumerate_epochs")
"""Their methods that make an iterator for each epoch."""
ENDS_ELSEWHERE = (
    "Its epochs do not end where its data do, as they would without steps_per_epoch and validation_steps; workers would carry batches over "
    "from one epoch to the next."
)
PEEKS = "Under a distribution strategy Keras reads a batch before the first epoch, and workers would carry others over into it."


def carried_over(frame: FrameType | None) -> str | None:
    """Say why workers would carry batches over into the next epoch, where a frame belongs to what goes through one for Keras.

    Returns:
        Empty where they would not; None where Keras goes through no ``PyDataset`` or ``Sequence``, and elsewhere.
    """
    while frame is not None:
        epochs = frame.f_locals.get("self") if frame.f_code.co_name in _ENUMERATING else None
        if type(epochs).__name__.endswith(_OF_EPOCHS):
            with contextlib.suppress(Exception):  # another version of Keras
                return _carried_over(epochs)
        frame = frame.f_back
    return None


def _carried_over(epochs: Any) -> str | None:
    if hasattr(epochs, "data_adapter"):
        given = getattr(epochs.data_adapter, "py_dataset", None)
        if given is None:
            return None
        if epochs.steps_per_epoch not in (None, given.num_batches):
            return ENDS_ELSEWHERE
        return "" if type(epochs._distribute_strategy).__name__.startswith("_Default") else PEEKS
    given = getattr(epochs._adapter, "_keras_sequence", None)  # of Keras 2
    if given is None:
        return None
    return "" if epochs._steps_per_epoch in (None, len(given)) else ENDS_ELSEWHERE
