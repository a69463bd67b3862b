"""What ``fix`` chooses, and how it writes; what it proves is tested beside TensorFlow."""

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline_lab.advice.script.script_model import ENDS_UNKNOWN, ScriptPrediction
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.iterator_ends import IteratorStarts
from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.analysis.verdict.verdict import Confidence, JudgedStep, Verdict
from pipeline_lab.errors import OptionsError, StoreError, Unavailable
from pipeline_lab.pipeline.changes import (
    AUTOTUNER,
    Change,
    Effect,
    InBatches,
    Insert,
    IntoStep,
    MoveBefore,
    OneIterator,
    Risk,
    SetArgument,
    SetTraining,
)
from pipeline_lab.pipeline.recipe import DatasetCall
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.pipeline.samples import Proof, ProofOutcome, Sample, StageSize
from pipeline_lab.pipeline.source_edits import edit_sources
from pipeline_lab.runs.run_events import PredictEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.tuning.script import fixing, proof, worth_trying
from pipeline_lab.tuning.script.fix import Fix, describe_gain
from pipeline_lab.tuning.script.fixing import (
    Wishes,
    apply,
    choose,
    current_texts,
    find_fix,
    may_be_held_up,
    that_can_be_written,
)
from pipeline_lab.tuning.script.proving import LeftAlone, is_good, places_of, watched_places
from pipeline_lab.tuning.script.sample_process import Script
from pipeline_lab.tuning.script.worth_trying import choose_rivals, needless, promises, too_large, worth_proving
from tests.support import results
from tests.support.scripts import DECODE, recipe, script, stages
from tests.support.written_recipe import PATH, recipe_of, written_recipe

TEXT = "ds = tf.data.Dataset.range(8).map(f).batch(2).shuffle(4)\nmodel.compile()\nmodel.fit(ds)\n"
RECIPE = written_recipe(TEXT)
CACHE = Change("cache", 2, (Insert(2, "cache"),), Effect.NOTHING, Risk.SOME, "Cache.")


def test_what_keeps_the_order_is_chosen_and_the_rest_left_with_a_reason() -> None:
    assert RECIPE.trained is not None
    found, left = choose(RECIPE, RECIPE.trained, Wishes())
    assert [change.rewrite for change in found] == ["prefetch", "parallel-map", "batch-first", "cache", "into-step"]
    reasons = {each.change.rewrite: each.reason for each in left}
    assert "--may-reorder" in reasons["shuffle-examples"]
    assert "--change steps-per-execution" in reasons["steps-per-execution"]
    reordered, _ = choose(RECIPE, RECIPE.trained, Wishes(may_reorder=True))
    assert {change.rewrite for change in reordered} - {change.rewrite for change in found} == {"shuffle-examples"}


def test_only_what_is_asked_for_is_chosen_then() -> None:
    assert RECIPE.trained is not None
    found, left = choose(RECIPE, RECIPE.trained, Wishes(("prefetch",)))
    assert [change.rewrite for change in found] == ["prefetch"]
    assert left == []
    with pytest.raises(OptionsError, match="together"):
        choose(RECIPE, RECIPE.trained, Wishes(("prefetch", "prefetch")))


@pytest.mark.parametrize(
    ("effect", "outcome", "good"),
    [
        (Effect.NOTHING, ProofOutcome.EQUAL, True),
        (Effect.NOTHING, ProofOutcome.ROUNDED, True),
        (Effect.NOTHING, ProofOutcome.REORDERED, False),
        (Effect.ORDER, ProofOutcome.REORDERED, True),
        (Effect.ORDER, ProofOutcome.DIFFERENT, False),
        (Effect.CONTENT, ProofOutcome.DIFFERENT, True),
        (Effect.CONTENT, ProofOutcome.FAILED, False),
    ],
)
def test_a_proof_has_to_show_what_the_change_claims(effect: Effect, outcome: ProofOutcome, good: bool) -> None:
    change = Change("test", None, (), effect, Risk.LOW, "Test.")
    assert is_good(Proof(outcome, ""), [change]) is good


