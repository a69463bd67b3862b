"""A map's function called in the training step instead of in the pipeline: what takes the place of what.

``ds = ds.map(scale)`` loses its map. Before ``model.fit(ds)`` the model's ``train_step`` is given one that calls the function first; a
loop of the script's own, ``for x, y in ds:``, begins with ``x, y = scale(x, y)``. For a proof the map comes where the dataset is read
instead: what it hands on there is what the step will see.

Whatever else reads what the map makes would get other elements. So the dataset must be made, and read once, under plain names of one
function, or of the file itself; everything else is refused.
"""

import builtins
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from pipeline_lab.pipeline.change_words import CONVERT
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice, is_in, parameters_of
from pipeline_lab.pipeline.recipe import TRAINING, DatasetUse, Recipe
from pipeline_lab.pipeline.statements import binds
from pipeline_lab.pipeline.step_rewrites import HANDING_ON
from pipeline_lab.pipeline.training_edits import check_plain, is_in_loop
from pipeline_lab.pipeline.variables import is_length, owner_of

STEP = "own_train_step"
"""Name of the model's own step."""
_TRAINS = frozenset({"fit", "fit_generator", "train_on_batch", "make_train_function", "train_step"})


@dataclass(frozen=True)
class Converted:
    """What changes in a file.

    Attributes:
        trained: In the script.
        compared: In the one that is compared with it, where the map comes last.
    """

    trained: list[Splice]
    compared: list[Splice]


def move_into_step(
    recipe: Recipe, use: DatasetUse | None, source: ParsedSource, mapped: cst.Call, number: int
) -> Converted:
    """Return what lets the training step call a map's function.

    Args:
        recipe: Of the script.
        use: The training's reading of its dataset.
        source: The file of the map.
        mapped: The map.
        number: Of its call in the recipe.

    Raises:
        RefusedError: Something else may read what the map makes, or the function may not mean the same in the step.
    """
    if use is None or use.place is None or use.place.file != source.path:
        raise RefusedError(f"The dataset is not trained on in {source.name}, where it is made.")
    for other in recipe.uses:
        if other != use and any(call.number == number for call in recipe.upstream(other.call)):
            raise RefusedError(f"What the map makes is read elsewhere, too ({other.place or other.role}).")
    trained = source.node_at(use.place)
    read = _given(source, trained) if use.role == TRAINING else _looped_over(source, trained)
    function = MovedFunction(source, mapped, read)
    for name in _Path(source, mapped, read).follow():
        if recipe.may_use(source.path, name):
            raise RefusedError(f"Another file may read {name}, which holds what the map makes.")
    taken, end = _without(source, mapped), source.span(read)[1]
    written = _before_fit(source, trained, function) if use.role == TRAINING else _in_loop(source, trained, function)
    return Converted([taken, *written], [taken, Splice(end, end, f".map({function.code})".encode())])


def _without(source: ParsedSource, mapped: cst.Call) -> Splice:
    """Take a map out, with its line or its statement where nothing else is left of that."""
    start, end = source.core(mapped)
    assert isinstance(mapped.func, cst.Attribute)
    statement, below = source.statement_of(mapped), mapped.func.value
    if isinstance(statement, cst.Assign) and statement.value is mapped and len(statement.targets) == 1:
        target = statement.targets[0].target
        is_whole = isinstance(target, cst.Name) and isinstance(below, cst.Name) and target.value == below.value
        start = source.span(statement)[0] if is_whole else start
    line_end, rest = source.rest_of_line(end)
    has_line = source.start_of_line(start)[1] and (not rest or rest.startswith(b"#"))
    if has_line and not source.is_continued(start) and not _is_alone(source, statement, start):
        return Splice(source.line_start(start), source.line_below(line_end), b"")
    return Splice(*source.core(mapped), b"")


def _is_alone(source: ParsedSource, statement: cst.CSTNode | None, start: int) -> bool:
    """Say whether a statement begins at a place and is all that a block holds, which needs one."""
    line = None if statement is None or source.span(statement)[0] != start else source.parents[statement]
    block = None if line is None else source.parents[line]
    return isinstance(block, cst.IndentedBlock) and len(block.body) == 1


def _given(source: ParsedSource, fit: cst.BaseExpression) -> cst.Name:
    if not isinstance(fit, cst.Call) or not isinstance(fit.func, cst.Attribute):
        raise RefusedError("What trains is no call of a model's method.")
    check_plain(fit)
    named = next((each.value for each in fit.args if each.keyword and each.keyword.value == "x"), None)
    first = fit.args[0].value if fit.args and fit.args[0].keyword is None else None
    return _name(source, named or first or fit)


def _looped_over(source: ParsedSource, read: cst.BaseExpression) -> cst.Name:
    if isinstance(read, cst.Call) and source.code(read.func) == "enumerate" and len(read.args) == 1:
        return _name(source, read.args[0].value)
    return _name(source, read)


def _name(source: ParsedSource, read: cst.BaseExpression) -> cst.Name:
    if not isinstance(read, cst.Name) or read.lpar:
        raise RefusedError(f"Assign the dataset to a variable before {' '.join(source.code(read).split())[:40]}.")
    return read


