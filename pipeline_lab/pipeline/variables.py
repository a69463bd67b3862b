"""A variable of a file that is edited: what is assigned to it, and whether others may read what it stands for."""

from collections.abc import Sequence

import libcst as cst

from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, is_in, parameters_of
from pipeline_lab.pipeline.statements import binds


class Variable:
    """A name in its scope.

    Args:
        source: The file.
        node: One occurrence.
        end: Place in the file by which the dataset has been handed over to the loop.
        around: The functions around the loop.

    Attributes:
        home: The function whose variable it is; None for one of the file.
    """

    def __init__(self, source: ParsedSource, node: cst.Name, end: int, around: Sequence[cst.FunctionDef]) -> None:
        self._source, self._node, self._end, self._around = source, node, end, around
        self.home = owner_of(source, node)
        self._named = [each for each in source.variables_named(node.value) if owner_of(source, each) is self.home]

    def _is_assigned(self, node: cst.Name) -> bool:
        parent = self._source.parents[node]
        return isinstance(parent, (cst.AssignTarget, cst.AnnAssign)) and parent.target is node

    def bound_to(self) -> list[cst.BaseExpression]:
        """Return what is assigned to it.

        Raises:
            RefusedError: It may stand for one of several datasets, or it is bound in other ways.
        """
        found = list[cst.BaseExpression]()
        for node in self._named:
            parent = self._source.parents[node]
            if isinstance(parent, cst.Param):
                continue
            if not self._is_assigned(node):
                if isinstance(parent, _BINDING) or (isinstance(parent, cst.For) and parent.target is node):
                    raise RefusedError(f"{self._source.name} binds {node.value} in other ways than by an assignment.")
                continue
            statement = self._source.statement_of(node)
            value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
            inner = self._source.around(node, self.home)
            sure = (cst.Module, cst.SimpleStatementLine, cst.Assign, cst.AnnAssign, cst.AssignTarget, cst.IndentedBlock)
            is_sure = all(isinstance(each, (*sure, cst.With)) or _is_main(self._source, each) for each in inner)
            is_single = isinstance(statement, cst.AnnAssign) or (
                isinstance(statement, cst.Assign) and len(statement.targets) == 1
            )
            if value is None or not is_sure or not is_single or self._source.span(node)[0] > self._end:
                raise RefusedError(
                    f"{node.value} may stand for another dataset, by where {self._source.name} assigns it."
                )
            found.append(value)
        return found

    def check_is_alone(self) -> None:
        """Refuse where something may read it later, or is handed it before; it remembers how often it has been read."""
        source = self._source
        for node in self._named:
            parent = source.parents[node]
            is_parameter = isinstance(parent, cst.Param) and parent.name is node
            if node is self._node or self._is_assigned(node) or is_parameter or is_length(source, node):
                continue
            inside = next(
                (each for each in source.around(node) if isinstance(each, (cst.FunctionDef, cst.Lambda))), None
            )
            is_elsewhere = inside is not None and inside is not self.home and inside not in self._around
            if is_elsewhere or source.span(node)[0] >= self._end or not self._is_look(node):
                raise RefusedError(f"{node.value}, which shuffles, draws or caches, is named outside of its loop, too.")

    def _is_look(self, node: cst.Name) -> bool:
        """Say whether a statement goes on from the dataset to the same name, or only looks at some elements or facts."""
        source = self._source
        first = source.parents[node]
        if isinstance(first, cst.Attribute) and first.attr.value in ("element_spec", "cardinality"):
            return True
        top: cst.CSTNode = node
        for each in source.around(node):
            is_link = (isinstance(each, cst.Attribute) and each.value is top) or (
                isinstance(each, cst.Call) and each.func is top
            )
            if not is_link:
                break
            top = each
        around = source.parents[top]
        if isinstance(around, cst.For) and around.iter is top:
            return True
        if isinstance(around, (cst.Assign, cst.AnnAssign)) and around.value is top:
            targets = [each.target for each in around.targets] if isinstance(around, cst.Assign) else [around.target]
            return all(isinstance(each, cst.Name) and each.value == node.value for each in targets)
        call = source.parents[around] if isinstance(around, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        name, user = source.code(call.func), source.parents[call]
        if name == "enumerate":
            return isinstance(user, cst.For)
        outer = source.parents[user] if isinstance(user, cst.Arg) else None
        return name == "iter" and isinstance(outer, cst.Call) and source.code(outer.func) == "next"


def owner_of(source: ParsedSource, node: cst.Name) -> cst.FunctionDef | None:
    """Return the function whose variable a name is; None for one of the file.

    Raises:
        RefusedError: It is a parameter of a lambda.
    """
    for each in source.around(node):
        if not isinstance(each, (cst.FunctionDef, cst.Lambda)) or not binds(each, node.value):
            continue
        if any(is_in(source, node, param.default) for param in parameters_of(each)):
            continue  # a default is worked out where the function is defined
        if isinstance(each, cst.Lambda):
            raise RefusedError(f"A lambda in {source.name} has a parameter called {node.value}.")
        return each
    return None


_BINDING = (
    *(cst.NameItem, cst.NamedExpr, cst.AsName, cst.ImportAlias, cst.FunctionDef, cst.ClassDef, cst.AugAssign, cst.Del),
    *(cst.MatchAs, cst.MatchStar, cst.MatchMapping, cst.Element, cst.StarredElement, cst.CompFor),
)
"""What may bind a name in other ways; a name in a tuple or a list may be bound there."""


def _is_main(source: ParsedSource, node: cst.CSTNode) -> bool:
    return isinstance(node, cst.If) and "__name__" in source.code(node.test)


def is_length(source: ParsedSource, node: cst.Name) -> bool:
    """Say whether a name is all that ``len`` is given."""
    parent = source.parents[node]
    call = source.parents[parent] if isinstance(parent, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and source.code(call.func) == "len"
        and isinstance(parent, cst.Arg)
        and parent.value is node
    )
