"""A loop of the script's own over the elements of a dataset: one iterator for all its passes instead of one for each.

``for x, y in ds:`` inside ``for epoch in range(9):`` becomes ``for _, (x, y) in zip(range(len(ds)), batches):``, with ``batches =
iter(ds.repeat())`` before the outer loop. A proof compares elements and does not run the loop: what a loop may do about its passes is
refused here.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.chain import remembers
from pipeline_lab.pipeline.changes import OneIterator
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice, is_in, parameters_of
from pipeline_lab.pipeline.recipe import DatasetCall, DatasetUse, Recipe
from pipeline_lab.pipeline.variables import Variable, is_length

Loop: TypeAlias = cst.For | cst.While
BATCHES = "batches"
"""Name of the iterator."""
TAKEN = "zip(range(len({dataset})), {batches})"
_CALLED = frozenset({"enumerate", "iter", "len", "range", "zip"})
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
    check_names(source)
    _check_passes(source, loop)
    _check_outer(source, loop)
    _check_variables(recipe, use, source, loop)
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
            if is_in(source, inner, around.orelse):
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


def check_names(source: ParsedSource) -> None:
    """Refuse where the file gives what is called another meaning, or reaches names in other ways than by writing them."""
    for node in source.parents:
        if isinstance(node, cst.ImportStar):
            raise RefusedError(f"{source.name} imports all names of a module, which may change what names stand for.")
        if not isinstance(node, cst.Name) or node.value not in _CALLED | _REACHES_NAMES:
            continue
        parent = source.parents[node]
        is_called = isinstance(parent, cst.Call) and parent.func is node
        is_handed_on = isinstance(parent, cst.Arg) and node.value in _CALLED
        if not source.is_part(node) and not (node.value in _CALLED and (is_called or is_handed_on)):
            raise RefusedError(f"{source.name} uses {node.value} in a way that may change what names stand for.")


def _left_by(source: ParsedSource, end: cst.Break) -> cst.CSTNode:
    """Return the loop that a ``break`` leaves; one after ``else`` is no part of the loop above it."""
    return next(
        each
        for each in source.around(end)
        if isinstance(each, (cst.For, cst.While)) and not is_in(source, end, each.orelse)
    )


def _check_passes(source: ParsedSource, loop: OwnLoop) -> None:
    breaks = (node for node in source.parents if isinstance(node, cst.Break))
    if any(_left_by(source, each) is loop.inner for each in breaks):
        raise RefusedError(f"break may end a pass over {loop.dataset} early; the next one would go on there.")
    if loop.inner.orelse is not None or loop.inner.asynchronous is not None:
        raise RefusedError(f"The loop over {loop.dataset} has an else, or is asynchronous.")
    if any(isinstance(node, (cst.Yield, cst.Await)) and is_in(source, node, loop.outer) for node in source.parents):
        raise RefusedError(f"The loop over {loop.dataset} contains yield or await; its caller may stop amid a pass.")
    header = source.raw[source.span(loop.inner)[0] : source.span(loop.inner.iter)[0]]
    if b"#" in header:
        raise RefusedError(f"A comment stands between for and in of the loop over {loop.dataset}.")


def _check_outer(source: ParsedSource, loop: OwnLoop) -> None:
    """Refuse where something else in the loop names the dataset."""
    named = [node for node in source.variables_named(loop.dataset) if not is_length(source, node)]
    if sum(is_in(source, node, loop.outer) for node in named) > 1:
        raise RefusedError(f"The loop over {loop.dataset} names it elsewhere as well.")


def _check_variables(recipe: Recipe, use: DatasetUse, source: ParsedSource, loop: OwnLoop) -> None:
    """Follow the dataset from the loop through the functions that are given it to where it is made."""
    for function in _functions_around(source, loop):
        only_call(recipe, source, function)
    its_own = {call.number: call for call in recipe.upstream(use.call) if remembers(call)}
    if its_own and any(isinstance(each, (cst.For, cst.While)) for each in source.around(loop.outer)):
        raise RefusedError(f"The loops over {loop.dataset}, which shuffles, draws or caches, are in another loop.")
    node = next(each for each in source.variables_named(loop.dataset) if is_in(source, each, loop.inner.iter))
    end, made = source.span(loop.outer)[1], list[cst.BaseExpression]()
    while True:
        variable = Variable(source, node, end, _functions_around(source, loop))
        made += variable.bound_to()
        if its_own:
            variable.check_is_alone()
        home = variable.home
        if home is None or node.value not in {each.name.value for each in parameters_of(home)}:
            break
        call = only_call(recipe, source, home)
        given = _argument(call, home, node.value)
        if not isinstance(given, cst.Name):
            raise RefusedError(f"Assign what {home.name.value} is given for {node.value} to a variable before.")
        node, end = given, source.span(call)[1]
    last = recipe.call(use.call)
    for each in (last, *its_own.values()):
        if not any(_makes(source, value, each) for value in made):
            raise RefusedError(
                f"Where {loop.dataset} is made is not clear: nothing that is assigned to it calls {each.method}."
            )


def _makes(source: ParsedSource, value: cst.BaseExpression, call: DatasetCall) -> bool:
    """Say whether a call stands in an expression, or in a function of the file that the expression calls."""
    if call.place is not None and call.place.file == source.path:
        with contextlib.suppress(RefusedError):
            if is_in(source, source.node_at(call.place), value):
                return True
    called = source.code(value.func) if isinstance(value, cst.Call) else ""
    return any(isinstance(node, cst.FunctionDef) and node.name.value == called for node in source.parents)


def _functions_around(source: ParsedSource, loop: OwnLoop) -> list[cst.FunctionDef]:
    return [each for each in source.around(loop.outer) if isinstance(each, cst.FunctionDef)]


def only_call(
    recipe: Recipe, source: ParsedSource, function: cst.FunctionDef, around_what: str = "the loop"
) -> cst.Call:
    """Return the call of a plain function that runs once: nothing else names it, and its call is in no loop.

    Args:
        recipe: Of the script.
        source: The file.
        function: Of the file.
        around_what: What stands in the function, for people.

    Raises:
        RefusedError: It may run more than once.
    """
    name = function.name.value
    if function.decorators:
        raise RefusedError(f"{name}, around {around_what}, has a decorator.")
    named = [node for node in source.variables_named(name) if node is not function.name]
    call = source.parents.get(named[0]) if len(named) == 1 else None
    refusal = RefusedError(
        f"{name}, around {around_what}, is called in a loop, in several places or from elsewhere, or is handed on."
    )
    if not isinstance(call, cst.Call) or call.func is not named[0] or recipe.may_use(source.path, name):
        raise refusal
    for around in source.around(call):
        if isinstance(around, (cst.For, cst.While, cst.Lambda, cst.BaseComp, cst.ClassDef)) or around is function:
            raise refusal
        if isinstance(around, cst.FunctionDef):
            only_call(recipe, source, around, around_what)
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
