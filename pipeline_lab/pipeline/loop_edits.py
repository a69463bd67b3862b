"""A loop of the script's own over the elements of a dataset: one iterator for all its passes instead of one for each.

``for x, y in ds:`` inside ``for epoch in range(9):`` becomes ``for _, (x, y) in zip(range(len(ds)), batches):``, with ``batches =
iter(ds.repeat())`` before the outer loop. A proof compares elements and does not run the loop: what a loop may do about its passes is
refused here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from pipeline_lab.pipeline.chain import remembers
from pipeline_lab.pipeline.changes import OneIterator
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice
from pipeline_lab.pipeline.recipe import DatasetUse, Recipe

Loop: TypeAlias = cst.For | cst.While
BATCHES = "batches"
"""Name of the iterator."""
TAKEN = "zip(range(len({dataset})), {batches})"
_CALLED = frozenset({"enumerate", "iter", "len", "range", "zip"})
_LOOKS = frozenset({"enumerate", "iter", "len", "next", "print", "type"})
_REACHES_NAMES = frozenset({"eval", "exec", "globals", "locals", "vars"})


@dataclass(frozen=True, eq=False)
class OwnLoop:
    """A loop over a dataset, inside of another one.

    Attributes:
        inner: The loop over the elements of one pass.
        outer: The loop around it.
        dataset: Name of what the inner one goes through.
        is_counted: It goes through ``enumerate`` of that.
    """

    inner: cst.For
    outer: Loop
    dataset: str
    is_counted: bool


def join_passes(
    recipe: Recipe, use: DatasetUse, source: ParsedSource, read: cst.BaseExpression, edit: OneIterator
) -> Iterator[Splice]:
    """Yield the splices that let one iterator serve all passes of a loop.

    Args:
        recipe: Of the script.
        use: The loop, as the run noted it.
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
    _check_names(source)
    _check_passes(source, loop)
    _check_dataset(source, loop)
    _check_functions(recipe, source, loop)
    if any(map(remembers, recipe.upstream(use.call))):
        _check_is_alone(recipe, source, loop)
    name, start = source.new_name(BATCHES), source.span(loop.outer)[0]
    indent, _ = source.start_of_line(start)
    line = f"{name} = iter({loop.dataset}.repeat())".encode()
    yield Splice(start - len(indent), start - len(indent), indent + line + source.newline)
    if not loop.is_counted:
        yield _with_counter(source, loop.inner)
    yield Splice(*source.span(read), TAKEN.format(dataset=loop.dataset, batches=name).encode())


def line_of_iterator(text: str, line: int) -> int:
    """Return the line that makes the iterator of a loop that :func:`join_passes` has written; the loop's own if it has not.

    Args:
        text: Of the file as it is now.
        line: Of the loop over the elements, from 1.
    """
    lines = text.splitlines()
    pattern = re.escape(TAKEN).replace(r"\{dataset\}", r"(\w+)").replace(r"\{batches\}", r"(\w+)")
    written = re.search(pattern, lines[line - 1]) if line <= len(lines) else None
    made = "" if written is None else f"{written[2]} = iter({written[1]}.repeat())"
    return next((number for number, each in enumerate(lines, 1) if made and each.strip() == made), line)


def _find_loop(source: ParsedSource, read: cst.BaseExpression) -> OwnLoop:
    inner, given, is_counted = source.parents.get(read), read, False
    if not isinstance(inner, cst.For) or inner.iter is not read:
        raise RefusedError(f"{source.code(read)} is not gone through by a for statement of its own.")
    if isinstance(read, cst.Call) and source.code(read.func) == "enumerate" and len(read.args) == 1:
        given = read.args[0].value
        is_counted = _is_pair(inner.target) and not read.args[0].star
    if not isinstance(given, cst.Name) or given.lpar or (isinstance(read, cst.Call) and not is_counted):
        raise RefusedError(f"Assign the dataset to a variable before the loop over {source.code(read)}.")
    for around in source.around(inner):
        if isinstance(around, (cst.For, cst.While)):
            if _is_in(source, inner, around.orelse):
                continue  # what comes after a loop is no part of it
            return OwnLoop(inner, around, given.value, is_counted)
        if isinstance(around, (cst.Try, cst.TryStar, cst.With, cst.If, cst.Match)):
            raise RefusedError(f"What is around the loop over {given.value} might leave a pass out, or end it early.")
        if isinstance(around, (cst.FunctionDef, cst.ClassDef)):
            break
    raise RefusedError(f"The loop over {given.value} is in no other loop, such as one over epochs.")


