"""Which statements of a file hand one dataset on to each other, so that calls of it can change places."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice


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

    def without(self, call: cst.Call) -> tuple[tuple[int, int], bytes]:
        """Return what to leave out where a method's call goes, its statement if that does nothing without it, and the comment that goes with it."""
        raw, statement = self.source.raw, self.source.statement_of(call)
        if isinstance(statement, cst.Assign) and statement.value is call and _name_of(statement) == self.name:
            start, end = self.source.span(statement)
            indent, _ = self.source.start_of_line(start)
            line_end, rest = self.source.rest_of_line(end)
            return (start - len(indent), line_end + len(self.source.newline)), rest if rest.startswith(b"#") else b""
        dot, end = self.source.core(call)
        line_end, rest = self.source.rest_of_line(end)
        has_comment = rest.startswith(b"#")
        following = raw[line_end if has_comment else end :].lstrip()
        if following.startswith(b"."):
            return (dot, len(raw) - len(following)), rest if has_comment else b""
        _, is_first = self.source.start_of_line(dot)
        return (len(raw[:dot].rstrip()) if is_first else dot, end), b""

    def before(self, calls: bytes, comment: bytes = b"") -> Splice:
        """Return the line that calls methods of the dataset before the branch.

        Args:
            calls: From the first one's dot.
            comment: Behind them.
        """
        indent, _ = self.source.start_of_line(self.start)
        name = self.name.encode()
        behind = (b"  " if comment else b"") + comment + self.source.newline + indent
        return Splice(self.start, self.start, name + b" = " + name + calls + behind)


def branch_between(source: ParsedSource, upper: cst.Call, lower: cst.Call) -> Branch | None:
    """Return the ``if`` around a call that another one follows with and without it; None where it is no such.

    Raises:
        RefusedError: It is, but something else may read what the first returns.
    """
    above, below = source.statement_of(upper), source.statement_of(lower)
    if not isinstance(above, cst.Assign) or below is None:
        return None
    name, branch, below_line = _name_of(above), _branch_around(source, above, upper), source.parents[below]
    taken = [call.func.value if isinstance(call.func, cst.Attribute) else None for call in (upper, lower)]
    if branch is None or not name or not all(isinstance(each, cst.Name) and each.value == name for each in taken):
        return None
    statement, test = branch
    around = source.parents[statement]
    body: Sequence[cst.CSTNode] = () if isinstance(around, cst.If) else getattr(around, "body", ())
    is_next = any(one is statement and other is below_line for one, other in pairwise(body))
    if not is_next or not _is_alone(below, below_line):
        return None
    names = f"{source.code(upper.func).rpartition('.')[2]} and {source.code(lower.func).rpartition('.')[2]}"
    if _mentions(test, name) or _mentions(upper, name) != 1 or _sets_a_name(test):
        raise RefusedError(f"{name} in {source.name} is read elsewhere between {names}.")
    _check_read_once(source, below, name, names)
    return Branch(source, name, source.span(statement)[0])


def _branch_around(
    source: ParsedSource, above: cst.Assign, upper: cst.Call
) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """Return the statement that assigns a call's dataset in one case and leaves it alone in the other, and what tells which."""
    line = source.parents[above]
    value = above.value
    if isinstance(value, cst.IfExp) and upper in (value.body, value.orelse):
        other = value.orelse if value.body is upper else value.body
        is_same = isinstance(other, cst.Name) and other.value == _name_of(above)
        return (line, value.test) if is_same and _is_alone(above, line) else None
    block = line if isinstance(line, cst.SimpleStatementSuite) else source.parents.get(line)
    branch = None if block is None else source.parents.get(block)
    if value is not upper or not isinstance(branch, cst.If) or branch.orelse is not None:
        return None
    return (branch, branch.test) if _is_alone(above, line) and _is_alone(line, block) else None