def test_a_cache_has_to_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth_trying, "usable_memory_bytes", lambda: 4_000)
    assert RECIPE.trained is not None

    def reason(stage: StageSize) -> str:
        stages = (StageSize("shuffle", 1.0, 1), StageSize("batch", 1.0, 1), stage, StageSize("range", 8.0, 8))
        assert RECIPE.trained is not None
        return too_large(CACHE, Sample((), (), (), 0, stages), RECIPE, RECIPE.trained)

    assert reason(StageSize("map", 100.0, 10)) == ""
    assert "would take 1.01 kB" in reason(StageSize("map", 101.0, 10))
    assert "not known" in reason(StageSize("map", 100.0, None))


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ({"images": 8, "labels": 8}, ""),
        ({"images": 8, "labels": None}, ""),
        ({"images": 1000, "labels": 8}, "zip reads 8 of 1,000 elements; the cache is never full."),
    ],
)
def test_what_is_zipped_with_something_shorter_never_fills_its_cache(
    counts: dict[str, int | None], reason: str
) -> None:
    text = (
        "images = tf.data.Dataset.range(8).map(f)\nlabels = tf.data.Dataset.range(8).map(g)\n"
        "ds = tf.data.Dataset.zip((images, labels)).batch(2)\nmodel.fit(ds)\n"
    )
    recipe = written_recipe(text, zip={"inputs": (2, 4)})
    known = {2: counts["images"], 4: counts["labels"], 5: 8}
    assert recipe.trained is not None
    numbers = [call.number for call in recipe.upstream(recipe.trained.call, inside=False)]
    sample = Sample((), (), (), 0, tuple(StageSize("", 8.0, known.get(number)) for number in numbers))
    change = replace(CACHE, edits=(Insert(2, "cache"), Insert(4, "cache")))
    assert worth_trying.never_full(change, sample, recipe, recipe.trained) == reason


def test_what_a_part_of_a_function_keeps_has_to_fit_and_neither_draws_nor_changes_what_comes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof, "usable_memory_bytes", lambda: 4_000)

    def reason(cached: StageSize, below: StageSize | None = None, spec: str = "int64") -> str:
        drawn = StageSize("map", 8.0, 10, ("RandomUniformInt",), spec)
        stages = (drawn, cached, below or StageSize("map", 8.0, 10), StageSize("range", 8.0, 10))
        before = Sample((), (), (), 0, (replace(drawn, spec="int64"),))
        return proof._why_not_kept(before, Sample((), (), (), 0, stages))

    assert reason(StageSize("cache", 100.0, 10)) == ""
    assert "would take 1.01 kB" in reason(StageSize("cache", 101.0, 10))
    assert "not known" in reason(StageSize("cache", 100.0, None))
    drawing = StageSize("map", 8.0, 10, ("RandomUniform",), is_kept=True)
    assert (
        reason(StageSize("cache", 1.0, 10), drawing) == "A cache would keep what map draws or counts (RandomUniform)."
    )
    assert reason(StageSize("cache", 1.0, 10), spec="float32") == "Its elements would be float32, not int64."


def test_a_cache_that_is_too_large_stands_where_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth_trying, "usable_memory_bytes", lambda: 4_000)
    two_maps = written_recipe(TEXT.replace(".map(f)", ".map(f).map(g)"))
    use = two_maps.trained
    assert use is not None
    (cache,) = [change for change in choose(two_maps, use, Wishes())[0] if change.rewrite == "cache"]
    assert cache.call == 4
    sizes = (("shuffle", 1.0), ("batch", 2_000.0), ("map", 2_000.0), ("map", 100.0), ("range", 8.0))
    sample = Sample((), (), (), 0, tuple(StageSize(method, size, 10) for method, size in sizes))
    worth, left = worth_proving([cache], sample, two_maps, use, Unavailable("Not analyzed."))
    assert [(change.rewrite, change.call) for change in worth] == [("cache", 2)]
    assert [change for change, _ in left] == [cache]
    assert "would take 20 kB" in left[0][1]


