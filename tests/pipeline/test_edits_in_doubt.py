"""What is written where a line may mean more than the run showed: the right thing, or nothing with the reason."""

from dataclasses import replace

import pytest

from pipeline_lab.pipeline.changes import Edit, Insert, MoveBefore, OneIterator, Rename, SetArgument
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from tests.support.edited import HEAD, PREFETCH, edit, refused, written
from tests.support.written_recipe import written_recipe

CACHE = Insert(1, "cache")
PARALLEL = SetArgument(1, "num_parallel_calls", -1)
OF_LIBRARY = {"batch": {"is_direct": False}}


def read_last(text: str) -> Recipe:
    """Return the recipe of a script whose dataset a library makes, and which its last loop or call of ``fit`` reads."""
    recipe = written_recipe(text, **OF_LIBRARY)
    last = max(recipe.uses, key=lambda use: 0 if use.place is None else use.place.line)
    made = tuple(call for call in recipe.calls if not call.is_direct)  # zip and map are Python's own here
    return replace(recipe, calls=made, uses=(replace(last, call=made[-1].number),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def train(ds):\n    model.fit(ds)\ntrain(images().batch(2))\n", "may read a different dataset each time"),
        ("ds = images().batch(2)\nfor epoch in epochs:\n    for x in ds: pass\n", "is in a loop"),
        ("ds = images().batch(2)\nfor epoch in epochs:\n    model.fit(ds)\n", "is in a loop"),
        ("ds = images().batch(2)\n[each.fit(ds) for each in models]\n", "is in a loop"),
        ("ds = images().batch(2)\nfor s, x in zip(steps, ds): pass\n", "something else than its name"),
        ("ds = images().batch(2)\nfor loss in map(step, ds): pass\n", "something else than its name"),
        ("ds = images().batch(2)\ntf.keras.Model.fit(model, ds)\n", "something else than its name"),
    ],
)
def test_nothing_is_kept_where_a_line_may_read_another_dataset_or_a_new_one(text: str, why: str) -> None:
    assert why in refused(HEAD + text, CACHE, recipe=read_last(HEAD + text))


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("model.fit(ds)", "model.fit(ds.cache())"),
        ("for x in ds: pass", "for x in ds.cache(): pass"),
        ("for n, x in enumerate(ds): pass", "for n, x in enumerate(ds.cache()): pass"),
    ],
)
def test_a_librarys_dataset_is_kept_where_it_is_read_once(line: str, becomes: str) -> None:
    text = f"{HEAD}ds = images().batch(2)\n{line}\n"
    assert written(text, CACHE, recipe=read_last(text)) == text.replace(line, becomes)


def test_a_line_that_was_seen_to_read_two_datasets_keeps_neither() -> None:
    text = f"{HEAD}ds = images().batch(2)\nmodel.fit(ds)\n"
    recipe = read_last(text)
    (use,) = recipe.uses
    other = DatasetCall(2, "batch", {}, (), is_direct=False)
    recipe = replace(recipe, calls=(*recipe.calls, other), uses=(use, replace(use, call=2, seconds=-1.0)))
    assert "may read a different dataset each time" in refused(text, CACHE, recipe=recipe)


def taken_by_map(text: str, *, twice: bool = False) -> Recipe:
    """Return the recipe of a script that maps what a library made, and perhaps at the same place something else."""
    recipe = written_recipe(text)
    (mapped,) = (call for call in recipe.calls if call.method == "map")
    calls = [DatasetCall(1, "batch", {}, (), is_direct=False), replace(mapped, number=2, inputs=(1,))]
    if twice:
        calls += [DatasetCall(3, "batch", {}, (), is_direct=False), replace(mapped, number=4, inputs=(3,))]
    (use,) = recipe.uses
    return Recipe(tuple(calls), (replace(use, call=2),))


def test_what_several_datasets_go_through_keeps_none_of_them() -> None:
    text = f"{HEAD}def finish(ds):\n    return ds.map(f)\nmodel.fit(finish(images()))\n"
    assert "return ds.cache().map(f)" in written(text, CACHE, recipe=taken_by_map(text))
    assert "takes several datasets" in refused(text, CACHE, recipe=taken_by_map(text, twice=True))


def test_all_of_what_stands_in_brackets_is_kept() -> None:
    text = f"{HEAD}ds = (train or test).map(f)\nmodel.fit(ds)\n"
    assert "(train or test).cache().map(f)" in written(text, CACHE, recipe=taken_by_map(text))


