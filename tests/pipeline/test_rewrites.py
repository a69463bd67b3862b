"""The registry of rewrites: each says all that is asked, applies where it should and can be written."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.pipeline.change_words import BY_THE_BATCH, IN_BATCHES, before_after
from pipeline_lab.pipeline.changes import Effect, Insert, MoveBefore, Risk, SetArgument, SetTraining, are_compatible
from pipeline_lab.pipeline.recipe import DatasetCall, DatasetUse, PythonPart, Recipe, UserFunction
from pipeline_lab.pipeline.rewrites import (
    REWRITES,
    find_changes,
    find_earlier_caches,
    refuse_one_iterator,
)
from pipeline_lab.pipeline.source_edits import edit_sources
from pipeline_lab.pipeline.written_changes import parse_change
from tests.support.written_recipe import PATH, recipe_of

FUNCTION = UserFunction("Images.__getitem__", "__main__", PATH, 2)
READS = PythonPart("numpy_function", UserFunction("read", "__main__", PATH, 2))
CASES: dict[str, tuple[str, str]] = {
    "prefetch": (".range(8).batch(2)", ".range(8).batch(2).prefetch(tf.data.AUTOTUNE)"),
    "parallel-map": (".range(8).map(f)", ".range(8).map(f, num_parallel_calls=tf.data.AUTOTUNE)"),
    "parallel-interleave": (
        ".list_files(p).interleave(g, cycle_length=4)",
        ".list_files(p).interleave(g, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "batch-first": (".range(8).map(f).batch(2)", ".range(8).batch(2).map(f)"),
    "cache": (".range(8).map(f).shuffle(4)", ".range(8).map(f).cache().shuffle(4)"),
    "disk-cache": (".range(8).map(f).repeat()", '.range(8).map(f).cache("pipeline-cache").repeat()'),
    "snapshot": (".range(8).map(f).repeat()", '.range(8).map(f).snapshot("pipeline-snapshot").repeat()'),
    "cache-before-shuffle": (".range(8).shuffle(4).map(f).batch(2)", ".range(8).map(f).cache().shuffle(4).batch(2)"),
    "cache-shuffled": (".list_files(p).map(f).batch(2)", ".list_files(p).map(f).batch(2).cache()"),
    "cache-slip": (".range(8).map(f).repeat().cache()", ".range(8).map(f).cache().repeat()"),
    "shuffle-first": (".range(8).map(f).shuffle(4)", ".range(8).shuffle(4).map(f)"),
    "steps-per-execution": ('.range(8)\nmodel.compile("adam")', '.range(8)\nmodel.compile("adam", steps_per_execution=8)'),
    "interleave": (".list_files(p).flat_map(g)", ".list_files(p).interleave(g, num_parallel_calls=tf.data.AUTOTUNE)"),
    "any-order": (".range(8).map(f, num_parallel_calls=2)", ".range(8).map(f, num_parallel_calls=2, deterministic=False)"),
    "shuffle-examples": (".range(8).batch(2).shuffle(4)", ".range(8).shuffle(4).batch(2)"),
}  # fmt: skip
"""Where each applies, and what becomes of it."""


@pytest.mark.parametrize("key", REWRITES)
def test_each_says_all_that_is_asked_of_it(key: str) -> None:
    rewrite = REWRITES[key]
    assert rewrite.key == key == key.lower().replace(" ", "-")
    assert rewrite.title[0].isupper()
    assert rewrite.why.endswith(".")
    assert rewrite.effect is not Effect.CONTENT, "what alters the content is never offered"
    assert rewrite.effect is Effect.NOTHING or rewrite.risk is not Risk.LOW
    others = {
        "workers",
        "one-iterator",
        "autotuner-off",
        "cache-python",
        "pool",
        "parallel-draws",
        "parallel-python",
        "generator-batches",
        "split-cache",
        "batch-stacked",
        "into-step",
    }
    assert key in {*CASES, *others}, "a case shows where it applies"


@pytest.mark.parametrize("key", CASES)
def test_each_applies_and_is_written_as_one_would(key: str) -> None:
    before, becomes = CASES[key]
    text, recipe = recipe_of(before)
    found = [change for change in find_changes(recipe) if change.rewrite == key]
    assert len(found) == 1
    assert found[0].words.endswith(".")
    assert found[0].place is not None
    edited = edit_sources(recipe, found, {PATH: text})
    assert not edited.refused
    assert edited.texts[PATH] == text.replace(before, becomes)
    assert parse_change(recipe, found[0].request) == found[0]


@pytest.mark.parametrize(
    ("key", "calls", "known"),
    [
        ("prefetch", ".range(8).batch(2).prefetch(1)", {}),
        ("prefetch", ".range(8).batch(2).prefetch(1).with_options(o)", {}),
        ("parallel-map", ".range(8).map(f, num_parallel_calls=1)", {}),
        ("parallel-map", ".range(8).map(f)", {"map": {"stateful": ("AssignAddVariableOp",)}}),
        ("parallel-map", ".range(8).map(f)", {"map": {"stateful": ("RandomUniform (seeded)",)}}),
        ("batch-first", ".range(8).map(f).batch(2)", {"map": {"stateful": ("RandomUniform",)}}),
        ("parallel-interleave", ".list_files(p).interleave(g)", {}),
        ("interleave", ".range(8).window(4).flat_map(g)", {}),
        ("shuffle-first", ".range(8).map(f).shuffle(4)", {"shuffle": {"inputs": (1,)}}),
        ("batch-first", ".range(8).map(f).shuffle(2).batch(2)", {}),
        ("cache", ".range(8).batch(2)", {}),
        ("cache", ".range(8).map(f).cache()", {}),
        ("cache", ".range(8).map(f).take(4)", {}),
        ("cache", ".range(8).map(f).batch(2)", {"map": {"stateful": ("RandomUniform",)}}),
        ("cache", ".from_generator(g).map(f)", {}),
        ("cache", ".range(8).shuffle(4).map(f)", {}),
        ("cache-slip", ".range(8).map(f).repeat().cache()", {"map": {"stateful": ("RandomUniform",)}}),
        ("cache-slip", ".range(8).repeat(2).cache()", {"repeat": {"arguments": {"count": 2}}}),
        ("shuffle-first", ".range(8).map(f).shuffle(4)", {"map": {"stateful": ("RandomUniform",)}}),
        ("any-order", ".range(8).map(f)", {}),
        ("cache-before-shuffle", ".range(8).shuffle(4).map(f)", {"map": {"stateful": ("RandomUniform",)}}),
        ("cache-before-shuffle", ".range(8).shuffle(4).map(f)", {"map": {"python": (READS,)}}),
        ("cache-before-shuffle", ".range(8).shuffle(4).map(f).take(2)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).map(f).batch(2)", {}),
        ("cache-shuffled", ".range(8).map(f).shuffle(4).batch(2).map(g)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).batch(2)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).repeat().batch(2).map(f)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).take(4).batch(2).map(f)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).skip(2).batch(2).map(f)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).batch(3, drop_remainder=True).map(f)", {"batch": {"arguments": {"drop_remainder": True}}}),
        ("cache-shuffled", ".list_files(p).shuffle(4).batch(2).map(f)", {}),
        ("cache-shuffled", ".range(8).shuffle(4).batch(2).map(f)", {"map": {"stateful": ("RandomUniform",)}}),
        ("cache-before-shuffle", ".from_generator(g).shuffle(4).map(f)", {}),
        ("snapshot", ".range(8).map(f).snapshot(p)", {"map": {"stateful": ("RandomUniform",)}}),
        ("into-step", ".range(8).map(f).batch(2)", {"map": {"stateful": ("RandomUniform",)}}),
        ("into-step", ".range(8).map(f).batch(2)", {"map": {"python": (READS,)}}),
        ("into-step", ".range(8).map(f).filter(g).batch(2)", {}),
        ("into-step", ".range(8).map(f).padded_batch(2)", {}),
        ("into-step", ".range(8).batch(2)", {}),
        ("pool", ".range(8).map(f, num_parallel_calls=1)", {}),
        ("pool", ".range(8).map(f)", {}),
        ("parallel-python", ".range(8).map(f)", {}),
        ("parallel-python", ".range(8).map(f, num_parallel_calls=2)", {"map": {"python": (READS,)}}),
        ("parallel-python", ".range(8).map(f)", {"map": {"python": (READS,), "stateful": ("EagerPyFunc", "RandomUniform")}}),
    ],
)  # fmt: skip
def test_each_leaves_alone_what_it_would_harm_or_not_help(key: str, calls: str, known: dict[str, Any]) -> None:
    _, recipe = recipe_of(calls, **known)
    assert [change for change in find_changes(recipe) if change.rewrite == key] == []


def test_threads_are_offered_for_a_py_dataset() -> None:
    call = DatasetCall(1, "from_generator", python=(PythonPart("PyDataset", FUNCTION),), is_direct=False)
    recipe = Recipe((call,), (DatasetUse("training", 1, None, "", 1),))
    assert (SetTraining("workers", 4),) in [change.edits for change in find_changes(recipe)]
    assert find_changes(Recipe()) == ()


def test_threads_are_offered_for_a_sequence_of_keras_2_that_has_none() -> None:
    call = DatasetCall(1, "from_generator", python=(PythonPart("Sequence", FUNCTION),), is_direct=False)
    ahead = DatasetCall(2, "prefetch", {"buffer_size": 1}, (1,), is_direct=False)
    use = DatasetUse("training", 2, None, "", 1)
    workers = (SetTraining("workers", 4),)
    assert workers in [change.edits for change in find_changes(Recipe((call, ahead), (use,)))]
    automatic = replace(ahead, arguments={"buffer_size": -1})  # as Keras 2 calls it after its workers
    assert workers not in [change.edits for change in find_changes(Recipe((call, automatic), (use,)))]


@pytest.mark.parametrize(
    ("calls", "known", "iterators", "applies"),
    [
        (".range(8).shuffle(4).batch(2)", {}, 2, True),
        (".range(8).batch(2)", {}, 1, False),  # one epoch was seen, and what a second one costs is not known
        (".range(8).repeat()", {}, 2, False),
        (".range(8).map(f)", {"map": {"stateful": ("RandomUniform",)}}, 2, True),
        (".range(8).map(f)", {"map": {"stateful": ("RandomUniform (seeded)",)}}, 2, False),  # epochs draw the same now
        (".range(8).map(f)", {"map": {"stateful": ("ReadVariableOp",)}}, 2, False),  # which may be set between epochs
        (".range(8)", {"range": {"is_direct": False}}, 2, True),  # a library's function returns it
    ],
)
def test_one_iterator_serves_all_epochs_of_a_dataset_that_ends(
    calls: str, known: dict[str, Any], iterators: int, applies: bool
) -> None:
    text, recipe = recipe_of(calls, **known, fit="fit(ds, epochs=2)")
    length = None if "repeat" in calls else 8
    recipe = replace(recipe, uses=(replace(recipe.uses[0], iterators=iterators, length=length),))
    found = [change for change in find_changes(recipe) if change.rewrite == "one-iterator"]
    assert bool(found) == applies
    if found:
        after = edit_sources(recipe, found, {PATH: text}).texts[PATH]
        assert after == text.replace("fit(ds", "fit(ds.repeat()").replace(
            "epochs=2", "epochs=2, steps_per_epoch=len(ds)"
        )
        assert parse_change(recipe, "one-iterator") == found[0]
        assert before_after(recipe, found[0]) == ("", "fit(DATASET.repeat(), steps_per_epoch=len(DATASET))")


@pytest.mark.parametrize(
    ("other", "applies"),
    [
        ({"call": 1}, False),
        ({"call": 1, "place": None}, True),
        ({"call": 1, "role": "validation"}, True),  # whose iterators Keras makes as before
        ({"call": 4, "role": "validation"}, False),  # of what is shuffled for the training, too
        ({"role": "validation"}, False),  # the same data
        ({"call": 5, "role": "validation"}, False),  # whose Python may share a state with the training's
    ],
)
def test_beside_the_data_of_one_iterator_a_line_reads_validation_data_alone(
    other: dict[str, Any], applies: bool
) -> None:
    python = (PythonPart("numpy_function", FUNCTION),)
    _, recipe = recipe_of(".range(8).shuffle(8).batch(2)", batch={"python": python})
    held_out = (DatasetCall(4, "take", {"count": 2}, (2,)), DatasetCall(5, "map", {}, (1,), python=python))
    use = replace(recipe.uses[0], iterators=2, length=4)
    recipe = replace(recipe, calls=(*recipe.calls, *held_out), uses=(use, replace(use, **other)))
    assert ("one-iterator" in {change.rewrite for change in find_changes(recipe, use)}) == applies


def test_one_iterator_serves_what_fit_weights_but_nothing_that_the_user_does_not_hold() -> None:
    text, recipe = recipe_of(".range(8).batch(2)", fit="fit(ds, epochs=2, class_weight={0: 1.0, 1: 2.0})")
    use, added = recipe.uses[0], DatasetCall(3, "map", inputs=(2,), place=recipe.uses[0].place, is_direct=False)
    use = replace(use, call=3, iterators=2, length=4)
    weighted = replace(recipe, calls=(*recipe.calls, added), uses=(use,))
    (change,) = (change for change in find_changes(weighted, use) if change.rewrite == "one-iterator")
    after = edit_sources(weighted, [change], {PATH: text}).texts[PATH]
    assert "fit(ds.repeat(), epochs=2, class_weight={0: 1.0, 1: 2.0}, steps_per_epoch=len(ds))" in after
    for other in (replace(added, method="batch"), replace(added, inputs=())):
        unheld = replace(weighted, calls=(*recipe.calls, other))
        assert "one-iterator" not in {change.rewrite for change in find_changes(unheld, use)}


def test_without_one_iterator_for_all_epochs_the_autotuner_that_their_ends_wait_for_can_be_turned_off() -> None:
    text, recipe = recipe_of(".range(8).map(f)", map={"stateful": ("RandomUniform (seeded)",)}, fit="fit(ds, epochs=2)")
    several = replace(recipe, uses=(replace(recipe.uses[0], iterators=2, length=8),))
    (change,) = (change for change in find_changes(several) if change.rewrite == "autotuner-off")
    assert "autotuner-off" not in {each.rewrite for each in find_changes(recipe)}, "there is one only"
    unseeded = replace(recipe_of(".range(8).map(f)")[1], uses=several.uses)
    rivals = [each for each in find_changes(unseeded) if each.rewrite in ("one-iterator", "autotuner-off")]
    assert len(rivals) == 2
    assert not are_compatible(rivals), "one iterator has no ends"
    options = "data_options = tf.data.Options()\ndata_options.autotune.enabled = False\n"
    after = edit_sources(several, [change], {PATH: text}).texts[PATH]
    assert after == text.replace("ds =", f"{options}ds =").replace(".map(f)", ".map(f).with_options(data_options)")
    assert parse_change(several, change.request) == change
    assert before_after(several, change) == ("", "options.autotune.enabled = False")


POOL = "pool_options = tf.data.Options()\npool_options.threading.private_threadpool_size = {}\n"


def test_a_pool_gets_as_many_threads_as_calls_run_at_once() -> None:
    text, recipe = recipe_of(
        ".range(8).map(f, num_parallel_calls=8).batch(2)", map={"arguments": {"num_parallel_calls": 8}}
    )
    (change,) = [change for change in find_changes(recipe) if change.rewrite == "pool"]
    assert edit_sources(recipe, [change], {PATH: text}).texts[PATH] == (
        text.replace("ds =", f"{POOL.format(8)}ds =").replace(".batch(2)", ".batch(2).with_options(pool_options)")
    )
    assert parse_change(recipe, change.request) == change
    handed_on = DatasetCall(4, "experimental_distribute_dataset", {}, (3,), is_direct=False)
    distributed = replace(recipe, calls=(*recipe.calls, handed_on), uses=(replace(recipe.uses[0], call=4),))
    assert [each.edits for each in find_changes(distributed) if each.rewrite == "pool"] == [change.edits]
    own = replace(recipe, uses=(replace(recipe.uses[0], pool_threads=2),))
    assert not [change for change in find_changes(own) if change.rewrite == "pool"], "the script has chosen"
    with pytest.raises(OptionsError, match="1 or more"):
        parse_change(recipe, "private_threadpool_size=0")


def test_python_that_waits_is_called_several_times_at_once_in_as_many_threads() -> None:
    text, recipe = recipe_of(".range(8).map(f).batch(2)", map={"python": (READS,), "stateful": ("EagerPyFunc",)})
    (change,) = [change for change in find_changes(recipe) if change.rewrite == "parallel-python"]
    assert edit_sources(recipe, [change], {PATH: text}).texts[PATH] == (
        text.replace("ds =", f"{POOL.format(16)}ds =")
        .replace("map(f)", "map(f, num_parallel_calls=16)")
        .replace(".batch(2)", ".batch(2).with_options(pool_options)")
    )
    assert parse_change(recipe, change.request) == change


SMALL = {"array": [2], "dtype": "float32"}


@pytest.mark.parametrize("signature", [SMALL, [SMALL, {"array": [], "dtype": "string"}], {"a": SMALL, "b": SMALL}])
def test_a_generator_hands_small_elements_of_one_shape_over_by_the_batch(signature: Any) -> None:
    text, recipe = recipe_of(
        ".from_generator(g, output_signature=s).batch(2)", from_generator={"arguments": {"output_signature": signature}}
    )
    (change,) = [change for change in find_changes(recipe) if change.rewrite == "generator-batches"]
    helper = BY_THE_BATCH.format(name=IN_BATCHES, size=64, tf="tf")
    after = edit_sources(recipe, [change], {PATH: text}).texts[PATH]
    assert after == text.replace("ds = tf.data.Dataset.from_generator", f"{helper}ds = {IN_BATCHES}")
    assert before_after(recipe, change) == (".from_generator(…)", f"{IN_BATCHES}(…)")
    assert parse_change(recipe, change.request) == change


@pytest.mark.parametrize(
    "signature",
    [
        None,
        {"array": [None], "dtype": "float32"},
        {"array": None, "dtype": "float32"},
        {"array": [128, 128], "dtype": "float32"},
        [SMALL, [SMALL]],
        {"a": {"b": SMALL}},
        {"object": "tensorflow.Dataset"},
    ],
)
def test_a_generator_of_large_or_unlike_elements_hands_them_over_as_before(signature: Any) -> None:
    _, recipe = recipe_of(".from_generator(g)", from_generator={"arguments": {"output_signature": signature}})
    assert "generator-batches" not in [change.rewrite for change in find_changes(recipe)]


@pytest.fixture(name="script")
def _script() -> Recipe:
    return recipe_of("\\\n.range(8)\\\n.map(f)\\\n.batch(2)\\\n.map(g)")[1]


def test_calls_on_one_line_are_told_apart_by_their_numbers() -> None:
    text, recipe = recipe_of(".range(8).map(f).map(g).batch(2).cache().map(h)")
    found = [change for change in find_changes(recipe) if change.rewrite == "parallel-map"]
    assert [change.request for change in found] == [
        "train.py:2#2 parallel-map",
        "train.py:2#3 parallel-map",
        "train.py:2#6 parallel-map",
    ]
    assert [parse_change(recipe, change.request) for change in found] == found
    edited = edit_sources(recipe, [parse_change(recipe, "train.py:2#3 num_parallel_calls=4")], {PATH: text})
    assert edited.texts[PATH] == text.replace("map(g)", "map(g, num_parallel_calls=4)")
    for asked in ("train.py:2 parallel-map", "train.py:2 num_parallel_calls=4"):
        with pytest.raises(OptionsError, match=r"train.py:2#2 \(.map\(…\)\), train.py:2#3 .*; put one of these"):
            parse_change(recipe, asked)
    with pytest.raises(OptionsError, match=r"no dataset is made at train\.py:2#9"):
        parse_change(recipe, "train.py:2#9 cache")
    (batched,) = [change for change in find_changes(recipe) if change.rewrite == "prefetch"]
    assert batched.request == "train.py:2 prefetch", "its line tells which is meant"


def test_an_earlier_cache_on_the_same_line_is_asked_for_by_its_call() -> None:
    _, recipe = recipe_of(".range(8).map(f).map(g).batch(2)")
    for cache in (earlier := find_earlier_caches(recipe, recipe.trained)):
        assert parse_change(recipe, cache.request) == cache
    assert earlier


def test_an_earlier_cache_on_a_line_of_several_calls_needs_no_number_where_only_one_may_stand_there() -> None:
    _, recipe = recipe_of(".range(8).map(f)\\\n    .batch(2)")
    (primary,) = [change for change in find_changes(recipe) if change.rewrite == "cache"]
    (earlier,) = find_earlier_caches(recipe, recipe.trained)
    assert (primary.request, earlier.request) == ("train.py:3 cache", "train.py:2 cache")
    assert parse_change(recipe, earlier.request) == earlier


def test_changes_are_read_as_they_are_typed(script: Recipe) -> None:
    assert parse_change(script, "train.py:4 num_parallel_calls=8").edits == (SetArgument(2, "num_parallel_calls", 8),)
    assert parse_change(script, "train.py:4 num_parallel_calls=autotune").edits[0].value == -1
    assert parse_change(script, "train.py:4 parallel-map").edits == (SetArgument(2, "num_parallel_calls", -1),)
    assert parse_change(script, "prefetch").edits == (Insert(4, "prefetch", {"buffer_size": -1}),)
    assert parse_change(script, "batch-first").edits == (MoveBefore(3, 2),)
    assert parse_change(script, "steps_per_execution=4").edits == (SetTraining("steps_per_execution", 4),)


@pytest.mark.parametrize(
    ("stateful", "applies"),
    [
        (("RandomUniform (seeded)",), True),
        (("RandomUniform",), False),
        (("RandomUniform (seeded)", "AssignAddVariableOp"), False),
    ],
)
def test_a_map_that_draws_from_a_seed_runs_in_parallel_by_a_change_of_its_own(
    stateful: tuple[str, ...], applies: bool
) -> None:
    text, recipe = recipe_of(".range(8).map(f)", map={"stateful": stateful})
    found = [change for change in find_changes(recipe) if change.rewrite == "parallel-draws"]
    assert len(found) == applies
    for change in found:
        assert "though a seed is set" in change.words
        assert parse_change(recipe, change.request) == change
        edited = edit_sources(recipe, found, {PATH: text}).texts[PATH]
        assert ".map(f, num_parallel_calls=tf.data.AUTOTUNE)" in edited


@pytest.mark.parametrize(
    ("stateful", "use", "reason"),
    [
        ((), {}, None),
        ((), {"iterators": 1}, None),
        ((), {"length": None}, "how many batches"),
        (("RandomUniform",), {}, None),
        (("RandomUniform (seeded)",), {}, "A seed is set"),
        (("AssignAddVariableOp",), {}, "keep a state"),
    ],
)
def test_one_iterator_for_all_epochs_is_refused_with_the_reason(
    stateful: tuple[str, ...], use: dict[str, Any], reason: str | None
) -> None:
    recipe = recipe_of(".range(8).map(f)", map={"stateful": stateful})[1]
    trained = replace(recipe.uses[0], **({"iterators": 3, "length": 4} | use))
    recipe = replace(recipe, uses=(trained,))
    refused = refuse_one_iterator(recipe, trained)
    assert (refused is None) == (reason is None)
    applies = "one-iterator" in [change.rewrite for change in find_changes(recipe)]
    assert applies == (reason is None and trained.iterators > 1)
    if refused is not None and reason is not None:
        assert reason in refused[1]
        with pytest.raises(OptionsError, match=reason):
            parse_change(recipe, "one-iterator")


def test_what_is_set_can_be_asked_for_again(script: Recipe) -> None:
    for text in ("train.py:4 num_parallel_calls=8", "steps_per_execution=4"):
        assert parse_change(script, text).request == text


def test_a_request_says_what_it_does_to_the_examples(script: Recipe) -> None:
    assert parse_change(script, "train.py:4 deterministic=false").effect is Effect.ORDER
    assert parse_change(script, "train.py:5 batch_size=64").effect is Effect.CONTENT
    random = recipe_of(".range(8).map(f)", map={"stateful": ("RandomUniform",)})[1]
    assert parse_change(random, "train.py:2 parallel-map").effect is Effect.NOTHING
    twice = [call for call in random.calls if call.method == "map"]
    assert twice


def test_a_cache_may_stand_at_each_place_that_is_the_same_in_every_epoch(script: Recipe) -> None:
    assert parse_change(script, "cache").edits == (Insert(4, "cache"),)
    assert [change.call for change in find_earlier_caches(script, script.trained)] == [3, 2]
    earlier = parse_change(script, "train.py:4 cache")
    assert earlier.edits == (Insert(2, "cache"),)
    assert earlier.effect is Effect.NOTHING
    assert parse_change(script, "train.py:3 cache").effect is Effect.CONTENT, "nothing before it is worth keeping"
    assert find_earlier_caches(Recipe(), None) == ()


def test_python_may_see_whole_batches_if_the_proof_allows_it() -> None:
    _, recipe = recipe_of(".range(8).map(f).batch(2)", map={"python": (READS,), "stateful": ("EagerPyFunc",)})
    assert "batch-first" in [change.rewrite for change in find_changes(recipe)]


def test_another_size_of_a_shuffle_buffer_changes_the_order_alone() -> None:
    recipe = recipe_of(".range(8).shuffle(4)")[1]
    assert parse_change(recipe, "train.py:2 buffer_size=8").effect is Effect.ORDER


def test_files_at_a_time_that_tensorflow_chooses_change_with_parallel_calls() -> None:
    recipe = recipe_of(".list_files(p).interleave(g)")[1]
    assert parse_change(recipe, "train.py:2 num_parallel_calls=4").effect is Effect.ORDER
    fixed = recipe_of(".list_files(p).interleave(g, cycle_length=4)")[1]
    assert parse_change(fixed, "train.py:2 num_parallel_calls=4").effect is Effect.NOTHING


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prefetsch", "Did you mean prefetch"),
        ("parallel-map", "train.py:4, train.py:6"),
        ("train.py:99 cache", "train.py:3"),
        ("train.py num_parallel_calls=8", "FILE:LINE"),
        ("num_parallel_calls=8", "put a place before it"),
        ("train.py:5 cycle_length=8", "batch_size"),
        ("train.py:4 num_parallel_calls=", "value"),
        ("cache-slip", "nowhere"),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_with_what_can(script: Recipe, text: str, said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        parse_change(script, text)
