"""Which statements of a file hand one dataset on to each other, so that calls of it can change places."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice

_INNER = (cst.FunctionDef, cst.Lambda, cst.GeneratorExp)
"""What reads a variable of the function around it later than it stands there."""


@dataclass(frozen=True)
class Branch:
    """An ``if`` that may put one more call behind a dataset, before the statement that goes on with it.

    Either ``if training: ds = ds.shuffle(90)`` or ``ds = ds.shuffle(90) if training else ds``.

    Attributes:
        source: The file.
        name: Of the dataset's variable.
        start: Where the ``if`` begins.
    """

    source: ParsedSource
    name: str
    start: int

    def take_out(self, call: cst.Call, *, has_new: bool) -> "TakenOut":
        """Return what to delete where a moved call stood, and the comments to take along.

        Args:
            call: A method's.
            has_new: Something is inserted behind the call, and stays.

        Raises:
            RefusedError: A backslash continues the line before it.
        """
        raw, statement = self.source.raw, self.source.statement_of(call)
        dot, end = self.source.core(call)
        if self.source.is_continued(dot):
            raise RefusedError(f"Lines of {self.source.name} are continued by a backslash there.")
        if isinstance(statement, cst.Assign) and statement.value is call and _name_of(statement) == self.name:
            is_commented = any(isinstance(each, cst.Comment) for each in _below(statement))
            if not is_commented and not has_new:
                return self._take_out_statement(statement)
        line_end, rest = self.source.rest_of_line(end)
        comment = rest if rest.startswith(b"#") else b""
        last = line_end if comment else end
        _, is_first = self.source.start_of_line(dot)
        if is_first:
            return TakenOut((len(raw[:dot].rstrip()), last), comment)
        following = raw[last:].lstrip()
        if following.startswith(b".") and not has_new:
            return TakenOut((dot, len(raw) - len(following)), comment)
        return TakenOut((dot, end))

    def _take_out_statement(self, statement: cst.Assign) -> "TakenOut":
        """Take out a whole statement that does nothing without its call, the comments above it, and a blank line if there are two."""
        source = self.source
        start, end = source.span(statement)
        begin, last = source.above_comments(start), source.line_below(end)
        above = tuple(line.strip() for line in source.raw[begin : source.line_start(start)].splitlines())
        rest = source.rest_of_line(end)[1].lstrip(b"; \t")
        if not source.rest_of_line(last)[1]:
            while begin and not source.raw[source.line_above(begin) : begin].strip():
                begin = source.line_above(begin)
        return TakenOut((begin, last), rest, above)

    def before(self, calls: bytes, comment: bytes = b"", above: Sequence[bytes] = ()) -> Splice:
        """Return the line that calls methods of the dataset before the branch, and before the comments above that.

        Args:
            calls: From the first one's dot.
            comment: Behind them.
            above: Lines of comments before them.
        """
        indent, _ = self.source.start_of_line(self.start)
        place = self.source.above_comments(self.start)
        name = self.name.encode()
        line = name + b" = " + name + calls + (b"  " if comment else b"") + comment
        lines = b"".join(indent + each + self.source.newline for each in (*above, line))
        return Splice(place, place, lines)


@dataclass(frozen=True)
class TakenOut:
    """What moved away.

    Attributes:
        place: To delete.
        comment: Behind it.
        above: Lines of comments above it.
    """

    place: tuple[int, int]
    comment: bytes = b""
    above: tuple[bytes, ...] = ()


def branch_between(source: ParsedSource, upper: cst.Call, lower: cst.Call) -> Branch | None:
    """Return the ``if`` around a call that another one follows with and without it; None where there is none.

    Raises:
        RefusedError: There is, but something else may read what the first returns.
    """
    above, below = source.statement_of(upper), source.statement_of(lower)
    if not isinstance(above, cst.Assign) or below is None:
        return None
    name, branch = _name_of(above), _branch_around(source, above, upper)
    taken = [call.func.value if isinstance(call.func, cst.Attribute) else None for call in (upper, lower)]
    if branch is None or not name or not all(isinstance(each, cst.Name) and each.value == name for each in taken):
        return None
    statement, test = branch
    if not _follows(source, statement, below):
        return None
    _check_values(source, upper, lower, name, test)
    return Branch(source, name, source.span(statement)[0])


def _branch_around(
    source: ParsedSource, above: cst.Assign, upper: cst.Call
) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """Return the statement that assigns a call's dataset in one case and leaves it alone in the other, and what tells which."""
    line, value = source.parents[above], above.value
    if isinstance(value, cst.IfExp) and upper in (value.body, value.orelse):
        other = value.orelse if value.body is upper else value.body
        is_same = isinstance(other, cst.Name) and other.value == _name_of(above)
        return (line, value.test) if is_same and _holds_one(line) else None
    block = line if isinstance(line, cst.SimpleStatementSuite) else source.parents.get(line)
    branch = None if block is None else source.parents.get(block)
    is_elif = branch is not None and isinstance(source.parents.get(branch), cst.If)
    if value is not upper or not isinstance(branch, cst.If) or branch.orelse is not None or is_elif:
        return None
    return (branch, branch.test) if _holds_one(line) and _holds_one(block) else None


