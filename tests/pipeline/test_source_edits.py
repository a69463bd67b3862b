"""Changes written into a user's file: the call that is meant, in the user's style, and nothing else."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.pipeline.change_words import BY_THE_BATCH
from pipeline_lab.pipeline.changes import (
    Edit,
    InBatches,
    Insert,
    MoveBefore,
    OneIterator,
    Remove,
    Rename,
    SetArgument,
    SetTraining,
)
from pipeline_lab.pipeline.recipe import TRAINING, VALIDATION, DatasetCall, DatasetUse, PythonPart, Recipe, UserFunction
from pipeline_lab.pipeline.source_edits import Edited, edit_sources
from tests.support.edited import CHAIN, HEAD, PREFETCH, change, changed_lines, edit, refused, written
from tests.support.written_recipe import PATH, place_of, written_recipe


@pytest.mark.parametrize(
    ("call", "becomes"),
    [
        ("ds.map(f)", "ds.map(f, num_parallel_calls=8)"),
        ("ds.map()", "ds.map(num_parallel_calls=8)"),
        ("ds.map(f, 2)", "ds.map(f, 8)"),
        ("ds.map(f, (2 + 1))", "ds.map(f, 8)"),
        ("ds.map(f, num_parallel_calls = 2)", "ds.map(f, num_parallel_calls = 8)"),
        ("ds.map(f, num_parallel_calls=(2))", "ds.map(f, num_parallel_calls=8)"),
        ("ds.map( f , )", "ds.map( f, num_parallel_calls=8 , )"),
        ("ds.map(lambda x: (x, 1))", "ds.map(lambda x: (x, 1), num_parallel_calls=8)"),
        ("ds.map(map_func=f, deterministic=True)", "ds.map(map_func=f, deterministic=True, num_parallel_calls=8)"),
        ("tf.data.Dataset.map(ds, f, 2)", "tf.data.Dataset.map(ds, f, 8)"),
        ("ds.map(\n    f\n)", "ds.map(\n    f,\n    num_parallel_calls=8\n)"),
        ("ds.map(\n    f,  # é\n)", "ds.map(\n    f,  # é\n    num_parallel_calls=8,\n)"),
        ("ds.map(\n    f)", "ds.map(\n    f, num_parallel_calls=8)"),
        ("é.map(f); ü = é.map", "é.map(f, num_parallel_calls=8); ü = é.map"),
    ],
)
def test_an_argument_is_set_in_the_style_of_the_call(call: str, becomes: str) -> None:
    text = f"{HEAD}ds = {call}\nmodel.fit(ds)\n"
    assert written(text, SetArgument(1, "num_parallel_calls", 8)) == text.replace(call, becomes)


def test_an_argument_that_may_be_given_already_is_refused() -> None:
    for call in ("ds.map(f, **options)", "ds.map(*given)"):
        assert "already" in refused(f"ds = {call}\n", SetArgument(1, "num_parallel_calls", 8))
    text = "ds = ds.map(f, num_parallel_calls=2, **options)\n"
    assert written(text, SetArgument(1, "num_parallel_calls", 8)) == text.replace("2", "8")


@pytest.mark.parametrize(
    ("head", "autotune"),
    [
        ("import tensorflow as tf\n", "tf.data.AUTOTUNE"),
        ("import tensorflow\n", "tensorflow.data.AUTOTUNE"),
        ("import tensorflow as tf\nAUTOTUNE = tf.data.AUTOTUNE\n", "AUTOTUNE"),
        ("from tensorflow import keras\n", "-1"),
    ],
)
def test_autotune_is_written_by_the_name_that_the_file_has_for_it(head: str, autotune: str) -> None:
    text = f"{head}ds = ds.batch(32)\nmodel.fit(ds)\n"
    assert written(text, Insert(1, *PREFETCH)) == text.replace(".batch(32)", f".batch(32).prefetch({autotune})")


def test_where_tensorflow_is_imported_further_down_only_functions_know_its_name() -> None:
    text = "{}\nimport tensorflow as tf\nmodel.fit(make())\n"
    function = text.format("def make():\n    return data.batch(32)\n")
    assert ".prefetch(tf.data.AUTOTUNE)" in written(function, Insert(1, *PREFETCH))
    assert ".prefetch(-1)" in written(text.format("make = lambda: data.batch(32)"), Insert(1, *PREFETCH))
    assert "does not import tensorflow above that line" in refused(
        text.format("ds = ds.batch(32)"), Insert(1, *OPTIONS)
    )


def test_a_name_that_the_file_gives_autotune_further_down_is_not_used() -> None:
    text = "import tensorflow as tf\nds = ds.batch(32)\nAUTOTUNE = tf.data.AUTOTUNE\nmodel.fit(ds)\n"
    assert ".prefetch(tf.data.AUTOTUNE)" in written(text, Insert(1, *PREFETCH))


def test_a_call_is_added_on_a_line_of_its_own_where_the_others_have_theirs() -> None:
    after = written(CHAIN, Insert(3, *PREFETCH))
    assert changed_lines(CHAIN, after) == ["+     .prefetch(tf.data.AUTOTUNE)"]
    assert after.index(".prefetch") > after.index("# batches")
    assert changed_lines(CHAIN, written(CHAIN, Insert(2, "cache"))) == ["+     .cache()"]


OPTIONS = "with_options", {"threading.private_threadpool_size": 8}


def test_options_are_made_before_the_statement_that_takes_them() -> None:
    after = written(CHAIN, Insert(3, *OPTIONS), Insert(3, *PREFETCH))
    assert changed_lines(CHAIN, after) == [
        "+ pool_options = tf.data.Options()",
        "+ pool_options.threading.private_threadpool_size = 8",
        "+     .with_options(pool_options)",
        "+     .prefetch(tf.data.AUTOTUNE)",
    ]
    text = f"{HEAD}def make(ds, pool_options):\n    if ds:\n        return ds.batch(32)\n"
    assert written(text, Insert(1, *OPTIONS)) == (
        f"{HEAD}def make(ds, pool_options):\n    if ds:\n        pool_options_2 = tf.data.Options()\n"
        "        pool_options_2.threading.private_threadpool_size = 8\n"
        "        return ds.batch(32).with_options(pool_options_2)\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "make = lambda ds: ds.batch(32)",
        "if a: ds = ds.batch(32)",
        "a = 1; ds = ds.batch(32)",
        "for x in ds.batch(32): pass",
    ],
)
def test_options_are_refused_where_no_line_can_be_put_before(line: str) -> None:
    assert "does not begin a line of train.py" in refused(f"{HEAD}{line}\n", Insert(1, *OPTIONS))


def test_options_are_refused_where_the_file_does_not_know_tensorflow() -> None:
    assert "does not import tensorflow" in refused("ds = ds.batch(32)\n", Insert(1, *OPTIONS))


def test_a_call_is_added_on_the_same_line_where_another_would_not_be_valid() -> None:
    text = "ds = ds.map(f) \\\n    .batch(32)\nmodel.fit(ds)\n"
    assert written(text, Insert(2, "cache")) == text.replace(".batch(32)", ".batch(32).cache()")
    text = "ds = (ds.map(f)\n      .batch(32))\nmodel.fit(ds)\n"
    assert written(text, Insert(2, "cache")) == text.replace(".batch(32)", ".batch(32)\n      .cache()")
    text = "ds = TFRecordDataset(files)\nmodel.fit(ds)\n"
    assert written(text, Insert(1, "cache", {"filename": "a b"})) == text.replace("files)", 'files).cache("a b")')


def test_a_call_goes_and_another_gets_another_name() -> None:
    assert written("ds = ds.repeat().cache().batch(2)\n", Remove(2)) == "ds = ds.repeat().batch(2)\n"
    text = "ds = ds.flat_map(read)\n"
    edits = (Rename(1, "interleave"), SetArgument(1, "cycle_length", 4))
    assert written(text, *edits) == "ds = ds.interleave(read, cycle_length=4)\n"


def test_a_call_under_another_name_is_refused() -> None:
    recipe = written_recipe("ds = one.map(f)\n")
    assert "another name" in refused("ds = one_map(f)\n", SetArgument(1, "num_parallel_calls", 8), recipe=recipe)


def test_a_file_that_changed_and_one_that_is_not_python_are_refused() -> None:
    text = "ds = ds.map(f)\n"
    recipe = written_recipe(text)
    assert "changed since" in refused("\n" + text, Insert(1, "cache"), recipe=recipe)
    assert "parsed" in refused("ds = (\n", Insert(1, "cache"), recipe=recipe)
    found = edit_sources(recipe, [change(Insert(1, "cache"))], {})
    assert "not at hand" in found.refused[0].reason


def test_what_a_library_makes_cannot_be_edited_but_where_it_is_read_can() -> None:
    text = f"{HEAD}ds = images_of(folder).batch(2)\nmodel.fit(ds, epochs=2)\n"
    recipe = written_recipe(text, batch={"is_direct": False})
    assert "inside of a library" in refused(text, Insert(1, "repeat"), recipe=recipe)
    assert written(text, Insert(1, *PREFETCH), recipe=recipe) == text.replace(
        "fit(ds", "fit(ds.prefetch(tf.data.AUTOTUNE)"
    )


def several(text: str, *inputs: tuple[int, ...]) -> Recipe:
    """Return the recipe of a script whose one call of ``map`` ran several times."""
    place = next(
        place_of(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ".map(" in ast.unparse(node)
    )
    calls = tuple(DatasetCall(number, "map", {}, taken, place=place) for number, taken in enumerate(inputs, 1))
    use = next(
        place_of(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and "fit" in ast.unparse(node.func)
    )
    return Recipe(calls, (DatasetUse(TRAINING, len(calls), use, "", 1),))


def test_calls_of_a_loop_all_get_an_argument_and_a_prefetch_stands_where_they_are_read() -> None:
    text = f"{HEAD}for f in functions:\n    ds = ds.map(f)\nmodel.fit(ds)\n"
    recipe = several(text, (), (1,))
    assert ".map(f, num_parallel_calls=8)" in written(text, SetArgument(2, "num_parallel_calls", 8), recipe=recipe)
    assert "fit(ds.prefetch(tf.data.AUTOTUNE))" in written(text, Insert(2, *PREFETCH), recipe=recipe)
    assert "several calls of this dataset" in refused(text, Insert(2, "cache"), recipe=recipe)


def test_one_line_of_two_datasets_may_cache_both_but_not_in_one_file() -> None:
    text = f"{HEAD}ds, val = (each.map(f) for each in both)\nmodel.fit(ds)\n"
    recipe = several(text, (), ())
    assert "each.map(f).cache()" in written(text, Insert(2, "cache"), recipe=recipe)
    assert "cannot share a file" in refused(text, Insert(2, "cache", {"filename": "a"}), recipe=recipe)


def test_a_cache_stands_before_the_prefetch_at_its_place() -> None:
    text = f"{HEAD}ds = ds.batch(8)\n"
    assert written(text, Insert(1, *PREFETCH), Insert(1, "cache")) == text.replace(
        "batch(8)", "batch(8).cache().prefetch(tf.data.AUTOTUNE)"
    )


def test_what_cannot_be_made_together_is_said_and_the_rest_is_written() -> None:
    text = "ds = ds.map(f)\n"
    changes = [change(SetArgument(1, "num_parallel_calls", value)) for value in (2, 4)]
    found = edit_sources(written_recipe(text), changes, {PATH: text})
    assert found.written == (changes[0],)
    assert "together" in found.refused[0].reason


def test_a_line_is_found_again_below_what_was_put_in() -> None:
    text = f"{HEAD}ds = ds.map(f)\n\nds = ds.batch(8)\nmodel.fit(ds)\n"
    lines = text.splitlines()
    found = edit(text, Insert(2, *OPTIONS), SetArgument(1, "num_parallel_calls", 2))
    after = found.texts[PATH].splitlines()
    assert len(after) == len(lines) + 2
    for word in ("ds.map(f", "ds.batch(8)", "model.fit(ds)"):
        now = found.line_of(PATH, next(number for number, line in enumerate(lines, 1) if word in line))
        assert word in after[now - 1]
    assert found.line_of("other.py", 3) == 3


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_that_changes_is_found_among_those_in_its_place(end: str) -> None:
    before = ["a = 1\f", "for batch in (ds.map(f)", "    .batch(2)):", "    pass"]
    after = [
        "a = 1\f",
        "for batch in (ds.map(f, num_parallel_calls=2)",
        "    .batch(2)",
        "    .prefetch(1)):",
        "    pass",
    ]
    above = [before[0], "def by_the_batch(function):", "    return 1", *after[1:]]
    for now, line in ((after, 2), (above, 4)):
        assert Edited({PATH: end.join(before)}, {PATH: end.join(now)}, (), ()).line_of(PATH, 2) == line


def test_steps_per_execution_goes_to_the_one_compile_of_the_model() -> None:
    text = 'ds = ds.batch(2)\nmodel.compile("adam", loss=loss)\nother.compile()\nmodel.fit(ds)\n'
    edit_ = SetTraining("steps_per_execution", 8)
    assert written(text, edit_) == text.replace("loss=loss", "loss=loss, steps_per_execution=8")
    twice = text.replace("other", "model")
    assert "2 times" in refused(twice, edit_)
    assert "nowhere" in refused(text.replace("model.compile", "build"), edit_)


IMAGES = """\
class Images(keras.utils.PyDataset):
    def __init__(self, x{and_more}):
        super().__init__({given})
        self.x = x

    def __getitem__(self, index):
        return self.x[index]


