"""A cache inside of a function: found where the function draws, and written into the user's file."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import Change, Insert, Split, are_compatible
from pipeline_lab.pipeline.recipe import DatasetCall, DatasetUse, Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.source_edits import edit_sources
from pipeline_lab.pipeline.written_changes import parse_change
from tests.support.written_recipe import PATH, written_recipe

HEAD = """\
import tensorflow as tf


def load(path, label):
    image = tf.io.decode_png(tf.io.read_file(path))
    image = tf.image.random_crop(image, (8, 8, 3))
    return image, label


"""
SPLIT = HEAD.replace("def load(", "def load_kept(").replace(
    "    image = tf.image.random",
    "    return label, image\n\n\ndef load_drawn(label, image):\n    image = tf.image.random",
)
TAIL = "model.fit(ds)\n"
ON_LINES = """\
ds = (
    tf.data.Dataset.from_tensor_slices(files)
    .shuffle(90)
    .map(load, num_parallel_calls=8)  # decode
    .batch(4)
)
"""


def _recipe(tmp_path: Path, text: str, stateful: tuple[str, ...] = ("RandomUniformInt",)) -> Recipe:
    (tmp_path / "0-train.py").write_text(text, encoding="utf-8")
    line = 1 + text.splitlines().index("def load(path, label):")
    described = {"map_func": {"function": "load", "file": PATH, "line": line, "end_line": line + 3}}
    described |= {"num_parallel_calls": 8} if "load, " in text else {}
    recipe = written_recipe(text, map={"stateful": stateful, "arguments": described})
    return replace(recipe, files={PATH: "0-train.py"}, copies=tmp_path)


def _found(recipe: Recipe) -> list[Change]:
    return [change for change in find_changes(recipe) if change.rewrite == "split-cache"]


@pytest.mark.parametrize(
    ("calls", "becomes"),
    [
        (
            "ds = files.from_tensor_slices(x).map(load).batch(4)\n",
            "ds = files.from_tensor_slices(x).map(load_kept, num_parallel_calls=tf.data.AUTOTUNE).cache().map(load_drawn).batch(4)\n",
        ),
        (
            "ds = files.from_tensor_slices(x)\nds = ds.shuffle(9)\nds = ds.map(load, 8, deterministic=False)\n",
            "ds = files.from_tensor_slices(x)\nds = ds.map(load_kept, 8, deterministic=False).cache().shuffle(9)\n"
            "ds = ds.map(load_drawn, 8, deterministic=False)\n",
        ),
        (
            ON_LINES,
            ON_LINES.replace(
                "    .shuffle", "    .map(load_kept, num_parallel_calls=8)\n    .cache()\n    .shuffle"
            ).replace("(load, num_parallel_calls=8)  #", "(load_drawn, num_parallel_calls=8)  #"),
        ),
        (
            ON_LINES.replace("    .shuffle(90)\n", ""),
            ON_LINES.replace("    .shuffle(90)\n", "").replace(
                "    .map(load, n", "    .map(load_kept, num_parallel_calls=8)\n    .cache()\n    .map(load_drawn, n"
            ),
        ),
    ],
)
def test_what_comes_before_the_draws_is_kept_and_the_rest_is_mapped(tmp_path: Path, calls: str, becomes: str) -> None:
    text = f"{HEAD}{calls}{TAIL}"
    recipe = _recipe(tmp_path, text)
    (change,) = _found(recipe)
    edited = edit_sources(recipe, [change], {PATH: text})
    assert not edited.refused
    assert edited.texts[PATH] == f"{SPLIT}{becomes}{TAIL}"
    assert parse_change(recipe, change.request) == change
    before, after = before_after(recipe, change)
    assert after == f"{before}.cache(){before}".replace("(load", "(load_kept", 1).replace("(load)", "(load_drawn)")


@pytest.mark.parametrize(
    ("calls", "stateful"),
    [
        ("from_tensor_slices(x).map(load)", ()),  # nothing draws
        ("from_tensor_slices(x).map(load)", ("RandomUniformInt (seeded)",)),
        ("from_tensor_slices(x).map(load)", ("AssignAddVariableOp",)),
        ("from_tensor_slices(x).cache().map(load)", ("RandomUniformInt",)),
        ("from_tensor_slices(x).shuffle(9).repeat().map(load)", ("RandomUniformInt",)),
        ("from_tensor_slices(x).map(load).take(3)", ("RandomUniformInt",)),
        ("from_generator(x).map(load)", ("RandomUniformInt",)),
        ("list_files(x).map(load)", ("RandomUniformInt",)),  # in another order each time
    ],
)
def test_nothing_is_kept_that_is_other_each_time_or_never_complete(
    tmp_path: Path, calls: str, stateful: tuple[str, ...]
) -> None:
    assert _found(_recipe(tmp_path, f"{HEAD}ds = tf.data.Dataset.{calls}\n{TAIL}", stateful)) == []


def test_a_function_whose_source_is_gone_stays_whole(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}")
    assert _found(recipe)
    (tmp_path / "0-train.py").unlink()
    assert _found(recipe) == []


def test_a_function_that_another_file_may_use_stays_whole(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}")
    both = replace(recipe, files={**recipe.files, "/home/user/data.py": "1-data.py"})
    (tmp_path / "1-data.py").write_text("from train import load\n")
    assert _found(both) == []
    (tmp_path / "1-data.py").write_text("import numpy as np\nnp.load('x')\n")
    assert _found(both)


def test_it_is_refused_where_the_file_says_something_else(tmp_path: Path) -> None:
    text = f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    (change,) = _found(recipe)
    for was, becomes, reason in (
        ("read_file(path)", "read_file(name)", "has changed since it was run"),
        (".map(load)", ".map(lode)", "names its function in another way"),
    ):
        found = edit_sources(recipe, [change], {PATH: text.replace(was, becomes)})
        assert reason in found.refused[0].reason


def test_datasets_of_one_expression_are_split_once_and_those_that_shuffle_apart_are_not(tmp_path: Path) -> None:
    text = f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).shuffle(3).map(load)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    source, shuffled, mapped = recipe.calls
    again = (
        replace(source, number=4),
        replace(shuffled, number=5, inputs=(4,)),
        replace(mapped, number=6, inputs=(5,)),
    )
    both = replace(recipe, calls=(*recipe.calls, *again))
    (change,) = _found(both)
    edited = edit_sources(both, [change], {PATH: text})
    assert edited.texts[PATH].count("def load_drawn") == 1
    assert edited.texts[PATH].count(".cache()") == 1
    unshuffled = replace(recipe, calls=(*recipe.calls, again[0], replace(again[2], inputs=(4,))))
    refused = edit_sources(unshuffled, [change], {PATH: text}).refused
    assert "are not used together everywhere" in refused[0].reason


@pytest.mark.parametrize("number", [0, 9])
def test_what_is_kept_comes_before_a_shuffle_that_not_all_datasets_take(tmp_path: Path, number: int) -> None:
    calls = "ds = data.range(9)\nif training:\n    ds = ds.shuffle(9)\nds = ds.map(load).batch(4)\n"
    recipe = _recipe(tmp_path, f"{HEAD}{calls}{TAIL}")
    source, _, mapped, _ = recipe.calls
    other = replace(mapped, number=number, inputs=(source.number,))
    both = replace(recipe, calls=tuple(sorted((*recipe.calls, other), key=lambda call: call.number)))
    edited = edit_sources(both, _found(both), {PATH: f"{HEAD}{calls}{TAIL}"})
    assert not edited.refused
    kept = "ds = ds.map(load_kept, num_parallel_calls=tf.data.AUTOTUNE).cache()\n"
    becomes = calls.replace("if training", f"{kept}if training").replace("(load)", "(load_drawn)")
    assert edited.texts[PATH] == f"{SPLIT}{becomes}{TAIL}"


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ("ds = data.range(9).shuffle(9)\nval = ds.skip_some()\nds = ds.map(load)\n", "not written directly one after"),
        ("ds = data.range(9).shuffle(9).map(load, **options)\n", "it takes * or **"),
    ],
)
def test_it_is_refused_where_something_else_may_read_or_give(tmp_path: Path, calls: str, reason: str) -> None:
    text = f"{HEAD}{calls}{TAIL}"
    recipe = _recipe(tmp_path, text)
    assert reason in edit_sources(recipe, _found(recipe), {PATH: text}).refused[0].reason


HELPER = """\
def make(files):
    ds = files.shuffle(9)
    return ds.map(load)