def test_a_class_is_not_taken_for_a_dataset() -> None:
    text = f"{HEAD}ds = tf.data.Dataset.map(train, f)\nmodel.fit(ds)\n"
    assert "something else than its name" in refused(text, CACHE, recipe=taken_by_map(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from tensorflow.data import Dataset as D\nds = D.map(ds, f)\n", "is not clear"),
        ("map = tf.data.Dataset.map\nds = map(ds, f)\n", "as a plain function"),
        ("ds = ds.map(f, num_parallel_calls=(n := 2))\n", "assigns a name inside"),
    ],
)
def test_an_argument_is_not_set_in_place_of_something_else(text: str, why: str) -> None:
    recipe = written_recipe(text)
    recipe = replace(recipe, calls=tuple(each for each in recipe.calls if each.method == "map"))
    assert why in refused(text, replace(PARALLEL, call=recipe.calls[0].number), recipe=recipe)


def test_a_method_under_its_name_alone_is_not_renamed() -> None:
    text = "flat_map = ds.flat_map\nds = flat_map(f)\n"
    assert "as a plain function" in refused(text, Rename(1, "interleave"))


@pytest.mark.parametrize(
    "text",
    [
        "def add(ds, fs):\n    for tf in fs: ds = ds.map(tf)\n    return ds\n",
        "def add(ds, tf):\n    return ds.map(tf)\n",
        "sets = [ds.map(tf) for tf in fs]\n",
    ],
)
def test_a_name_that_stands_for_something_else_is_not_tensorflow(text: str) -> None:
    assert "map(tf, num_parallel_calls=-1)" in written(HEAD + text, PARALLEL)


def test_an_import_that_is_repeated_is_still_tensorflow() -> None:
    text = f"{HEAD}{HEAD}def make():\n    import tensorflow as tf\n    return ds.map(f)\n"
    assert "map(f, num_parallel_calls=tf.data.AUTOTUNE)" in written(text, PARALLEL)


@pytest.mark.parametrize(
    "names",
    [
        "AUTOTUNE = None if debug else tf.data.AUTOTUNE\n",
        "AUTOTUNE = config.AUTOTUNE\n",
        "AUTOTUNE = tf.data.AUTOTUNE\ndef late():\n    AUTOTUNE = 4\n",
        "def late(AUTOTUNE=None): pass\nAUTOTUNE = tf.data.AUTOTUNE\n",
    ],
)
def test_a_name_that_may_be_something_else_is_not_autotune(names: str) -> None:
    text = f"{HEAD}{names}ds = ds.batch(2)\nmodel.fit(ds)\n"
    assert "batch(2).prefetch(tf.data.AUTOTUNE)" in written(text, Insert(1, *PREFETCH))


@pytest.mark.parametrize("shuffled", ["ds = ds.shuffle(8)\n", "if options.pop('s'):\n    ds = ds.shuffle(8)\n"])
def test_a_call_whose_arguments_are_not_clear_does_not_move(shuffled: str) -> None:
    text = f"ds = images(8)\n{shuffled}ds = ds.map(f, **options)\nmodel.fit(ds)\n"
    assert "takes * or **" in refused(text, MoveBefore(2, 1, "cache"))
    assert ".map(f, n).cache()" in written(text.replace("**options", "n"), MoveBefore(2, 1, "cache"))


def test_one_iterator_repeats_what_is_kept() -> None:
    text = f"{HEAD}ds = images().batch(2)\nmodel.fit(ds, epochs=3)\n"
    edits: tuple[Edit, ...] = (OneIterator(), CACHE)
    after = written(text, *edits, recipe=written_recipe(text, **OF_LIBRARY))
    assert "fit(ds.cache().repeat(), epochs=3, steps_per_epoch=len(ds))" in after


def test_epochs_that_begin_with_the_first_are_all_epochs() -> None:
    for begins, is_written in (("0", True), ("2", False)):
        text = f"{HEAD}ds = ds.batch(2)\nmodel.fit(ds, epochs=3, initial_epoch={begins})\n"
        assert bool(edit(text, OneIterator()).texts) is is_written


def test_a_file_is_not_shared_by_what_a_function_may_make_in_another_run() -> None:
    on_disk = Insert(2, "cache", {"filename": "kept"})
    text = f"{HEAD}def make(n):\n    return data.range(n).batch(2)\nmodel.fit(make(8))\n"
    assert '.batch(2).cache(filename="kept")' in written(text, on_disk).replace(
        '.cache("kept")', '.cache(filename="kept")'
    )
    again = f"{text}if testing: model.evaluate(make(100))\n"
    assert "cannot share a file" in refused(again, on_disk)


def test_a_line_that_maps_with_several_functions_runs_none_in_parallel_where_one_keeps_a_state() -> None:
    text = f"{HEAD}for f in functions:\n    ds = ds.map(f)\nmodel.fit(ds)\n"
    recipe = written_recipe(text)
    (mapped,) = recipe.calls
    for state, is_offered in (((), True), (("AssignAddVariableOp",), False)):
        calls = (mapped, replace(mapped, number=2, inputs=(1,), stateful=state))
        found = find_changes(replace(recipe, calls=calls, uses=(replace(recipe.uses[-1], call=2),)))
        assert any(each.rewrite == "parallel-map" for each in found) is is_offered