def _is_pair(target: cst.BaseAssignTargetExpression) -> bool:
    return (
        isinstance(target, cst.Tuple)
        and len(target.elements) == 2
        and all(isinstance(one, cst.Element) for one in target.elements)
    )


def _with_counter(source: ParsedSource, inner: cst.For) -> Splice:
    """Put a name for the number of an element, which nobody reads, before the target of a loop."""
    target = inner.target
    start, end = source.span(target)
    if target.lpar:  # brackets lie outside of the span
        start, end = source.raw.rindex(b"(", 0, start), source.raw.index(b")", end) + 1
    text = source.raw[start:end].decode()
    if isinstance(target, cst.Tuple) and not target.lpar:
        text = f"({text})"
    before, after = (
        b"" if each.isspace() else b" " for each in (source.raw[start - 1 : start], source.raw[end : end + 1])
    )
    return Splice(start, end, before + f"{source.new_name('_')}, {text}".encode() + after)


def _check_names(source: ParsedSource) -> None:
    """Refuse where the file gives what is called another meaning, or reaches names in other ways than by writing them."""
    for node in source.parents:
        if not isinstance(node, cst.Name) or node.value not in _CALLED | _REACHES_NAMES:
            continue
        parent = source.parents[node]
        is_called = isinstance(parent, cst.Call) and parent.func is node
        is_handed_on = isinstance(parent, cst.Arg) and node.value in _CALLED
        is_of_something = (isinstance(parent, cst.Attribute) and parent.attr is node) or (
            isinstance(parent, cst.Arg) and parent.keyword is node
        )
        if not is_of_something and not (node.value in _CALLED and (is_called or is_handed_on)):
            raise RefusedError(f"{source.name} uses {node.value} in a way that may change what names stand for.")


def _left_by(source: ParsedSource, end: cst.Break) -> cst.CSTNode:
    """Return the loop that a ``break`` leaves; one after ``else`` is no part of the loop above it."""
    return next(
        each
        for each in source.around(end)
        if isinstance(each, (cst.For, cst.While)) and not _is_in(source, end, each.orelse)
    )


def _check_passes(source: ParsedSource, loop: OwnLoop) -> None:
    breaks = (node for node in source.parents if isinstance(node, cst.Break))
    if any(_left_by(source, each) is loop.inner for each in breaks):
        raise RefusedError(f"break may end a pass over {loop.dataset} early; the next one would go on there.")
    if loop.inner.orelse is not None or loop.inner.asynchronous is not None:
        raise RefusedError(f"The loop over {loop.dataset} has an else, or is asynchronous.")
    if any(isinstance(node, (cst.Yield, cst.Await)) and _is_in(source, node, loop.outer) for node in source.parents):
        raise RefusedError(f"The loop over {loop.dataset} contains yield or await; its caller may stop amid a pass.")
    header = source.raw[source.span(loop.inner)[0] : source.span(loop.inner.iter)[0]]
    if b"#" in header:
        raise RefusedError(f"A comment stands between for and in of the loop over {loop.dataset}.")


def _check_dataset(source: ParsedSource, loop: OwnLoop) -> None:
    """Refuse where the name may stand for another dataset in a later pass, or something else in the loop reads it."""
    named = _names(source, loop.dataset)
    if sum(_is_in(source, node, loop.outer) for node in named) > 1:
        raise RefusedError(f"The loop over {loop.dataset} names it elsewhere as well.")
    if any(isinstance(source.parents.get(node), cst.NameItem) for node in named):
        raise RefusedError(f"{source.name} rebinds {loop.dataset} through global or nonlocal.")


def _check_functions(recipe: Recipe, source: ParsedSource, loop: OwnLoop) -> None:
    """Refuse where a function around is given another dataset the next time, or is no plain Python."""
    for function in _functions_around(source, loop):
        if function.decorators:
            raise RefusedError(f"{function.name.value}, around the loop over {loop.dataset}, has a decorator.")
        if loop.dataset in _parameters(function):
            _only_call(recipe, source, function)


def _check_is_alone(recipe: Recipe, source: ParsedSource, loop: OwnLoop) -> None:
    """Refuse where a dataset that shuffles, draws or caches may be read later or again: one iterator begins a pass more."""
    if any(isinstance(each, (cst.For, cst.While)) for each in source.around(loop.outer)):
        raise RefusedError(f"The loops over {loop.dataset}, which shuffles, draws or caches, are in another loop.")
    name, end = loop.dataset, source.span(loop.outer)[1]
    for function in _functions_around(source, loop):
        call = _only_call(recipe, source, function)
        if name not in _parameters(function):
            continue
        _check_unnamed(source, name, end, function)
        given = _argument(call, function, name)
        if not isinstance(given, cst.Name):
            raise RefusedError(f"Assign what {function.name.value} is given for {name} to a variable before.")
        name, end = given.value, source.span(call)[1]
    _check_unnamed(source, name, end, None, _functions_around(source, loop))