"""


@pytest.mark.parametrize(
    ("was", "becomes", "is_refused"),
    [
        ("", "", False),
        ("    ds =", "    global ds\n    ds =", True),
        ("    ds =", "    later = lambda: ds\n    ds =", True),
        (
            "    ds = files.shuffle(9)\n    return ds.map(load)\n",
            "    try:\n        ds = files.shuffle(9)\n        return ds.map(load)\n    finally:\n        show(ds)\n",
            True,
        ),
    ],
)
def test_a_variable_that_others_may_read_stays_what_it_is(
    tmp_path: Path, was: str, becomes: str, *, is_refused: bool
) -> None:
    text = f"{HEAD}{HELPER.replace(was, becomes, 1)}ds = make(tf.data.Dataset.range(9))\n{TAIL}"
    made = _recipe(tmp_path, text)
    shuffled, mapped, source = made.calls
    numbered = (
        replace(source, number=1),
        replace(shuffled, number=2, inputs=(1,)),
        replace(mapped, number=3, inputs=(2,)),
    )
    recipe = replace(made, calls=numbered)
    edited = edit_sources(recipe, _found(recipe), {PATH: text})
    assert bool(edited.refused) is is_refused
    if is_refused:
        assert "is read elsewhere" in edited.refused[0].reason


def test_every_dataset_of_the_expression_gives_the_same_each_time(tmp_path: Path) -> None:
    text = f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    source, mapped = recipe.calls
    repeated = DatasetCall(3, "repeat", {}, (1,), place=source.place)
    other = replace(mapped, number=4, inputs=(3,))
    assert _found(recipe)
    assert _found(replace(recipe, calls=(*recipe.calls, repeated, other))) == []


def test_a_dataset_of_the_expression_that_was_shuffled_elsewhere_keeps_the_function_whole(tmp_path: Path) -> None:
    text = f"{HEAD}ds = data.range(9)\nif a:\n    ds = ds.shuffle(9)\nds = ds.map(load)\nval = data.shuffle(8)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    mapped, shuffled = recipe.calls[2], recipe.calls[3]
    assert (mapped.method, shuffled.method) == ("map", "shuffle")
    for stateful in (mapped.stateful, ()):
        own = replace(mapped, stateful=stateful)
        other = replace(own, number=9, inputs=(shuffled.number,))
        before = [*recipe.calls[:2], own, *recipe.calls[3:]]
        wanted = "split-cache" if stateful else "cache-before-shuffle"
        for calls, is_found in ((before, True), ([*before, other], False)):
            found = [change.rewrite for change in find_changes(replace(recipe, calls=tuple(calls)))]
            assert (wanted in found) is is_found


def test_a_line_that_has_come_between_the_parts_since_is_kept(tmp_path: Path) -> None:
    text = f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    changed = text.replace(
        "    image = tf.image.random", "    image = tf.image.resize(image, (9, 9))\n    image = tf.image.random"
    )
    assert edit_sources(recipe, _found(recipe), {PATH: changed}).refused


def test_a_shuffle_in_another_file_is_refused(tmp_path: Path) -> None:
    text = f"{HEAD}ds = data.range(9).shuffle(9).map(load)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    source, shuffled, mapped = recipe.calls
    assert shuffled.place is not None
    elsewhere = replace(shuffled, place=replace(shuffled.place, file="/home/user/data.py"))
    apart = replace(recipe, calls=(source, elsewhere, mapped))
    found = edit_sources(apart, _found(apart), {PATH: text, "/home/user/data.py": text})
    assert found.refused[0].reason == "The calls stand in different files."


def test_the_files_line_ends_stay(tmp_path: Path) -> None:
    text = f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}"
    recipe = _recipe(tmp_path, text)
    of_windows = edit_sources(recipe, _found(recipe), {PATH: text.replace("\n", "\r\n")})
    assert of_windows.texts[PATH].replace("\r\n", "").count("\n") == 0
    assert of_windows.texts[PATH].count("def load_drawn") == 1


def test_a_map_that_is_to_move_is_not_split(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, f"{HEAD}ds = tf.data.Dataset.range(9).map(g).shuffle(9).map(load)\n{TAIL}")
    first = replace(recipe.calls[1], stateful=(), arguments={})
    found = find_changes(replace(recipe, calls=(recipe.calls[0], first, *recipe.calls[2:])))
    both = [change for change in found if change.rewrite in ("shuffle-first", "split-cache")]
    assert len(both) == 2
    assert not are_compatible(both)


def test_one_cache_is_enough(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, f"{HEAD}ds = tf.data.Dataset.range(3).map(g).map(load)\n{TAIL}")
    first = replace(recipe.calls[1], stateful=(), arguments={})
    found = find_changes(replace(recipe, calls=(recipe.calls[0], first, *recipe.calls[2:])))
    keeping = [change for change in found if change.rewrite in ("cache", "split-cache")]
    assert {type(change.edits[0]) for change in keeping} == {Insert, Split}
    assert not are_compatible(keeping)


def test_the_use_may_be_any_reading(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, f"{HEAD}ds = tf.data.Dataset.from_tensor_slices(x).map(load)\n{TAIL}")
    loop = DatasetUse("loop", 2, recipe.uses[0].place, "for …", 3)
    assert [change.rewrite for change in find_changes(recipe, loop)].count("split-cache") == 1