def _name_of(assigned: cst.Assign) -> str:
    """Return the variable that is assigned, if it is one."""
    target = assigned.targets[0].target if len(assigned.targets) == 1 else None
    return target.value if isinstance(target, cst.Name) else ""


def _is_alone(statement: cst.CSTNode, block: cst.CSTNode | None) -> bool:
    """Say whether a statement is all that a line or a block holds, or the line itself."""
    return statement is block or len(getattr(block, "body", ())) == 1


def _sets_a_name(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.NamedExpr) or any(_sets_a_name(child) for child in node.children)


def check_adjacent(source: ParsedSource, upper: cst.Call, lower: cst.Call) -> None:
    """Refuse to exchange two calls unless the second is called on nothing but what the first returns.

    Raises:
        RefusedError: Something else may read what the first returns.
    """
    receiver = lower.func.value if isinstance(lower.func, cst.Attribute) else None
    if receiver is upper:
        return
    names = f"{source.code(upper.func).rpartition('.')[2]} and {source.code(lower.func).rpartition('.')[2]}"
    far = RefusedError(f"{names} are not written directly one after the other in {source.name}.")
    above, below = source.statement_of(upper), source.statement_of(lower)
    if not (isinstance(above, cst.Assign) and above.value is upper and len(above.targets) == 1):
        raise far
    target = above.targets[0].target
    if not (isinstance(target, cst.Name) and isinstance(receiver, cst.Name) and receiver.value == target.value):
        raise far
    if below is None or not _follows(source, above, below):
        raise far
    _check_read_once(source, below, target.value, names)


def _check_read_once(source: ParsedSource, below: cst.CSTNode, name: str, names: str) -> None:
    """Refuse a statement that reads a variable more than once, or leaves it to others.

    Raises:
        RefusedError: It does.
    """
    value = below.value if isinstance(below, (cst.Assign, cst.Return)) else None
    goes_on = isinstance(below, cst.Assign) and _name_of(below) == name
    if value is None or _mentions(value, name) != 1 or not (goes_on or _is_last(source, below, name)):
        raise RefusedError(f"{name} in {source.name} is read elsewhere between {names}.")


def _is_last(source: ParsedSource, below: cst.CSTNode, name: str) -> bool:
    """Say whether a statement is the last one that may read a variable of its function: not ``finally``, closures or globals either.

    What a module's statement reads others may read later, and what one of a loop reads the next turn may; but for what is returned.
    """
    around: cst.CSTNode | None = below
    while around is not None and not isinstance(around, cst.FunctionDef):
        if isinstance(around, (cst.For, cst.While)) and not isinstance(below, cst.Return):
            return False
        around = source.parents.get(around)
    if around is None:
        return isinstance(below, cst.Return)
    last = source.span(below)[1]
    for each in source.named(name):
        inner = source.parents.get(each)
        while inner is not None and not isinstance(inner, (cst.FunctionDef, cst.Lambda)):
            inner = source.parents.get(inner)
        is_shared = isinstance(source.parents.get(each), cst.NameItem)
        is_inside = source.span(around)[0] <= source.span(each)[0] < source.span(around)[1]
        if is_inside and (is_shared or inner is not around or source.span(each)[0] >= last):
            return False
    return True


def _follows(source: ParsedSource, above: cst.CSTNode, below: cst.CSTNode) -> bool:
    """Say whether two statements stand one directly after the other, each on lines of its own."""
    lines = [source.parents.get(above), source.parents.get(below)]
    if not all(isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 for line in lines):
        return False
    block = source.parents.get(lines[0]) if lines[0] is not None else None
    body: Sequence[cst.CSTNode] = getattr(block, "body", ())
    return any(one is lines[0] and other is lines[1] for one, other in pairwise(body))


def _mentions(node: cst.CSTNode, name: str) -> int:
    """Count how often an expression names a variable."""
    own = isinstance(node, cst.Name) and node.value == name
    return own + sum(_mentions(child, name) for child in node.children)