def test_other_datasets_are_read_wherever_a_smaller_cache_may_stand() -> None:
    lines = written_recipe(
        "ds = tf.data.Dataset.range(8).map(f)\nds = ds.map(g)\nds = ds.batch(2).shuffle(4)\nmodel.fit(ds)\n"
    )
    assert lines.trained is not None
    (cache,) = [each for each in choose(lines, lines.trained, Wishes())[0] if each.rewrite == "cache"]
    assert [place.rpartition(":")[2] for place in places_of(lines, [cache])] == ["3"]
    assert [place.rpartition(":")[2] for place in watched_places(lines, lines.trained, [cache])] == ["1", "2", "3"]


WAITS = Change(
    "parallel-python",
    2,
    (SetArgument(2, "num_parallel_calls", 16), Insert(3, "with_options", {"threading.private_threadpool_size": 16})),
    Effect.NOTHING,
    Risk.SOME,
    "Wait at once.",
)


def test_calls_of_python_run_at_once_where_something_can_be_gained() -> None:
    python = {"recipe": recipe(python=(DECODE,)), "cpu_share": 0.05, "step_cpu_ms": 1.0, "ceiling_ms": 1.0}
    waits = script(stages=stages(python=1.0), **python)
    assert needless(WAITS, recipe(), waits) == ""
    quick = script(stages=stages(0.01, python=1.0), **python | {"ceiling_ms": 20.0})
    assert "expects nothing" in needless(WAITS, recipe(), quick)


@pytest.mark.parametrize("kind", ["PyDataset", "Sequence"])
def test_workers_of_keras_2_are_tried_only_where_something_is_expected_of_them(kind: str) -> None:
    workers = Change("workers", None, (SetTraining("workers", 4),), Effect.NOTHING, Risk.SOME, "Four threads.")
    own = recipe(DatasetCall(1, "from_generator", python=(replace(DECODE, kind=kind),)))
    not_analyzed = needless(workers, own, Unavailable("Not analyzed."))
    assert ("save more is not known. Not analyzed." in not_analyzed) == (kind == "Sequence")
    python = (ScriptStage("Generator", None, 18.0e6, python_share=1.0),)
    endless, short, long = (script(recipe=own, stages=python, epoch_batches=each) for each in (None, 100.0, 10_000.0))
    assert (needless(workers, own, endless) == ENDS_UNKNOWN) == (kind == "Sequence"), "said once"
    assert ("5 s for them, which is counted in" in needless(workers, own, short)) == (kind == "Sequence")
    assert needless(workers, own, long) == ""


@pytest.mark.parametrize(("percent", "is_tried"), [(4.0, False), (12.0, True)])
def test_one_iterator_is_tried_where_much_passes_between_epochs_whatever_the_verdict(
    monkeypatch: pytest.MonkeyPatch, percent: float, is_tried: bool
) -> None:
    verdict = Verdict(VerdictClass.DEVICE_BOUND, "", (), Confidence.HIGH)
    monkeypatch.setattr(fixing, "saved_by_one_iterator", lambda _: percent)
    monkeypatch.setattr(fixing, "saved_by_quick_ends", lambda _: percent)
    one = Change("one-iterator", None, (OneIterator(),), Effect.NOTHING, Risk.SOME, "One.")
    tuner = Change("autotuner-off", 3, (Insert(3, "with_options", {AUTOTUNER: False}),), Effect.NOTHING, Risk.SOME, "")
    not_timed = Unavailable("Not timed.")
    diagnosis = SimpleNamespace(
        verdict=verdict, calibration=not_timed, iterator_starts=not_timed, job_steps=SimpleNamespace(count=100)
    )

    def look(length: int | None) -> tuple[list[Change], list[LeftAlone]]:
        return fixing.worth_a_look([CACHE, one, tuner], diagnosis, script(stages=stages(0.01), ceiling_ms=20.0), length)  # type: ignore[arg-type]

    found, left = look(None)
    assert found == ([one, tuner] if is_tried else [])
    assert LeftAlone(CACHE, fixing.NOT_HELD_UP) in left
    assert (LeftAlone(one, fixing.LITTLE_BETWEEN) in left) != is_tried
    diagnosis.iterator_starts = IteratorStarts(97, 10**9, 10**7, 10**10)  # a step each, as `next(iter(dataset))` makes
    assert LeftAlone(one, fixing.OTHER_BATCHES) in look(50)[1]
    assert LeftAlone(one, fixing.OTHER_BATCHES) not in look(1)[1], "an epoch of one batch"


