"""Pipelines that are easily changed for the worse: what is proposed for them is proved, everything else is left alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.errors import OptionsError, RunFailedError
from pipeline_lab.pipeline.recipe import LOOP
from pipeline_lab.pipeline.samples import ProofOutcome, ReadingPlace
from pipeline_lab.tuning.script.proof import Prover
from pipeline_lab.tuning.script.sample_process import Script
from tests.worker.recipe.fixed_scripts import FixScript, fixing_in, left, proposed, read_in_warm_process
from tests.worker.recipe.trap_scripts import SCRIPTS

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _warm_prover(ask_tensorflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_warm_process(ask_tensorflow, monkeypatch)


@pytest.fixture(name="fix")
def _fix(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> FixScript:
    return fixing_in(tmp_path, ask_tensorflow)


def test_a_random_crop_is_never_cached_unasked_and_the_proof_tells_what_a_cache_would_do(fix: FixScript) -> None:
    found = fix("crop")
    assert proposed(found) == ["prefetch", "parallel-map", "cache", "parallel-map"], left(found)
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.REDRAWN
    assert ".map(lambda number: number * 3, num_parallel_calls=tf.data.AUTOTUNE).cache()" in found.diff()
    asked = fix("crop", "train.py:9 cache")
    assert asked.proof is not None
    assert asked.proof.outcome is ProofOutcome.DIFFERENT
    assert (
        asked.proof.sentence == "Pass 2 repeats the elements of the first one, where the script as it is gives others."
    )


def test_what_a_function_does_before_it_draws_is_cached_and_the_crop_stays_another_one(fix: FixScript) -> None:
    found = fix("read-and-crop")
    assert proposed(found) == ["prefetch", "split-cache", "parallel-map"], left(found)
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.REDRAWN
    diff = found.diff()
    assert "+    return number, row\n+\n+\n+def load_drawn(number, row):\n     start = tf.random.uniform" in diff
    parallel = "num_parallel_calls=tf.data.AUTOTUNE"
    assert f"+ds = ds.map(load_kept, {parallel}).cache().shuffle(64).map(load_drawn, {parallel})" in diff


def test_a_race_splits_a_function_as_the_source_would(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPTS["read-and-crop"])
    as_it_is, changed = ask_tensorflow(
        "tests.worker.recipe.trap_tasks:elements_as_raced", path=str(path), change="split-cache"
    )
    for arm in (as_it_is, changed):
        numbers = [number for batch, _ in arm for number in json.loads(batch)]
        rows = [row for _, batch in arm for row in json.loads(batch)]
        assert sorted(numbers) == list(range(64))
        assert numbers != sorted(numbers), "in the order of the shuffle"
        starts = {row[0] - number**2 for number, row in zip(numbers, rows, strict=True)}
        assert starts <= set(range(6))
        assert len(starts) > 1, "each draws for itself"


def test_batches_that_are_shuffled_are_only_broken_up_where_another_order_is_allowed(fix: FixScript) -> None:
    found = fix("shuffled-batches")
    assert proposed(found) == ["prefetch"]
    assert "--may-reorder" in left(found)["shuffle-examples"]
    allowed = fix("shuffled-batches", "shuffle-examples", may_reorder=True)
    assert allowed.proof is not None
    assert allowed.proof.outcome is ProofOutcome.REORDERED


def test_without_the_autotuner_the_elements_are_the_same(fix: FixScript) -> None:
    found = fix("crop", "autotuner-off")
    assert proposed(found) == ["autotuner-off"]
    assert "data_options.autotune.enabled = False" in found.diff()


def test_elements_of_files_are_counted_without_calling_what_is_done_with_each(
    ask_tensorflow: Callable[..., Any], tmp_path: Path
) -> None:
    found = ask_tensorflow("tests.worker.recipe.trap_tasks:sizes_of_stages", folder=str(tmp_path))
    assert found["elements"][:4] == [2500] * 4, "shuffle, map, filter, flat_map"
    assert found["called"] < 1000, "a few are measured, and the buffer takes a few more"


@pytest.mark.parametrize("is_seeded", [True, False])
@pytest.mark.parametrize("of", ["Keras", "Python", "NumPy"])
def test_where_a_pass_is_broken_off_does_not_show_in_what_the_next_one_draws(
    ask_tensorflow: Callable[..., Any], of: str, is_seeded: bool
) -> None:
    task = "tests.worker.recipe.trap_tasks:passes_of_draws"
    (first, second), (_, longer) = (
        ask_tensorflow(task, elements=count, of=of, is_seeded=is_seeded) for count in (5, 9)
    )
    assert first != second
    assert (list(longer)[:5] == list(second)) is is_seeded


def test_what_is_zipped_stays_together(fix: FixScript) -> None:
    found = fix("zipped")
    assert proposed(found) == ["prefetch", "parallel-map", "cache"], left(found)
    assert ".map(function, num_parallel_calls=tf.data.AUTOTUNE)  # one line" in found.diff()
    assert "number + 1))).cache()" in found.diff()


@pytest.mark.parametrize("draws", [False, True])
def test_each_of_what_is_zipped_is_cached_where_both_are_repeated_but_no_draws_are(fix: FixScript, draws: bool) -> None:
    repeated = SCRIPTS["zipped"].replace("map(function)", "map(function).repeat()").replace("ds.repeat()", "ds")
    repeated = repeated.replace(".take(16)", "").replace("for batch in ds:", "for step, batch in zip(range(40), ds):")
    drawing = repeated.replace("number + 1", "tf.cast(number, tf.float32) + tf.random.uniform([])")
    found = fix("zipped", source=drawing if draws else repeated)
    assert ("cache" in proposed(found)) is not draws, left(found)
    kept = ".map(function, num_parallel_calls=tf.data.AUTOTUNE).cache().repeat()  # one line"
    assert (kept in found.diff()) is not draws


def test_a_cache_that_a_short_part_of_the_data_never_fills_is_left_alone(fix: FixScript) -> None:
    found = fix("zipped", source=SCRIPTS["zipped"].replace("take(16)", "take(7)"))
    assert proposed(found) == ["prefetch", "parallel-map"]
    assert left(found)["cache"] == "The script takes 56 of 64 elements; the cache is never full."


def test_functions_that_make_and_read_what_is_trained_on_and_validated_keep_the_two_apart(fix: FixScript) -> None:
    found = fix("shared-functions")
    assert found.proof is not None
    assert found.proof.elements == (8, 8)
    assert found.proof.outcome is ProofOutcome.REDRAWN
    assert "cache" not in found.diff()


def test_the_dataset_that_is_trained_on_is_found_though_another_run_reads_fewer_before_it(fix: FixScript) -> None:
    found = fix("filled-once")
    assert proposed(found) == ["prefetch", "parallel-map", "parallel-map", "batch-first"], left(found)
    assert found.proof is not None
    assert found.proof.elements == (8, 8)


def test_what_a_loop_inside_of_a_function_reads_is_proved_where_python_has_it(fix: FixScript) -> None:
    found = fix("inside-function")
    assert proposed(found) == ["prefetch", "parallel-map", "batch-first", "cache"], left(found)
    assert found.proof is not None
    assert found.proof.elements == (8, 8)
    with pytest.raises(RunFailedError, match=r"the dataset read at train.py:14 is made inside a tf.function"):
        fix("inside-function", source=SCRIPTS["inside-function"].replace("in ds:", "in make():"))


def test_what_reads_another_dataset_than_when_it_was_recorded_is_not_compared(fix: FixScript) -> None:
    with pytest.raises(RunFailedError, match=r"at train.py:8 the script reads another dataset than it did"):
        fix("read-by-function")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("takes-nothing-again", r"Where the script trains \(train.py:9\), there is nothing to read"),
        ("never-begins-again", "ends before it reads the dataset at train.py:9"),
    ],
)
def test_a_script_that_has_nothing_left_to_train_is_told_from_its_recording(
    fix: FixScript, tmp_path: Path, name: str, reason: str
) -> None:
    with pytest.raises(RunFailedError, match=f"{reason}.*checkpoint.*--run {tmp_path.name}"):
        fix(name)


def test_a_filter_that_keeps_a_state_is_not_cached(fix: FixScript) -> None:
    found = fix("stateful-filter")
    assert "every other one\n+    .prefetch" not in found.diff()
    assert set(proposed(found)) <= {"prefetch", "parallel-map", "cache"}
    assert ".filter(lambda number: seen.assign_add(1) % 2 == 0).cache" not in found.diff()
    asked = fix("stateful-filter", "train.py:8 cache")
    assert asked.proof is not None
    assert asked.proof.outcome is ProofOutcome.DIFFERENT


def test_a_generator_with_side_effects_is_not_cached(fix: FixScript) -> None:
    found = fix("generator")
    assert "cache" not in proposed(found)
    assert "prefetch" in proposed(found)
    asked = fix("generator", "train.py:13 cache")
    assert asked.proof is not None
    assert asked.proof.outcome is ProofOutcome.DIFFERENT


def test_small_elements_of_a_generator_are_handed_over_by_the_batch_and_stay_what_they_were(
    fix: FixScript, ask_tensorflow: Callable[..., Any], tmp_path: Path
) -> None:
    found = fix("rows", "generator-batches")
    assert proposed(found) == ["generator-batches"]
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.EQUAL
    assert found.proof.is_whole
    assert "+ds = from_generator_in_batches(rows" in found.diff()
    as_written, raced = ask_tensorflow(
        "tests.worker.recipe.trap_tasks:elements_as_raced", path=str(tmp_path / "train.py"), change="generator-batches"
    )
    assert as_written == raced
    assert len(as_written) == 19


def test_a_generator_that_others_read_on_from_is_not_read_ahead(fix: FixScript) -> None:
    found = fix("shared-generator", "generator-batches")
    assert not found.changes
    assert left(found)["generator-batches"] == "Element 1 of pass 2 is another one than without the change."


def test_a_seed_stays_where_it_is_and_its_draws_with_their_examples(fix: FixScript) -> None:
    found = fix("seeded")
    assert proposed(found) == ["prefetch"]
    assert ".shuffle(16, seed=5)" in found.diff().replace("+", "")
    assert "--change parallel-draws" in left(found)["parallel-draws"], "in parallel each run would draw otherwise"
    asked = fix("seeded", "parallel-draws")
    assert asked.proof is not None
    assert asked.proof.outcome is ProofOutcome.REDRAWN
    assert ".map(noisy, num_parallel_calls=tf.data.AUTOTUNE)" in asked.diff()


def test_a_dataset_that_is_read_twice_stays_the_same_for_both(fix: FixScript) -> None:
    found = fix("read-twice")
    assert set(proposed(found)) == {"prefetch", "parallel-map", "cache"}
    assert ".cache().shuffle(64)" in found.diff()


def test_a_function_of_single_examples_keeps_them(fix: FixScript) -> None:
    found = fix("one-by-one")
    assert "batch-first" not in proposed(found)
    assert left(found)["batch-first"] == "Element 1 of the first pass is another one than without the change."
    assert "parallel-map" in proposed(found)


def test_a_function_that_stacks_the_columns_of_a_row_sees_batches_with_another_axis(
    fix: FixScript, ask_tensorflow: Callable[..., Any], tmp_path: Path
) -> None:
    found = fix("columns", "batch-first")
    assert proposed(found) == ["batch-first"], left(found)
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.EQUAL
    assert "+    return tf.stack(columns[:-1], axis=-1) / 3.0, tf.stack(columns[-1:], axis=-1)" in found.diff()
    as_it_is, changed = ask_tensorflow(
        "tests.worker.recipe.trap_tasks:elements_as_raced", path=str(tmp_path / "train.py"), change="batch-first"
    )
    for arm in (as_it_is, changed):
        assert {len(json.loads(part)) for batch in arm for part in batch} == {8}


def test_a_line_that_makes_several_datasets_is_proved_for_each(fix: FixScript) -> None:
    found = fix("helper")
    assert set(proposed(found)) == {"prefetch", "parallel-map", "cache-before-shuffle"}
    asked = fix("helper", "batch-first")
    assert left(asked)["batch-first"].startswith("The dataset that train.py:5 makes would change too: Element 1 ")


def test_a_dataset_that_was_looked_at_and_dropped_is_compared_too(fix: FixScript) -> None:
    looked = "for batch in load(64, lambda number: number * 5, False).take(2):\n    pass\n\nheld_out ="
    found = fix("mixed-to-train", source=SCRIPTS["mixed-to-train"].replace("held_out =", looked))
    assert set(proposed(found)) == {"prefetch", "parallel-map", "cache-before-shuffle"}, left(found)


def test_what_is_mapped_after_a_shuffle_is_cached_before_it_and_comes_in_the_same_order(fix: FixScript) -> None:
    found = fix("shuffled-names")
    assert set(proposed(found)) == {"prefetch", "parallel-map", "cache-before-shuffle"}
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.EQUAL
    assert "+ds = tf.data.Dataset.range(64).map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()" in found.diff()
    assert "+ds = ds.shuffle(64).batch(8).prefetch(tf.data.AUTOTUNE)" in found.diff()


@pytest.mark.parametrize("taken", [120, 7])
def test_what_is_mapped_after_a_shuffle_and_a_repeat_is_cached_where_a_whole_pass_is_read(
    fix: FixScript, taken: int
) -> None:
    endless = SCRIPTS["shuffled-names"].replace("range(64).shuffle(64)", "range(640).shuffle(64).repeat()")
    found = fix("shuffled-names", source=endless.replace("batch(8)", f"batch(8).take({taken})"))
    if taken == 7:
        assert left(found)["cache-before-shuffle"] == "The script takes 56 of 640 elements; the cache is never full."
        return
    assert "cache-before-shuffle" in proposed(found), left(found)
    assert "tf.data.AUTOTUNE).cache().shuffle(64)\n+ds = ds.repeat().batch(8).take(120)" in found.diff()


@pytest.mark.parametrize(
    "line", ["    if mixed:\n        ds = ds.shuffle(16)\n", "    ds = ds.shuffle(16) if mixed else ds\n"]
)
def test_a_cache_stands_before_a_shuffle_that_a_helper_makes_for_the_training_only(fix: FixScript, line: str) -> None:
    source = SCRIPTS["mixed-to-train"]
    found = fix("mixed-to-train", source=source.replace("    if mixed:\n        ds = ds.shuffle(16)\n", line))
    assert set(proposed(found)) == {"prefetch", "parallel-map", "cache-before-shuffle"}, left(found)
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.EQUAL
    kept = "+    ds = ds.map(function, num_parallel_calls=tf.data.AUTOTUNE).cache()\n "
    assert f"{kept}{line.splitlines()[0]}" in found.diff()


def test_workers_make_the_batches_of_a_py_dataset_that_draws(fix: FixScript) -> None:
    found = fix("crops")
    assert proposed(found) == ["workers"], left(found)
    assert found.proof is not None
    assert "each element has a random generator of its own in Python" in found.proof.sentence
    assert "crops = Crops(workers=4)" in found.diff()
    long = SCRIPTS["crops"].replace("return 6", "return 300")
    found = fix("crops", source=long)  # whose passes are broken off
    assert proposed(found) == ["workers"], left(found)
    fed = long.replace("Crops()", "Crops(workers=2)")  # whose workers go on where a reading ends
    fed = fed.replace("np.random.uniform(size=(4, 1)) + index", "np.full((4, 1), index, float)")
    late = fed.replace("    def __len__", "    def on_epoch_begin(self):\n        self.made = 0\n\n    def __len__")
    found = fix("crops", "steps-per-execution", source=late)
    assert proposed(found) == ["steps-per-execution"], left(found)
    counted = SCRIPTS["crops"].replace(
        "        return np", "        self.made = getattr(self, 'made', 0) + 1\n        return self.made + np"
    )
    assert proposed(fix("crops", source=counted)) == [], "each batch has what came before it counted"
    begins = SCRIPTS["crops"].replace(
        "    def __len__", "    def on_epoch_begin(self):\n        self.made = 0\n\n    def __len__"
    )
    assert "Keras lets the workers begin before" in left(fix("crops", source=begins))["workers"]
    numpy_seeded = SCRIPTS["crops"].replace("\n\nclass", "\nnp.random.seed(3)\n\n\nclass", 1)
    assert "sets the seed" in left(fix("crops", source=numpy_seeded))["workers"]


def test_nothing_is_kept_of_python_that_reads_what_a_callback_changes(fix: FixScript) -> None:
    found = fix("curriculum", "cache-python")
    assert proposed(found) == [], left(found)
    assert left(found)["cache-python"].startswith("Reader.__call__ reads blur, which train.py:17 changes")
    without = SCRIPTS["curriculum"].replace("reader.blur = 4 - epoch", "print(reader.blur)")
    assert proposed(fix("curriculum", "cache-python", source=without)) == ["cache-python"]


def test_workers_make_what_an_image_data_generator_draws_where_an_epoch_is_a_whole_pass(fix: FixScript) -> None:
    found = fix("flipped")
    assert proposed(found) == ["workers"], left(found)
    assert found.proof is not None
    assert "each element has a random generator of its own in Python" in found.proof.sentence
    assert "+flipped.workers = 4\n" in found.diff()
    longer = SCRIPTS["flipped"].replace("np.int64(len(x) // 4)", "5")
    assert "do not end where its data do" in left(fix("flipped", source=longer))["workers"]
    own = SCRIPTS["flipped"].replace("horizontal_flip=True", "horizontal_flip=True, preprocessing_function=lambda x: x")
    assert "calls <lambda>" in left(fix("flipped", source=own))["workers"]
    seeded = SCRIPTS["flipped"].replace("batch_size=4", "batch_size=4, seed=3")
    assert "sets the seed" in left(fix("flipped", source=seeded))["workers"]


def test_workers_make_the_batches_of_a_sequence_of_keras_2_whose_epochs_change_nothing(fix: FixScript) -> None:
    assert "may wait 5 s" in left(fix("crops-of-keras-2"))["workers"], "nothing says how long an epoch is"
    longer = SCRIPTS["crops-of-keras-2"].replace("epochs=2", "epochs=2, steps_per_epoch=6.5")
    assert "do not end where its data do" in left(fix("crops-of-keras-2", source=longer))["workers"]
    found = fix("crops-of-keras-2", "workers")
    assert proposed(found) == ["workers"], left(found)
    assert found.proof is not None
    assert "each element has a random generator of its own in Python" in found.proof.sentence
    assert "model.fit(crops, epochs=2, verbose=0, workers=4)" in found.diff()
    long = SCRIPTS["crops-of-keras-2"].replace("return 6", "return 300")
    found = fix("crops-of-keras-2", "workers", source=long)  # whose passes are broken off
    assert proposed(found) == ["workers"], left(found)
    shuffles = SCRIPTS["crops-of-keras-2"].replace(
        "    def __len__", "    def on_epoch_end(self):\n        self.made = 0\n\n    def __len__"
    )
    assert (
        "Keras 2 with workers calls it once or twice"
        in left(fix("crops-of-keras-2", "workers", source=shuffles))["workers"]
    )


def test_one_iterator_for_all_epochs_shuffles_each_of_them_as_before(fix: FixScript) -> None:
    found = fix("fitted", "one-iterator")
    assert proposed(found) == ["one-iterator"], left(found)
    assert found.proof is not None
    assert found.proof.sentence == "Equal, element by element: 12 elements, one epoch after the other."
    assert "+model.fit(ds.repeat(), epochs=2, verbose=0, steps_per_epoch=len(ds))" in found.diff()
    drawn = fix(
        "fitted",
        "one-iterator",
        source=SCRIPTS["fitted"].replace("([number],", "([number + tf.random.uniform([], 0, 9, tf.int64)],"),
    )
    assert proposed(drawn) == ["one-iterator"], left(drawn)
    assert drawn.proof is not None
    assert drawn.proof.outcome is ProofOutcome.REDRAWN
    with pytest.raises(OptionsError, match="does not know how many batches"):
        fix("fitted", "one-iterator", source=SCRIPTS["fitted"].replace(".batch", ".filter(lambda x, y: y < 2).batch"))
    at_once = fix("fitted", "one-iterator", source=SCRIPTS["fitted"].replace('"mse"', '"mse", steps_per_execution=4'))
    assert left(at_once)["one-iterator"].startswith("One call runs 4 steps"), "six batches would become eight"
    read = SCRIPTS["fitted"].replace("ds = ", "scale = tf.Variable(2.0)\nds = ").replace("number % 2)", "scale * 2.0)")
    assert proposed(fix("fitted", "one-iterator", source=read)) == ["one-iterator"]
    told = fix(
        "fitted", "one-iterator", source=read.replace("epochs=2", "epochs=2, callbacks=[keras.callbacks.Callback()]")
    )
    assert "what callbacks change there" in left(told)["one-iterator"], "which may assign the variable"


def test_one_iterator_for_all_passes_of_a_loop_gives_each_of_them_as_before(fix: FixScript) -> None:
    found = fix("passes", "one-iterator", "prefetch")
    assert proposed(found) == ["prefetch", "one-iterator"], left(found)
    assert found.proof is not None
    assert found.proof.sentence == "Equal, element by element: 12 elements, one epoch after the other."
    for line in (
        "+    batches = iter(data.repeat())\n",
        "+        for step, (x, y) in zip(range(len(data)), batches):\n",
    ):
        assert line in found.diff()


def test_a_loop_that_sets_what_its_dataset_reads_keeps_its_iterators(fix: FixScript) -> None:
    reads = (
        SCRIPTS["passes"].replace("ds = ", "scale = tf.Variable(2, dtype=tf.int64)\nds = ").replace("% 2", "% scale")
    )
    assert "what the loop changes there" in left(fix("passes", "one-iterator", source=reads))["one-iterator"]


def test_what_else_changes_is_read_in_passes_beside_a_dataset_that_goes_on(fix: FixScript) -> None:
    begin, end = SCRIPTS["fitted"].split("ds = ")
    calls, end = end.split("\n", 1)
    several = f"{begin}def load(count):\n    return {calls.replace('48', 'count')}\n\n\nds, held_out = load(48), load(16)\n{end}"
    found = fix("fitted", "one-iterator", "parallel-map", source=several)
    assert proposed(found) == ["parallel-map", "one-iterator"], left(found)


def test_a_cache_behind_a_repeat_moves_before_it(fix: FixScript) -> None:
    found = fix("slip")
    assert "cache-slip" in proposed(found)


def test_a_function_that_autograph_reads_from_the_source_is_read_from_the_changed_one(fix: FixScript) -> None:
    shifted = SCRIPTS["branches"].replace(".range(64)", ".range(\n    64\n)")
    found = fix("branches", source=shifted)
    assert "parallel-map" in proposed(found)
    assert "AttributeError" not in str(found.left)


def test_files_that_are_read_in_turn_keep_their_turns(fix: FixScript) -> None:
    assert "parallel-interleave" in proposed(fix("files"))
    chosen_by_tensorflow = SCRIPTS["files"].replace(", 3)", ")")
    assert "parallel-interleave" not in proposed(fix("files", source=chosen_by_tensorflow))


def test_python_that_waits_is_called_at_once_where_it_gives_the_same_each_time(fix: FixScript) -> None:
    found = fix("waits", "parallel-python")
    assert "parallel-python" in proposed(found), left(found)
    assert "num_parallel_calls=16" in found.diff()
    assert "+pool_options.threading.private_threadpool_size = 16" in found.diff()
    counts = fix("counts")
    assert not {"parallel-python", "parallel-map"} & set(proposed(counts))
    assert "in another order" in left(counts)["parallel-map"], "whichever call comes first counts first"
    assert "in another order" in left(counts)["parallel-python"], "tried where the other one cannot be proved"


def test_python_that_draws_is_called_at_once_unless_its_seed_is_set_and_never_cached(fix: FixScript) -> None:
    found = fix("jitter")
    assert "parallel-map" in proposed(found), left(found)
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.REDRAWN
    assert "each element has a random generator of its own in Python" in found.proof.sentence
    assert "cache-python" not in proposed(found)
    assert left(found)["cache-python"].startswith("Pass 2 repeats")
    seeded = fix("jitter", source=SCRIPTS["jitter"].replace("import random\n", "import random\n\nrandom.seed(3)\n"))
    assert "parallel-map" not in proposed(seeded)
    assert "the script sets the seed of Python's or NumPy's random numbers" in left(seeded)["parallel-map"]


def test_python_behind_a_shuffle_is_cached_before_it_where_it_gives_the_same_each_time(fix: FixScript) -> None:
    def shuffled(name: str) -> str:
        return SCRIPTS[name].replace(".range(64)", ".range(64).shuffle(64)")

    found = fix("waits", "cache-python", source=shuffled("waits"))
    assert proposed(found) == ["cache-python"]
    assert ".map(load).cache().shuffle(64)" in found.diff()
    for name in ("jitter", "counts"):
        asked = fix(name, "cache-python", source=shuffled(name))
        assert asked.changes == ()
        assert "differ" in left(asked)["cache-python"] or "repeats" in left(asked)["cache-python"], left(asked)


@pytest.mark.parametrize(("rewrite", "files"), [("snapshot", "pipeline-snapshot"), ("disk-cache", "pipeline-cache*")])
def test_what_is_kept_in_files_is_proved_without_leaving_any(fix: FixScript, rewrite: str, files: str) -> None:
    asked = fix("slip", rewrite, source=SCRIPTS["slip"].replace("    .repeat()\n    .cache()\n", ""))
    assert [change.rewrite for change in asked.changes] == [rewrite]
    assert asked.proof is not None
    assert asked.proof.outcome is ProofOutcome.EQUAL
    assert asked.proof.is_whole
    assert list(Path().glob(files)) == [], "the next training would take them for its own"


def test_another_function_is_seen_to_be_another(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPTS["branches"])
    reading = ReadingPlace(LOOP, str(path), SCRIPTS["branches"].splitlines().index("    for batch in ds:") + 1)
    with Prover(Script(str(path)), reading, "as-it-is") as prover:
        assert prover.is_repeatable()
        other = prover.prove({str(path): SCRIPTS["branches"].replace("number * 2", "number * 4")})
        assert other.outcome is ProofOutcome.DIFFERENT
        broken = prover.prove({str(path): SCRIPTS["branches"].replace(".batch", ".bitch")})
        assert broken.outcome is ProofOutcome.FAILED
        assert "AttributeError" in broken.sentence


def test_python_that_counts_is_not_proved_by_a_run_that_is_one_call_at_a_time(fix: FixScript) -> None:
    drawing = ", tf.int64) + tf.random.uniform([], 0, 9, tf.int64)).batch"
    both = SCRIPTS["counts"].replace(", tf.int64)).batch", drawing)
    assert not {"parallel-python", "parallel-map"} & set(proposed(fix("counts", source=both)))
    apart = ", tf.int64)).map(lambda n: n + tf.random.uniform([], 0, 9, tf.int64), num_parallel_calls=2).batch"
    beside = SCRIPTS["counts"].replace(", tf.int64)).batch", apart)
    found = fix("counts", source=beside)
    assert not {"parallel-python", "parallel-map"} & set(proposed(found)), left(found)


def test_a_cache_of_what_draws_is_not_proved_beside_one_iterator(fix: FixScript) -> None:
    jitter = "import random\n\n\ndef jitter(n):\n    return n * 10 + random.choice([1, 2])\n\n\nds = "
    python = ".map(lambda n: tf.ensure_shape(tf.numpy_function(jitter, [n], tf.int64), [])).map(lambda number"
    drawn = SCRIPTS["fitted"].replace("ds = ", jitter, 1).replace(".map(lambda number", python)
    drawn = drawn.replace("([number],", "([number + tf.random.uniform([], 0, 9, tf.int64)],")
    found = fix("fitted", source=drawn.replace(".shuffle(48)", ""))
    assert "cache-python" not in proposed(found)
    assert left(found)["cache-python"].startswith("Pass 2 repeats"), left(found)