def _check_unnamed(
    source: ParsedSource, name: str, end: int, home: cst.FunctionDef | None, around: Sequence[cst.CSTNode] = ()
) -> None:
    """Refuse where something may read a variable from a place on, or be given it before.

    Args:
        source: The file.
        name: Of the variable.
        end: Place in the file.
        home: The function whose parameter it is; None for a variable of the file, or of the functions around the loop.
        around: These functions.
    """
    for node in _names(source, name):
        inside = [each for each in source.around(node) if isinstance(each, (cst.FunctionDef, cst.Lambda))]
        owner = next((each for each in inside if name in _parameters(each)), None)
        if owner is not home or isinstance(source.parents[node], cst.Param):
            continue
        is_read_later = source.span(node)[0] >= end
        is_elsewhere = any(each is not home and each not in around for each in inside[: 1 if home is None else None])
        if is_read_later or (home is None and is_elsewhere) or (home is not None and inside[0] is not home):
            raise RefusedError(f"{name}, which shuffles, draws or caches, is named outside of its loop, too.")
        if not _is_harmless(source, node) and not _is_call_before(source, node, end):
            raise RefusedError(f"{name}, which shuffles, draws or caches, is handed on before its loop.")


def _is_call_before(source: ParsedSource, node: cst.Name, end: int) -> bool:
    """Say whether a name is what the call is given that ends at a place."""
    return any(isinstance(each, cst.Call) and source.span(each)[1] == end for each in source.around(node))


def _is_harmless(source: ParsedSource, node: cst.Name) -> bool:
    """Say whether a statement only makes a dataset, or looks at it, and hands it on to nobody."""
    statement, parent = source.statement_of(node), source.parents[node]
    if isinstance(statement, (cst.Assign, cst.AnnAssign)):
        targets = (
            [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        )
        return all(isinstance(each, cst.Name) and each.value == node.value for each in targets)
    call = source.parents[parent] if isinstance(parent, cst.Arg) else None
    return call is None or (isinstance(call, cst.Call) and source.code(call.func) in _LOOKS)


def _functions_around(source: ParsedSource, loop: OwnLoop) -> list[cst.FunctionDef]:
    return [each for each in source.around(loop.outer) if isinstance(each, cst.FunctionDef)]


def _parameters(function: cst.CSTNode | None) -> set[str]:
    if not isinstance(function, (cst.FunctionDef, cst.Lambda)):
        return set()
    every = function.params
    return {each.name.value for each in (*every.posonly_params, *every.params, *every.kwonly_params)}


def _only_call(recipe: Recipe, source: ParsedSource, function: cst.FunctionDef) -> cst.Call:
    """Return the call of a function by a statement of the file itself, in no loop, where nothing else names it."""
    name = function.name.value
    named = [node for node in _names(source, name) if node is not function.name]
    call = source.parents.get(named[0]) if len(named) == 1 else None
    apart = (cst.For, cst.While, cst.FunctionDef, cst.Lambda, cst.BaseComp)
    is_called = isinstance(call, cst.Call) and call.func is named[0]
    if (
        not is_called
        or recipe.may_use(source.path, name)
        or any(isinstance(each, apart) for each in source.around(named[0]))
    ):
        raise RefusedError(f"{name}, around the loop, is not called exactly once, by {source.name} itself.")
    assert isinstance(call, cst.Call)
    return call


def _argument(call: cst.Call, function: cst.FunctionDef, name: str) -> cst.BaseExpression | None:
    """Return what a call gives for a parameter; None where that is not plain."""
    if any(each.star for each in call.args):
        return None
    named = next((each.value for each in call.args if each.keyword and each.keyword.value == name), None)
    by_place = [each.name.value for each in (*function.params.posonly_params, *function.params.params)]
    given = [each.value for each in call.args if each.keyword is None]
    place = by_place.index(name) if name in by_place else len(given)
    return named or (given[place] if place < len(given) else None)


def _names(source: ParsedSource, name: str) -> list[cst.Name]:
    return [node for node in source.parents if isinstance(node, cst.Name) and node.value == name]


def _is_in(source: ParsedSource, node: cst.CSTNode, of: cst.CSTNode | None) -> bool:
    return of is not None and (node is of or any(each is of for each in source.around(node)))
