"""Advice on a whole diagnosis: in words where nobody knows the options, by the model where the run tells them."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.advice.advising import _with_one_iterator_once, _without_repeats, advise
from pipeline_lab.analysis.causes import GapCause, InputCause, VerdictClass
from pipeline_lab.analysis.declaring.tables import build
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs
from pipeline_lab.analysis.sampling.padding import measure_padding
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.eager_ops import EagerOps
from pipeline_lab.analysis.steps.iterator_ends import IteratorEnds, IteratorStarts
from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS
from pipeline_lab.analysis.steps.step_phases import Phase, PhaseTimes
from pipeline_lab.analysis.steps.stragglers import compare_hosts
from pipeline_lab.analysis.verdict.findings import iterator_ends
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.iterator_rewrites import ONE_ITERATOR
from pipeline_lab.pipeline.recipe import LOOP, PythonPart, UserFunction
from pipeline_lab.runs.run_events import EagerStepEvent, PredictEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import PADDING
from pipeline_lab.runs.store import RunStore
from pipeline_lab.trace.schema import Salvage
from tests.analysis.steps.test_stragglers import FAST, WAITING, breakdown
from tests.analysis.verdict.test_input_causes import SERIAL, SLEEPING, pipeline
from tests.analysis.verdict.test_verdict_rules import NO_CALIBRATION, NO_PIPELINE, divided
from tests.support import results
from tests.support.run_folders import make_run
from tests.support.scripts import recipe

NO_EPOCHS = Unavailable("A log.")


def judged(calibration: object = NO_CALIBRATION, **percent: int) -> Diagnosis:
    """Return a diagnosis of a log whose steps divide as given, with its verdict."""
    stalls = results.input_stalls()
    found = results.diagnosis(
        input_stalls=replace(stalls, exposed_ns=stalls.wait_ns),
        step_breakdown=divided(**percent),
        calibration=calibration,
        step_phases=NO_EPOCHS,
        tf_data=NO_PIPELINE,
        live_model=NO_PIPELINE,
    )
    found = replace(found, source=replace(found.source, path="/nowhere"))
    return replace(found, verdict=reach_verdict(found))


def later(found: Diagnosis) -> LaterEpochs:
    """Return later epochs from step 100 on that a diagnosis is about."""
    first = PhaseTimes(Phase.FIRST_EPOCH, 100, 0, 150e6, 150e6, 15 * 10**9, 10**9)
    return LaterEpochs(
        first_step=100,
        start_ns=15 * 10**9,
        first=first,
        job_steps=found.job_steps,
        iterator_starts=found.iterator_starts,
        iterator_ends=found.iterator_ends,
        checkpoints=found.checkpoints,
        calibration=found.calibration,
        live_model=found.live_model,
        job_load=found.job_load,
        profiler_cost=found.profiler_cost,
    )


@pytest.mark.parametrize(
    ("percent", "kind"),
    [
        ({"input_wait": 60, "device_compute": 40}, VerdictClass.INPUT_BOUND),
        ({"host_to_device": 30, "device_compute": 70}, VerdictClass.HOST_TO_DEVICE_BOUND),
        ({"compile": 50, "device_compute": 50}, VerdictClass.COMPILE_BOUND),
        ({"dispatch": 40, "device_compute": 60}, VerdictClass.DISPATCH_BOUND),
        ({"python": 60, "host_compute": 40}, VerdictClass.IDLE_OTHER),
        ({"host_compute": 100}, VerdictClass.DEVICE_BOUND),
    ],
)
def test_a_log_is_advised_in_words(percent: dict[str, int], kind: VerdictClass):
    found = judged(**percent)
    assert (found.verdict.verdict_class, found.verdict.suggestions) == (kind, ())
    first = advise(found).verdict.suggestions[0]
    assert first.change.endswith(".")
    assert first.options is None


def test_xla_is_no_first_choice_on_a_cpu():
    on_cpu, on_device = judged(host_compute=100), judged(device_compute=100)
    assert advise(on_cpu).verdict.suggestions[0].headline == "Try a larger batch, a smaller model or a faster device"
    assert advise(on_device).verdict.suggestions[0].headline == "Compile the step with XLA (jit_compile=True)"
    unseen = replace(on_cpu, source=replace(on_cpu.source, unseen_device=True))
    assert advise(unseen).verdict.suggestions[0].headline == "Compile the step with XLA (jit_compile=True)"


def test_a_log_that_was_not_calibrated_predicts_nothing_of_its_input():
    (suggestion,) = advise(judged(input_wait=60, device_compute=40)).verdict.suggestions
    assert isinstance(suggestion.predicted_gain_percent, Unavailable)
    assert suggestion.prediction == ""


def test_the_gain_of_overlapping_and_of_a_faster_pipeline_follow_from_the_calibration():
    # alone 20 and 30 ms, together 50: they take turns, and the slower one would remain
    turns = advise(judged(Calibration(20e6, 30e6, 50e6), input_wait=60, device_compute=40)).verdict
    assert turns.suggestions[0].predicted_gain_percent == 40.0
    slow = advise(judged(Calibration(20e6, 49e6, 50e6), input_wait=60, device_compute=40)).verdict
    assert slow.suggestions[0].predicted_gain_percent == 60.0
    assert slow.suggestions[0].prediction == "predicted: step up to 60 % shorter"


def test_a_serial_map_is_to_be_parallelised_first_and_overlapped_second():
    # three quarters of the step wait for a map without num_parallel_calls; nothing works ahead
    found = replace(
        judged(input_wait=75, device_compute=25), tf_data=pipeline(*SERIAL, blamed=2, pool=2), job_load=SLEEPING
    )
    verdict = advise(replace(found, verdict=reach_verdict(found))).verdict
    assert verdict.cause == "under-parallel"
    assert [one.change.split()[0] for one in verdict.suggestions] == ["Give", "End"]
    assert verdict.suggestions[1].predicted_gain_percent == 25.0


def test_of_a_short_serial_map_overlap_comes_first():
    found = replace(
        judged(input_wait=40, device_compute=60), tf_data=pipeline(*SERIAL, blamed=2, pool=2), job_load=SLEEPING
    )
    verdict = advise(replace(found, verdict=reach_verdict(found))).verdict
    assert verdict.cause == "no-overlap"
    assert [one.change.split()[0] for one in verdict.suggestions] == ["End", "Give"]
    assert verdict.suggestions[0].predicted_gain_percent == 40.0


def test_of_a_job_that_is_judged_by_its_later_epochs_their_own_step_says_what_there_is_to_gain():
    # alone 20 ms of 100 over all of the job, but of 50 in the epochs that the verdict is about
    found = judged(Calibration(20e6, None, 50e6), input_wait=60, device_compute=40)
    apart = replace(found, calibration=Calibration(20e6, 30e6, 100e6), later_epochs=later(found))
    (suggestion,) = advise(apart).verdict.suggestions
    assert suggestion.predicted_gain_percent == 60.0


def test_advice_that_is_there_stays():
    advised = advise(judged(input_wait=60, device_compute=40))
    assert advise(advised) is advised


def test_a_step_without_a_function_is_told_what_one_would_bring():
    """Two hundred ops of 30 µs from Python in a step of 30 ms: in a function 5 µs each, and 5 µs of their own work."""
    found = judged(python=60, dispatch=20, host_compute=20)
    steps = found.steps.count
    total_ns = found.step_breakdown.total_ns
    ops = round(total_ns / 150_000)  # of 30 µs each, a fifth of the time
    eager = EagerOps(steps=steps, ops=ops, ops_ns=ops * 30_000, function_calls=0)
    first = advise(replace(found, eager_ops=eager)).verdict.suggestions[0]
    assert "@tf.function" in first.change
    assert first.predicted_gain_percent == pytest.approx(93.3, abs=0.1)  # 10 of 150 µs are left
    assert first.gain_range_percent == (75.0, pytest.approx(98.3, abs=0.1))
    assert first.change.startswith("Put the training step into a function"), "it is not known where it is"
    batches = replace(eager, paused_ns=round(0.5 * total_ns))  # of the time is not launching ops
    first = advise(replace(found, eager_ops=batches)).verdict.suggestions[0]
    assert first.predicted_gain_percent == pytest.approx(43.3, abs=0.1)
    assert first.gain_range_percent == (25.0, pytest.approx(48.3, abs=0.1))
    called = replace(eager, function_calls=steps)
    assert "@tf.function" not in advise(replace(found, eager_ops=called)).verdict.suggestions[0].change


@pytest.mark.parametrize(
    ("taken", "change"),
    [
        (
            [("Agent.learn", 40)],
            "Decorate Agent.learn (gan.py:40) with @tf.function, so that Python launches it as a whole.",
        ),
        (
            [("critic", 12), ("generator", 30)],
            "Decorate critic (gan.py:12) and generator (gan.py:30) with @tf.function, so that Python launches each as a whole.",
        ),
        (
            [("", 52)],
            "Put the step that takes its gradients at gan.py:52 into a function with @tf.function, so that Python launches it as a whole.",
        ),
    ],
)
def test_a_step_op_by_op_is_named_where_it_is_known(taken: list[tuple[str, int]], change: str) -> None:
    found = judged(python=60, dispatch=20, host_compute=20)
    steps = tuple(EagerStepEvent(function, "/home/gan.py", line) for function, line in taken)
    eager = EagerOps(steps=4, ops=800, ops_ns=24_000_000, function_calls=0)
    named = replace(found, eager_ops=eager, job_steps=replace(found.job_steps, eager_steps=steps))
    first = advise(named).verdict.suggestions[0]
    assert first.change == change
    assert ".numpy()" in first.reasons


@pytest.mark.parametrize(("file", "line", "place"), [("/home/gan.py", 7, " (gan.py:7)"), ("", 0, "")])
def test_a_switch_that_lets_steps_run_op_by_op_is_named_with_its_line(file: str, line: int, place: str) -> None:
    found = judged(python=60, dispatch=20, host_compute=20)
    steps = (EagerStepEvent("", file, line, "run_eagerly=True"),)
    eager = EagerOps(steps=4, ops=800, ops_ns=24_000_000, function_calls=0)
    named = replace(found, eager_ops=eager, job_steps=replace(found.job_steps, eager_steps=steps))
    change = advise(named).verdict.suggestions[0].change
    assert change.startswith(f"Leave out run_eagerly=True{place}, so that")


def test_ends_of_iterators_are_advised_against_whatever_else_holds_the_job_back():
    found = replace(judged(input_wait=60, device_compute=40), iterator_ends=IteratorEnds(4, 300, 100, 1000))
    changes = [one.change for one in advise(found).verdict.suggestions]
    assert (
        changes.index(
            "Let one iterator serve all epochs: repeat() the dataset, with steps_per_epoch in fit, or next() in your own loop."
        )
        == 0
    )
    few = replace(found, iterator_ends=IteratorEnds(4, 10, 5, 1000))
    of_keras = replace(found, job_steps=replace(found.job_steps, own_call="model.train_on_batch at train.py:4"))
    for other in (few, of_keras):
        assert "Let one iterator" not in " ".join(one.change for one in advise(other).verdict.suggestions)
        assert iterator_ends(other) is None
    assert iterator_ends(found) is not None


def test_iterators_of_a_single_step_are_said_to_give_first_batches_only():
    found = judged(input_wait=60, device_compute=40)
    count = found.job_steps.count
    for starts, is_of_first in ((count - 1, True), (count // 2, False)):
        made = replace(found, iterator_starts=IteratorStarts(starts, 300, 100, 1000))
        first = advise(made).verdict.suggestions[0]
        assert first.change.startswith("Create the iterator once, before the loop") == is_of_first
        assert first.predicted_gain_percent >= 30.0
        assert ("the same one in each step" in iterator_ends(made).sentence) == is_of_first


def test_what_lies_between_epochs_is_advised_against_with_its_own_gain():
    found = judged(device_compute=100)
    recorded_ns = float(found.steps.training_step_ns.mean())
    total_ns = round(100 * recorded_ns * 2)
    job = replace(found.job_steps, count=100, total_ns=total_ns, wait_total_ns=0, break_total_ns=round(0.4 * total_ns))
    none = {"iterator_starts": Unavailable("none"), "iterator_ends": Unavailable("none")}
    ended = replace(found, job_steps=job, **none)
    first, second, *_ = advise(replace(ended, verdict=reach_verdict(ended))).verdict.suggestions
    assert first.change.startswith("If callbacks or your own loop predict, draw or save at the end of each epoch")
    assert first.predicted_gain_percent == pytest.approx(40.0)
    assert second.change.startswith("Let one iterator serve all epochs")
    assert second.predicted_gain_percent == pytest.approx(10.0), "a quarter: callbacks, and what Keras does then, stay"
    assert "callbacks" in second.why
    both = replace(ended, iterator_ends=IteratorEnds(5, total_ns // 10, 10**8, total_ns))
    first, one, *more = advise(replace(both, verdict=reach_verdict(both))).verdict.suggestions
    assert first.predicted_gain_percent == pytest.approx(30.0)
    assert one.change == second.change
    assert one.predicted_gain_percent == pytest.approx(10.0 + 7.5), (
        "ends, and a quarter of what else lies between epochs"
    )
    assert one.change not in {each.change for each in more}
    made = replace(ended, iterator_starts=IteratorStarts(5, total_ns // 10, 10**8, total_ns))
    _, one, *_ = advise(replace(made, verdict=reach_verdict(made))).verdict.suggestions
    assert one.predicted_gain_percent == pytest.approx(10.0 + 7.5), "iterators are made in a quarter of it"


def test_small_breaks_do_not_come_before_what_the_verdict_is_about():
    found = judged(input_wait=60, device_compute=40)
    verdict = replace(found.verdict, break_percent=5.0)
    first, *more = advise(replace(found, verdict=verdict, iterator_ends=Unavailable("none"))).verdict.suggestions
    assert "one iterator" not in first.change
    assert [each for each in more if each.change.startswith("Let one iterator")]


def test_of_several_hosts_the_one_that_the_others_wait_for_comes_first():
    steps = breakdown(worker_0=[FAST] * 10, worker_1=[WAITING] * 10)
    found = results.diagnosis(
        step_breakdown=steps, hosts=compare_hosts(steps), calibration=NO_CALIBRATION, tf_data=NO_PIPELINE
    )
    found = replace(found, source=replace(found.source, path="/nowhere"))
    found = replace(found, verdict=replace(reach_verdict(found), overlap_percent=30.0))
    first, *more = advise(found).verdict.suggestions
    assert first.headline == "On worker_1: find out why its input is slower"
    assert first.why.startswith("Each step of worker_1 waits 25 ms for input, of the other hosts 0 ns.")
    assert first.predicted_gain_percent == 62.5  # 25 of 40 ms, of which the others wait as long
    assert any("prefetch" in one.change for one in more)
    slow = breakdown(worker_0=[FAST] * 10, worker_1=[{"device_compute": 36, "collective": 4}] * 10)
    found = replace(found, step_breakdown=slow, hosts=compare_hosts(slow))
    first, *_ = advise(replace(found, verdict=reach_verdict(found))).verdict.suggestions
    assert first.headline == "On worker_1: find out why its steps take longer"


def test_the_first_suggestion_for_a_log_ends_with_a_command_and_one_for_a_watched_run_with_none_of_these(tmp_path):
    found = judged(input_wait=60, device_compute=40)
    first, *more = advise(found).verdict.suggestions
    assert first.command == "pipeline-lab fix train.py"
    assert not any(one.command for one in more)
    recorded = judged(python=60, host_compute=40)
    assert advise(recorded).verdict.suggestions[0].command == "pipeline-lab watch train.py"
    own = make_run(RunStore(tmp_path)).path
    assert (
        advise(replace(found, source=replace(found.source, path=str(own)))).verdict.suggestions[0].command
        != first.command
    )


@pytest.mark.parametrize("kind", [each for each in VerdictClass if each.recommendation is not None])
def test_what_to_try_first_is_one_thing(kind: VerdictClass):
    for recommendation in (kind.recommendation, *(cause.recommendation for cause in (*GapCause, *InputCause))):
        if recommendation is not None:
            first = Suggestion(recommendation.change, "").headline.split("(")[0]
            assert first.count(",") <= 1, first


def test_a_damaged_log_without_steps_is_copied_again_before_anybody_marks_steps():
    found = results.diagnosis(steps=Unavailable(NO_STEPS), step_breakdown=Unavailable(NO_STEPS), job_steps=NO_EPOCHS)
    log = replace(found, source=replace(found.source, path="/nowhere"))
    cut = replace(
        log, source=replace(log.source, salvaged=Salvage(10, 0, "The file is cut off: 90 kB of 145 kB were read."))
    )
    whole, damaged = (advise(replace(each, verdict=reach_verdict(each))).verdict for each in (log, cut))
    assert whole.suggestions[0].change.startswith("Mark each training step")
    assert damaged.suggestions[0].change == "Copy the whole file, or record again."
    assert damaged.sentence.endswith("holds no step. The file is cut off: 90 kB of 145 kB were read.")


def test_a_headline_of_no_overlap_lists_prefetch_whatever_the_model_finds(monkeypatch: pytest.MonkeyPatch):
    found = replace(
        judged(input_wait=40, device_compute=60), tf_data=pipeline(*SERIAL, blamed=2, pool=2), job_load=SLEEPING
    )
    found = replace(found, verdict=reach_verdict(found))
    assert found.verdict.cause == InputCause.NO_OVERLAP
    for of_model in (("Give map 4 parallel calls.",), ("Cache.", "Add prefetch as the last stage.")):
        modeled = tuple(Suggestion(change, "Because.", 20.0) for change in of_model)
        monkeypatch.setattr("pipeline_lab.advice.advising._by_model", lambda *_, modeled=modeled: modeled)
        listed = [one.change for one in advise(found).verdict.suggestions]
        assert sum("prefetch" in change for change in listed) == 1


def test_one_iterator_for_all_epochs_is_suggested_once_with_the_models_numbers_where_there_are_any():
    words = Suggestion(GapCause.ITERATOR_END.recommendation.change, "Why.", 12.0)
    model = Suggestion(ONE_ITERATOR[LOOP], "Why.", 11.0, gain_range_percent=(5.0, 12.0))
    other = Suggestion("Cache.", "Why.", 3.0)
    assert _with_one_iterator_once((other, words, model)) == (other, model)
    assert _with_one_iterator_once((words, other)) == (words, other)


@pytest.mark.parametrize(("kind", "is_kept"), [("PyDataset", False), ("Sequence", False), ("py_function", True)])
def test_one_iterator_is_not_advised_for_what_nobody_can_repeat(tmp_path: Path, kind: str, is_kept: bool) -> None:
    folder = make_run(RunStore(tmp_path))
    function = UserFunction("Batches.__getitem__", "__main__", "/train.py", 3)
    folder.recipe.write_text(recipe(python=(PythonPart(kind, function, None),)).to_json())
    words = Suggestion(GapCause.ITERATOR_END.recommendation.change, "Why.", 12.0)
    other = Suggestion("Cache.", "Why.", 3.0)
    found = judged(device_compute=100)
    of_run = replace(found, source=replace(found.source, path=str(folder.path)))
    assert _without_repeats(of_run, (words, other)) == ((words, other) if is_kept else (other,))
    assert _without_repeats(found, (words, other)) == (words, other), "a log has no script"
    for percent, advised in ((4.0, 0), (40.0, 1)):
        waiting = replace(found.job_steps, wait_total_ns=round(percent / 100 * found.job_steps.total_ns))
        left = _without_repeats(replace(of_run, job_steps=waiting), (words,))
        assert left == (words,) if is_kept else sum("workers=4" in one.change for one in left) == len(left) == advised


def test_batches_that_the_script_makes_are_made_beside_the_step_and_no_prefetch_is_advised() -> None:
    found = judged(input_wait=60, device_compute=40)
    own = replace(found.verdict, cause=InputCause.OWN_BATCHES.value, stage="step at train.py:4", overlap_percent=40.0)
    (only,) = advise(replace(found, verdict=own)).verdict.suggestions
    assert only.change == InputCause.OWN_BATCHES.recommendation.change
    assert only.why.startswith("Between the calls of step at train.py:4")
    assert only.predicted_gain_percent == 40.0


def test_a_model_that_predicts_a_batch_at_a_time_is_to_be_called_itself() -> None:
    found, call = judged(input_wait=60, device_compute=40), "generator.predict at train.py:4"

    def first(calls: int, percent: int, each: int = 1) -> Suggestion | None:
        job = replace(
            results.job_steps(),
            predicts=Predicts((PredictEvent(call, calls, each * percent * calls, each * 100 * calls),)),
        )
        suggested = advise(replace(found, job_steps=job)).verdict.suggestions
        return next((one for one in suggested if "predict" in one.change), None)

    one = first(10, 80)
    assert one is not None
    assert one.change == f"Put generator.predict_on_batch(x) in place of {call}: it returns the same array."
    assert one.predicted_gain_percent == 80.0
    assert first(9, 80) is first(10, 9) is None
    assert first(10, 80, each=10**7) is None, "it computes"


@pytest.mark.parametrize(("input_wait", "percent", "place"), [(0, 70, 0), (60, 70, 1), (0, 30, None)])
def test_a_script_that_pads_its_batches_much_is_told_what_to_do(
    tmp_path: Path, input_wait: int, percent: int, place: int | None
) -> None:
    found = judged(input_wait=input_wait, host_compute=100 - input_wait)
    rows = build(PADDING.schema, 1, step=[0], examples=[4], elements=[100], padding=[percent])
    found = replace(found, padding=measure_padding(rows), source=replace(found.source, path=str(tmp_path)))
    assert not [one for one in advise(found).verdict.suggestions if "length" in one.change], "no script"
    RunFolder(tmp_path).recipe.write_text("{}")
    places = [at for at, one in enumerate(advise(found).verdict.suggestions) if "bucket_by" in one.change]
    assert places == ([] if place is None else [place])


def test_where_calls_of_predict_hold_the_job_back_nothing_else_is_advised_first() -> None:
    found = judged(python=60, device_compute=40)
    verdict = replace(found.verdict, predicting_percent=found.verdict.lost_percent)
    assert verdict.is_about_predicts
    job = replace(results.job_steps(), predicts=Predicts((PredictEvent("q.predict at train.py:4", 20, 60, 100),)))
    suggested = advise(replace(found, verdict=verdict, job_steps=job)).verdict.suggestions
    assert (
        suggested[0].change
        == "Put q.predict_on_batch(x) in place of q.predict at train.py:4: it returns the same array."
    )
    assert not [one for one in suggested if one.change == GapCause.PYTHON.recommendation.change]


@pytest.mark.parametrize(
    ("examples", "said"), [(1, "than one example;"), (16, "than 16 examples;"), (17, ""), (None, "")]
)
def test_where_python_between_the_steps_takes_long_a_small_batch_may_be_larger(examples: int | None, said: str) -> None:
    job = results.job_steps()
    per_second = None if examples is None else examples * 1e9 * job.count / job.total_ns
    job = replace(job, examples_per_second=per_second)
    told = advise(replace(judged(python=60, host_compute=40), job_steps=job)).verdict.suggestions
    found = [one.change for one in told if "larger batch" in one.change]
    assert [change.startswith(f"Try a larger batch {said}") for change in found] == ([True] if said else [])
    waits = advise(replace(judged(input_wait=60, host_compute=40), job_steps=job)).verdict.suggestions
    assert not [one for one in waits if one.change.startswith("Try a larger batch than")]
