"""Arguments of the training, written where they belong: into the model's ``compile``, where a ``PyDataset`` is made, or into ``fit``."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath

import libcst as cst

from pipeline_lab.pipeline.changes import OneIterator, SetTraining
from pipeline_lab.pipeline.loop_edits import join_passes
from pipeline_lab.pipeline.parsed_source import Code, ParsedSource, RefusedError, Splice, parameters_of
from pipeline_lab.pipeline.recipe import OF_KERAS, TRAINING, VALIDATION, DatasetCall, DatasetUse, PythonPart, Recipe
from pipeline_lab.pipeline.shared_state import find_writes

Find = Callable[[str], ParsedSource]
COMPILED = frozenset({"steps_per_execution"})
"""Arguments of ``compile``; others are a ``PyDataset``'s, or of Keras 2 ``fit``'s."""
_BASES = frozenset({"PyDataset", "Sequence"})
_MADE_FOR_WORKERS = re.compile(r"keras\..*\.(DirectoryIterator|DataFrameIterator|NumpyArrayIterator)\.__getitem__")
"""What an ``ImageDataGenerator`` makes. Its batches may be made at once: they change only the order of the epoch, which is set before
workers begin, and a count that is used only with a seed, which the proof refuses."""
_NOT_NOTED = "The recording does not say whether its epochs end where its data do; record the script again."


def edit_training(
    recipe: Recipe, use: DatasetUse | None, find: Find, texts: Mapping[str, str], edit: SetTraining | OneIterator
) -> Iterator[tuple[str, Splice]]:
    """Yield path and splice of each change of the source that an edit of the training takes.

    Args:
        recipe: Of the script.
        use: The training's reading of its dataset.
        find: Returns a file of the user's.
        texts: The user's files.
        edit: What is done.

    Raises:
        RefusedError: Where it belongs is not clear.
    """
    if use is None or use.place is None:
        raise RefusedError("What trains is not known.")
    source = find(use.place.file)
    fit = source.node_at(use.place)
    if isinstance(edit, OneIterator) and edit.of_loop:
        yield from ((source.path, each) for each in join_passes(recipe, use, source, fit, edit))
        return
    if not isinstance(fit, cst.Call) or not isinstance(fit.func, cst.Attribute):
        raise RefusedError(f"{use.place} is no call of a model's method.")
    if isinstance(edit, OneIterator):
        yield from _join_epochs(source, fit, edit)
    elif edit.name in COMPILED:
        yield from _with_argument(source, _compile_of(source, fit.func.value), edit)
    else:
        yield from _with_workers(recipe, use, find, texts, source, fit, edit)


def _with_workers(
    recipe: Recipe,
    use: DatasetUse,
    find: Find,
    texts: Mapping[str, str],
    source: ParsedSource,
    fit: cst.Call,
    edit: SetTraining,
) -> Iterator[tuple[str, Splice]]:
    """Give threads to a ``PyDataset``, or with Keras 2 to ``fit``."""
    part = _python_of_keras(recipe, use)
    check_plain(fit)
    _check_state(part, texts)
    if part.kind == "Sequence":
        _check_evaluation(recipe, use, part, fit)
        _check_epochs(each for each in (use, *_read_beside(recipe, use)) if _fed(recipe, [each]))
        yield from _with_argument(source, fit, edit)
        return
    try:
        made_in, call, is_for_all = _where_made(part, find, texts, source, fit)
    except RefusedError:
        given = _given(fit)
        if not isinstance(given, cst.Name) or is_parameter(source, fit, given):
            raise
        _check_epochs(_uses_of(recipe, part))
        yield _line_before(source, fit, f"{given.value}.{edit.name} = {source.write_value(edit.name, edit.value, fit)}")
    else:
        _check_epochs(_uses_of(recipe, part, of_its_class=is_for_all))
        yield from _with_argument(made_in, call, edit)


def _with_argument(source: ParsedSource, call: cst.Call, edit: SetTraining) -> Iterator[tuple[str, Splice]]:
    for each in source.set_arguments(call, {edit.name: edit.value}, ()):
        yield source.path, each


def _line_before(source: ParsedSource, node: cst.CSTNode, line: str) -> tuple[str, Splice]:
    start, indent = source.line_before(node)
    return source.path, Splice(start, start, indent + line.encode() + source.newline)


def _join_epochs(source: ParsedSource, fit: cst.Call, edit: OneIterator) -> Iterator[tuple[str, Splice]]:
    """Let one iterator serve all epochs."""
    check_plain(fit)
    given = _given(fit)
    if given is None or not re.fullmatch(r"[\w.]+", source.code(given)):
        raise RefusedError("Assign the dataset to a variable before calling fit.")
    if _argument(fit, "steps_per_epoch") is not None:
        raise RefusedError("steps_per_epoch is given already.")
    if is_parameter(source, fit, given):
        raise RefusedError("What the function around fit is given there may be another dataset each time.")
    epochs = _argument(fit, "epochs")
    is_one = epochs is None or source.code(epochs) in ("0", "1") or _begins_later(source, fit)
    if is_one or is_in_loop(source, fit):
        raise RefusedError("fit runs a part of the epochs there, so one iterator would save little.")
    if not edit.is_closed and _argument(fit, "callbacks") is not None:
        raise RefusedError(
            "The dataset runs Python, or reads variables or tables; what callbacks change there between epochs would come too late."
        )
    end = source.span(given)[1]
    yield source.path, Splice(end, end, b".repeat()")
    for each in source.set_arguments(fit, {"steps_per_epoch": Code(f"len({source.code(given)})")}, ()):
        yield source.path, each


def _begins_later(source: ParsedSource, fit: cst.Call) -> bool:
    begins = _argument(fit, "initial_epoch")
    return begins is not None and source.code(begins) != "0"


def _compile_of(source: ParsedSource, model: cst.BaseExpression) -> cst.Call:
    name = source.code(model)
    found = [
        call
        for call in source.calls()
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "compile"
        and source.code(call.func.value) == name
    ]
    if len(found) != 1:
        said = "nowhere" if not found else f"{len(found)} times"
        raise RefusedError(f"{name}.compile is called {said} in {source.name}, so its arguments cannot be set there.")
    return found[0]


def _where_made(
    part: PythonPart, find: Find, texts: Mapping[str, str], source: ParsedSource, fit: cst.Call
) -> tuple[ParsedSource, cst.Call, bool]:
    """Return the call that gives a ``PyDataset`` its workers, of its constructor or of its base's, and whether all of its class get them."""
    name = part.function.name.rpartition(".")[0].rpartition(".")[2]
    if part.function.file not in texts:
        raise RefusedError(f"The source of {name} is not at hand.")
    defined = find(part.function.file)
    kind = _class_of(defined, name)
    base_call = _base_call(defined, kind, name)
    if base_call is not None and not any(each.star == "**" for each in base_call.args):
        return defined, base_call, True
    return source, _made_for(source, fit, name), False


