"""Suggestions for a script: every cause has its fix, at its line, with what it gains and what holds it back."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline_lab.advice.advising import find_recommendations
from pipeline_lab.advice.script.script_model import explain_script
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.advice.script.script_suggestions import FIXES, ScriptCase, suggest_for_script
from pipeline_lab.analysis.causes import InputCause, VerdictClass
from pipeline_lab.analysis.verdict.verdict import Confidence, Suggestion, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import DatasetCall, PythonPart, UserFunction
from pipeline_lab.pipeline.rewrites import REWRITES
from pipeline_lab.runs.run_documents import WrittenCall
from tests.support.scripts import DECODE, place, recipe, script, stages

NO_CALIBRATION = Unavailable("Not timed.")


def waiting(
    cause: InputCause | None,
    calls: tuple[WrittenCall, ...],
    *,
    stage: str = "Map",
    kind: VerdictClass = VerdictClass.INPUT_BOUND,
) -> Verdict:
    """Return a verdict about a stage that three quarters of a step are lost to."""
    return Verdict(kind, "It waits.", (), Confidence.MEDIUM, stage=stage, cause=cause, lost_percent=75.0, calls=calls)


def in_words(verdict: Verdict) -> tuple[Suggestion, ...]:
    cause = None if verdict.cause is None else InputCause(verdict.cause)
    return find_recommendations(verdict.verdict_class, cause, verdict.stage, verdict.calls, 75.0, NO_CALIBRATION)


def suggested(
    cause: InputCause | None,
    run: ScriptRun | None = None,
    kind: VerdictClass = VerdictClass.INPUT_BOUND,
    python: bool = False,
) -> tuple[Suggestion, ...]:
    own = recipe(python=(DECODE,) if python else ())
    taken = replace(run or script(), recipe=own)
    calls = (WrittenCall(".map(load)", place(41), (DECODE,) if python else ()),)
    verdict = waiting(cause, calls, kind=kind)
    words = in_words(verdict)
    return suggest_for_script(ScriptCase(explain_script(taken), own, verdict), words)


def python_script(**more: Any) -> ScriptRun:
    return script(stages=stages(python=1.0), **more)


@pytest.mark.parametrize("cause", [each for each in InputCause if FIXES[each]])
def test_every_cause_has_its_fix_in_the_list_at_its_line(cause: InputCause):
    first = suggested(cause)[0]
    assert first.place is not None
    assert first.after or first.change.endswith(".")
    assert isinstance(first.predicted_gain_percent, float)


@pytest.mark.parametrize("kind", [each for each in VerdictClass if each is not VerdictClass.UNKNOWN])
def test_every_class_has_a_suggestion_for_a_script(kind: VerdictClass):
    cause = "python" if kind is VerdictClass.IDLE_OTHER else None
    verdict = Verdict(kind, "So it is.", (), Confidence.MEDIUM, cause=cause, lost_percent=30.0)
    words = find_recommendations(kind, cause, None, (), 30.0, NO_CALIBRATION)
    assert suggest_for_script(ScriptCase(explain_script(script()), recipe(), verdict), words)


def test_the_fixes_are_rewrites_that_exist():
    assert set(FIXES) == set(InputCause)
    assert {key for keys in FIXES.values() for key in keys} <= set(REWRITES)


def test_a_serial_map_is_told_what_to_type_and_what_it_brings():
    first = suggested(InputCause.UNDER_PARALLEL, script(ceiling_ms=6.0))[0]
    assert first.edit == "train.py:41  .map(load) → .map(load, num_parallel_calls=tf.data.AUTOTUNE)"
    assert first.predicted_gain_percent == 70.0
    assert first.prediction == "predicted: step 70 % shorter, 69 to 71 %"
    assert first.risk == "low risk"
    assert first.held_back == "A step then takes 6 ms, limited by: training step."


def test_the_fix_stays_where_other_programs_take_its_gain():
    """24 ms of processor in a step of 24 ms, for one core that is left of two."""
    busy = script(cpu_share=1.0, step_ms=24.0, cores=2.0, pool_threads=2, other_cores=1.1)
    first = next(each for each in suggested(InputCause.UNDER_PARALLEL, busy) if each.after)
    assert first.predicted_gain_percent == 0.0
    assert first.prediction == ""
    assert first.held_back == ("Little gain while other programs use 1.1 of 2 cores; up to 40 % on a quiet machine.")


def test_whole_batches_save_what_all_stages_take_that_hand_on_single_elements():
    """Of 20 ms a batch a shuffle takes 8 for 200 elements and the source 12, for as many: 60 µs each are work, 40 are not."""
    source, mapped, batch = recipe().calls
    shuffled = replace(mapped, method="shuffle", text=".shuffle(100)", arguments={"buffer_size": 100})
    own = replace(recipe(), calls=(source, shuffled, batch))
    verdict = waiting(InputCause.CALL_OVERHEAD, (WrittenCall(shuffled.text, shuffled.place),), stage="Shuffle")
    words = in_words(verdict)
    *above, shuffle, reader = stages(map_ms=0.8)
    gains = []
    for count in (300, 200):
        ran = (*above, replace(shuffle, visits=200.0), replace(reader, work_ns=12e6, visits=count))
        run = explain_script(replace(script(stages=ran), recipe=own))
        gains.append(suggest_for_script(ScriptCase(run, own, verdict), words)[0].predicted_gain_percent)
    assert gains == [75.0, 40.0]  # down to the step of 5 ms, and to the 12 ms of the source


def test_python_is_rewritten_first_and_then_called_less_often():
    found = suggested(InputCause.PYTHON_BOUND, python_script(cpu_share=1.0), python=True)
    assert found[0].change.startswith("train.py:41: Write decode (train.py:7) in TensorFlow ops")
    assert found[0].before == ".map(load)"
    assert found[0].predicted_gain_percent == 50.0  # half of the Python is left
    assert found[0].prediction == "predicted: step 50 % shorter, 0 to 75 %"
    assert any(each.after == ".batch(10).map(load)" for each in found[1:])


def test_threads_for_a_py_dataset_are_one_suggestion_with_what_they_gain_at_least_and_at_most():
    """Words and edit are the same change; nobody has measured how much of the work holds Python's lock."""
    read = PythonPart("PyDataset", UserFunction("Faces.__getitem__", "__main__", "/home/train.py", 7))
    own = recipe(python=(read,))
    calls = (WrittenCall(".map(load)", place(41), (read,)),)
    verdict = waiting(InputCause.PYTHON_BOUND, calls)
    words = in_words(verdict)
    made = (ScriptStage("Generator", None, 18.0e6, python_share=1.0, calls=(2,)),)
    run = explain_script(replace(script(stages=made, cpu_share=1.0), recipe=own))
    first, *others = suggest_for_script(ScriptCase(run, own, verdict), words)
    assert first.change.startswith("train.py:41: Give the dataset workers=4")
    assert first.after == "workers=4"
    assert first.gain_range_percent is not None
    low, high = first.gain_range_percent
    assert first.predicted_gain_percent == pytest.approx((low + high) / 2, abs=0.1)
    assert high > 50.0
    assert "workers=4" not in {one.after for one in others}
    early = replace(own, uses=tuple(replace(use, carried_over="Its epochs end early.") for use in own.uses))
    words_alone, *others = suggest_for_script(ScriptCase(run, early, verdict), words)
    assert words_alone.change == first.change
    assert words_alone.side_effects[-1] == "Its epochs end early."
    assert "workers=4" not in {one.after for one in (words_alone, *others)}