def check_adjacent(source: ParsedSource, upper: cst.Call, lower: cst.Call) -> None:
    """Refuse to exchange two calls unless the second is called on nothing but what the first returns.

    Raises:
        RefusedError: Something else may read what the first returns.
    """
    receiver = lower.func.value if isinstance(lower.func, cst.Attribute) else None
    if receiver is upper:
        _check_names(source, upper, lower)
        return
    above, below = source.statement_of(upper), source.statement_of(lower)
    name = _name_of(above) if isinstance(above, cst.Assign) and above.value is upper else ""
    is_taken = bool(name) and isinstance(receiver, cst.Name) and receiver.value == name
    if above is None or below is None or not is_taken or not _follows(source, source.parents[above], below):
        raise RefusedError(
            f"{_names(source, upper, lower)} are not written directly one after the other in {source.name}."
        )
    _check_values(source, upper, lower, name)


def _names(source: ParsedSource, *calls: cst.Call) -> str:
    return " and ".join(source.code(call.func).rpartition(".")[2] for call in calls)


def _check_values(
    source: ParsedSource, upper: cst.Call, lower: cst.Call, name: str, test: cst.BaseExpression | None = None
) -> None:
    """Refuse calls of two statements unless nothing but the second one reads the variable between them, and it always does.

    Args:
        source: The file.
        upper, lower: Each called on the variable, or the first on something else.
        name: The variable.
        test: What tells whether the first one is called, if something does.

    Raises:
        RefusedError: Something may.
    """
    names, below = _names(source, upper, lower), source.statement_of(lower)
    read = RefusedError(f"{name} in {source.name} is read elsewhere between {names}.")
    if not isinstance(below, (cst.Assign, cst.Return)):
        raise RefusedError(f"{names} in {source.name} are not in statements that assign or return what they make.")
    goes_on = isinstance(below, cst.Assign) and _name_of(below) == name
    if _mentions(below, name) != 1 + goes_on or any(_mentions(each, name) for each in upper.args):
        raise read
    if not (goes_on or _is_last(source, below, name)):
        raise read
    others: list[cst.CSTNode] = [*upper.args, *lower.args, *(() if test is None else (test,))]
    calls_others = any(_has(each, cst.Call) for each in others)
    if (test is not None and _mentions(test, name)) or (calls_others and _is_shared(source, below, name)):
        raise read
    if any(isinstance(each, (cst.IfExp, cst.BooleanOperation, *_INNER)) for each in source.around(lower, below)):
        raise RefusedError(f"{_names(source, lower)} in {source.name} is not always called.")
    if any(_catches(source, each) for each in source.around(below)):
        raise RefusedError(f"Between {names} in {source.name} an error may be caught.")
    _check_names(source, upper, lower, *(() if test is None else (test,)))


def _catches(source: ParsedSource, block: cst.CSTNode) -> bool:
    is_suppressing = isinstance(block, cst.With) and any("suppress" in source.code(each) for each in block.items)
    return isinstance(block, (cst.Try, cst.TryStar)) or is_suppressing


