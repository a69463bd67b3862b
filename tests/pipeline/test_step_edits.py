"""A map's function called in the training step: what is written, what is compared, and what else may read the dataset."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import Insert, IntoStep, MoveBefore, SetArgument, are_compatible
from pipeline_lab.pipeline.recipe import DatasetUse, Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.source_edits import edit_sources
from tests.support.edited import change
from tests.support.written_recipe import PATH, written_recipe

SCALE = """\
import tensorflow as tf
SIZE = 255.0


def scale(image, label):
    return tf.cast(image, tf.float32) / SIZE, label


"""
FIT = """\
ds = tf.data.Dataset.range(8)
ds = ds.map(scale, num_parallel_calls=2)  # to floats
ds = ds.batch(4)
model = make()
history = model.fit(ds, epochs=2)
"""
FITTED = """\
ds = tf.data.Dataset.range(8)
ds = ds.batch(4)
model = make()
own_train_step = model.train_step
model.train_step = lambda batch: own_train_step(scale(*batch))
history = model.fit(ds, epochs=2)
"""
LOOP = """\
def main():
    raw = tf.data.Dataset.range(8)
    batches = (
        raw
        .map(lambda x, y: (
            x / 2,
            y,
        ))
        .batch(4)
    )
    for epoch in range(2):
        for number, (x, y) in enumerate(batches):  # steps
            # begins
            with tape:
                step(x, y)
main()
"""
LOOPED = """\
def main():
    raw = tf.data.Dataset.range(8)
    convert = (lambda x, y: (
        x / 2,
        y,
    ))
    batches = (
        raw
        .batch(4)
    )
    for epoch in range(2):
        for number, (x, y) in enumerate(batches):  # steps
            # begins
            x, y = convert(x, y)
            with tape:
                step(x, y)