def test_python_that_waits_gets_more_calls_than_cores():
    run = python_script(cpu_share=0.02, step_cpu_ms=0.5, ceiling_ms=1.0)
    first = suggested(InputCause.PYTHON_WAITS, run, python=True)[0]
    assert first.after == ".map(load, num_parallel_calls=32)"
    assert "private_threadpool_size = 32" in first.change
    assert first.predicted_gain_percent == 95.0


@pytest.mark.parametrize(
    ("memory_bytes", "kept"), [(4e6, [".batch(10).cache()"]), (3e6, ["TFRecordDataset(files).cache()"]), (1e6, [])]
)
def test_a_cache_that_does_not_fit_is_suggested_where_it_does(memory_bytes: float, kept: list[str]):
    """In 100 batches what the map makes takes 1 MB, and what is read before it 0.5 MB; a quarter of the memory may be taken."""
    run = script(cpu_share=1.0, epoch_batches=100.0, memory_bytes=memory_bytes)
    fixes = [each.after for each in suggested(InputCause.CPU_BOUND, run) if each.after]
    assert [after for after in fixes if after.endswith(".cache()")] == kept
    assert any("cache('pipeline-cache')" in after for after in fixes)


def test_the_step_that_is_the_limit_comes_first_and_no_change_of_the_input_after_it():
    found = suggested(None, script(stages=stages(0.1), step_ms=5.0), kind=VerdictClass.DEVICE_BOUND)
    assert [each.change for each in found] == [
        "Compile the step with XLA (jit_compile=True); then try mixed precision, a larger batch, a faster device."
    ]


def test_python_between_steps_is_shared_by_several_of_them():
    """Of 5 ms, 2 are Python between TensorFlow's calls, and 1 launches them."""
    run = script(stages=stages(0.1), step_ms=5.0, between_ns=(2e6, 3e6))
    first, second = suggested(None, run, kind=VerdictClass.DEVICE_BOUND)
    assert first.after == "steps_per_execution=8"
    assert first.predicted_gain_percent == 52.5  # seven eighths of 60 %
    assert first.gain_range_percent == (15.5, 54.5)
    assert second.change.startswith("Compile the step with XLA")


def test_what_gains_little_stands_behind_the_limit():
    run = script(stages=stages(0.1), step_ms=5.0, between_ns=(0.1e6, 0.2e6))
    first, *others = suggested(None, run, kind=VerdictClass.DEVICE_BOUND)
    assert first.change.startswith("Compile the step with XLA")
    assert [each.after for each in others] == ["steps_per_execution=8"]
    verdict = waiting(None, (), kind=VerdictClass.DEVICE_BOUND)
    assert suggest_for_script(ScriptCase(explain_script(run), run.recipe, verdict, is_eager=True), ()) == ()


