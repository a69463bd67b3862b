"""The recipe that a script's run would note, read from its source alone: for tests of what is done to the source."""

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline_lab.pipeline.recipe import LOOP, TRAINING, DatasetCall, DatasetUse, Recipe, SourcePlace

METHODS = frozenset(
    [
        "map",
        "batch",
        "shuffle",
        "repeat",
        "cache",
        "prefetch",
        "interleave",
        "flat_map",
        "filter",
        "take",
        "skip",
        "with_options",
        "padded_batch",
        "unbatch",
        "window",
        "zip",
    ]
)
SOURCES = frozenset({"range", "from_tensor_slices", "from_generator", "list_files", "TFRecordDataset"})
PATH = "/home/user/train.py"
HEAD = "import tensorflow as tf\nds = tf.data.Dataset"
TAIL = '\nmodel.compile("adam")\nmodel.fit(ds)\n'


def place_of(node: ast.expr, path: str = PATH) -> SourcePlace:
    name_line = node.func.end_lineno if isinstance(node, ast.Call) else node.lineno
    return SourcePlace(
        path, node.lineno, node.end_lineno or 0, node.col_offset, node.end_col_offset, name_line or node.lineno
    )


def written_recipe(text: str, **known: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a script that makes one dataset, call after call, and trains on it.

    Args:
        text: Of the script; calls of functions of a stage count only where the names are those of ``tf.data``.
        known: Fields of the calls of a method, such as ``map={"stateful": ("RandomUniform",)}``.
    """
    tree = ast.parse(text)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node) in METHODS | SOURCES]
    found.sort(key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    calls = []
    for number, node in enumerate(found, 1):
        inputs = () if number == 1 or _name(node) in SOURCES else (number - 1,)
        call = DatasetCall(
            number, _name(node), _arguments(node), inputs, place=place_of(node), text=f".{_name(node)}(…)"
        )
        calls.append(replace(call, **known.get(_name(node), {})))
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node) == "fit":
            uses.append(DatasetUse(TRAINING, len(calls), place_of(node), "model.fit(…)", 1))
        elif isinstance(node, ast.For):
            uses.append(DatasetUse(LOOP, len(calls), place_of(node.iter), "for …", 1))
    return Recipe(tuple(calls), tuple(uses))


def recipe_of(calls: str, fit: str = "fit(ds)", **known: Any) -> tuple[str, Recipe]:
    """Return a script that trains on what calls after ``tf.data.Dataset`` make, and its recipe.

    Args:
        calls: Such as ``.range(8).map(f)``; a line that compiles the model may follow.
        fit: The call that trains.
        known: As of :func:`written_recipe`.
    """
    tail = TAIL.partition("\n")[2].partition("\n")[2] if "compile" in calls else TAIL
    text = f"{HEAD}{calls}\n{tail.lstrip()}".replace("fit(ds)", fit)
    return text, written_recipe(text, **({"flat_map": {"inner": 1}} | known))


def _name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _arguments(node: ast.Call) -> dict[str, Any]:
    named = {each.arg: each.value for each in node.keywords if each.arg}
    return {name: ast.unparse(value) for name, value in named.items()}
