"""The parts of a function of the user's: what it does before it draws at random, which is the same each time, and the rest.

Only what is known to give the same each time counts as such: TensorFlow's own operations, and functions of the same file that call
nothing else. The first statement that does anything else begins the rest.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Self, TypeAlias

from pipeline_lab.data_classes import dataclass

KEPT, DRAWN = "{name}_kept", "{name}_drawn"
"""Names of the two parts; nothing has the function's own name any more, so that what else uses it fails at once."""
_MAY_DIFFER = re.compile(
    r"random|stateful|shuffle|dropout|distort|sampler|multinomial|categorical|fractional|truncated|py_func|numpy_function|print|timestamp"
    r"|variable|assign|keras|data$|summary|queue|eager|raw_ops"
    r"|sampled|nce_loss|map_flat_values|map_values|map_fn|vectorized_map|cond$|case$|while_loop|scan|fold|map_structure|function$|autograph|gradient",
    re.IGNORECASE,
)
"""Parts of names in TensorFlow that draw, keep a state, run Python, or call a function that they are given."""
_NO_TENSOR = frozenset({"split", "unstack", "meshgrid", "TensorShape", "as_dtype"})
"""Functions of TensorFlow that return lists, which a dataset packs into one tensor, or no tensor."""
_OF_TENSORS = frozenset({"set_shape"})
"""Methods of tensors that a statement may call."""


Function: TypeAlias = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class FunctionParts:
    """A function in two.

    Attributes:
        name, kept_name, rest_name: Of the function, and of its parts.
        head: Line that has the function's name, from 1.
        after, line: Last line of the first part, and first line of the rest.
        between: What comes in the place of the blank lines between them.
        first, rest: Both as Python, indented as in the file.
    """

    name: str
    kept_name: str
    rest_name: str
    head: int
    after: int
    line: int
    between: str
    first: str
    rest: str


def split_function(text: str, name: str, line: int) -> FunctionParts | None:
    """Split a function before its first statement that may give something else each time.

    Args:
        text: Source of its file.
        name: Of the function, qualified or not.
        line: Where it begins.

    Returns:
        None where nothing comes before that, what is handed over cannot be elements of a dataset, or the function is named elsewhere
        than in one call.
    """
    text, name = re.sub(r"\r\n?", "\n", text), name.rpartition(".")[2]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    found = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (name, line)
    )
    function, bound = next(found, None), count_bindings(tree)
    if function is None or not _is_plain(function) or "*" in bound:
        return None
    if bound[name] != 1 or sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree)) != 1:
        return None
    steady = _Steady.of(tree, function, bound)
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    cut = next((place for place, each in enumerate(body) if not steady.is_kept(each)), len(body))
    kept, rest = body[:cut], body[cut:]
    if not all(any(isinstance(node, ast.Call) for each in part for node in ast.walk(each)) for part in (kept, rest)):
        return None
    handed = steady.handed(function, kept, rest)
    has_own_lines = all(each.lineno > (before.end_lineno or 0) for before, each in pairwise(body))
    names = KEPT.format(name=name), DRAWN.format(name=name)
    if not handed or not has_own_lines or any(re.search(rf"\b{each}\b", text) for each in names):
        return None
    return _write(text.split("\n"), function, kept[-1], rest[0], handed, names)


def find_unsteady(tree: ast.Module, function: Function, home: ast.FunctionDef | None) -> str:
    """Say why a function may give something else when it is called later, or no tensors.

    Args:
        tree: Of its file.
        function: Of the file.
        home: The function in which it is called; None for the file itself.

    Returns:
        What speaks against it, after "it"; empty where it always gives the same tensors.
    """
    bound = count_bindings(tree)
    steady = _Steady.of(tree, function, bound)
    constants = _constants(tree, home, bound)
    for one in steady.called(function):
        if not steady.gives_the_same(one):
            return "does more than to call TensorFlow's operations"
        unknown = sorted(_free(one) - steady.tensorflow - steady.functions.keys() - constants)
        if unknown:
            return f"reads {unknown[0]}, which may change"
    return "" if steady.returns_tensors(function) else "may return something else than tensors"


def _free(function: Function) -> set[str]:
    """Return the names that a function reads and does not give to anything itself."""
    nodes = list(ast.walk(function))
    own = {each.arg for each in nodes if isinstance(each, ast.arg)}
    own |= {each.id for each in nodes if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    return {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)} - own