train, val = None, Images(b)
train = Images(a)
model.fit(train, validation_data=val)
"""


@pytest.mark.parametrize(
    ("and_more", "given", "was", "becomes"),
    [
        ("", "", "super().__init__()", "super().__init__(workers=4)"),
        ("", "workers=1", "workers=1", "workers=4"),
        (", **kwargs", "**kwargs", "Images(a)", "Images(a, workers=4)"),
    ],
)
def test_workers_go_to_where_the_class_takes_them(and_more: str, given: str, was: str, becomes: str) -> None:
    text = IMAGES.format(and_more=and_more, given=given)
    assert written(text, SetTraining("workers", 4), recipe=_images(text)) == text.replace(was, becomes)


def test_workers_are_set_before_the_training_where_nobody_hands_them_on() -> None:
    text = IMAGES.format(and_more="", given="")
    edit_ = SetTraining("workers", 4)
    silent = text.replace("super().__init__()", "pass")
    assert written(silent, edit_, recipe=_images(silent)) == silent.replace("model.fit", "train.workers = 4\nmodel.fit")
    derived = text.replace("keras.utils.PyDataset", "Base")
    assert written(derived, edit_, recipe=_images(derived)).endswith(
        "train.workers = 4\n" + derived.splitlines()[-1] + "\n"
    )
    without_a_name = derived.replace("fit(train", "fit(kept[0]")
    assert "derives from Base" in refused(without_a_name, edit_, recipe=_images(without_a_name))


def test_workers_do_not_go_to_what_another_function_makes_under_the_same_name() -> None:
    head = IMAGES.format(and_more=", **kwargs", given="**kwargs").partition("train, val")[0]
    check = "def check(model):\n    data = Images(a)\n    model.evaluate(data)\n"
    text = f"{head}{check}def train(model):\n    data = make(b)\n    model.fit(data)\n"
    becomes = text.replace("    model.fit", "    data.workers = 4\n    model.fit")
    assert written(text, SetTraining("workers", 4), recipe=_images(text)) == becomes


def test_workers_are_refused_where_making_a_batch_changes_what_they_would_share() -> None:
    text, edit_ = IMAGES.format(and_more="", given=""), SetTraining("workers", 4)
    counting = text.replace("        return self.x", "        self.last = index\n        return self.x")
    reason = "Images.__getitem__ changes self.last (train.py:7), which several threads would share."
    assert refused(counting, edit_, recipe=_images(counting)) == reason


@pytest.mark.parametrize(
    ("name", "calls", "reason"),
    [
        ("DirectoryIterator", None, ""),
        ("MineIterator", None, "changes self.seen"),
        (
            "DirectoryIterator",
            UserFunction("center", "__main__", PATH, 4),
            "calls center (train.py:4), which may change",
        ),
    ],
)
def test_keras_own_iterators_of_images_get_workers_but_where_they_run_code_of_the_users(
    name: str, calls: UserFunction | None, reason: str
) -> None:
    text, file = (
        "train = images.flow(x)\nmodel.fit(train)\n",
        "/env/site-packages/keras/src/legacy/preprocessing/image.py",
    )
    counting = f"class {name}(Iterator):\n    def __getitem__(self, index):\n        self.seen += 1\n"
    function = UserFunction(f"{name}.__getitem__", "keras.src.legacy.preprocessing.image", file, 3)
    recipe = _images(text, part=PythonPart("PyDataset", function, calls=calls))
    made = edit_sources(recipe, [change(SetTraining("workers", 4))], {PATH: text, file: counting})
    assert list(made.texts) == ([] if reason else [PATH])
    assert reason in "".join(each.reason for each in made.refused)


def test_a_class_of_an_installed_package_is_not_edited() -> None:
    file = "/env/lib/python3.11/site-packages/images/data.py"
    package, text = IMAGES.format(and_more="", given="").split("\n\n\n")
    recipe = _images(text, file=file)
    made = edit_sources(recipe, [change(SetTraining("workers", 4))], {PATH: text, file: package})
    assert made.texts == {PATH: text.replace("model.fit", "train.workers = 4\nmodel.fit")}


def test_workers_of_a_librarys_class_are_set_before_the_training() -> None:
    text = "train = generator.flow_from_directory('data')\nmodel.fit(train, epochs=3)\n"
    edit_ = SetTraining("workers", 4)
    becomes = text.replace("model.fit", "train.workers = 4\nmodel.fit")
    recipe = _images(text, file="keras/image.py")
    assert written(text, edit_, recipe=recipe) == becomes
    inline = text.replace("fit(train", "fit(generator.flow(x)")
    assert "not at hand" in refused(inline, edit_, recipe=_images(inline, file="keras/image.py"))


def test_fit_gets_the_dataset_repeated_where_it_has_a_name_and_no_number_of_steps() -> None:
    text = "ds = tf.data.Dataset.range(8)\nmodel.fit(\n    self.ds,\n    epochs=3,\n)\n"
    becomes = text.replace("self.ds,", "self.ds.repeat(),").replace(
        "epochs=3,", "epochs=3,\n    steps_per_epoch=len(self.ds),"
    )
    assert written(text, OneIterator()) == becomes
    by_name = "ds = tf.data.Dataset.range(8)\nmodel.fit(epochs=3, x=ds)\n"
    assert "fit(epochs=3, x=ds.repeat(), steps_per_epoch=len(ds))" in written(by_name, OneIterator())
    assert "Assign the dataset" in refused(by_name.replace("x=ds", "x=make(ds)"), OneIterator())
    assert "given already" in refused(by_name.replace("x=ds", "x=ds, steps_per_epoch=2"), OneIterator())
    assert "takes * or **" in refused(by_name.replace("x=ds", "x=ds, **more"), OneIterator())
    assert "Assign the dataset" in refused(by_name.replace("x=ds", "x=made[0].ds"), OneIterator())


@pytest.mark.parametrize(
    ("fit", "is_closed", "reason"),
    [
        ("model.fit(ds)", True, "a part of the epochs"),
        ("model.fit(ds, epochs=1)", True, "a part of the epochs"),
        ("for _ in range(3): model.fit(ds, epochs=2)", True, "a part of the epochs"),
        ("model.fit(ds, epochs=e + 1, initial_epoch=e)", True, "a part of the epochs"),
        ("model.fit(ds, None, None, 3)", True, ""),
        ("model.fit(ds, epochs=3, callbacks=[stop])", True, ""),
        ("model.fit(ds, epochs=3, callbacks=[stop])", False, "what callbacks change"),
        ("model.fit(ds, None, None, 3, 0, [stop])", False, "what callbacks change"),
        ("model.fit(ds, epochs=3)", False, ""),
        ("def train(model, ds): model.fit(ds, epochs=3)", True, "another dataset each time"),
    ],
)
def test_one_iterator_serves_several_epochs_between_which_nothing_changes_what_it_reads(
    fit: str, is_closed: bool, reason: str
) -> None:
    text = f"ds = tf.data.Dataset.range(8)\n{fit}\n"
    if reason:
        assert reason in refused(text, OneIterator(is_closed))
    else:
        assert "ds.repeat()" in written(text, OneIterator(is_closed))


def _item_of(name: str, file: str, kind: str) -> PythonPart:
    return PythonPart(kind, UserFunction(f"{name}.__getitem__", "__main__", file, 6))


def _images(text: str, file: str = PATH, kind: str = "PyDataset", part: PythonPart | None = None) -> Recipe:
    recipe = written_recipe(text)
    call = DatasetCall(1, "from_generator", python=(part or _item_of("Images", file, kind),), is_direct=False)
    return Recipe((call,), (DatasetUse(TRAINING, 1, recipe.uses[0].place, "", 1, carried_over=""),))


def test_workers_of_a_sequence_of_keras_2_are_an_argument_of_fit() -> None:
    text, edit_ = IMAGES.format(and_more="", given="").replace("PyDataset", "Sequence"), SetTraining("workers", 4)
    alone = text.replace("train, validation_data=val", "train")
    assert written(alone, edit_, recipe=_images(alone, kind="Sequence")) == alone.replace(
        "(train)", "(train, workers=4)"
    )
    given = alone.replace("(train)", "(train, workers=1)")
    assert written(given, edit_, recipe=_images(given, kind="Sequence")) == given.replace("workers=1", "workers=4")


def test_workers_that_fit_of_keras_2_would_hand_on_are_refused_where_that_is_not_proved() -> None:
    text, edit_ = IMAGES.format(and_more="", given="").replace("PyDataset", "Sequence"), SetTraining("workers", 4)
    recipe = _images(text, kind="Sequence")
    assert "validation_data, which the run did not read" in refused(text, edit_, recipe=recipe)
    (call,), (use,) = recipe.calls, recipe.uses
    own_map = (PythonPart("py_function", UserFunction("load", "__main__", PATH, 3)),)
    for other, reason in (
        (replace(call, python=(_item_of("Images", PATH, "Sequence"),)), ""),
        (
            replace(call, python=(_item_of("Others", PATH, "Sequence"),)),
            "to Others.__getitem__ as well, which is not proved",
        ),
        (replace(call, python=()), "to its validation_data as well"),  # an iterator that nobody knows
        (DatasetCall(1, "map", python=own_map), ""),  # of a dataset, which takes no workers
    ):
        uses = (use, DatasetUse("evaluation", 2, use.place, "", 1))
        both = replace(recipe, calls=(call, replace(other, number=2)), uses=uses)
        if reason:
            assert reason in refused(text, edit_, recipe=both)
        else:
            assert "=val, workers=4" in written(text, edit_, recipe=both)


WHOLE, ENDS = "", "Its epochs do not end where its data do."
CLASS, OBJECT, LINE = "super().__init__(workers=4)", "train = Images(a, workers=4)", "train.workers = 4"


@pytest.mark.parametrize(
    ("role", "of", "carried_over", "refused_for"),
    [
        (VALIDATION, "train", WHOLE, ()),
        (VALIDATION, "train", ENDS, (CLASS, OBJECT, LINE)),
        (VALIDATION, "another", ENDS, (CLASS,)),
        (TRAINING, "another", ENDS, (CLASS,)),
        (TRAINING, "another class", ENDS, ()),
        ("evaluation", "train", ENDS, ()),  # a pass alone
    ],
)
@pytest.mark.parametrize("edited", [CLASS, OBJECT, LINE])
def test_workers_are_refused_where_any_epoch_that_they_feed_does_not_end_with_its_data(
    edited: str, role: str, of: str, carried_over: str, refused_for: tuple[str, ...]
) -> None:
    given = {CLASS: ("", ""), OBJECT: (", **kwargs", "**kwargs"), LINE: ("", "")}[edited]
    text = IMAGES.format(and_more=given[0], given=given[1])
    text = text.replace("super().__init__()", "pass") if edited == LINE else text
    recipe = _images(text)
    part = replace(_item_of("Images", PATH, "PyDataset"), maker=0)
    other = _item_of("Others", PATH, "PyDataset") if of == "another class" else part
    other = replace(other, maker=0 if of == "train" else 1)
    calls = [replace(recipe.calls[0], number=number, python=(one,)) for number, one in ((1, part), (2, other))]
    elsewhere = replace(recipe.uses[0], role=role, call=2, place=None, carried_over=carried_over)
    recipe = replace(recipe, calls=tuple(calls), uses=(*recipe.uses, elsewhere))
    if edited in refused_for:
        assert refused(text, SetTraining("workers", 4), recipe=recipe) == carried_over
    else:
        assert edited in written(text, SetTraining("workers", 4), recipe=recipe)


@pytest.mark.parametrize("kind", ["PyDataset", "Sequence"])
def test_workers_are_refused_where_nothing_says_how_epochs_end(kind: str) -> None:
    text, edit_ = (
        IMAGES.format(and_more="", given="").replace("validation_data=val", "epochs=9"),
        SetTraining("workers", 4),
    )
    recipe = _images(text, kind=kind)
    old = replace(recipe, uses=(replace(recipe.uses[0], carried_over=None),))
    assert "record the script again" in refused(text, edit_, recipe=old)
    starred = text.replace("epochs=9", "**options")
    assert "it takes * or **" in refused(starred, edit_, recipe=_images(starred, kind=kind))
    assert "workers=4" in written(text, edit_, recipe=recipe)


def test_the_diff_names_files_below_the_folder() -> None:
    from pathlib import Path

    text = "ds = ds.map(f)"
    diff = edit(text, Insert(1, "cache")).diff(Path("/home"))
    assert diff.splitlines() == [
        "--- a/user/train.py",
        "+++ b/user/train.py",
        "@@ -1 +1 @@",
        "-ds = ds.map(f)",
        "\\ No newline at end of file",
        "+ds = ds.map(f).cache()",
        "\\ No newline at end of file",
    ]


ARGUMENTS = st.sampled_from(
    ["f", "f,", "lambda x: x  ", "\n        f,  # é\n    ", " (f), deterministic = True", "\n        f\n    "]
)
BREAKS = st.sampled_from(["", "\n    ", "  # why\n    ", "\n\n    # line\n    "])


@st.composite
def chains(draw: st.DrawFn) -> str:
    parts = ["ds"]
    for _ in range(draw(st.integers(1, 5))):
        method = draw(st.sampled_from(["map", "batch", "filter"]))
        parts.append(f"{draw(BREAKS)}.{method}({draw(ARGUMENTS)})")
    form = draw(st.sampled_from(["ds = (\n    {}\n)  # end\n", "ds = ({})\n", "ds = keep([({})], 1)\r\n"]))
    return f"import tensorflow as tf\n\nold = other.map(f).cache()\n{form.format(''.join(parts))}\n# last é\n"


def _calls(text: str) -> Counter[str]:
    """Return every call of a method without what it is called on."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = [ast.unparse(each) for each in (*node.args, *node.keywords)]
            found.append(f"{node.func.attr}({', '.join(given)})")
    return Counter(found)


