"""A change of a call as its author would write it, on one line: ``.map(load)`` → ``.map(load, num_parallel_calls=tf.data.AUTOTUNE)``."""

import re
from collections.abc import Mapping
from typing import assert_never

from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    Change,
    InBatches,
    Insert,
    IntoStep,
    MoveBefore,
    OneIterator,
    Remove,
    Rename,
    SetArgument,
    SetTraining,
    Split,
    Value,
)
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe

IN_BATCHES = "from_generator_in_batches"
"""What a script calls instead of ``from_generator``."""
BY_THE_BATCH = '''\
def {name}(generator, *, output_signature, size={size}, **options):
    """Make a dataset of a generator's elements; Python hands over ``size`` of them at a time."""

    def together(elements):
        if isinstance(output_signature, dict):
            return {{name: [each[name] for each in elements] for name in output_signature}}
        return tuple(zip(*elements)) if isinstance(output_signature, tuple) else elements

    def batches(*arguments):
        elements = []
        for element in generator(*arguments):
            elements.append(element)
            if len(elements) == size:
                yield together(elements)
                elements = []
        if elements:
            yield together(elements)

    signature = {tf}.nest.map_structure(lambda one: {tf}.TensorSpec([None, *one.shape], one.dtype), output_signature)
    return {tf}.data.Dataset.from_generator(batches, output_signature=signature, **options).unbatch()


'''
"""The function of that name, for a file in which TensorFlow has a name."""
CONVERT = "convert"
"""Name of a lambda that the training step calls."""
_TUNED = ("num_parallel_calls", "num_parallel_reads", "buffer_size")


def before_after(recipe: Recipe, change: Change) -> tuple[str, str]:
    """Return the call that a change is about as it is and as it would be; of a change of the training, the argument alone."""
    about = None if change.call is None else recipe.call(change.call)
    before = "" if about is None else about.words if about.is_direct else about.library_call
    after = before
    for edit in change.edits:
        match edit:
            case SetArgument(call, name, value):
                after = _with_argument(after, name, write_value(name, value)) if call == change.call else after
            case Insert(_, "with_options", arguments):
                if len(change.edits) == 1:
                    before, after = "", ", ".join(f"options.{name} = {arguments[name]}" for name in arguments)
            case Insert(call, method, arguments):
                after = f"{after}.{method}({_arguments(arguments)})" if call == change.call else after
            case MoveBefore(call, other, then):
                moved, passed = recipe.call(call).words, recipe.call(other).words
                before, after = f"{passed}{moved}", f"{moved}{f'.{then}()' if then else ''}{passed}"
            case Rename() | InBatches() | Split():
                after = _renamed(after, edit)
            case Remove() | IntoStep():
                after = _in_step(recipe.call(edit.call)) if isinstance(edit, IntoStep) else ""
            case SetTraining() | OneIterator():
                after = _of_training(edit)
            case _:
                assert_never(edit)
    return before, after


def _in_step(mapped: DatasetCall) -> str:
    """Write how the training step calls the function of a map."""
    given = mapped.arguments.get("map_func")
    name = given["function"].rpartition(".")[2] if isinstance(given, dict) and "function" in given else ""
    return f"train_step({name if name.isidentifier() else CONVERT}(*BATCH))"


def _of_training(edit: SetTraining | OneIterator) -> str:
    """Write what a training gets."""
    if isinstance(edit, OneIterator) and edit.of_loop:
        return "batches = iter(DATASET.repeat()) … for _, BATCH in zip(range(len(DATASET)), batches):"
    if isinstance(edit, OneIterator):
        return "fit(DATASET.repeat(), steps_per_epoch=len(DATASET))"
    return f"{edit.name}={write_value(edit.name, edit.value)}"


def _renamed(call: str, edit: Rename | InBatches | Split) -> str:
    if isinstance(edit, Split):
        parts = edit.parts
        kept, rest = (
            re.sub(rf"(?<=\(){parts.name}\b", name, call, count=1) for name in (parts.kept_name, parts.rest_name)
        )
        return f"{kept}.cache(){rest}"
    if isinstance(edit, Rename):
        return re.sub(r"\w+(?=\()", edit.method, call, count=1)
    return re.sub(r"[\w.]*from_generator(?=\()", IN_BATCHES, call, count=1)


def write_value(name: str, value: Value) -> str:
    """Write an argument as Python."""
    return "tf.data.AUTOTUNE" if value == AUTOTUNE and value is not True and name in _TUNED else repr(value)


def _with_argument(call: str, name: str, value: str) -> str:
    """Put a keyword argument into the text of a call, which may be shortened."""
    if found := re.search(rf"\b{name}\s*=\s*[^,()]+(?:\([^()]*\))?", call):
        return f"{call[: found.start()]}{name}={value}{call[found.end() :]}"
    head = f"{call[: call.rfind(',')]}, …" if call.endswith("…") else call.removesuffix(")")
    return f"{head}{'' if head.endswith('(') else ', '}{name}={value})"


def _arguments(arguments: Mapping[str, Value]) -> str:
    """Write the arguments of a call of one parameter by position, of others by name."""
    written = {name: write_value(name, value) for name, value in arguments.items()}
    if len(written) == 1:
        return next(iter(written.values()))
    return ", ".join(f"{name}={value}" for name, value in written.items())
