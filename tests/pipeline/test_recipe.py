"""The recipe of a script as data."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.pipeline.recipe import (
    LOOP,
    TRAINING,
    VALIDATION,
    DatasetCall,
    DatasetUse,
    PythonPart,
    Recipe,
    SourcePlace,
    UserFunction,
    read_recipe,
)

PLACE = SourcePlace("/home/train.py", 3, 5, 4, 9, 4, "make_dataset")
FUNCTION = UserFunction("make.<locals>.decode", "__main__", "/home/train.py", 7, 9)
CALLS = (
    DatasetCall(1, "range", {"args": [8]}, nodes=("RangeDataset:1000000",), place=PLACE, text="Dataset.range(8)"),
    DatasetCall(
        2, "map", {"map_func": {"function": "load"}}, (1,), python=(PythonPart("py_function", FUNCTION, PLACE),)
    ),
    DatasetCall(3, "batch", {"batch_size": 4}, (2,), is_direct=False, text="model.fit(x)"),
)
RECIPE = Recipe(
    CALLS,
    (
        DatasetUse(LOOP, 1, PLACE, "dataset", 2),
        DatasetUse(VALIDATION, 2, None, "", 1),
        DatasetUse(TRAINING, 3, PLACE, "", 1),
    ),
    {"/home/train.py": "0-train.py"},
)


def test_a_recipe_is_read_as_it_was_written(tmp_path: Path):
    path = tmp_path / "recipe.json"
    assert read_recipe(path) is None
    path.write_text(RECIPE.to_json())
    assert read_recipe(path) == RECIPE
    path.write_text(RECIPE.to_json()[:-9])
    with pytest.raises(StoreError, match="damaged"):
        read_recipe(path)


def test_what_fit_read_longest_was_trained_on_and_else_what_a_loop_read_most():
    assert RECIPE.trained == RECIPE.uses[2]
    loops = (DatasetUse(LOOP, 1, None, "", 1), DatasetUse(LOOP, 2, None, "", 5))
    assert Recipe(CALLS, loops).trained == loops[1]
    peek, loop = DatasetUse(LOOP, 1, None, "", 1, seconds=0.2), DatasetUse(LOOP, 2, None, "", 1, seconds=30)
    assert Recipe(CALLS, (peek, loop)).trained == loop
    warm_up, fine_tuning = (
        DatasetUse(TRAINING, 1, None, "", 9, seconds=4),
        DatasetUse(TRAINING, 3, None, "", 1, seconds=60),
    )
    assert Recipe(CALLS, (warm_up, fine_tuning)).trained == fine_tuning
    steps, checks = (
        DatasetUse(LOOP, 1, None, "", 1, trained_steps=90),
        DatasetUse(LOOP, 2, None, "", 9, seconds=5, trained_steps=1),
    )
    assert Recipe(CALLS, (checks, steps)).trained == steps
    assert Recipe().trained is None


def test_the_calls_upstream_come_consumer_first():
    assert [call.number for call in RECIPE.upstream(3)] == [3, 2, 1]


def test_places_and_functions_read_like_a_traceback():
    assert str(PLACE) == "train.py:4"
    assert str(FUNCTION) == "decode (train.py:7)"
    assert [call.words for call in CALLS] == ["Dataset.range(8)", ".map(…)", "model.fit(x) → batch"]
    cut = replace(CALLS[2], text='read("/data/photos", validation_split=0.1, subs…')
    assert (cut.words, cut.library_call) == ("read(…) → batch", "read(…)"), "a long call is named without its arguments"