@pytest.mark.slow
@settings(max_examples=60)
@given(chains(), st.data())
def test_whatever_is_edited_the_file_parses_and_all_other_calls_are_as_they_were(
    text: str, data: st.DataObject
) -> None:
    recipe = written_recipe(text)
    number = data.draw(st.integers(3, len(recipe.calls)))
    kinds = ["set", "insert", "remove", *(["move"] if number > 3 else [])]
    kind = data.draw(st.sampled_from(kinds))
    edits: dict[str, Edit] = {
        "set": SetArgument(number, "num_parallel_calls", 3),
        "insert": Insert(number, "cache"),
        "remove": Remove(number),
        "move": MoveBefore(number, data.draw(st.integers(3, max(3, number - 1)))),
    }
    after = written(text, edits[kind])
    calls, new = _calls(text), _calls(after)
    lost, gained = calls - new, new - calls
    if kind == "insert":
        assert (lost, gained) == (Counter(), Counter(["cache()"]))
    elif kind == "remove":
        assert (lost.total(), gained) == (1, Counter())
    elif kind == "set":
        assert [each.replace(", num_parallel_calls=3", "") for each in gained.elements()] == [*lost.elements()]
    else:
        assert new == calls
    if kind != "remove":
        assert after.count("#") == text.count("#")
    for line in ("old = other.map(f).cache()\n", "\n# last é\n"):
        assert line in after