@pytest.mark.parametrize(("copied_ms", "reason"), [(None, fixing.NO_DEVICE), (0.9, fixing.LITTLE_COPIED), (1.1, "")])
def test_a_map_goes_into_the_step_where_copies_hold_the_device_up(copied_ms: float | None, reason: str) -> None:
    change = Change("into-step", 2, (IntoStep(2),), Effect.NOTHING, Risk.SOME, "Into the step.")
    run = script(stages=stages(0.01), ceiling_ms=20.0, copied_ms=copied_ms)
    found, left = fixing.worth_a_look([change], Unavailable("Not analyzed."), run, None)
    assert found == ([] if reason else [change])
    assert [each.reason for each in left] == ([reason] if reason else [])


@pytest.mark.parametrize(("given", "made", "is_worth"), [(3.0, 12.0, True), (12.0, 12.0, False), (None, 12.0, False)])
def test_a_map_goes_into_the_step_where_it_makes_its_elements_larger(
    given: float | None, made: float, is_worth: bool
) -> None:
    change = Change("into-step", 2, (IntoStep(2),), Effect.NOTHING, Risk.SOME, "Into the step.")
    sizes = (
        StageSize("shuffle", made, 8),
        StageSize("batch", made, 8),
        StageSize("map", made, 8),
        StageSize("range", given, 8),
    )
    assert RECIPE.trained is not None
    reason = worth_trying.no_smaller(change, Sample((), (), (), 0, sizes), RECIPE, RECIPE.trained)
    assert reason == ("" if is_worth else worth_trying.NO_SMALLER)
    assert not worth_trying.no_smaller(CACHE, Sample((), (), (), 0, sizes), RECIPE, RECIPE.trained)


def test_what_was_not_in_the_race_is_named_with_what_is_expected_of_it() -> None:
    gain = SimpleNamespace(sentence="prefetch is faster.", name="prefetch")
    one = Change("one-iterator", None, (OneIterator(),), Effect.NOTHING, Risk.SOME, "One iterator.")
    fix = Fix((CACHE, one), None, None, (), ScriptPrediction(1e6, (), 45.6, 18.0, 58.0, 45.6), gain)  # type: ignore[arg-type]
    assert describe_gain(fix) == (
        "The changed script is faster. Not raced, because pipelines that share one training cannot differ in it: One iterator. "
        "Predicted for all changes together: 45.6 % less time per step."
    )
    assert describe_gain(replace(fix, changes=(CACHE,))) == "The changed script is faster."


@pytest.mark.parametrize(("more", "is_written"), [("", True), (", steps_per_epoch=2", False)])
def test_what_cannot_be_written_is_no_rival(more: str, is_written: bool) -> None:
    text, recipe = recipe_of(".range(8).shuffle(8)", fit=f"fit(ds, epochs=2{more})")
    recipe = replace(recipe, uses=(replace(recipe.uses[0], iterators=2, length=8),))
    rivals = [each for each in find_changes(recipe) if each.rewrite in ("one-iterator", "autotuner-off")]
    found, left = that_can_be_written(rivals, edit_sources(recipe, rivals, {PATH: text}))
    assert [each.rewrite for each in found] == (["one-iterator", "autotuner-off"] if is_written else ["autotuner-off"])
    assert [each.change.rewrite for each in left] == ([] if is_written else ["one-iterator"])


def test_of_changes_that_exclude_each_other_the_better_one_is_tried() -> None:
    few = replace(WAITS, rewrite="parallel-map", edits=(SetArgument(2, "num_parallel_calls", -1),))
    assert choose_rivals([few, WAITS], Unavailable("Not analyzed.")) == ([few], [(WAITS, few)])
    python = {"recipe": recipe(python=(DECODE,)), "cpu_share": 0.05, "step_cpu_ms": 1.0, "ceiling_ms": 1.0}
    waits = script(stages=stages(python=1.0), **python)
    assert choose_rivals([few, CACHE, WAITS], waits) == ([CACHE, WAITS], [(few, WAITS)])
    moved = replace(CACHE, rewrite="cache-before-shuffle", edits=(MoveBefore(2, 1, "cache"),))
    no_gain = script(stages=stages(0.01), ceiling_ms=20.0)
    assert choose_rivals([moved, CACHE], no_gain) == ([CACHE], [(moved, CACHE)]), "of equals what moves no call"