main()
"""


def _recipe(text: str) -> Recipe:
    """Return the recipe, with the innermost loop, or ``fit``, as its one reading."""
    recipe = written_recipe(text)
    return replace(recipe, uses=recipe.uses[-1:])


def _map(recipe: Recipe) -> int:
    return next(call.number for call in recipe.calls if call.method == "map")


def _edited(body: str, *others: Insert) -> tuple[str, str, str]:
    """Return the changed body, the one that is compared, and why neither was made."""
    text = SCALE + body
    recipe = _recipe(text)
    found = edit_sources(recipe, [change(IntoStep(_map(recipe)), *others)], {PATH: text})
    refused = found.refused[0].reason if found.refused else ""
    changed = found.texts.get(PATH, SCALE), found.for_proof.texts.get(PATH, SCALE)
    assert all(each.startswith(SCALE) for each in changed)
    return changed[0].removeprefix(SCALE), changed[1].removeprefix(SCALE), refused


def test_the_models_step_calls_the_function_first() -> None:
    written, compared, _ = _edited(FIT)
    assert written == FITTED
    assert compared == FITTED.replace("own_train_step = model.train_step\n", "").replace(
        "model.train_step = lambda batch: own_train_step(scale(*batch))\n", ""
    ).replace("fit(ds", "fit(ds.map(scale)")


def test_a_loop_begins_with_the_function() -> None:
    written, compared, _ = _edited(LOOP)
    assert written == LOOPED
    assert "enumerate(batches.map(lambda x, y: (\n" in compared
    assert "            x, y = convert" not in compared


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ds = raw.map(scale).batch(2)\nfor batch in ds:\n    step(batch)\n", "batch = scale(*batch)"),
        ("ds = raw.map(lambda x: x / 2)\nfor x in ds:\n    step(x)\n", "x = convert(x)"),
        ("ds = raw.map(lambda x: (x, -x))\nfor x in ds:\n    step(x)\n", "x = convert(x)"),
        ("ds = raw.map(map_func=lambda x: x / 2)\nfor x in ds:\n    step(x)\n", "x = convert(x)"),
        ("ds = raw.map(lambda x: -x)\nmodel = make()\nmodel.fit(x=ds)\n", "lambda batch: own_train_step(convert(batch))"),
        ("mapped = raw.map(scale)\nds = mapped.batch(2).prefetch(1)\nmodel = make()\nmodel.fit(ds, steps_per_epoch=len(ds))\n", "(scale(*batch))"),
        ("ds = raw \\\n    .map(scale) \\\n    .batch(2)\nmodel = make()\nmodel.fit(ds)\n", "(scale(*batch))"),
        ("ds: object = raw.map(scale)\nmodel = make()\nmodel.fit(ds)\n", "ds: object = raw\n"),
        ("with a, b:\n    raw = raw.map(scale)\nmodel = make()\nmodel.fit(raw)\n", "raw = raw\n"),
        ("raw = raw.map(scale); SEED = 3\nmodel = make()\nmodel.fit(raw)\n", "raw = raw; SEED = 3\n"),
        ("ds = raw \\\n    .map(scale)\nmodel = make()\nmodel.fit(ds)\n", "ds = raw\nmodel"),
        ("ds = raw.map(scale)\nmodel = make()\n# Train.\nmodel.fit(ds)\n", "model = make()\nown_train_step"),
    ],
)  # fmt: skip
def test_elements_are_handed_over_as_a_map_does(before: str, after: str) -> None:
    written, _, refused = _edited("raw = tf.data.Dataset.range(8)\n" + before)
    assert after in written, refused
    assert ".map(" not in written


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("history", "model.evaluate(ds)\nhistory", "also taken at train.py:13 (model.evaluate(ds))"),
        ("ds = ds.batch(4)", "ds = ds.batch(4)\nplot(ds)", "also taken at train.py:12 (plot(ds))"),
        ("ds = ds.batch(4)", "other = ds.batch(4)\nds = ds.batch(4)", "goes on under several names (ds, other)"),
        ("ds = ds.batch(4)", "ds = prepare(ds)", "makes something else of ds"),
        ("ds = ds.batch(4)", "ds = ds.batch(4)\nds = load()", "train.py:12 makes something else of ds"),
        ("ds = ds.batch(4)", "for x, y in ds.take(1): plot(x)\nds = ds.batch(4)", "also taken at train.py:11"),
        ("ds = ds.batch(4)", "ds = ds.batch(4) if SIZE else ds", "makes something else of ds"),
        ("ds = ds.batch(4)", "ds = ds.batch(4)\ndef look():\n    return ds", "also taken at train.py:13 (return ds)"),
        ("ds = ds.map", "ds = other = ds.map", "also taken at train.py:10 (ds = other = ds.map(scale"),
        ("fit(ds, epochs=2)", "fit(ds, validation_data=ds)", "also taken at train.py:13 (history = model.fit(ds"),
        ("fit(ds, epochs=2)", "fit(ds.prefetch(1), epochs=2)", "by a variable alone, but by ds.prefetch(1)"),
        ("fit(ds, epochs=2)", "fit(ds, **options)", "takes * or **"),
        ("history = model", "for _ in range(2):\n    history = model", "is in a loop"),
        ("model.fit", "make().fit", "Assign the model"),
        ("model = make()", "model = make()\nother.fit(x)", "also names other.fit"),
        ("model = make()", "model = make()\nmodel.train_on_batch(x)", "also names model.train_on_batch"),
        ("model = make()", "model = make()\nSIZE = 2", "reads SIZE, which may change"),
        ("model = make()", "model = make()\nscale = None", "scale is not defined once"),
        ("(scale, ", "(Scale(), ", "not given a function by its name"),
        ("(scale, ", "(make(scale), ", "not given a function by its name"),
        ("(scale, ", "(tf.abs, ", "not given a function by its name"),
        ("(scale, ", "(print, ", "not defined once in train.py"),
        ("(scale, ", "(lambda x, size=SIZE: x, ", "more than the parts of an element"),
        ("(scale, ", "(lambda *x: x, ", "more than the parts of an element"),
        ("(scale, ", "(lambda x, y: (x / other, y), ", "reads other, which may change"),
        ("history = ", "if SIZE: history = ", "does not begin a line"),
    ],
)  # fmt: skip
def test_what_may_give_others_something_else_is_refused(old: str, new: str, reason: str) -> None:
    assert old in FIT
    written, compared, refused = _edited(FIT.replace(old, new))
    assert reason in refused
    assert not written + compared


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(x, y) in enumerate(batches)", "(x, *y) in enumerate(batches)", "takes its elements apart"),
        ("(x, y) in enumerate(batches)", "(x, y, z) in enumerate(batches)", "takes its elements apart"),
        ("number, (x, y)", "pair", "takes its elements apart"),
        ("enumerate(batches)", "tqdm(batches)", "by a variable alone, but by tqdm(batches)"),
        ("def main", "@tf.function\ndef main", "has a decorator"),
        ("    batches = (", "    for _ in range(2): batches = (", "made in a loop"),
        (
            "    for epoch",
            "    if raw: return batches\n    for epoch",
            "also taken at train.py:19 (if raw: return batches)",
        ),
    ],
)
def test_a_loop_that_takes_something_else_is_refused(old: str, new: str, reason: str) -> None:
    assert old in LOOP
    written, compared, refused = _edited(LOOP.replace(old, new))
    assert reason in refused
    assert not written + compared


def test_a_dataset_of_another_function_is_refused() -> None:
    body = "def make():\n    ds = tf.data.Dataset.range(8).map(scale)\n    return ds\nds = make()\nmodel.fit(ds)\n"
    assert "by another function" in _edited(body)[2]


def test_what_another_reading_or_file_takes_is_refused() -> None:
    text = SCALE + FIT
    recipe = _recipe(text)
    look = DatasetUse("loop", _map(recipe), recipe.calls[0].place, "for …", 1)
    seen = replace(recipe, uses=(*recipe.uses, look))
    edited = edit_sources(seen, [change(IntoStep(2))], {PATH: text}, recipe.uses[-1])
    assert "read elsewhere, too (train.py:9)" in edited.refused[0].reason
    twice = replace(recipe, calls=(*recipe.calls, replace(recipe.call(2), number=9)))
    assert "makes several datasets" in edit_sources(twice, [change(IntoStep(2))], {PATH: text}).refused[0].reason


def test_a_file_that_imports_the_dataset_is_refused(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("train.py", "look.py")}
    text = SCALE + FIT
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "look.py").write_text("from train import ds\nprint(next(iter(ds)))\n")
    recipe = _recipe(text)
    calls = tuple(
        replace(each, place=each.place and replace(each.place, file=files["train.py"])) for each in recipe.calls
    )
    uses = tuple(
        replace(each, place=each.place and replace(each.place, file=files["train.py"])) for each in recipe.uses
    )
    both = Recipe(calls, uses, dict.fromkeys(files.values(), ""))
    edited = edit_sources(both, [change(IntoStep(2))], {files["train.py"]: text})
    assert edited.refused[0].reason == "Another file may read ds, which holds what the map makes."
    alone = replace(both, files={files["train.py"]: ""})
    assert edit_sources(alone, [change(IntoStep(2))], {files["train.py"]: text}).texts


def test_it_goes_with_what_is_done_to_other_calls_alone() -> None:
    mine = change(IntoStep(2))
    assert are_compatible([mine, change(Insert(3, "prefetch"))])
    for other in (Insert(2, "cache"), SetArgument(2, "num_parallel_calls", 4), MoveBefore(3, 2), IntoStep(2)):
        assert not are_compatible([mine, change(other)])
    written, compared, _ = _edited(FIT, Insert(3, "prefetch", {"buffer_size": 2}))
    assert "ds = ds.batch(4).prefetch(2)\n" in written
    assert "ds = ds.batch(4).prefetch(2)\n" in compared


def test_it_is_found_for_the_last_map_and_said_in_a_line() -> None:
    recipe = _recipe(SCALE + FIT)
    (found,) = (each for each in find_changes(recipe) if each.rewrite == "into-step")
    assert found.edits == (IntoStep(2),)
    assert found.request == "train.py:10 into-step"
    assert found.cannot_race
    assert before_after(recipe, found) == (".map(…)", "train_step(convert(*BATCH))")
    named = replace(
        recipe.call(2), arguments={"map_func": {"function": "main.<locals>.scale", "file": PATH, "line": 5}}
    )
    by_name = replace(recipe, calls=(recipe.calls[0], named, *recipe.calls[2:]))
    assert before_after(by_name, found)[1] == "train_step(scale(*BATCH))"
    reads_state = replace(recipe, uses=(replace(recipe.uses[0], reads_state=True),))
    assert "into-step" not in [each.rewrite for each in find_changes(reads_state)]


def test_a_loop_on_one_line_is_refused() -> None:
    assert "lines of its own" in _edited("ds = tf.data.Dataset.range(8).map(scale)\nfor x, y in ds: step(x, y)\n")[2]


RAW = "raw = tf.data.Dataset.range(8)\n"
END = "model = make()\nmodel.fit(ds)\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("ds = raw\nif SIZE:\n    ds = ds.map(scale)\n" + END, "train.py:12 runs in some cases only"),
        ("if SIZE:\n    ds = raw\nelse:\n    ds = raw.map(scale)\n" + END, "runs in some cases only"),
        ("try:\n    ds = load()\nexcept OSError:\n    ds = raw.map(scale)\n" + END, "runs in some cases only"),
        ("ds = raw\nmapped = raw.map(scale)\nif SIZE:\n    ds = mapped.batch(2)\n" + END, "train.py:13 runs in some cases only"),
        ("def train(model):\n    ds = raw.map(scale)\n    model.fit(ds)\ntrain(a)\ntrain(b)\n", "train, around model.fit, is called in a loop"),
        ("def train(model):\n    ds = raw.map(scale)\n    model.fit(ds)\nfor _ in range(3):\n    train(a)\n", "is called in a loop"),
        ("ds = raw.map(scale)\nmodel = make()\nwarm_up(model)\nmodel.fit(ds)\n", "train.py:12 hands the model on"),
        ("ds = raw.map(scale)\nmodel = make()\nother = model\nmodel.fit(ds)\n", "train.py:12 hands the model on"),
        ("ds = raw.map(scale)\nmodel = make()\nshow(model.fit(ds), model := None)\n", "also assigns a name"),
        ("ds = raw.map(lambda x: x / CFG['by'])\nCFG = {}\n" + END, "reads CFG, which may change"),
        ("BY = 3\nds = raw.map(lambda x: x / BY)\n" + END, ""),
        ("ds = raw.map(lambda x: x / BY)\nBY = 3\ndel BY\n" + END, "reads BY, which may change"),
        ("ds = raw.map(lambda x: x / BY)\nBY = 3\ndef change():\n    global BY\n    BY = 4\n" + END, "reads BY, which may change"),
        ("ds = raw.map(lambda x: x * random.uniform(1, 2))\n" + END, "does more than to call TensorFlow's operations"),
        ("ds = raw.map(lambda x: tf.random.uniform([]) * x)\n" + END, "does more than to call TensorFlow's operations"),
        ("def half(x):\n    print(x)\n    return x / 2\nds = raw.map(lambda x: half(x))\n" + END, "does more than to call"),
        ("def half(x):\n    return x / BY\nBY = 3\nBY = 4\nds = raw.map(lambda x: half(x))\n" + END, "reads BY, which may change"),
        ("def half(x):\n    global BY\n    BY = 4\n    return x / 2\nds = raw.map(half)\n" + END, "does more than to call"),
        ("def half(x):\n    yield x\nds = raw.map(half)\n" + END, "does more than to call"),
        ("ds = raw.map(lambda x: (x, 1.0))\n" + END, "may return something else than tensors"),
        ("ds = raw.map(lambda x, y: (x, [y, y]))\n" + END, "may return something else than tensors"),
        ("ds = raw.map(lambda x: tf.split(x, 2))\n" + END, "may return something else than tensors"),
        ("ds = raw.map(scale)\ndef show():\n    global ds\n    ds = ds.take(1)\n" + END, "makes a variable of the dataset one of other functions"),
        ("def main():\n    global ds\n    ds = raw.map(scale)\n    model = make()\n    model.fit(ds)\nmain()\n", "makes a variable of the dataset one of other functions"),
        ("ds = raw.map(scale)\nplot(**locals())\n" + END, "uses locals in a way"),
        ("from lab import *\nds = raw.map(scale)\n" + END, "imports all names"),
        ("@tf.function\ndef outer():\n    def main():\n        ds = raw.map(scale)\n        for x, y in ds:\n            step(x)\n    main()\n", "has a decorator"),
        ("async def main():\n    ds = raw.map(scale)\n    for x, y in ds:\n        step(x)\n", "is asynchronous"),
        ("ds = raw.map(lambda x: -x)\nfor x, in ds:\n    step(x)\n", "takes its elements apart"),
        ("ds = raw.map(scale)\nfor _, _ in ds:\n    step()\n", "takes its elements apart"),
        ("ds = raw.map(scale).cache('kept')\n" + END, "hold what the map made before"),
        ("class Lab:\n    def scale(self, image, label):\n        return image, label\nds = raw.map(scale)\n" + END, "is not defined once"),
    ],
)  # fmt: skip
def test_what_a_reviewer_broke_is_refused(body: str, reason: str) -> None:
    text = RAW + body
    recipe = _recipe(SCALE + text)
    kept = [replace(each, arguments={"filename": "kept"}) if each.method == "cache" else each for each in recipe.calls]
    edited = edit_sources(replace(recipe, calls=tuple(kept)), [change(IntoStep(_map(recipe)))], {PATH: SCALE + text})
    assert not edited.texts if reason else edited.texts
    assert not reason or reason in edited.refused[0].reason


def test_a_model_that_another_file_trains_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "tune.py"
    other.write_text("def tune(made):\n    made.fit(x)\n")
    text = SCALE + FIT
    recipe = replace(_recipe(text), files={PATH: "", str(other): ""})
    assert (
        "Another file of the script trains"
        in edit_sources(recipe, [change(IntoStep(2))], {PATH: text}).refused[0].reason
    )