def test_what_hands_a_generator_over_stands_before_the_statement_of_the_module() -> None:
    text = (
        HEAD
        + """\

# the data
# of the training
@cached
def make(g):
    # all of them
    return tf.data.Dataset.from_generator(g, output_signature=s).batch(2)


model.fit(make(f))
"""
    )
    after = written(text, InBatches(1, 64))
    head, _, rest = after.partition("\ndef from_generator_in_batches(")
    assert head + "\n" == text.partition("# the data")[0]
    assert rest.count("def ") == 3
    assert "\n\n\n# the data\n# of the training\n@cached\ndef make(g):" in rest
    assert "    return from_generator_in_batches(g, output_signature=s).batch(2)" in rest


@pytest.mark.parametrize(
    ("signature", "batches"),
    [
        (int, [[0, 1], [2]]),
        ((int, str), [((0, 1), ("0", "1")), ((2,), ("2",))]),
        ({"b": str, "a": int}, [{"a": [0, 1], "b": ["0", "1"]}, {"a": [2], "b": ["2"]}]),
    ],
)
def test_what_hands_a_generator_over_keeps_the_parts_of_its_elements_together(
    signature: object, batches: object
) -> None:
    def generate(count: int) -> Iterator[object]:
        for number in range(count):
            parts = {"a": number, "b": str(number)}
            yield number if signature is int else parts if isinstance(signature, dict) else tuple(parts.values())

    class Dataset:  # of the shape that the function uses
        @staticmethod
        def from_generator(
            make: Callable[..., Iterator[object]], args: tuple[int], output_signature: object
        ) -> SimpleNamespace:
            assert output_signature == "wider"
            return SimpleNamespace(unbatch=lambda: list(make(*args)))

    nest = SimpleNamespace(map_structure=lambda _, given: "wider" if given is signature else None)
    names: dict[str, Any] = {"tf": SimpleNamespace(nest=nest, data=SimpleNamespace(Dataset=Dataset))}
    exec(BY_THE_BATCH.format(name="in_batches", size=2, tf="tf"), names)
    assert names["in_batches"](generate, args=(3,), output_signature=signature) == batches


def test_a_generator_whose_arguments_are_not_known_is_left_alone() -> None:
    assert "is not known" in refused(
        HEAD + "ds = tf.data.Dataset.from_generator(g, **k)\nmodel.fit(ds)\n", InBatches(1, 64)
    )
    text = "ds = Dataset.from_generator(g)\nmodel.fit(ds)\n"
    assert "does not import tensorflow" in refused(text, InBatches(1, 64))
