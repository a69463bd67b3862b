"""What changes of the datasets that ``zip`` takes."""

from dataclasses import replace

import pytest

from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import Insert, are_compatible
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.source_edits import edit_sources
from pipeline_lab.pipeline.written_changes import parse_change
from tests.support.written_recipe import PATH, written_recipe

ZIPPED = """import tensorflow as tf
images = tf.data.Dataset.range(8).map(f).shuffle(4)
labels = tf.data.Dataset.range(8).map(g, num_parallel_calls=2)
ds = tf.data.Dataset.zip((images, labels)).map(h).repeat().batch(2).take(20)
model.fit(ds)
"""


def test_what_is_zipped_runs_in_parallel_each_by_itself_in_its_order() -> None:
    recipe = written_recipe(ZIPPED, zip={"inputs": (3, 5)})
    found = [change for change in find_changes(recipe) if change.rewrite == "parallel-map"]
    assert [(change.rewrite, change.call) for change in found] == [("parallel-map", 7), ("parallel-map", 2)]
    after = edit_sources(recipe, found, {PATH: ZIPPED}).texts[PATH]
    parallel = "num_parallel_calls=tf.data.AUTOTUNE"
    assert after == ZIPPED.replace("map(f)", f"map(f, {parallel})").replace("map(h)", f"map(h, {parallel})")


def test_what_is_read_one_after_the_other_is_left_alone() -> None:
    recipe = written_recipe(ZIPPED, zip={"inputs": (3, 5), "method": "concatenate"})
    assert [change.call for change in find_changes(recipe) if change.rewrite == "parallel-map"] == [7]


def test_one_expression_that_makes_both_of_what_is_zipped_is_changed_once() -> None:
    recipe = written_recipe(ZIPPED, zip={"inputs": (3, 5)})
    place = recipe.call(2).place
    calls = [replace(call, place=place, arguments={}) if call.number == 5 else call for call in recipe.calls]
    both = Recipe(tuple(calls), recipe.uses)
    found = [change for change in find_changes(both) if change.place == place]
    assert [(change.rewrite, change.call) for change in found] == [("parallel-map", 2), ("cache", 2)]
    text = edit_sources(both, found, {PATH: ZIPPED}).texts[PATH]
    assert text == ZIPPED.replace("map(f)", "map(f, num_parallel_calls=tf.data.AUTOTUNE).cache()")


def test_each_of_what_is_zipped_is_cached_where_all_together_cannot_be() -> None:
    recipe = written_recipe(ZIPPED, zip={"inputs": (3, 5)})
    (change,) = [change for change in find_changes(recipe) if change.rewrite == "cache"]
    assert change.edits == (Insert(2, "cache"), Insert(5, "cache"))
    assert parse_change(recipe, "train.py:2 cache") == parse_change(recipe, "cache") == change
    assert parse_change(recipe, "train.py:3 cache") == change, "the other one's place means the same"
    assert are_compatible([change])
    assert before_after(recipe, change)[1].count(".cache()") == 1
    after = edit_sources(recipe, [change], {PATH: ZIPPED}).texts[PATH]
    assert after == ZIPPED.replace("map(f)", "map(f).cache()").replace("calls=2)", "calls=2).cache()")


NESTED = """a = tf.data.Dataset.range(8).map(f)
b = tf.data.Dataset.range(8).map(g)
inner = tf.data.Dataset.zip((a, b))
drawn = tf.data.Dataset.range(8).map(h)
ds = tf.data.Dataset.zip((inner, drawn))
model.fit(ds)
"""


@pytest.mark.parametrize(
    ("line", "cached"),
    [("", [5]), (".repeat()", [5]), (".cache()", []), (".take(4)", []), (".map(i)", [6])],
)
def test_what_is_zipped_within_is_cached_once(line: str, cached: list[int]) -> None:
    text = NESTED.replace("(a, b))", f"(a, b)){line}")
    made = written_recipe(text)
    zips = [call.number for call in made.calls if call.method == "zip"]
    last = zips[0] + bool(line)
    draws = {call.number: ("RandomUniform",) for call in made.calls[last + 1 :] if call.method == "map"}
    inputs = {zips[0]: (2, 4), zips[1]: (last, zips[1] - 1)}
    calls = [
        replace(call, inputs=inputs.get(call.number, call.inputs), stateful=draws.get(call.number, call.stateful))
        for call in made.calls
    ]
    found = [change for change in find_changes(Recipe(tuple(calls), made.uses)) if change.rewrite == "cache"]
    assert [edit.after for change in found for edit in change.edits if isinstance(edit, Insert)] == cached


def test_what_is_behind_another_cache_and_what_one_expression_makes_of_something_random_are_not_cached() -> None:
    recipe = written_recipe(ZIPPED, zip={"inputs": (2, 5)})
    behind = [replace(call, inputs=(2,)) if call.number == 5 else call for call in recipe.calls]
    behind = [replace(call, inputs=(3, 5)) if call.method == "zip" else call for call in behind]
    found = [each for each in find_changes(Recipe(tuple(behind), recipe.uses)) if each.rewrite == "cache"]
    assert [change.edits for change in found] == [(Insert(2, "cache"),)]
    drawing = [
        replace(call, place=recipe.call(2).place, stateful=("RandomUniform",)) if call.number == 5 else call
        for call in recipe.calls
    ]
    drawing = [replace(call, inputs=(3, 5)) if call.method == "zip" else call for call in drawing]
    assert "cache" not in [each.rewrite for each in find_changes(Recipe(tuple(drawing), recipe.uses))]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (".batch(2).take(20)", ".batch(2)"),
        (".map(h).repeat()", ".take(4).map(h).repeat()"),
        (".map(h)", ".map(h).cache()"),
    ],
)
def test_nothing_of_what_is_zipped_is_cached_where_all_is_or_a_part_is_read(was: str, becomes: str) -> None:
    is_found = "take(4)" not in becomes and "cache" not in becomes
    recipe = written_recipe(ZIPPED.replace(was, becomes), zip={"inputs": (3, 5)})
    assert ("cache" in [change.rewrite for change in find_changes(recipe)]) is is_found