def _constants(tree: ast.Module, home: ast.FunctionDef | None, bound: Counter[str]) -> set[str]:
    """Return the names that stand for one value that cannot change, of the file and of a function."""
    gone = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Del)}
    found = set[str]()
    for statement in (*tree.body, *(() if home is None else home.body)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        target = statement.target if isinstance(statement, ast.AnnAssign) else target
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(target, ast.Name) and value is not None and _is_fixed(value):
            found.add(target.id)
    return {name for name in found - gone if bound[name] == 1}


def _is_fixed(value: ast.expr) -> bool:
    try:
        made = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return all(isinstance(each, (int, float, str, bytes)) for each in (made if isinstance(made, tuple) else (made,)))


def _is_plain(function: ast.FunctionDef) -> bool:
    given = function.args
    is_called_plainly = not (given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults)
    others = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)
    is_own = not given.args or given.args[0].arg not in ("self", "cls")
    is_only = not any(isinstance(node, others) for node in ast.walk(function))
    return is_called_plainly and is_own and is_only and not function.decorator_list


def count_bindings(tree: ast.Module) -> Counter[str]:
    """Count how often each name is given to something in a file, in whatever scope."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        elif isinstance(node, ast.arg):
            found[node.arg] += 1
        elif isinstance(node, ast.alias):
            found[node.asname or node.name.partition(".")[0]] += 1
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found[node.name] += 1
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] += 1
    return found


def _visible(tree: ast.Module, function: Function) -> Iterator[ast.FunctionDef]:
    """Yield the functions whose plain names a function sees: of the module, and of the functions around it."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno < function.lineno <= (node.end_lineno or 0)
    ]
    for body in (tree.body, *(each.body for each in around)):
        yield from (each for each in body if isinstance(each, ast.FunctionDef))


def _names_of_tensorflow(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.asname or each.name for each in node.names if each.name == "tensorflow")