def _python_of_keras(recipe: Recipe, use: DatasetUse) -> PythonPart:
    for call in recipe.upstream(use.call):
        for part in call.python:
            if part.kind in OF_KERAS:
                return part
    raise RefusedError("The training reads no PyDataset or Sequence.")


def _uses_of(recipe: Recipe, part: PythonPart, *, of_its_class: bool = False) -> list[DatasetUse]:
    """Return where a ``PyDataset`` is read, or where all of its class are."""
    return [
        use
        for use in recipe.uses
        for each in (python for call in _fed(recipe, [use]) for python in call.python)
        if each.function == part.function and (of_its_class or each.maker == part.maker)
    ]


def _check_epochs(uses: Iterable[DatasetUse]) -> None:
    """Refuse workers for what is read in epochs, if they would carry batches over from one to the next."""
    for use in uses:
        if use.role in (TRAINING, VALIDATION) and use.carried_over != "":
            raise RefusedError(_NOT_NOTED if use.carried_over is None else use.carried_over)


def check_plain(fit: cst.Call) -> None:
    """Refuse a call of ``fit`` whose arguments the source does not name."""
    if any(each.star for each in fit.args):
        raise RefusedError("What fit is given is not clear, for it takes * or **.")


def _check_state(part: PythonPart, texts: Mapping[str, str]) -> None:
    """Refuse threads where making a batch changes the dataset: which batch sees the change would be up to chance, and no proof can tell."""
    function = part.function
    if _MADE_FOR_WORKERS.fullmatch(f"{function.module}.{function.name}"):
        if part.calls is not None:
            raise RefusedError(
                f"{function.name} calls {part.calls}, which may change what several threads would share."
            )
        return
    text, method = texts.get(function.file), function.name.rpartition(".")[2]
    found = None if text is None else next(find_writes(text, method, function.line), None)
    if found is not None:
        place = f"{PurePath(function.file).name}:{found.line}"
        raise RefusedError(f"{function.name} changes {found.name} ({place}), which several threads would share.")


def _read_beside(recipe: Recipe, use: DatasetUse) -> list[DatasetUse]:
    """Return what else is read where a dataset is, as the validation data of ``fit`` are."""
    return [each for each in recipe.uses if each.place == use.place and each.call != use.call]


def _fed(recipe: Recipe, uses: Iterable[DatasetUse]) -> list[DatasetCall]:
    """Return the calls by which Keras feeds Python to what is read."""
    calls = (call for use in uses for call in recipe.upstream(use.call))
    return [call for call in calls if call.method == "from_generator" and not call.is_direct]


