"""A map's function called in the training step instead of in the pipeline: what takes the place of what.

``ds = ds.map(scale)`` loses its map. Before ``model.fit(ds)`` the model's ``train_step`` is given one that calls the function first; a
loop of the script's own, ``for x, y in ds:``, begins with ``x, y = scale(x, y)``. For a proof the map comes where the dataset is read
instead: what it hands on there is what the step will see.

Whatever else reads what the map makes would get other elements, and whatever else trains the model would convert what it is given. So
the dataset must be made, and read once, under plain names of one function, or of the file itself, the function must do nothing but call
TensorFlow's operations, and the model must go nowhere else; everything else is refused.
"""

import ast

import libcst as cst

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.change_words import CONVERT
from pipeline_lab.pipeline.function_parts import find_unsteady
from pipeline_lab.pipeline.loop_edits import check_names, only_call
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice, is_in, parameters_of
from pipeline_lab.pipeline.recipe import TRAINING, DatasetUse, Recipe
from pipeline_lab.pipeline.step_rewrites import HANDING_ON
from pipeline_lab.pipeline.training_edits import check_plain, is_in_loop
from pipeline_lab.pipeline.variables import is_length, owner_of

STEP = "own_train_step"
"""Name of the model's own step."""
_TRAINS = frozenset({"fit", "fit_generator", "train_on_batch", "make_train_function", "train_step"})
_FUNCTIONS = (cst.FunctionDef, cst.Lambda)


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
    _check_recipe(recipe, use, number)
    check_names(source)
    trained = source.node_at(use.place)
    read = _given(source, trained) if use.role == TRAINING else _looped_over(source, trained)
    held = _Path(source, mapped, read).follow()
    _check_scope(recipe, source, held)
    function = MovedFunction(source, mapped, read)
    taken, end = _without(source, mapped), source.span(read)[1]
    if use.role == TRAINING:
        _check_model(recipe, source, trained)
        written = _before_fit(source, trained, function)
    else:
        written = _in_loop(source, trained, function)
    return Converted([taken, *written], [taken, Splice(end, end, f".map({function.code})".encode())])


def _check_recipe(recipe: Recipe, use: DatasetUse, number: int) -> None:
    """Refuse where something else was seen to read what the map makes, or files hold it."""
    for other in recipe.uses:
        if other != use and any(call.number == number for call in recipe.upstream(other.call)):
            raise RefusedError(f"What the map makes is read elsewhere, too ({other.place or other.role}).")
    for call in recipe.upstream(use.call, inside=False):
        if call.number == number:
            return
        if call.method == "cache" and call.arguments.get("filename"):
            raise RefusedError(f"The files of {call.words} ({call.place}) hold what the map made before.")


def _check_scope(recipe: Recipe, source: ParsedSource, names: set[str]) -> None:
    """Refuse where a variable may be reached in other ways than by its name in its own function."""
    for node in source.parents:
        if isinstance(node, (cst.Global, cst.Nonlocal)) and any(each.name.value in names for each in node.names):
            raise RefusedError(f"{source.place_of(node)} makes a variable of the dataset one of other functions, too.")
    for name in sorted(names):
        if recipe.may_use(source.path, name):
            raise RefusedError(f"Another file may read {name}, which holds what the map makes.")


def _without(source: ParsedSource, mapped: cst.Call) -> Splice:
    """Take a map out, with its line or its statement where nothing else is left of that."""
    start, end = source.core(mapped)
    assert isinstance(mapped.func, cst.Attribute)
    statement, below = source.statement_of(mapped), mapped.func.value
    if isinstance(statement, cst.Assign) and statement.value is mapped and len(statement.targets) == 1:
        target = statement.targets[0].target
        is_whole = isinstance(target, cst.Name) and isinstance(below, cst.Name) and target.value == below.value
        start = source.span(statement)[0] if is_whole and not _is_alone(source, statement) else start
    line_end, rest = source.rest_of_line(end)
    if not source.start_of_line(start)[1]:
        return Splice(*source.core(mapped), b"")
    if source.is_continued(start):
        before = source.raw[:start].rstrip()[:-1].rstrip()  # without the backslash
        return Splice(len(before), end, b"")
    if not rest or rest.startswith(b"#"):
        return Splice(source.line_start(start), source.line_below(line_end), b"")
    return Splice(*source.core(mapped), b"")


