"""Changes of a written recipe, made in its file."""

import difflib

from pipeline_lab.pipeline.changes import Change, Edit, Effect, Risk
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.pipeline.source_edits import Edited, edit_sources
from tests.support.written_recipe import PATH, written_recipe

PREFETCH = "prefetch", {"buffer_size": -1}
HEAD = "import tensorflow as tf\n"


def change(*edits: Edit) -> Change:
    return Change("test", None, edits, Effect.NOTHING, Risk.LOW, "Test.")


def edit(text: str, *edits: Edit, recipe: Recipe | None = None) -> Edited:
    return edit_sources(recipe or written_recipe(text), [change(*edits)], {PATH: text})


def written(text: str, *edits: Edit, recipe: Recipe | None = None) -> str:
    found = edit(text, *edits, recipe=recipe)
    assert not found.refused, found.refused[0].reason
    return found.texts[PATH]


def refused(text: str, *edits: Edit, recipe: Recipe | None = None) -> str:
    found = edit(text, *edits, recipe=recipe)
    assert not found.texts
    return found.refused[0].reason


def changed_lines(before: str, after: str) -> list[str]:
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[:1] in "+-"]


CHAIN = (
    HEAD
    + """\
ds = (
    tf.data.Dataset.range(8)  # numbers
    .map(f)  # decode
    .batch(
        32,
        drop_remainder=True,  # all alike
    )  # batches
)
model.fit(ds)
"""
)