def _check_evaluation(recipe: Recipe, use: DatasetUse, part: PythonPart, fit: cst.Call) -> None:
    """Refuse workers where ``fit`` hands them on to Python of another kind, for the proof reads only what is trained on."""
    others = _read_beside(recipe, use)
    if _argument(fit, "validation_data") is not None and not others:
        raise RefusedError("fit would hand its workers on to its validation_data, which the run did not read.")
    for call in _fed(recipe, others):
        others_read = [each.function for each in call.python]
        if others_read != [part.function]:
            name = others_read[0].name if others_read else "its validation_data"
            raise RefusedError(f"fit would hand its workers on to {name} as well, which is not proved.")


def _class_of(source: ParsedSource, name: str) -> cst.ClassDef:
    found = [node for node in source.parents if isinstance(node, cst.ClassDef) and node.name.value == name]
    if len(found) != 1:
        raise RefusedError(f"The class {name} is not clear in {source.name}.")
    bases = [source.code(base.value).rpartition(".")[2] for base in found[0].bases]
    if not _BASES & set(bases):
        raise RefusedError(
            f"{name} in {source.name} derives from {', '.join(bases) or 'nothing'}, which may not hand workers on."
        )
    return found[0]


def _base_call(source: ParsedSource, kind: cst.ClassDef, name: str) -> cst.Call | None:
    """Return the call of the base's constructor; None where the class has no constructor."""
    init = next(
        (each for each in kind.body.body if isinstance(each, cst.FunctionDef) and each.name.value == "__init__"), None
    )
    if init is None:
        return None
    for call in source.calls():
        is_base = source.code(call.func) == "super().__init__"
        around: cst.CSTNode | None = call
        while is_base and around is not None and around is not init:
            around = source.parents.get(around)
        if is_base and around is init:
            return call
    raise RefusedError(f"{name}.__init__ in {source.name} does not call super().__init__().")


def _made_for(source: ParsedSource, fit: cst.Call, name: str) -> cst.Call:
    """Return the call that makes the object that ``fit`` is given."""
    given = _given(fit)
    if isinstance(given, cst.Call) and _called(source, given) == name:
        return given
    seen_by_fit = (None, _function_around(source, fit))
    made = [
        call
        for call in source.calls()
        if _called(source, call) == name and _function_around(source, call) in seen_by_fit
    ]
    if isinstance(given, cst.Name):
        made = [call for call in made if _target(source, call) == given.value]
    if len(made) != 1:
        raise RefusedError(f"Where {PurePath(source.path).name} makes the {name} that it trains on is not clear.")
    return made[0]


def _function_around(source: ParsedSource, node: cst.CSTNode) -> cst.CSTNode | None:
    return next((each for each in source.around(node) if isinstance(each, cst.FunctionDef)), None)


_POSITIONAL = (
    *("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle"),
    *("class_weight", "sample_weight", "initial_epoch", "steps_per_epoch", "validation_steps"),
)
"""Parameters of ``fit`` in their order (Keras 2 and 3)."""


def _argument(fit: cst.Call, name: str) -> cst.BaseExpression | None:
    """Return what ``fit`` is given for a parameter; None where it is not, or is given None."""
    named = next((each.value for each in fit.args if each.keyword and each.keyword.value == name), None)
    by_place = [each.value for each in fit.args if each.keyword is None and not each.star]
    place = _POSITIONAL.index(name) if name in _POSITIONAL else len(by_place)
    given = named or (by_place[place] if place < len(by_place) else None)
    return None if isinstance(given, cst.Name) and given.value == "None" else given


def is_parameter(source: ParsedSource, node: cst.CSTNode, given: cst.BaseExpression) -> bool:
    """Say whether an expression begins with a parameter, but for ``self``, of a function around a node."""
    name = source.code(given).split(".")[0]
    functions = (each for each in source.around(node) if isinstance(each, (cst.FunctionDef, cst.Lambda)))
    return name != "self" and any(name == each.name.value for one in functions for each in parameters_of(one))


def is_in_loop(source: ParsedSource, node: cst.CSTNode) -> bool:
    """Say whether a node of a function, or of the module, is evaluated again and again; what a loop goes through is evaluated once."""
    for around in source.around(node):
        if isinstance(around, cst.FunctionDef):
            return False
        if isinstance(around, cst.While) or (isinstance(around, cst.For) and around.iter is not node):
            return True
        if isinstance(around, _COMPREHENSIONS) and around.for_in is not node:
            return True
        node = around
    return False


_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


def _given(fit: cst.Call) -> cst.BaseExpression | None:
    """Return what ``fit`` is given to train on; None where that is not plain."""
    named = next((each.value for each in fit.args if each.keyword and each.keyword.value == "x"), None)
    first = fit.args[0] if fit.args else None
    return named or (first.value if first is not None and first.keyword is None and not first.star else None)


def _called(source: ParsedSource, call: cst.Call) -> str:
    return source.code(call.func).rpartition(".")[2]


def _target(source: ParsedSource, call: cst.Call) -> str:
    around = source.parents.get(call)
    if isinstance(around, cst.Assign) and len(around.targets) == 1:
        return source.code(around.targets[0].target)
    return ""