@dataclass(frozen=True)
class _Steady:
    """Says what gives the same each time.

    Attributes:
        functions: Of the file, whose names stand for nothing else there.
        tensorflow: Names that TensorFlow has in it, likewise.
        imported: All names that are imported.
    """

    functions: Mapping[str, ast.FunctionDef]
    tensorflow: frozenset[str]
    imported: frozenset[str]

    @classmethod
    def of(cls, tree: ast.Module, function: Function, bound: Counter[str]) -> Self:
        """Return what is steady where a function stands."""
        return cls(
            {each.name: each for each in _visible(tree, function) if bound[each.name] == 1},
            frozenset(each for each in _names_of_tensorflow(tree) if bound[each] == 1),
            frozenset(each.asname or each.name for each in ast.walk(tree) if isinstance(each, ast.alias)),
        )

    def is_kept(self, statement: ast.stmt) -> bool:
        """Say whether a statement may belong to the first part."""
        if isinstance(statement, ast.Assign):
            targets = [each for target in statement.targets for each in _parts(target)]
        elif isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.AnnAssign) and statement.value):
            targets = [statement.target]
        elif isinstance(statement, ast.Expr):
            targets = []
        else:
            return False
        return all(isinstance(each, ast.Name) for each in targets) and self._gives_the_same(statement, frozenset())

    def _gives_the_same(self, node: ast.AST, around: frozenset[str]) -> bool:
        nodes = list(ast.walk(node))
        names = [_dotted(each) for each in nodes if isinstance(each, ast.Attribute)]
        differs = any(
            _MAY_DIFFER.search(each) for name in names if name and name[0] in self.tensorflow for each in name[1:]
        )
        if differs or any(isinstance(each, (ast.NamedExpr, ast.Await)) for each in nodes):
            return False
        used = {id(each.func) for each in nodes if isinstance(each, ast.Call)}
        used |= {id(each.value) for each in nodes if isinstance(each, ast.Attribute)}
        unknown = {*self.functions, *self.imported}  # what takes them may call them
        if any(isinstance(each, ast.Name) and each.id in unknown and id(each) not in used for each in nodes):
            return False
        return all(self._is_known(each, around) for each in nodes if isinstance(each, ast.Call))

    def _is_known(self, call: ast.Call, around: frozenset[str]) -> bool:
        names = _dotted(call.func)
        if len(names) != 1:
            return bool(names) and (names[0] in self.tensorflow or names[-1] in _OF_TENSORS)
        function = self.functions.get(names[0])
        if function is None or names[0] in around or function.decorator_list:
            return False
        stores = (ast.Attribute, ast.Subscript)
        changes = (
            isinstance(each, (ast.Global, ast.Nonlocal))
            or (isinstance(each, stores) and isinstance(each.ctx, (ast.Store, ast.Del)))
            for each in ast.walk(function)
        )
        return not any(changes) and self._gives_the_same(function, around | {names[0]})

    def called(self, function: Function) -> Iterator[Function]:
        """Yield a function, and those of the file that it calls, and these call."""
        left, seen = list[Function]([function]), list[Function]()
        while left:
            yield (one := left.pop())
            seen.append(one)
            names = {
                _dotted(each.func)[0] for each in ast.walk(one) if isinstance(each, ast.Call) and _dotted(each.func)
            }
            left += [self.functions[name] for name in names & self.functions.keys() if self.functions[name] not in seen]

    def handed(self, function: ast.FunctionDef, kept: list[ast.stmt], rest: list[ast.stmt]) -> list[str]:
        """Return the names that the rest reads of what there is before it; none where one of them may be no tensor."""
        made = self._made(function, kept)
        read = {node.id for each in rest for node in ast.walk(each) if isinstance(node, ast.Name)}
        handed = [name for name in made if name in read]
        return handed if all(made[name] for name in handed) else []

    def returns_tensors(self, function: Function) -> bool:
        """Say whether all that a function returns are certainly tensors, or some in a tuple."""
        made = self._made(function, ast.walk(function))
        returned = [each.value for each in ast.walk(function) if isinstance(each, ast.Return)]
        returned += [function.body] if isinstance(function, ast.Lambda) else []
        parts = [part for each in returned for part in (_parts(each) if each is not None else [])]
        return bool(parts) and None not in returned and all(self._is_tensor(each, made) for each in parts)

    def gives_the_same(self, function: Function) -> bool:
        """Say whether a function does nothing but what gives the same each time, whatever its names stand for."""
        others = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Import, ast.ImportFrom, ast.Delete)
        stores = (ast.Attribute, ast.Subscript)
        does_more = any(
            isinstance(each, others) or (isinstance(each, stores) and isinstance(each.ctx, ast.Store))
            for each in ast.walk(function)
        )
        return not does_more and self._gives_the_same(function, frozenset())

    def _made(self, function: Function, statements: Iterable[ast.AST]) -> dict[str, bool]:
        """Return the names that there are after some statements of a function, and of each whether it is certainly a tensor."""
        made = dict.fromkeys((each.arg for each in function.args.args), True)
        for statement in statements:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                made[statement.target.id] = statement.value is not None and self._is_tensor(statement.value, made)
            for target in statement.targets if isinstance(statement, ast.Assign) else ():
                assert isinstance(statement, ast.Assign)
                targets, values = _parts(target), _parts(statement.value)
                values = values if len(values) == len(targets) else [statement.value] * len(targets)
                known = [self._is_tensor(value, made) for value in values]
                made |= {
                    each.id: is_one for each, is_one in zip(targets, known, strict=True) if isinstance(each, ast.Name)
                }
        return made

    def _is_tensor(self, value: ast.expr, made: Mapping[str, bool]) -> bool:
        if isinstance(value, ast.Name):
            return made.get(value.id, False)
        if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            return any(
                self._is_tensor(each, made) for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)
            )
        if isinstance(value, ast.Subscript):
            return self._is_tensor(value.value, made)
        if not isinstance(value, ast.Call):
            return False
        names = _dotted(value.func)
        if len(names) != 1 or names[0] not in self.functions:
            return len(names) > 1 and names[-1] not in _NO_TENSOR
        return self.returns_tensors(self.functions[names[0]])


def _dotted(node: ast.expr) -> list[str]:
    """Return the names of ``a.b.c``; nothing of any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _write(
    lines: list[str],
    function: ast.FunctionDef,
    last: ast.stmt,
    first: ast.stmt,
    handed: list[str],
    names: tuple[str, str],
) -> FunctionParts:
    after, end = last.end_lineno or 0, function.end_lineno or 0
    line = next(number for number in range(after + 1, end + 1) if lines[number - 1].strip())
    inner = lines[first.lineno - 1][: first.col_offset]
    outer = lines[function.lineno - 1][: function.col_offset]
    given = f"return {', '.join(handed)}" if len(handed) > 1 else f"return ({handed[0]},)"
    ending = f"{inner}{given}\n"
    head = f"{outer}def {names[1]}({', '.join(handed)}):\n"
    first_line = lines[function.lineno - 1]
    at = first_line.index(function.name, function.col_offset + len("def"))
    renamed = f"{first_line[:at]}{names[0]}{first_line[at + len(function.name) :]}"
    kept = [renamed, *lines[function.lineno : after]]
    return FunctionParts(
        function.name,
        *names,
        head=function.lineno,
        after=after,
        line=line,
        between=f"{ending}{chr(10) * (1 if outer else 2)}{head}",
        first="".join(f"{each}\n" for each in kept) + ending,
        rest=head + "".join(f"{each}\n" for each in lines[line - 1 : end]),
    )