def _is_alone(source: ParsedSource, statement: cst.CSTNode) -> bool:
    """Say whether a statement is all that a block holds, which needs one, or shares its line."""
    line = source.parents[statement]
    block = source.parents[line]
    shares = isinstance(line, cst.SimpleStatementLine) and len(line.body) > 1
    return shares or not isinstance(block, (cst.Module, cst.IndentedBlock)) or len(block.body) == 1


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
        words = " ".join(source.code(read).split())[:40]
        raise RefusedError(f"The training is not given the dataset by a variable alone, but by {words}.")
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

    Raises:
        RefusedError: It may give something else in the training step.
    """

    def __init__(self, source: ParsedSource, mapped: cst.Call, read: cst.Name) -> None:
        self._source, self._mapped, self._home = source, mapped, _scope_around(source, read)
        given = source.find_argument(mapped, "map_func", ("map_func",))
        if given is None or not isinstance(given.value, (cst.Name, cst.Lambda)):
            raise RefusedError("The map is not given a function by its name, or a lambda.")
        self._given = given.value
        start, end = source.span(self._given)
        self.code = source.raw[start:end].decode()
        function = self._given if isinstance(self._given, cst.Lambda) else self._defined(self._given)
        self.parameters = self._count(function)
        tree = source.tree_of(function)
        home = source.tree_of(self._home) if isinstance(self._home, cst.FunctionDef) else None
        why = "cannot be read" if tree is None else find_unsteady(source.tree, tree, _as_function(home))
        if why:
            raise RefusedError(f"The function of the map {why}; in the training step it is called at another time.")

    def _defined(self, name: cst.Name) -> cst.FunctionDef:
        found = [
            each
            for each in self._source.functions(name.value)
            if _scope_around(self._source, each) in (None, self._home)
        ]
        if len(found) != 1 or found[0].decorators or found[0].asynchronous or self._source.times_bound(name.value) != 1:
            raise RefusedError(
                f"{name.value} is not defined once in {self._source.name}, without a decorator, where the training can see it."
            )
        return found[0]

    @staticmethod
    def _count(function: cst.FunctionDef | cst.Lambda) -> int:
        given, parameters = function.params, parameters_of(function)
        is_plain = not given.kwonly_params and given.star_kwarg is None and not isinstance(given.star_arg, cst.Param)
        if not is_plain or not parameters or any(each.default is not None for each in parameters):
            raise RefusedError("The function of the map takes more than the parts of an element.")
        return len(parameters)

    def named(self) -> tuple[str, list[Splice]]:
        """Return its name, and the line in the place of the map that gives it one if it is a lambda."""
        if isinstance(self._given, cst.Name):
            return self.code, []
        name, source = self._source.new_name(CONVERT), self._source
        start, indent = source.line_before(self._mapped)
        text = source.dedented(self.code.encode(), self._mapped, start + len(indent))
        text = b"(" + text + b")" if b"\n" in text else text
        return name, [Splice(start, start, indent + f"{name} = ".encode() + text + source.newline)]


def _as_function(tree: "ast.FunctionDef | ast.Lambda | None") -> "ast.FunctionDef | None":
    return tree if isinstance(tree, ast.FunctionDef) else None


def _scope_around(source: ParsedSource, node: cst.CSTNode) -> cst.CSTNode | None:
    return next((each for each in source.around(node) if isinstance(each, (*_FUNCTIONS, cst.ClassDef))), None)


class _Path:
    """The way of a dataset from a map to the training, by the variables that hold it."""

    def __init__(self, source: ParsedSource, mapped: cst.Call, read: cst.Name) -> None:
        self._source, self._mapped, self._read = source, mapped, read
        self._home, self._made = _scope_around(source, read), source.span(mapped)[1]
        self._seen: set[str] = set()

    def follow(self) -> set[str]:
        """Return the variables that hold the dataset.

        Raises:
            RefusedError: Something else may read it, or what is trained on may be another one.
        """
        source, home = self._source, self._home
        if _scope_around(source, self._mapped) is not home:
            raise RefusedError("The dataset is not made where it is trained on, but by another function.")
        around = [each for each in source.around(self._read) if isinstance(each, (*_FUNCTIONS, cst.ClassDef))]
        if any(getattr(each, "decorators", ()) or getattr(each, "asynchronous", None) for each in around):
            raise RefusedError("A function around the training has a decorator, or is asynchronous.")
        if is_in_loop(source, self._mapped):
            raise RefusedError("The dataset is made in a loop.")
        name = self._assigned(self._mapped, "")
        while name not in self._seen:
            self._seen.add(name)
            name = self._taken_by(name)
        if name != self._read.value:
            raise RefusedError(f"How what the map makes becomes {self._read.value} is not clear.")
        return self._seen

    def _assigned(self, node: cst.CSTNode, before: str) -> str:
        """Return the variable that gets what a node becomes by calls that hand its elements on.

        Args:
            node: The node.
            before: The variable that held it; one that goes on under the same name may do so in some cases only.
        """
        source, whole, first = self._source, self._source.statement_of(node), node
        while isinstance(attribute := source.parents[node], cst.Attribute) and attribute.value is node:
            call = source.parents[attribute]
            if not isinstance(call, cst.Call) or attribute.attr.value not in HANDING_ON:
                break
            node = call
        if isinstance(whole, (cst.Assign, cst.AnnAssign)) and whole.value is node:
            targets = [each.target for each in whole.targets] if isinstance(whole, cst.Assign) else [whole.target]
            if len(targets) == 1 and isinstance(targets[0], cst.Name):
                if targets[0].value != before and not self._always_comes_before(whole):
                    raise RefusedError(
                        f"{source.place_of(first)} runs in some cases only, and the training in others, too."
                    )
                return targets[0].value
        raise self._taken_elsewhere(first)

    def _always_comes_before(self, statement: cst.CSTNode) -> bool:
        """Say whether a statement has run wherever the training comes."""
        source = self._source
        block = source.parents[source.parents[statement]]
        while isinstance(block, cst.IndentedBlock) and isinstance(source.parents[block], cst.With):
            block = source.parents[source.parents[block]]
        return isinstance(block, cst.Module) or is_in(source, self._read, block)

    def _taken_by(self, name: str) -> str:
        """Return the variable that takes on what another one holds; the same where that is trained on."""
        source, takers = self._source, set[str]()
        for node in source.variables_named(name):
            is_mine = owner_of(source, node) is owner_of(source, self._read)
            if not is_mine or node is self._read or is_length(source, node):
                continue
            if _scope_around(source, node) is not self._home:
                raise self._taken_elsewhere(node)
            statement = source.statement_of(node)
            if source.span(node)[0] < self._made and (statement is None or not is_in(source, self._mapped, statement)):
                continue
            if isinstance(source.parents[node], (cst.AssignTarget, cst.AnnAssign)):
                if not self._goes_on(statement):
                    raise RefusedError(f"{source.place_of(node)} makes something else of {name}, after the map.")
            elif source.span(node)[0] > self._made:
                takers.add(self._assigned(node, name))
        others = takers - {name}
        if len(others) > 1 or (others and name == self._read.value):
            raise RefusedError(f"What the map makes goes on under several names ({', '.join(sorted(takers))}).")
        return next(iter(others), name)

    def _goes_on(self, statement: cst.CSTNode | None) -> bool:
        """Say whether an assignment goes on from what a variable held: ``ds = ds.batch(8)``."""
        if not isinstance(statement, (cst.Assign, cst.AnnAssign)) or statement.value is None:
            return False
        head: cst.CSTNode = statement.value
        while isinstance(head, cst.Call) and isinstance(head.func, cst.Attribute) and head is not self._mapped:
            head = head.func.value
        return head is self._mapped or (isinstance(head, cst.Name) and head.value in self._seen)

    def _taken_elsewhere(self, node: cst.CSTNode) -> RefusedError:
        start = self._source.line_start(self._source.span(node)[0])
        text = self._source.raw[start : self._source.rest_of_line(start)[0]].decode().strip()
        return RefusedError(f"What the map makes is also taken at {self._source.place_of(node)} ({text[:60]}).")


def _check_model(recipe: Recipe, source: ParsedSource, fit: cst.BaseExpression) -> None:
    """Refuse where something else may train the model, or train it again."""
    assert isinstance(fit, cst.Call)
    assert isinstance(fit.func, cst.Attribute)
    model, said = fit.func.value, source.code(fit.func)
    home = _scope_around(source, fit)
    if not isinstance(model, cst.Name) or owner_of(source, model) is not home:
        raise RefusedError(f"Assign the model that trains by {said} to a variable before, where it trains.")
    if is_in_loop(source, fit):
        raise RefusedError(f"{said} is in a loop, which would convert its batches again and again.")
    if any(
        isinstance(each, cst.NamedExpr) and is_in(source, each, source.statement_of(fit)) for each in source.parents
    ):
        raise RefusedError(f"The statement with {said} also assigns a name (:=).")
    if isinstance(home, cst.FunctionDef):
        only_call(recipe, source, home, said)
    other = next((each for each in source.attributes() if each.attr.value in _TRAINS and each is not fit.func), None)
    if other is not None:
        words = " ".join(source.code(other).split())
        raise RefusedError(
            f"{source.place_of(other)} also names {words}, which may train on what is converted already."
        )
    texts = {path: recipe.text(path) or "" for path in recipe.files if path != source.path}
    if any(f".{name}" in text for text in texts.values() for name in _TRAINS):
        raise RefusedError("Another file of the script trains a model, too, which may be the same.")
    _check_scope(recipe, source, {model.value})
    for node in source.variables_named(model.value):
        parent = source.parents[node]
        is_used = (isinstance(parent, cst.Attribute) and parent.value is node) or (
            isinstance(parent, cst.Call) and parent.func is node
        )
        if not is_used and not isinstance(parent, (cst.AssignTarget, cst.AnnAssign)):
            raise RefusedError(f"{source.place_of(node)} hands the model on, so that something else may train it.")


def _before_fit(source: ParsedSource, fit: cst.BaseExpression, function: MovedFunction) -> list[Splice]:
    """Return the lines that let the model's step call the function first."""
    assert isinstance(fit, cst.Call)
    assert isinstance(fit.func, cst.Attribute)
    model = source.code(fit.func.value)
    start, indent = source.line_before(fit)
    start = source.above_comments(start + len(indent))
    name, lines = function.named()
    step, batch = source.new_name(STEP), "batch" if name != "batch" else "data"
    given = batch if function.parameters == 1 else f"*{batch}"
    new = (f"{step} = {model}.train_step", f"{model}.train_step = lambda {batch}: {step}({name}({given}))")
    return [*lines, Splice(start, start, b"".join(indent + line.encode() + source.newline for line in new))]


def _in_loop(source: ParsedSource, read: cst.BaseExpression, function: MovedFunction) -> list[Splice]:
    """Return the line that the body of a loop begins with."""
    loop = source.parents[read]
    if not isinstance(loop, cst.For) or loop.iter is not read or not isinstance(loop.body, cst.IndentedBlock):
        raise RefusedError(f"{source.code(read)} is not gone through by a for statement with lines of its own.")
    names = _names_in(loop.target, is_counted=isinstance(read, cst.Call))
    is_apart = len(names) == function.parameters and len(set(names)) == len(names)
    if not names or (len(names) > 1 and not is_apart) or loop.asynchronous is not None:
        raise RefusedError("The loop takes its elements apart in another way than the function of the map does.")
    start, indent = source.line_before(loop.body.body[0])
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
    return names if len(names) == len(parts) > 1 else []
