"""One of the user's files, parsed with LibCST: where calls, their arguments and the blanks around them are, in bytes.

Only what is asked for is spliced; every other byte of the file stays as it is.
"""

import ast
import bisect
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePath

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, ParentNodeProvider

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.changes import AUTOTUNE, Value
from pipeline_lab.pipeline.function_parts import count_bindings
from pipeline_lab.pipeline.recipe import SourcePlace

TUNABLE = frozenset({"num_parallel_calls", "num_parallel_reads", "buffer_size", "cycle_length"})
"""Arguments that may be ``tf.data.AUTOTUNE``."""


class RefusedError(Exception):
    """A change cannot be written; the text is the reason, a sentence."""


_NAMED = re.compile(r"AUTOTUNE *= *\w+\.data(\.experimental)?\.AUTOTUNE")


class Code(str):
    """An expression as an argument: it is written as it stands."""

    __slots__ = ()


@dataclass(frozen=True)
class Splice:
    """New bytes for a stretch of a file; an empty stretch is a place where something is added."""

    start: int
    end: int
    text: bytes


class ParsedSource:
    """A file.

    Args:
        path: Of the file.
        text: What it holds.

    Raises:
        RefusedError: It is not Python.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path, self.raw = path, text.encode()
        self.name = PurePath(path).name
        try:
            wrapper = MetadataWrapper(cst.parse_module(self.raw))
        except cst.ParserSyntaxError as error:
            raise RefusedError(f"{self.name} cannot be parsed ({error.message}).") from None
        self.module = wrapper.module
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self.parents: Mapping[cst.CSTNode, cst.CSTNode] = wrapper.resolve(ParentNodeProvider)

    @cached_property
    def _expressions(self) -> dict[tuple[int, int], cst.BaseExpression]:
        """Expressions by their ranges, the outermost of several."""
        found: dict[tuple[int, int], cst.BaseExpression] = {}
        for node in self._spans:
            if isinstance(node, cst.BaseExpression):
                span = self.span(node)
                if span not in found or isinstance(node, cst.Call):
                    found[span] = node
        return found

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.raw.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    @property
    def newline(self) -> bytes:
        return self.module.default_newline.encode()

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return where a node begins and ends, without brackets around it."""
        found = self._spans[node]
        return found.start, found.start + found.length

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def calls(self) -> Iterator[cst.Call]:
        return (node for node in self._spans if isinstance(node, cst.Call))

    def attributes(self) -> Iterator[cst.Attribute]:
        return (node for node in self._spans if isinstance(node, cst.Attribute))

    def functions(self, name: str) -> list[cst.FunctionDef]:
        """Return the functions of that name, wherever they are defined."""
        return [node for node in self._spans if isinstance(node, cst.FunctionDef) and node.name.value == name]

    def node_at(self, place: SourcePlace) -> cst.BaseExpression:
        """Return the expression of exactly a range.

        Raises:
            RefusedError: There is none, or only the line is known.
        """
        if place.column is None or place.end_column is None:
            raise RefusedError(f"Only the line of {place} is known, because AutoGraph rewrote the function around it.")
        span = self._offset(place.line, place.column), self._offset(place.end_line, place.end_column)
        if span not in self._expressions:
            raise RefusedError(f"{self.name} has changed since it was run: {place} holds something else.")
        return self._expressions[span]

    def _offset(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column if 1 <= line < len(self._line_starts) + 1 else -1

    def start_of(self, line: int) -> int:
        """Return where a line begins, from 1."""
        return self._offset(line, 0)

    def named(self, name: str) -> Iterator[cst.Name]:
        """Yield every place where a name stands."""
        return (node for node in self._spans if isinstance(node, cst.Name) and node.value == name)

    def variables_named(self, name: str) -> list[cst.Name]:
        """Return every place where a name stands for a variable, a function or a class, and not for an attribute or a keyword."""
        return [node for node in self.named(name) if not self.is_part(node)]

    def is_part(self, node: cst.Name) -> bool:
        """Say whether a name is that of an attribute, or the keyword of an argument."""
        parent = self.parents[node]
        is_attribute = isinstance(parent, cst.Attribute) and parent.attr is node
        return is_attribute or (isinstance(parent, cst.Arg) and parent.keyword is node)

    def around(self, node: cst.CSTNode, until: cst.CSTNode | None = None) -> Iterator[cst.CSTNode]:
        """Yield the nodes that a node lies in, the innermost first, up to another one."""
        while (parent := self.parents.get(node)) is not None and parent is not until:
            yield parent
            node = parent

    def statement_of(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the simple statement around a node; None inside of a lambda or the head of a compound statement."""
        found: cst.CSTNode | None = node
        while found is not None and not isinstance(found, cst.BaseSmallStatement):
            if isinstance(found, (cst.Lambda, cst.BaseComp)):
                return None
            found = self.parents.get(found)
        return found

    def rest_of_line(self, offset: int) -> tuple[int, bytes]:
        """Return where the line of an offset ends, before its newline, and what stands between the two."""
        end = next(
            (at for at in range(offset, len(self.raw)) if self.raw[at : at + 1] in (b"\n", b"\r")), len(self.raw)
        )
        return end, self.raw[offset:end].strip()

    def start_of_line(self, offset: int) -> tuple[bytes, bool]:
        """Return the blanks that the line of an offset begins with, and whether nothing else is before the offset."""
        before = self.raw[self.line_start(offset) : offset]
        return before[: len(before) - len(before.lstrip(b" \t"))], not before.strip()

    def line_start(self, offset: int) -> int:
        """Return where the line of an offset begins."""
        return max(self.raw.rfind(b"\n", 0, offset), self.raw.rfind(b"\r", 0, offset)) + 1

    def line_above(self, offset: int) -> int:
        """Return where the line above that of an offset begins; the same line if it is the first one."""
        start = self.line_start(offset)
        return self.line_start(start - (2 if self.raw[:start].endswith(b"\r\n") else 1)) if start else 0

    def line_below(self, offset: int) -> int:
        """Return where the line after that of an offset begins, or where the file ends."""
        end, _ = self.rest_of_line(offset)
        return min(len(self.raw), end + (2 if self.raw[end : end + 2] == b"\r\n" else 1))

    def above_comments(self, offset: int) -> int:
        """Return where the line of an offset begins, or the first of the comments directly above it, which are indented as it is."""
        start = self.line_start(offset)
        mark = self.start_of_line(offset)[0] + b"#"
        while start and self.raw.startswith(mark, above := self.line_above(start)) and not self._is_in_string(above):
            start = above
        return start

    def _is_in_string(self, offset: int) -> bool:
        strings = (node for node in self._spans if isinstance(node, (cst.SimpleString, cst.FormattedString)))
        return any(start < offset < end for start, end in map(self.span, strings))

    def is_continued(self, offset: int) -> bool:
        """Say whether the line of an offset continues the one before it by a backslash."""
        start = self.line_start(offset)
        return self.raw[:start].rstrip(b"\r\n").endswith(b"\\") if start else False

    def dedented(self, text: bytes, call: cst.Call, place: int) -> bytes:
        """Return the text of a method's call as it is indented at another place; as it is where a string has several lines.

        Args:
            text: The call, from its dot.
            call: Where it stood.
            place: Where a statement begins that it comes before.
        """
        was, becomes = (self.start_of_line(at)[0] for at in (self.core(call)[0], place))
        lines = re.split(rb"(?<=\n)", text)
        is_plain = not any(b"\n" in line for line in self._strings(call))
        if not is_plain or not was.startswith(becomes):
            return text
        return lines[0] + b"".join(becomes + line[len(was) :] if line.startswith(was) else line for line in lines[1:])

    def _strings(self, node: cst.CSTNode) -> Iterator[bytes]:
        kinds = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
        if isinstance(node, kinds):
            yield self.code(node).encode()
        for child in node.children:
            yield from self._strings(child)

    def core(self, call: cst.Call) -> tuple[int, int]:
        """Return the range of a method's call from its dot to its closing bracket.

        Raises:
            RefusedError: It is none, or something odd follows the dot.
        """
        if not isinstance(call.func, cst.Attribute):
            raise RefusedError(f"{self.code(call.func)} in {self.name} is called without a dataset before it.")
        name = self.span(call.func.attr)[0]
        dot = self.raw.rfind(b".", 0, name)
        if self.raw[dot + 1 : name].strip():
            raise RefusedError(f"Something stands between the dot and {call.func.attr.value} in {self.name}.")
        return dot, self.span(call)[1]

    def write_value(self, name: str, value: Value, near: cst.CSTNode) -> str:
        """Write an argument's value as the file would near a node: ``tf.data.AUTOTUNE`` by the name that it has there."""
        if name in TUNABLE and value == AUTOTUNE and not isinstance(value, bool):
            return self._autotune(near)
        if isinstance(value, Code):
            return str(value)
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)

    def tensorflow(self, near: cst.CSTNode) -> str:
        """Return the name that TensorFlow has near a node; empty without one, and where the module imports it only later."""
        found = ""
        for part in self._parts():
            is_there = self._is_inside_function(near) or self.span(part)[1] <= self.span(near)[0]
            if isinstance(part, cst.Import) and is_there:
                names = [alias for alias in part.names if self.code(alias.name) == "tensorflow"]
                found = names[0].evaluated_alias or "tensorflow" if names else found
        return "" if self._stands_for_more(found) else found

    def _stands_for_more(self, name: str) -> bool:
        """Say whether a name of TensorFlow is given to something else as well, somewhere in the file."""
        imports = [each for each in ast.walk(self.tree) if isinstance(each, ast.Import)]
        own = [
            each
            for one in imports
            for each in one.names
            if (each.asname == name and each.name == "tensorflow")
            or (not each.asname and each.name.split(".")[0] == name)
        ]
        return self._bindings[name] > len(own)

    def place_of(self, node: cst.CSTNode) -> str:
        """Return where a node begins, for people: ``train.py:12``."""
        return f"{self.name}:{bisect.bisect_right(self._line_starts, self.span(node)[0])}"

    def tree_of(self, node: cst.FunctionDef | cst.Lambda) -> ast.FunctionDef | ast.Lambda | None:
        """Return the same function as Python's own parser has it; None where that does not parse the file."""
        kind, (start, _) = (ast.Lambda if isinstance(node, cst.Lambda) else ast.FunctionDef), self.span(node)
        for each in ast.walk(self.tree):
            if isinstance(each, kind) and self._offset(each.lineno, each.col_offset) == start:
                return each
        return None

    @cached_property
    def tree(self) -> ast.Module:
        """The file as Python's own parser has it; empty where that does not parse it."""
        try:
            return ast.parse(self.raw)
        except (SyntaxError, ValueError):  # nothing is written into it
            return ast.Module([], [])

    @cached_property
    def _bindings(self) -> Counter[str]:
        return count_bindings(self.tree)

    def times_bound(self, name: str) -> int:
        """Return how often a name is given to something in the file, in whatever scope."""
        return self._bindings[name]

    def _is_inside_function(self, node: cst.CSTNode) -> bool:
        around: cst.CSTNode | None = node
        while around is not None and not isinstance(around, cst.FunctionDef):
            around = self.parents.get(around)
        return around is not None

    def _autotune(self, near: cst.CSTNode) -> str:
        named = [part for part in self._parts() if isinstance(part, cst.Assign) and _NAMED.fullmatch(self.code(part))]
        is_clear = len(named) == self._bindings["AUTOTUNE"]
        if is_clear and any(self.span(part)[1] <= self.span(near)[0] for part in named):
            return "AUTOTUNE"
        tensorflow = self.tensorflow(near)
        return f"{tensorflow}.data.AUTOTUNE" if tensorflow else str(AUTOTUNE)

    def _parts(self) -> Iterator[cst.BaseSmallStatement]:
        """Yield the simple statements of the module itself."""
        lines = (line for line in self.module.body if isinstance(line, cst.SimpleStatementLine))
        return (part for line in lines for part in line.body)

    def new_name(self, wanted: str) -> str:
        """Return a name that the file does not use."""
        used = {node.value for node in self._spans if isinstance(node, cst.Name)}
        names = itertools.chain((wanted,), (f"{wanted}_{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in used)

    def line_before(self, node: cst.CSTNode) -> tuple[int, bytes]:
        """Return where a line can be put before a statement, or the one around a node, and the blanks that it begins with.

        Raises:
            RefusedError: The statement does not begin a line.
        """
        statement = node if isinstance(node, cst.BaseStatement) else self.statement_of(node)
        parts = () if statement is None else (statement, *getattr(statement, "decorators", ()))
        start = min((self.span(each)[0] for each in parts), default=-1)
        indent, is_first = self.start_of_line(start) if parts else (b"", False)
        if not is_first or self.is_continued(start):
            words = " ".join(self.code(node).split())[:40]
            raise RefusedError(
                f"The statement with {words} does not begin a line of {self.name}, so no line can come before it."
            )
        return start - len(indent), indent

    def before_statement_of_module(self, node: cst.CSTNode) -> int:
        """Return where something can be put before the statement of the module itself around a node, and the comments above it."""
        statement: cst.CSTNode = node
        while not isinstance(parent := self.parents[statement], cst.Module):
            statement = parent
        decorators = getattr(statement, "decorators", ())
        start = min(self.span(each)[0] for each in (statement, *decorators))
        return self.above_comments(start)

    def set_arguments(self, call: cst.Call, given: Mapping[str, Value], order: tuple[str, ...]) -> list[Splice]:
        """Return the splices that give a call arguments.

        Args:
            call: In this file.
            given: By name.
            order: Parameters that may be given by position.

        Raises:
            RefusedError: They may be given already by ``*arguments`` or ``**options``.
        """
        splices, new = [], []
        for name, value in given.items():
            written = self.write_value(name, value, call)
            found = self.find_argument(call, name, order)
            if found is None:
                new.append(f"{name}={written}".encode())
            elif self.code(found.value) != written:
                start, end = self._with_brackets(found)
                splices.append(Splice(start, end, written.encode()))
        return [*splices, *self._added_arguments(call, new)]

    def find_argument(self, call: cst.Call, name: str, order: tuple[str, ...]) -> cst.Arg | None:
        """Return what a call is given for a parameter; None where it is not given.

        Raises:
            RefusedError: It may be given by ``*arguments`` or ``**options``.
        """
        by_name = next((each for each in call.args if each.keyword and each.keyword.value == name), None)
        if by_name is not None:
            return by_name
        if any(each.star for each in call.args):
            raise RefusedError(f"{self._said(call)} may get {name} from *arguments or **options already.")
        by_place = [each for each in call.args if each.keyword is None]
        place = order.index(name) if name in order else len(by_place)
        return by_place[place] if place < len(by_place) else None

    def _said(self, call: cst.Call) -> str:
        return " ".join(self.code(call.func).split()).rpartition(".")[2] + f"(…) in {self.name}"

    def _with_brackets(self, argument: cst.Arg) -> tuple[int, int]:
        """Return the range of an argument's value, brackets around it included."""
        _, end = self.span(argument)
        start = self.span(argument.value)[0]
        if argument.value.lpar:  # what is replaced may have them, what it becomes needs none
            equals = (
                self.span(argument)[0]
                if argument.keyword is None
                else self.raw.index(b"=", self.span(argument.keyword)[1]) + 1
            )
            start = equals + len(self.raw[equals:start]) - len(self.raw[equals:start].lstrip())
        return start, end

    def _added_arguments(self, call: cst.Call, new: list[bytes]) -> Iterator[Splice]:
        if not new:
            return
        if not call.args:
            yield Splice(self.span(call)[1] - 1, self.span(call)[1] - 1, b", ".join(new))
            return
        last = call.args[-1]
        start, end = self.span(last)
        has_comma = isinstance(last.comma, cst.Comma)
        indent, is_first = self.start_of_line(start)
        behind_comma = self.raw.index(b",", end) + 1 if has_comma else end
        line_end, rest = self.rest_of_line(behind_comma)
        if not is_first or (rest and not rest.startswith(b"#")):
            yield Splice(end, end, b"".join(b", " + each for each in new))
            return
        line = self.newline + indent
        if not has_comma:
            yield Splice(end, end, b",")
        yield Splice(line_end, line_end, line + (b"," + line).join(new) + (b"," if has_comma else b""))


def splice(raw: bytes, splices: Iterable[Splice], start: int, end: int) -> bytes:
    """Return a stretch of a file with what changes inside of it; what is added at its very end is left out."""
    inside = [each for each in splices if start <= each.start and each.end <= end and not each.start == each.end == end]
    parts, at = [], start
    for each in sorted(inside, key=lambda each: (each.start, each.end)):
        if each.start < at:
            raise RefusedError("Two changes want the same place in the source.")
        parts += [raw[at : each.start], each.text]
        at = each.end
    return b"".join([*parts, raw[at:end]])


def is_in(source: ParsedSource, node: cst.CSTNode, of: cst.CSTNode | None) -> bool:
    """Say whether a node is another one, or lies in it."""
    return of is not None and (node is of or any(each is of for each in source.around(node)))


def parameters_of(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """Return the parameters of a function, but for those with a star."""
    every = function.params
    return [*every.posonly_params, *every.params, *every.kwonly_params]