def _check_names(source: ParsedSource, *expressions: cst.BaseExpression) -> None:
    """Refuse expressions that set variables, which the others might read.

    Raises:
        RefusedError: One does.
    """
    if any(_has(each, cst.NamedExpr) for each in expressions):
        raise RefusedError(f"A variable is set by := beside these calls in {source.name}.")


def _is_last(source: ParsedSource, below: cst.Assign | cst.Return, name: str) -> bool:
    """Say whether no other statement reads a variable after one.

    Outside of functions others may read it later, and in a loop the next turn may, unless the statement returns.
    """
    around = list(source.around(below))
    function = next((each for each in around if isinstance(each, (cst.FunctionDef, cst.ClassDef))), None)
    if not isinstance(function, cst.FunctionDef):
        return isinstance(below, cst.Return)
    inside = around[: around.index(function)]
    if isinstance(below, cst.Assign) and any(isinstance(each, (cst.For, cst.While)) for each in inside):
        return False
    last, end = source.span(below)[1], source.span(function)[1]
    is_later = any(last <= source.span(each)[0] < end for each in source.named(name))
    return not is_later and not _is_shared(source, below, name)


def _is_shared(source: ParsedSource, statement: cst.CSTNode, name: str) -> bool:
    """Say whether a variable around a statement is also one of other functions, or declared ``global`` or ``nonlocal``."""
    functions = (each for each in source.around(statement) if isinstance(each, cst.FunctionDef))
    own: cst.CSTNode = next(functions, source.module)
    start, end = (0, len(source.raw)) if own is source.module else source.span(own)
    for each in source.named(name):
        if start <= source.span(each)[0] < end:
            inner = next((one for one in source.around(each) if isinstance(one, _INNER)), source.module)
            is_declared = isinstance(source.parents.get(each), cst.NameItem)
            if is_declared or (inner is not own and not binds(inner, name)):
                return True
    return False


def binds(function: cst.CSTNode, name: str) -> bool:
    """Say whether a function has a variable of that name by itself: a parameter, or one that it assigns."""
    targets: list[cst.CSTNode] = [each.target for each in _own(function) if isinstance(each, cst.AssignTarget)]
    targets += [
        each.value for target in targets if isinstance(target, (cst.Tuple, cst.List)) for each in target.elements
    ]
    targets += [each.name for each in _own(function) if isinstance(each, cst.Param)]
    return any(isinstance(each, cst.Name) and each.value == name for each in targets)


def _own(function: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what is in a function, without what is in functions within."""
    for child in function.children:
        yield child
        if not isinstance(child, _INNER):
            yield from _own(child)


def _name_of(assigned: cst.Assign) -> str:
    """Return the variable that is assigned, if it is one."""
    target = assigned.targets[0].target if len(assigned.targets) == 1 else None
    return target.value if isinstance(target, cst.Name) else ""


def _holds_one(block: cst.CSTNode | None) -> bool:
    """Say whether a line holds one statement, or a block one line."""
    return len(getattr(block, "body", ())) == 1


def _follows(source: ParsedSource, line: cst.CSTNode, below: cst.CSTNode) -> bool:
    """Say whether a small statement stands alone on the line directly after a line or a block."""
    below_line = source.parents[below]
    if not isinstance(below_line, cst.SimpleStatementLine) or not _holds_one(below_line):
        return False
    if isinstance(line, cst.SimpleStatementLine) and not _holds_one(line):
        return False
    body = getattr(source.parents.get(line), "body", ())
    return isinstance(body, Sequence) and any(one is line and other is below_line for one, other in pairwise(body))


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _below(child)


def _has(node: cst.CSTNode, kind: type[cst.CSTNode]) -> bool:
    return isinstance(node, kind) or any(isinstance(each, kind) for each in _below(node))


def _mentions(node: cst.CSTNode, name: str) -> int:
    """Count how often a variable is named."""
    return sum(isinstance(each, cst.Name) and each.value == name for each in (node, *_below(node)))