class MovedFunction:
    """The function of a map that moves.

    Args:
        source: The file.
        mapped: The map.
        read: The name by which its dataset is trained on.

    Attributes:
        code: The function, as the map has it.
        parameters: How many parts of an element it takes.
        home: Of the variables that it shares with the training.

    Raises:
        RefusedError: It may stand for something else in the training step.
    """

    def __init__(self, source: ParsedSource, mapped: cst.Call, read: cst.Name) -> None:
        self._source, self._mapped, self.home = source, mapped, _function_around(source, read)
        given = source.find_argument(mapped, "map_func", ("map_func",))
        if given is None or not isinstance(given.value, (cst.Name, cst.Lambda)):
            raise RefusedError("The map is not given a function by its name, or a lambda.")
        self._given = given.value
        start, end = source.span(self._given)
        self.code = source.raw[start:end].decode()
        self._check_names(self._given)
        self.parameters = self._count(
            self._given if isinstance(self._given, cst.Lambda) else self._defined(self._given)
        )

    def _defined(self, name: cst.Name) -> cst.FunctionDef:
        found = self._source.functions(name.value)
        if len(found) != 1 or found[0].decorators:
            raise RefusedError(f"{name.value} is not defined in {self._source.name} once, without a decorator.")
        self._check_names(found[0])
        return found[0]

    @staticmethod
    def _count(function: cst.FunctionDef | cst.Lambda) -> int:
        given, parameters = function.params, parameters_of(function)
        is_plain = not given.kwonly_params and given.star_kwarg is None and not isinstance(given.star_arg, cst.Param)
        if not is_plain or not parameters or any(each.default is not None for each in parameters):
            raise RefusedError("The function of the map takes more than the parts of an element.")
        return len(parameters)

    def _check_names(self, function: cst.CSTNode) -> None:
        """Refuse where a name may have been given to something else between the map and the step."""
        for name in sorted({node.value for node in self._free(function)}):
            times = self._source.times_bound(name)
            if times > 1 or (not times and not hasattr(builtins, name)):
                raise RefusedError(f"{name} may stand for something else in the training step than in the map.")

    def _free(self, function: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield the names in a function that are no variables of its own, nor of functions within."""
        source = self._source
        for node in source.parents:
            if isinstance(node, cst.Name) and is_in(source, node, function) and not source.is_part(node):
                around = [each for each in source.around(node) if is_in(source, each, function)]
                if not any(binds(each, node.value) for each in around if isinstance(each, _FUNCTIONS)):
                    yield node

    def named(self) -> tuple[str, list[Splice]]:
        """Return its name, and the line in the place of the map that gives it one if it is a lambda."""
        if isinstance(self._given, cst.Name):
            return self.code, []
        name, source = self._source.new_name(CONVERT), self._source
        start, indent = source.line_before(self._mapped)
        text = source.dedented(self.code.encode(), self._mapped, start + len(indent))
        text = b"(" + text + b")" if b"\n" in text else text
        return name, [Splice(start, start, indent + f"{name} = ".encode() + text + source.newline)]


_FUNCTIONS = (cst.FunctionDef, cst.Lambda)


def _function_around(source: ParsedSource, node: cst.CSTNode) -> cst.CSTNode | None:
    return next((each for each in source.around(node) if isinstance(each, (*_FUNCTIONS, cst.ClassDef))), None)


class _Path:
    """The way of a dataset from a map to the training, by the variables that hold it."""

    def __init__(self, source: ParsedSource, mapped: cst.Call, read: cst.Name) -> None:
        self._source, self._mapped, self._read = source, mapped, read
        self._home, self._made = _function_around(source, read), source.span(mapped)[1]
        self._seen: set[str] = set()

    def follow(self) -> set[str]:
        """Return the variables that hold the dataset.

        Raises:
            RefusedError: Something else may read it.
        """
        source, home = self._source, self._home
        if _function_around(source, self._mapped) is not home:
            raise RefusedError("The dataset is not made where it is trained on, but by another function.")
        if isinstance(home, cst.FunctionDef) and home.decorators:
            raise RefusedError(f"{home.name.value}, which trains, has a decorator.")
        if is_in_loop(source, self._mapped):
            raise RefusedError("The dataset is made in a loop.")
        name = self._assigned(self._mapped)
        while name not in self._seen:
            self._seen.add(name)
            name = self._taken_by(name)
        if name != self._read.value:
            raise self._named_elsewhere(name)
        return self._seen

    def _assigned(self, node: cst.CSTNode) -> str:
        """Return the variable that gets what a node becomes by calls that hand its elements on."""
        source, whole = self._source, self._source.statement_of(node)
        while isinstance(attribute := source.parents[node], cst.Attribute) and attribute.value is node:
            call = source.parents[attribute]
            if not isinstance(call, cst.Call) or attribute.attr.value not in HANDING_ON:
                break
            node = call
        if isinstance(whole, cst.Assign) and whole.value is node and len(whole.targets) == 1:
            target = whole.targets[0].target
            if isinstance(target, cst.Name):
                return target.value
        taking = " ".join(source.code(node if whole is None else whole).split())
        raise RefusedError(f"What the map makes is not handed on by a variable alone, but taken by {taking[:60]}.")

    def _taken_by(self, name: str) -> str:
        """Return the variable that takes on what another one holds; the same where that is trained on."""
        source, takers = self._source, set[str]()
        for node in source.variables_named(name):
            if (
                owner_of(source, node) is not owner_of(source, self._read)
                or node is self._read
                or is_length(source, node)
            ):
                continue
            if _function_around(source, node) is not self._home:
                raise self._named_elsewhere(name)
            statement = source.statement_of(node)
            if source.span(node)[0] < self._made and (statement is None or not is_in(source, self._mapped, statement)):
                continue
            if isinstance(source.parents[node], cst.AssignTarget):
                self._check_goes_on(statement, name)
            elif source.span(node)[0] > self._made:
                takers.add(self._assigned(node))
        others = takers - {name}
        if len(others) > 1 or (others and name == self._read.value):
            raise self._named_elsewhere(name)
        return next(iter(others), name)

    def _check_goes_on(self, statement: cst.CSTNode | None, name: str) -> None:
        """Refuse an assignment after which a variable holds something else."""
        source = self._source
        held = (node for each in self._seen for node in source.variables_named(each))
        if not isinstance(statement, cst.Assign) or not (
            is_in(source, self._mapped, statement) or any(is_in(source, each, statement.value) for each in held)
        ):
            raise self._named_elsewhere(name)

    def _named_elsewhere(self, name: str) -> RefusedError:
        return RefusedError(f"{name}, which holds what the map makes, is named elsewhere, too.")


def _before_fit(source: ParsedSource, fit: cst.BaseExpression, function: MovedFunction) -> list[Splice]:
    """Return the lines that let the model's step call the function first."""
    assert isinstance(fit, cst.Call)
    assert isinstance(fit.func, cst.Attribute)
    model = fit.func.value
    if not isinstance(model, cst.Name) or owner_of(source, model) is not function.home:
        raise RefusedError(
            f"Assign the model that trains by {source.code(fit.func)} to a variable before, where it trains."
        )
    if is_in_loop(source, fit):
        raise RefusedError(f"{source.code(fit.func)} is in a loop, which would convert its batches again and again.")
    other = next((each for each in source.attributes() if each.attr.value in _TRAINS and each is not fit.func), None)
    if other is not None:
        said = " ".join(source.code(other).split())
        raise RefusedError(f"{source.name} also names {said}, which may train on what is converted already.")
    start, indent = source.line_before(fit)
    name, lines = function.named()
    step, batch = source.new_name(STEP), "batch" if name != "batch" else "data"
    given = batch if function.parameters == 1 else f"*{batch}"
    new = (
        f"{step} = {model.value}.train_step",
        f"{model.value}.train_step = lambda {batch}: {step}({name}({given}))",
    )
    return [*lines, Splice(start, start, b"".join(indent + line.encode() + source.newline for line in new))]


def _in_loop(source: ParsedSource, read: cst.BaseExpression, function: MovedFunction) -> list[Splice]:
    """Return the line that the body of a loop begins with."""
    loop = source.parents[read]
    if not isinstance(loop, cst.For) or loop.iter is not read or not isinstance(loop.body, cst.IndentedBlock):
        raise RefusedError(f"{source.code(read)} is not gone through by a for statement with lines of its own.")
    names = _names_in(loop.target, is_counted=isinstance(read, cst.Call))
    if not names or (len(names) > 1 and len(names) != function.parameters):
        raise RefusedError("The loop takes its elements apart in another way than the function of the map does.")
    start, indent = _line_of(source, loop.body.body[0])
    name, lines = function.named()
    given = f"*{names[0]}" if len(names) == 1 < function.parameters else ", ".join(names)
    converts = f"{', '.join(names)} = {name}({given})"
    return [*lines, Splice(start, start, indent + converts.encode() + source.newline)]


def _names_in(target: cst.CSTNode, *, is_counted: bool) -> list[str]:
    """Return the names of the parts of an element; none where a loop takes it apart in another way.

    Args:
        target: Of the loop.
        is_counted: An element comes with its number.
    """
    parts = target.elements if isinstance(target, cst.Tuple) else ()
    if is_counted:
        return _names_in(parts[1].value, is_counted=False) if len(parts) == 2 else []
    if isinstance(target, cst.Name):
        return [target.value]
    names = [each.value.value for each in parts if isinstance(each, cst.Element) and isinstance(each.value, cst.Name)]
    return names if len(names) == len(parts) else []


def _line_of(source: ParsedSource, statement: cst.CSTNode) -> tuple[int, bytes]:
    """Return where the line of a statement, or of its decorators, begins, and its blanks."""
    start = min(source.span(each)[0] for each in (statement, *getattr(statement, "decorators", ())))
    indent, is_first = source.start_of_line(start)
    if not is_first or source.is_continued(start):
        raise RefusedError(f"A statement of {source.name} does not begin its line, so that none can come before it.")
    return start - len(indent), indent
