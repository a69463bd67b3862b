"""A loop of the script's own over the elements of a dataset: one iterator for all its passes instead of one for each.

``for x, y in ds:`` inside ``for epoch in range(9):`` becomes ``for _, (x, y) in zip(range(len(ds)), batches):``, with ``batches =
iter(ds.repeat())`` before the outer loop.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from pipeline_lab.pipeline.changes import OneIterator
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice
from pipeline_lab.pipeline.recipe import Recipe

Loop: TypeAlias = cst.For | cst.While
BATCHES, PASS = "batches", "zip(range(len({dataset})), {batches})"


@dataclass(frozen=True, eq=False)
class OwnLoop:
    """A loop over a dataset, inside of another one.

    Attributes:
        each: The loop over the elements of one pass.
        passes: The loop around it.
        dataset: Name of what is gone through.
        is_counted: It goes through ``enumerate`` of that.
    """

    each: cst.For
    passes: Loop
    dataset: str
    is_counted: bool


def join_passes(recipe: Recipe, source: ParsedSource, read: cst.BaseExpression, edit: OneIterator) -> Iterator[Splice]:
    """Yield the splices that let one iterator serve all passes of a loop.

    Args:
        recipe: Of the script.
        source: The file.
        read: What the loop goes through.
        edit: What is done.

    Raises:
        RefusedError: A pass may end early there, or what it reads may differ from one to the next.
    """
    if not edit.is_closed:
        raise RefusedError(
            "The dataset runs Python, or reads variables or tables; what the loop changes there between passes would come too late."
        )
    loop = _find_loop(source, read)
    _check_passes(source, loop)
    _check_dataset(source, loop)
    _check_function(recipe, source, loop)
    name, start = source.new_name(BATCHES), source.span(loop.passes)[0]
    indent, _ = source.start_of_line(start)
    line = f"{name} = iter({loop.dataset}.repeat())".encode()
    yield Splice(start - len(indent), start - len(indent), indent + line + source.newline)
    if not loop.is_counted:
        yield _with_counter(source, loop.each.target)
    yield Splice(*source.span(read), PASS.format(dataset=loop.dataset, batches=name).encode())


def line_of_iterator(text: str, line: int) -> int:
    """Return the line that makes the iterator of a loop that :func:`join_passes` has written; the loop's own if it has not.

    Args:
        text: Of the file as it is now.
        line: Of the loop over the elements, from 1.
    """
    lines = text.splitlines()
    pattern = re.escape(PASS).replace(r"\{dataset\}", r"(\w+)").replace(r"\{batches\}", r"(\w+)")
    written = re.search(pattern, lines[line - 1]) if line <= len(lines) else None
    made = "" if written is None else f"{written[2]} = iter({written[1]}.repeat())"
    return next((number for number, each in enumerate(lines, 1) if made and each.strip() == made), line)


def _find_loop(source: ParsedSource, read: cst.BaseExpression) -> OwnLoop:
    each, given, is_counted = source.parents.get(read), read, False
    if not isinstance(each, cst.For) or each.iter is not read:
        raise RefusedError(f"{source.code(read)} is not gone through by a for statement of its own.")
    if isinstance(read, cst.Call) and source.code(read.func) == "enumerate" and len(read.args) == 1:
        given, is_counted = read.args[0].value, _is_pair(each.target)
    if not isinstance(given, cst.Name) or given.lpar or (isinstance(read, cst.Call) and not is_counted):
        raise RefusedError(f"Assign the dataset to a variable before the loop over {source.code(read)}.")
    around = source.parents.get(each)
    while around is not None and not isinstance(around, (cst.For, cst.While, cst.FunctionDef)):
        if isinstance(around, (cst.Try, cst.TryStar, cst.With)):
            raise RefusedError(f"What is around the loop over {given.value} might end a pass early.")
        around = source.parents.get(around)
    if not isinstance(around, (cst.For, cst.While)):
        raise RefusedError(f"The loop over {given.value} is in no other loop, such as one over epochs.")
    return OwnLoop(each, around, given.value, is_counted)


def _is_pair(target: cst.BaseAssignTargetExpression) -> bool:
    return (
        isinstance(target, cst.Tuple)
        and len(target.elements) == 2
        and all(isinstance(one, cst.Element) for one in target.elements)
    )


def _with_counter(source: ParsedSource, target: cst.BaseAssignTargetExpression) -> Splice:
    """Put a name for the number of an element, which nobody reads, before the target of a loop."""
    start, end = source.span(target)
    if target.lpar:  # brackets lie outside of the span
        start, end = source.raw.rindex(b"(", 0, start), source.raw.index(b")", end) + 1
    text = source.raw[start:end].decode()
    if isinstance(target, cst.Tuple) and not target.lpar:
        text = f"({text})"
    return Splice(start, end, f"{source.new_name('_')}, {text}".encode())


def _left_by(source: ParsedSource, end: cst.Break) -> cst.CSTNode:
    """Return the loop that a ``break`` leaves; one after ``else`` is no part of the loop above it."""
    below: cst.CSTNode = end
    around = source.parents[end]
    while not isinstance(around, (cst.For, cst.While)) or around.orelse is below:
        below, around = around, source.parents[around]
    return around


def _check_passes(source: ParsedSource, loop: OwnLoop) -> None:
    breaks = (node for node in source.parents if isinstance(node, cst.Break))
    ends_early = any(_left_by(source, each) is loop.each for each in breaks)
    if ends_early or loop.each.orelse is not None or loop.each.asynchronous is not None:
        raise RefusedError(
            f"The loop over {loop.dataset} may end before the dataset does; the next pass would go on there."
        )
    yields = [node for node in source.parents if isinstance(node, cst.Yield) and _is_inside(source, node, loop.passes)]
    if yields:
        raise RefusedError(f"The loop over {loop.dataset} yields, so that others may end a pass early.")


def _check_dataset(source: ParsedSource, loop: OwnLoop) -> None:
    """Refuse where the name may stand for another dataset in a later pass, or something else in the loop reads it."""
    named = [node for node in source.parents if isinstance(node, cst.Name) and node.value == loop.dataset]
    inside = [node for node in named if _is_inside(source, node, loop.passes)]
    if len(inside) > 1:
        raise RefusedError(f"The loop over {loop.dataset} names it elsewhere as well.")
    if any(isinstance(source.parents.get(node), cst.NameItem) for node in named):
        raise RefusedError(f"Functions of {source.name} may give {loop.dataset} another dataset.")


def _check_function(recipe: Recipe, source: ParsedSource, loop: OwnLoop) -> None:
    """Refuse where the function around is given another dataset the next time, or is no plain Python."""
    around = source.parents.get(loop.passes)
    while around is not None:
        if isinstance(around, cst.FunctionDef):
            if around.decorators:
                raise RefusedError(f"{around.name.value}, around the loop over {loop.dataset}, has a decorator.")
            if loop.dataset in _parameters(around) and not _is_called_once(recipe, source, around):
                raise RefusedError(f"What {around.name.value} is given may be another dataset each time.")
        around = source.parents.get(around)


def _parameters(function: cst.FunctionDef) -> set[str]:
    every = function.params
    return {each.name.value for each in (*every.posonly_params, *every.params, *every.kwonly_params)}


def _is_called_once(recipe: Recipe, source: ParsedSource, function: cst.FunctionDef) -> bool:
    """Say whether one statement of the file itself, in no loop, calls a function, and nothing else names it."""
    name = function.name.value
    named = [
        node
        for node in source.parents
        if isinstance(node, cst.Name) and node.value == name and node is not function.name
    ]
    if len(named) != 1 or recipe.may_use(source.path, name):
        return False
    around = source.parents.get(named[0])
    if not isinstance(around, cst.Call) or around.func is not named[0]:
        return False
    while around is not None and not isinstance(
        around, (cst.For, cst.While, cst.FunctionDef, cst.Lambda, cst.BaseComp)
    ):
        around = source.parents.get(around)
    return around is None


def _is_inside(source: ParsedSource, node: cst.CSTNode, of: cst.CSTNode) -> bool:
    around: cst.CSTNode | None = node
    while around is not None and around is not of:
        around = source.parents.get(around)
    return around is of
