"""Where a cache may stand, and what has to move before it."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline_lab.pipeline.changes import Effect, Insert, Risk, are_compatible
from pipeline_lab.pipeline.recipe import DatasetCall, PythonPart, Recipe, UserFunction
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.source_edits import edit_sources
from tests.support.written_recipe import PATH, recipe_of, written_recipe

FUNCTION = UserFunction("Images.__getitem__", "__main__", PATH, 2)


def test_a_cache_stands_before_what_is_random() -> None:
    text, _ = recipe_of(".range(8).map(f).map(g).batch(2)")
    recipe = written_recipe(text)
    calls = [each if each.number != 3 else _random(each) for each in recipe.calls]
    recipe = Recipe(tuple(calls), recipe.uses)
    assert [change.edits for change in find_changes(recipe) if change.rewrite == "cache"] == [(Insert(2, "cache"),)]


def _random(call: DatasetCall) -> DatasetCall:
    from dataclasses import replace

    return replace(call, stateful=("RandomUniform",))


def test_work_after_a_shuffle_that_cannot_move_before_it_is_cached_in_the_order_of_the_first_epoch() -> None:
    text, recipe = recipe_of(".range(8).shuffle(4).batch(2).map(f)")
    (change,) = [change for change in find_changes(recipe) if change.rewrite.startswith("cache")]
    assert change.rewrite == "cache-shuffled"
    assert change.effect is Effect.ORDER
    assert "the order and the batches of the first one" in change.also[1]
    after = edit_sources(recipe, [change], {PATH: text}).texts[PATH]
    assert after == text.replace(".map(f)", ".map(f).cache()")


@pytest.mark.parametrize(
    ("calls", "after"),
    [
        (".range(8).shuffle(4).interleave(f).shuffle(2).map(g).batch(2)", ".interleave(f)"),
        (".list_files(p).interleave(f).shuffle(4).batch(2)", ".interleave(f)"),
    ],
)
def test_a_cache_stands_before_a_shuffle_that_goes_on_mixing(calls: str, after: str) -> None:
    text, recipe = recipe_of(calls)
    (change,) = [change for change in find_changes(recipe) if change.rewrite == "cache-shuffled"]
    assert edit_sources(recipe, [change], {PATH: text}).texts[PATH] == text.replace(after, f"{after}.cache()")


@pytest.mark.parametrize(
    ("calls", "count", "cached_after"), [(".repeat().take(20)", None, [2]), (".repeat().take(4)", 1, [])]
)
def test_what_takes_a_part_of_many_epochs_leaves_a_cache_full(
    calls: str, count: int | None, cached_after: list[int]
) -> None:
    _, recipe = recipe_of(f".range(8).map(f){calls}", repeat={"arguments": {"count": count}})
    assert [change.call for change in find_changes(recipe) if change.rewrite == "cache"] == cached_after


INSIDE = {"is_direct": False, "text": "image_dataset_from_directory(…)"}


@pytest.mark.parametrize("after", ["", ".map(augment)"])
def test_what_a_library_made_is_cached_where_the_script_takes_it(after: str) -> None:
    text, recipe = recipe_of(f".range(8).filter(f).shuffle(4).batch(2){after}")
    inside = [
        replace(call, **INSIDE) if call.method != "map" else replace(call, stateful=("RandomUniform",))
        for call in recipe.calls
    ]
    recipe = replace(recipe, calls=tuple(inside))
    change = next(change for change in find_changes(recipe) if change.rewrite == "cache-shuffled")
    assert change.effect is Effect.ORDER
    assert "image_dataset_from_directory(…)" in change.words
    edited = edit_sources(recipe, [change], {PATH: text})
    assert edited.texts[PATH] == (
        text.replace(after, f".cache(){after}") if after else text.replace("fit(ds)", "fit(ds.cache())")
    )
    assert not [each for each in find_changes(recipe) if each.rewrite == "cache"]


@pytest.mark.parametrize(
    ("known", "keys"),
    [
        ({}, {"cache-shuffled"}),
        ({"stateful": ("RandomUniform",)}, set()),
        ({"method": "GeneratorDataset"}, set()),
        ({"is_direct": True}, set()),
    ],
    ids=["pure", "random", "of another kind", "the script's own"],
)
def test_what_a_library_made_without_a_method_is_cached_where_its_functions_are_pure(
    known: dict[str, Any], keys: set[str]
) -> None:
    """As ``make_csv_dataset`` does: of its map and interleave only the classes are known."""
    _, recipe = recipe_of(".range(8).map(f).shuffle(4).batch(2).map(g)")
    source, mapped, *between, last = recipe.calls
    unnamed = replace(mapped, **(INSIDE | {"method": "MapDataset", "is_understood": False, "arguments": {}} | known))
    inside = [replace(call, **INSIDE) for call in (source, *between)]
    recipe = replace(recipe, calls=(inside[0], unnamed, *inside[1:], last))
    assert {each.rewrite for each in find_changes(recipe) if each.rewrite.startswith("cache")} == keys


@pytest.mark.parametrize(("passes", "keys"), [(1, set()), (3, {"cache-python"})])
def test_what_python_makes_is_cached_at_ones_own_risk_once_it_was_seen_to_end(passes: int, keys: set[str]) -> None:
    text, recipe = recipe_of(".from_generator(g).shuffle(8).batch(2)", from_generator={"stateful": ("PyFunc",)})
    recipe = replace(recipe, uses=(replace(recipe.uses[0], iterators=passes),))
    found = [change for change in find_changes(recipe) if "cache" in change.rewrite]
    assert {change.rewrite for change in found} == keys
    assert all(change.risk is Risk.HIGH and change.also for change in found)
    if found:
        after = edit_sources(recipe, found, {PATH: text}).texts[PATH]
        assert after == text.replace(".shuffle", ".cache().shuffle")


def test_what_python_makes_after_a_shuffle_is_cached_before_it_at_ones_own_risk() -> None:
    python = (PythonPart("py_function", FUNCTION),)
    text, recipe = recipe_of(
        ".range(8).shuffle(8).map(f).batch(2)", map={"stateful": ("EagerPyFunc",), "python": python}
    )
    (found,) = [change for change in find_changes(recipe) if "cache" in change.rewrite]
    assert (found.rewrite, found.risk) == ("cache-python", Risk.HIGH)
    assert "before the shuffle, and cache what it makes in memory." in found.words
    assert edit_sources(recipe, [found], {PATH: text}).texts[PATH] == text.replace(
        ".shuffle(8).map(f)", ".map(f).cache().shuffle(8)"
    )
    drawing = {"stateful": ("EagerPyFunc", "RandomUniform"), "python": python}
    _, recipe = recipe_of(".range(8).shuffle(8).map(f).batch(2)", map=drawing)
    assert "cache-python" not in {change.rewrite for change in find_changes(recipe)}


def test_what_keras_makes_inside_of_fit_is_not_cached_for_the_user_never_holds_it() -> None:
    _, recipe = recipe_of(".from_generator(g)", from_generator={"stateful": ("PyFunc",), "is_direct": False})
    (use,) = recipe.uses
    twice = replace(use, iterators=2)
    outside = replace(recipe, uses=(twice,))
    assert "cache-python" in {each.rewrite for each in find_changes(outside)}
    inside = replace(outside, calls=tuple(replace(call, place=use.place) for call in recipe.calls))
    assert "cache-python" not in {each.rewrite for each in find_changes(inside)}


def test_a_cache_before_a_shuffle_and_one_that_also_keeps_the_map_after_it_are_rivals() -> None:
    found = find_changes(recipe_of(".range(8).map(f).shuffle(4).map(g)")[1])
    caches = [change for change in found if change.rewrite in ("cache", "cache-before-shuffle")]
    assert {change.rewrite for change in caches} == {"cache", "cache-before-shuffle"}
    assert not are_compatible(caches)


@pytest.mark.parametrize(
    ("arguments", "is_kept"),
    [({"seed": 4}, True), ({}, False), ({"seed": 4, "rerandomize_each_iteration": True}, False)],
)
def test_samples_of_several_datasets_are_cached_where_each_pass_draws_the_same(
    arguments: dict[str, Any], is_kept: bool
) -> None:
    first, mapped, mixed = recipe_of(".range(8).map(f).filter(p)")[1].calls
    mixed = replace(mixed, method="sample_from_datasets", arguments=arguments)
    recipe = Recipe((first, mapped, mixed), recipe_of(".range(8).map(f).filter(p)")[1].uses)
    assert [change.call for change in find_changes(recipe) if change.rewrite == "cache"] == [3 if is_kept else 2]


@pytest.mark.parametrize(
    ("calls", "becomes", "words"),
    [
        (".shuffle(4).repeat().map(f)", ".map(f).cache().shuffle(4).repeat()", "the shuffle and the repeat"),
        (".repeat().shuffle(4).map(f)", ".map(f).cache().repeat().shuffle(4)", "the repeat and the shuffle"),
        (".repeat().map(f).batch(2)", ".map(f).cache().repeat().batch(2)", "the repeat"),
        (
            ".shuffle(4).repeat().map(f).take(9)",
            ".map(f).cache().shuffle(4).repeat().take(9)",
            "the shuffle and the repeat",
        ),
        (".take(3).shuffle(4).map(f)", "", ""),
        (".shuffle(4).map(f).take(3)", "", ""),
        (".shuffle(4).cache().repeat().map(f)", "", ""),
    ],
)
def test_a_map_moves_before_all_that_hands_elements_on(calls: str, becomes: str, words: str) -> None:
    text, recipe = recipe_of(f".range(8){calls}")
    found = [change for change in find_changes(recipe) if change.rewrite == "cache-before-shuffle"]
    assert len(found) == bool(becomes)
    if found:
        assert f"before {words}, and cache" in found[0].words
        assert edit_sources(recipe, found, {PATH: text}).texts[PATH] == text.replace(calls, becomes)


@pytest.mark.parametrize(
    ("known", "is_found"),
    [({}, True), ({"stateful": ("RandomUniform",)}, False), ({"inputs": (4,)}, False)],
)
def test_a_map_moves_before_a_shuffle_only_where_every_dataset_of_its_line_stays_the_same(
    known: dict[str, Any], *, is_found: bool
) -> None:
    _, recipe = recipe_of(".range(8).shuffle(4).map(f)")
    source, shuffled, mapped = recipe.calls
    repeated = replace(shuffled, number=4, method="repeat", inputs=(source.number,))
    other = replace(mapped, **{"number": 9, "inputs": (source.number,), **known})
    several = replace(recipe, calls=(source, shuffled, mapped, repeated, other))
    assert ("cache-before-shuffle" in [each.rewrite for each in find_changes(several)]) is is_found