def test_a_generator_is_called_for_many_elements_where_its_calls_take_the_time() -> None:
    change = Change("generator-batches", 2, (InBatches(2, 64),), Effect.NOTHING, Risk.SOME, "Hand over.")
    python = {"recipe": recipe(python=(DECODE,)), "cpu_share": 1.0}
    assert needless(change, recipe(), script(stages=stages(python=1.0), **python)) == ""
    slow = script(stages=stages(50.0, python=1.0), step_ms=500.0, **python)
    assert "the generator's own work takes the time" in needless(change, recipe(), slow)


def test_where_input_does_not_hold_a_training_up_only_what_promises_a_gain_is_tried() -> None:
    assert promises(CACHE, script())
    assert not promises(CACHE, script(stages=stages(0.01), ceiling_ms=20.0))
    assert not promises(CACHE, Unavailable("No step was timed."))


@pytest.mark.parametrize(
    ("percent", "words"),
    [
        (23.1, "takes 23.1 % less time (21.1 % to 25.1 %)."),
        (-3.0, "takes 3 % more time (1 % to 5 %)."),
        (-1.0, "takes 1 % more time (between 1 % less and 3 % more)."),
        (0.0, "takes about as long (between 2 % more and 2 % less)."),
    ],
)
def test_a_prediction_is_worded_by_its_sign(percent: float, words: str) -> None:
    predicted = ScriptPrediction(1e6, (), percent, percent - 2.0, percent + 2.0, percent)
    said = describe_gain(Fix((), None, None, (), predicted))
    assert said == f"Not raced: the gain is not measured. Predicted: a step {words}"


def test_what_the_model_does_not_explain_is_tried_unless_the_computation_is_the_limit() -> None:
    unexplained = Unavailable("Something else slows it down.")

    busy = script(ceiling_ms=19.5)

    def tried(verdict_class: VerdictClass, cause: GapCause | None = None) -> tuple[bool, bool]:
        verdict = Verdict(verdict_class, "", (), Confidence.HIGH, cause=cause.value if cause else None)
        return may_be_held_up(verdict, unexplained), may_be_held_up(verdict, busy)

    assert tried(VerdictClass.INPUT_BOUND) == (True, True)
    assert tried(VerdictClass.DISPATCH_BOUND) == (True, False)
    assert tried(VerdictClass.DEVICE_BOUND) == (False, False)
    assert tried(VerdictClass.IDLE_OTHER, GapCause.CHECKPOINT) == (True, False)
    assert tried(VerdictClass.IDLE_OTHER, GapCause.ITERATOR_END) == (True, True)
    assert may_be_held_up(None, busy), "nothing was analyzed"


@pytest.mark.parametrize("lost", [4.0, 21.0, Unavailable("Nothing tells of waits.")])
def test_whatever_else_a_step_loses_what_it_loses_to_input_can_be_helped(lost: float | Unavailable) -> None:
    verdict = Verdict(VerdictClass.DEVICE_BOUND, "", (), Confidence.HIGH, step=JudgedStep(4e7, lost, 22.5, 29, True))
    assert may_be_held_up(verdict, Unavailable("Something else slows it down.")) == (lost == 21.0)
    assert may_be_held_up(verdict, script(ceiling_ms=15.0)), "free input would save a quarter"


@pytest.mark.parametrize(("alone_ms", "is_tried"), [(5.2, True), (5.6, False)])
def test_what_the_step_saves_alone_is_tried_too_where_the_model_expects_less(
    alone_ms: float, *, is_tried: bool
) -> None:
    verdict = Verdict(VerdictClass.IDLE_OTHER, "", (), Confidence.HIGH, cause=GapCause.PYTHON.value)
    calibration = Calibration(1e6 * alone_ms, 1.4e6, 5.7e6)
    assert may_be_held_up(verdict, script(ceiling_ms=19.5), calibration) == is_tried


