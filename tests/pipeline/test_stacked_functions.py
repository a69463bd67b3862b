"""Functions that stack what makes one example: found, and written so that they can stack a batch."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import Change, MoveBefore
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.source_edits import edit_sources
from pipeline_lab.pipeline.stacked_functions import find_stacked
from pipeline_lab.pipeline.written_changes import parse_change
from tests.support.written_recipe import PATH, written_recipe

TEXT = """\
import tensorflow as tf


@tf.function
def parse(line):
    columns = tf.io.decode_csv(line, [0.0] * 4)
    return tf.stack(columns[:-1]), tf.stack(
        columns[-1:],  # the label
    )


ds = tf.data.TextLineDataset(files).map(parse).batch(8)
model.fit(ds)
"""


def _recipe(tmp_path: Path, text: str, line: int = 4) -> Recipe:
    (tmp_path / "0-train.py").write_text(text, encoding="utf-8")
    described = {"map_func": {"function": "parse", "file": PATH, "line": line, "end_line": 9}}
    return replace(written_recipe(text, map={"arguments": described}), files={PATH: "0-train.py"}, copies=tmp_path)


def _found(recipe: Recipe) -> list[Change]:
    found = (change for change in find_changes(recipe) if change.rewrite == "batch-first")
    return [change for change in found if any(isinstance(edit, MoveBefore) and edit.stacked for edit in change.edits)]


def test_a_function_that_stacks_sees_batches_and_stacks_along_the_last_axis(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, TEXT)
    (change,) = _found(recipe)
    assert parse_change(recipe, "batch-first") == change
    assert before_after(recipe, change) == (".map(…).batch(…)", ".batch(…).map(…)")
    becomes = TEXT.replace("columns[:-1])", "columns[:-1], axis=-1)").replace(
        "  # the label\n", "  # the label\n        axis=-1,\n"
    )
    edited = edit_sources(recipe, [change], {PATH: TEXT})
    assert edited.texts[PATH] == becomes.replace(".map(parse).batch(8)", ".batch(8).map(parse)")


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("tf.stack(", "tf.concat("),
        ("tf.stack(", "np.stack("),
        ("tf.stack(", "tf.stack(axis=1, values="),
        ("tf.stack(", "tf.stack(0, "),
        ("tf.stack(", "tf.stack(**options, values="),
        ("def parse", "def other"),
        ("model.fit", "serve = lambda rows: parse(rows)\nmodel.fit"),
        ("model.fit", "parse = keep(parse)\nmodel.fit"),
        ("import tensorflow as tf\n", "import tensorflow as tf\ntf = keep(tf)\n"),
        (".batch(8)", ".shuffle(8).batch(8)"),
    ],
)
def test_what_stacks_otherwise_or_nothing_is_left_alone(tmp_path: Path, was: str, becomes: str) -> None:
    assert _found(_recipe(tmp_path, TEXT.replace(was, becomes))) == []


def test_a_function_that_another_line_maps_over_single_examples_is_left_alone(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, TEXT)
    mapped = next(call for call in recipe.calls if call.method == "map")
    assert mapped.place is not None
    elsewhere = replace(mapped, number=9, place=replace(mapped.place, line=1, name_line=1))
    assert _found(replace(recipe, calls=(*recipe.calls, elsewhere))) == []
    assert _found(replace(recipe, calls=(*recipe.calls, replace(mapped, number=9))))


def test_a_function_that_changed_since_is_refused(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, TEXT)
    edited = edit_sources(recipe, _found(recipe), {PATH: TEXT.replace("    columns =", "    names =")})
    assert not edited.refused, "what it stacks is where it was"
    moved = TEXT.replace("@tf.function\n", "@tf.function\n\n")
    assert "has changed since" in edit_sources(recipe, _found(recipe), {PATH: moved}).refused[0].reason


def test_a_function_may_be_tried_with_constants_but_not_by_another_file(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, TEXT.replace("model.fit", 'parse("1,2,3,4")\nmodel.fit'))
    assert _found(recipe)
    both = replace(recipe, files={**recipe.files, "/home/user/data.py": "1-data.py"})
    (tmp_path / "1-data.py").write_text("from train import parse\n")
    assert _found(both) == []


def test_what_is_no_python_stacks_nothing() -> None:
    assert find_stacked("def parse(:", PATH, "parse", 1) is None