def test_a_change_whose_gain_is_known_stands_before_one_whose_gain_is_not():
    own = recipe()
    shuffled = DatasetCall(4, "shuffle", {"buffer_size": 100}, (2,), place=place(43), text=".shuffle(100)")
    batched = replace(own.calls[2], inputs=(4,))
    own = replace(own, calls=(*own.calls[:2], shuffled, batched))
    calls = (WrittenCall(".shuffle(100)", place(43)), WrittenCall(".map(load)", place(41)))
    verdict = waiting(InputCause.EPOCH_START, calls, stage="Shuffle")
    case = ScriptCase(explain_script(replace(script(), recipe=own)), own, verdict)
    gains = [each.predicted_gain_percent for each in suggest_for_script(case, ())]
    assert isinstance(gains[0], float)
    assert any(isinstance(gain, Unavailable) for gain in gains[1:])


def test_what_to_take_off_shared_cores_is_said_by_a_line_before_it_is_said_in_words():
    found = suggested(None, script(cpu_share=1.0, cores=2.0, pool_threads=2), kind=VerdictClass.HOST_CONTENTION)
    assert found[0].place is not None
    assert [each.place is not None for each in found[-2:]] == [False, True]
    assert found[-2].change.startswith("Cache after the pipeline's expensive part")
    assert found[-1].change.endswith("in files beside the script.")  # another way to what the first one gains


def test_a_script_that_the_model_cannot_explain_is_told_the_fix_all_the_same():
    first = suggested(InputCause.UNDER_PARALLEL, script(step_ms=100.0))[0]
    assert first.edit.endswith("num_parallel_calls=tf.data.AUTOTUNE)")
    assert isinstance(first.predicted_gain_percent, Unavailable)


def test_a_pool_that_is_too_small_gets_the_threads_that_the_calls_ask_for():
    own = recipe()
    mapped = replace(own.calls[1], arguments={**own.calls[1].arguments, "num_parallel_calls": 16})
    own = replace(own, calls=(own.calls[0], mapped, own.calls[2]))
    ran = list(stages())
    ran[3] = replace(ran[3], name="ParallelMapV2", at_once=2.0, works_ahead=True, is_pooled=True)
    run = script(recipe=own, stages=tuple(ran), step_ms=10.0, ceiling_ms=2.0, pool_threads=2, step_cpu_ms=1.0)
    verdict = waiting(InputCause.POOL_BOUND, (WrittenCall(".map(load)", place(41)),), stage="ParallelMapV2")
    first = suggest_for_script(ScriptCase(explain_script(run), own, verdict), ())[0]
    assert first.after == "options.threading.private_threadpool_size = 16"
    assert first.predicted_gain_percent == 80.0  # the step is left


def test_python_that_holds_up_the_step_too_is_bounded_by_what_computes():
    """The step takes 18 ms beside its wait, but computes for 2 ms of them: the rest waits for Python's lock."""
    run = python_script(cpu_share=1.0, ceiling_ms=18.0, busy_ms=2.0, python_computes=True, is_calibrated=False)
    found = suggested(InputCause.PYTHON_BOUND, run, python=True)[0]
    assert found.predicted_gain_percent == 50.0  # half of the 20 ms of Python is left, and not 18 of the step


def test_a_map_that_runs_on_all_threads_already_is_not_told_to_run_in_parallel():
    ran = list(stages(8.0))
    ran[3] = replace(ran[3], name="ParallelMapV2", at_once=4.0, works_ahead=True, is_pooled=True)
    found = suggested(InputCause.UNDER_PARALLEL, script(stages=tuple(ran)))
    assert not any("num_parallel_calls=tf.data.AUTOTUNE" in each.after for each in found)


def test_what_a_librarys_function_makes_is_cached_before_it_is_written_anew():
    """Nobody can give the call num_parallel_calls; a cache behind it takes all of its 20 ms away."""
    source, mapped, batch = recipe().calls
    made = replace(mapped, method="map", text="make_csv_dataset(PATH)", is_direct=False)
    own = replace(recipe(), calls=(source, made, batch))
    calls = (WrittenCall(made.words, made.place),)
    verdict = waiting(InputCause.UNDER_PARALLEL, calls)
    words = in_words(verdict)
    found = suggest_for_script(ScriptCase(explain_script(replace(script(), recipe=own)), own, verdict), words)
    assert "cache()" in (found[0].after or "")
    anew = next(each.change for each in found[1:] if each.change.startswith("Replace train"))
    assert anew.startswith("Replace train.py:41 make_csv_dataset(PATH) with calls of your own")


def test_where_other_programs_fill_the_cores_and_nothing_helps_they_come_first():
    busy = script(cpu_share=1.0, step_ms=24.0, cores=2.0, pool_threads=2, other_cores=1.1)
    first = suggested(InputCause.UNDER_PARALLEL, busy)[0]
    assert first.change.startswith("Stop the other programs")
    assert "1.1 of 2 cores" in first.why