def test_what_another_order_would_gain_is_said_where_nothing_else_is_proposed() -> None:
    shuffled = replace(CACHE, rewrite="cache-shuffled", effect=Effect.ORDER, words="Cache it all.")
    left = [LeftAlone(shuffled, fixing.REORDERS), LeftAlone(CACHE, "Too large.")]
    said = fixing._if_reordered(left, script())
    assert said.startswith(" With --may-reorder the model expects 75")
    assert said.endswith("Cache it all.")
    assert fixing._if_reordered(left[1:], script()) == ""
    assert fixing._if_reordered(left, script(stages=stages(0.01), ceiling_ms=20.0)) == ""


def test_a_file_that_changed_since_its_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"a\r\nb\n")
    recipe = replace(RECIPE, files={str(path): "0-train.py", str(tmp_path / "gone.py"): "1-gone.py"})
    assert current_texts(recipe.files, {str(path): "a\nb\n"}) == {str(path): "a\r\nb\n"}
    path.write_bytes(b"a\nb")
    assert current_texts(recipe.files, {str(path): "a\nb\n"}) == {str(path): "a\nb"}, (
        "Python reads a last line that is complete"
    )
    with pytest.raises(StoreError, match="changed since"):
        current_texts(recipe.files, {str(path): "other"})


def _edited(path: Path, after: str) -> dict[str, tuple[str, str]]:
    return {str(path): (path.read_text(), after)}


def test_without_version_control_a_backup_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("one")
    assert list(apply(_edited(path, "two"))) == [(path, tmp_path / "train.py.orig")]
    assert list(apply(_edited(path, "three"))) == [(path, tmp_path / "train.py.orig1")]
    assert path.read_text() == "three"
    assert [(tmp_path / name).read_text() for name in ("train.py.orig", "train.py.orig1")] == ["one", "two"]


def test_git_is_the_backup_of_what_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("one")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    assert list(apply(_edited(path, "two"))) == [(path, None)]
    assert list(apply(_edited(path, "three"))) == [(path, tmp_path / "train.py.orig")], "two is in no commit"


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("one")
    edited = _edited(path, "two")
    path.write_text("other")
    with pytest.raises(StoreError, match="meanwhile"):
        list(apply(edited))
    assert path.read_text() == "other"


def test_a_script_that_makes_its_batches_itself_cannot_be_changed(tmp_path: Path) -> None:
    own = replace(results.job_steps(), own_call="q.train_on_batch at train.py:42")
    with pytest.raises(StoreError, match="makes its batches itself"):
        find_fix(RunFolder(tmp_path), Script("train.py"), Wishes(), results.diagnosis(job_steps=own))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [(("predict-on-batch",), "no calls of Keras' predict"), (("predict-on-batch", "prefetch"), "alone")],
)
def test_predict_on_batch_is_asked_for_alone_and_where_there_are_calls(
    tmp_path: Path, changes: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(OptionsError, match=reason):
        find_fix(RunFolder(tmp_path), Script("train.py"), Wishes(changes), results.diagnosis())


@pytest.mark.parametrize(
    ("own_call", "changes"),
    [("q.train_on_batch at train.py:42", ()), (None, ("predict-on-batch",)), (None, ())],
    ids=["no dataset", "asked for", "no recipe"],
)
def test_calls_of_predict_are_exchanged_where_nothing_else_can_be_and_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_call: str | None, changes: tuple[str, ...]
) -> None:
    predicts = Predicts((PredictEvent("q.predict at train.py:40", 20, 60_000_000, 100_000_000),))
    job = replace(results.job_steps(), own_call=own_call, predicts=predicts)
    exchanged = Fix((), None, None, ())
    monkeypatch.setattr(fixing, "fix_predicts", lambda *given: exchanged if given[1] is predicts else None)
    found = find_fix(RunFolder(tmp_path), Script("train.py"), Wishes(changes), results.diagnosis(job_steps=job))
    assert found is exchanged
