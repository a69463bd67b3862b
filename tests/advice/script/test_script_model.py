"""What changes of a script would bring, in numbers that add up in the head: 20 ms of map in a batch, a step of 5 ms."""

from dataclasses import replace

import pytest

from pipeline_lab.advice.script.cache_room import NoRoom
from pipeline_lab.advice.script.script_edits import SIZES_UNKNOWN, STEP_UNKNOWN
from pipeline_lab.advice.script.script_model import (
    LOCK_UNKNOWN,
    ScriptPrediction,
    explain_script,
    predict_change,
    predict_without,
)
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    AUTOTUNER,
    Edit,
    InBatches,
    Insert,
    IntoStep,
    MoveBefore,
    OneIterator,
    SetArgument,
    SetTraining,
    Split,
)
from pipeline_lab.pipeline.function_parts import FunctionParts
from pipeline_lab.pipeline.recipe import DatasetCall, PythonPart, UserFunction
from tests.support.scripts import DECODE, MS, recipe, script, stages

PARALLEL = SetArgument(2, "num_parallel_calls", AUTOTUNE)


def predicted(run: ScriptRun, *edits: Edit, pool_threads: int | None = None) -> ScriptPrediction:
    explained = explain_script(run)
    assert isinstance(explained, ScriptRun)
    found = predict_change(explained, edits, pool_threads=pool_threads)
    assert isinstance(found, ScriptPrediction)
    return found


def test_without_a_change_the_script_takes_its_own_step():
    found = predicted(script(step_ms=24.0))  # a fifth more than the stages explain
    assert (found.step_ns, found.gain_percent) == (24e6, 0.0)
    assert found.terms[0].name == "train.py:41 .map(load)"


def test_parallel_calls_leave_the_training_step():
    found = predicted(script(), PARALLEL)  # four threads: 5 ms of map, 5 ms of step
    assert found.gain_percent == 75.0
    assert found.low_percent < 75.0 < found.high_percent


def test_calls_of_a_map_take_their_elements_first_so_that_two_serial_maps_run_one_after_the_other():
    """Two maps of 2 ms for each of ten examples; TensorFlow fuses the second one with the batch, which gives it a thread of its own."""
    fused = ScriptStage("MapAndBatch", 0, 2e7, 1.0, (2, 3), works_ahead=True, is_pooled=True, words="second")
    first = ScriptStage("Map", 1, 2e7, 10.0, (1,), words="first")
    run = script(step_ms=40.0, stages=(ScriptStage("Root", None, 0.0), fused, first))
    as_it_is = predicted(run)
    assert (as_it_is.gain_percent, as_it_is.terms[0].name) == (0.0, "first + second")
    for call in (1, 2):
        assert predicted(run, SetArgument(call, "num_parallel_calls", 4)).gain_percent == pytest.approx(50.0, abs=1.0)
    both = (SetArgument(1, "num_parallel_calls", 4), SetArgument(2, "num_parallel_calls", 4))
    assert predicted(run, *both).gain_percent == pytest.approx(75.0, abs=1.0), "four threads for 40 ms"


def test_what_other_programs_take_caps_the_gain_here_but_not_on_a_quiet_machine():
    busy = script(cpu_share=1.0, step_cpu_ms=4.0, other_cores=2.0)  # 24 ms of processor for two cores that are left
    found = predicted(busy, PARALLEL)
    assert found.gain_percent == pytest.approx(40.0)
    assert found.terms[0].name == "processor"
    assert found.quiet_percent == pytest.approx(70.0)  # 24 ms on four


def test_what_the_pipeline_takes_from_a_step_on_the_same_cores_is_told_by_how_many_are_at_work():
    """With 1.5 of two cores at work, half of the map's 4 ms of processor time come on top of a step of 8."""
    run = script(
        stages=stages(0.4),
        step_ms=10.0,
        ceiling_ms=10.0,
        cores=2.0,
        pool_threads=2,
        cpu_share=1.0,
        is_calibrated=False,
        cores_used=1.5,
    )
    found = predicted(run, Insert(2, "cache"))
    assert found.gain_percent == pytest.approx(20.0, abs=0.1)
    assert (found.low_percent, found.high_percent) == pytest.approx(
        (8.4, 31.6), abs=0.1
    )  # half, and half as much again
    assert predicted(replace(run, cores_used=1.0), Insert(2, "cache")).gain_percent == 0.0  # on the other core
    assert predicted(replace(run, cores_used=None), Insert(2, "cache")).gain_percent == 0.0


def test_a_pipeline_on_one_thread_can_do_no_more_while_the_step_waits_than_that_thread_can():
    """Of the map's 14 ms, 10 pass while the step waits; the other 4 hold its own 10 ms up, where all cores are at work."""
    run = script(
        stages=stages(1.4),
        step_ms=20.0,
        ceiling_ms=10.0,
        cores=2.0,
        pool_threads=2,
        cpu_share=1.0,
        is_calibrated=False,
        cores_used=2.0,
    )
    assert predicted(run, Insert(2, "cache")).gain_percent == pytest.approx(70.0, abs=0.1)


def test_what_a_step_that_was_timed_alone_takes_longer_beside_the_pipeline_goes_with_the_pipelines_work():
    """Alone it takes 6 of its 10 ms; the other 4 go with the map's 4 ms of processor time."""
    run = script(
        stages=stages(0.4), step_ms=10.0, ceiling_ms=6.0, beside_ms=4.0, cores=2.0, pool_threads=2, cpu_share=1.0
    )
    assert predicted(run, Insert(2, "cache")).gain_percent == pytest.approx(40.0, abs=0.1)
    assert predicted(run, PARALLEL).gain_percent == 0.0, "as much work as before"


def test_waits_that_the_pipeline_does_not_explain_belong_to_the_beginnings_of_epochs():
    """Half of the step is known to be waiting for first batches; the pipeline makes one in a fifth of what is left."""
    run = script(stages=stages(0.1), step_ms=20.0, ceiling_ms=5.0, starting_ms=10.0)
    explained = explain_script(run)
    assert isinstance(explained, ScriptRun)
    assert (explained.steady_ns, explained.starting_ns) == (5e6, 15e6)
    assert predicted(run, Insert(2, "cache")).gain_percent == pytest.approx(75.0, abs=1.0)


def test_python_that_computes_may_hold_its_lock_or_not():
    python = script(recipe=recipe(python=(DECODE,)), stages=stages(python=1.0), cpu_share=1.0)
    found = predicted(python, PARALLEL)
    assert found.gain_percent == 0.0
    assert found.low_percent <= 0.0
    assert found.high_percent > 69.0  # 24 ms of processor on four cores, where the lock is free


def test_a_generator_that_is_called_once_for_many_elements_saves_what_its_calls_cost_beside_their_work():
    quick = script(recipe=recipe(python=(DECODE,)), stages=stages(python=1.0), cpu_share=1.0)
    assert predicted(quick, InBatches(2, 64)).gain_percent == pytest.approx(100 * 10 * 0.2 * 63 / 64 / 20)
    assert predicted(quick, InBatches(2, 1)).gain_percent == 0.0


def test_python_that_waits_gains_by_calls_and_threads():
    waits = script(
        recipe=recipe(python=(DECODE,)), stages=stages(python=1.0), cpu_share=0.05, step_cpu_ms=1.0, ceiling_ms=1.0
    )
    calls = SetArgument(2, "num_parallel_calls", 16)
    assert predicted(waits, calls).gain_percent == 75.0  # the pool has four threads
    assert predicted(waits, calls, pool_threads=16).gain_percent == 93.75


def test_input_and_step_in_turns_are_overlapped_by_a_prefetch():
    turns = script(stages=stages(prefetch=False), step_ms=25.0)
    assert predicted(turns, Insert(3, "prefetch", {"buffer_size": AUTOTUNE})).gain_percent == pytest.approx(20.0)


def test_a_prefetch_brings_what_the_pipelines_own_time_leaves_not_all_of_the_wait():
    """63 % of the step is waiting, but the pipeline alone takes 95 % of it."""
    slow = script(stages=stages(2.85, prefetch=False), step_ms=30.0, ceiling_ms=1.5)
    assert predicted(slow, Insert(3, "prefetch", {"buffer_size": AUTOTUNE})).gain_percent == pytest.approx(5.0)


def test_a_cache_skips_what_is_before_it():
    found = predicted(script(), Insert(2, "cache"))
    assert found.gain_percent == 75.0


def test_a_function_in_two_parts_keeps_what_comes_before_its_draws_half_of_it_as_far_as_anybody_knows():
    parts = FunctionParts("load", "load_kept", "load_drawn", 1, 2, 3, "", "", "")
    found = predicted(script(), Split(2, parts))  # 10 of 20 ms of map stay, the step takes 5
    assert found.gain_percent == pytest.approx(50.0, abs=0.5)
    assert found.low_percent < 2.0
    assert found.high_percent > 74.0


@pytest.mark.parametrize(
    "edit", [Insert(2, "cache"), MoveBefore(2, 1, "cache")], ids=["after the map", "with the map moved upstream"]
)
def test_a_cache_that_does_not_fit_into_memory_is_not_predicted(edit: Edit):
    """An epoch of 100 batches of ten elements of 1 kB: 1 MB, a quarter of 4 MB."""
    full = explain_script(script(epoch_batches=100.0, memory_bytes=3.9e6))
    assert isinstance(full, ScriptRun)
    why = predict_change(full, (edit,))
    assert isinstance(why, NoRoom)
    assert why.reason == "The cache would take 1 MB; a quarter of the memory is 975 kB."
    assert isinstance(predict_change(replace(full, memory_bytes=4e6), (edit,)), ScriptPrediction)


@pytest.mark.parametrize("unknown", ["epoch_batches", "memory_bytes"])
def test_a_cache_whose_size_nobody_knows_is_predicted(unknown: str):
    values = {"epoch_batches": 100.0, "memory_bytes": 1e5} | {unknown: None}
    assert predicted(script(**values), Insert(2, "cache")).gain_percent == 75.0


def test_a_cache_in_files_needs_no_memory():
    full = script(epoch_batches=100.0, memory_bytes=1e5)
    assert predicted(full, Insert(2, "cache", {"filename": "kept"})).gain_percent == 75.0


def test_tiny_elements_gain_by_whole_batches():
    """A thousand calls of 20 µs for a batch, which is what calling costs."""
    tiny = stages(0.02)
    many = replace(tiny[3], work_ns=1000 * 20_000.0, visits=1000.0)
    run = script(recipe=recipe(), stages=(*tiny[:3], many, tiny[4]), ceiling_ms=0.5, step_cpu_ms=0.4)
    calls = [
        replace(call, arguments={"batch_size": 1000}) if call.method == "batch" else call for call in recipe().calls
    ]
    run = replace(run, recipe=replace(run.recipe, calls=tuple(calls)))
    assert predicted(run, MoveBefore(3, 2)).gain_percent == pytest.approx(97.5)  # only the step is left


def test_processor_time_that_no_stage_tells_of_is_the_pipelines_where_the_script_waits():
    """On one core the step computes for 5 of 60 ms and the map is seen to for 20: all 55 are the map's."""
    run = explain_script(script(step_ms=60.0, cores=1.0, step_cpu_ms=5.0, cpu_share=1.0))
    assert isinstance(run, ScriptRun)
    assert predict_without(run, (2,)).step_ns == pytest.approx(5e6)


def test_work_that_is_no_overhead_gains_little_by_whole_batches():
    found = predicted(script(cpu_share=0.0), MoveBefore(3, 2))
    assert found.low_percent < 2.0  # 10 × 30 µs of 20 ms
    assert found.high_percent > found.gain_percent > found.low_percent


def test_a_rewrite_can_bring_what_the_rest_of_the_pipeline_leaves():
    run = explain_script(script())
    assert isinstance(run, ScriptRun)
    assert predict_without(run, (2,)).gain_percent == 75.0
    assert predict_without(run, (2,), 0.5).gain_percent == 50.0, "10 of 20 ms are left"


def test_an_order_that_holds_the_script_up_can_be_given_up():
    kept = list(stages())
    kept[3] = replace(kept[3], name="ParallelMapV2", at_once=4.0, works_ahead=True, is_pooled=True)
    run = script(stages=tuple(kept), step_ms=40.0, order_stall=3)
    found = predicted(run, SetArgument(2, "deterministic", False))
    assert found.gain_percent == 87.5


def test_one_iterator_saves_what_passes_between_epochs_whatever_else_is_changed() -> None:
    run = script(making_ms=1.0, ends_ms=2.0, breaks_ms=4.0)
    cache = Insert(2, "cache")
    alone = predict_change(run, [OneIterator()])
    assert isinstance(alone, ScriptPrediction)
    assert alone.gain_percent == pytest.approx(20.0), "1 + 2 + 1 of 20 ms"
    assert alone.low_percent == pytest.approx(5.0 - 2.0), "the one end may last as long as all did"
    assert alone.high_percent >= 35.0
    cached, both = predict_change(run, [cache]), predict_change(run, [cache, OneIterator()])
    assert isinstance(cached, ScriptPrediction)
    assert isinstance(both, ScriptPrediction)
    assert both.gain_percent == pytest.approx(cached.gain_percent + 20.0)


def test_a_function_on_the_device_takes_no_time_of_the_pipeline_and_less_is_copied() -> None:
    run = script(copied_ms=2.0)
    found = predicted(run, IntoStep(2))
    assert found.step_ns == pytest.approx(4.0 * MS), "what remains of 5 ms once 500 of 1000 bytes are copied in 2 ms"
    assert found.gain_percent == pytest.approx(80.0)
    assert found.low_percent <= 75.0, "other waits may hide that"
    assert predict_change(script(), [IntoStep(2)]) == Unavailable(STEP_UNKNOWN)
    unknown = tuple(replace(each, element_bytes=None) for each in stages())
    assert predict_change(script(copied_ms=2.0, stages=unknown), [IntoStep(2)]) == Unavailable(SIZES_UNKNOWN)
    larger = tuple(replace(each, element_bytes=each.element_bytes and 1000.0) for each in stages())
    as_large = predicted(script(copied_ms=2.0, stages=larger), IntoStep(2))
    assert as_large.step_ns == pytest.approx(5.0 * MS), "nothing less is copied"


def test_without_the_autotuner_iterators_end_at_once_and_are_made_as_before() -> None:
    run = script(making_ms=1.0, ends_ms=2.0, breaks_ms=4.0)
    found = predict_change(run, [Insert(2, "with_options", {AUTOTUNER: False})])
    assert isinstance(found, ScriptPrediction)
    assert found.gain_percent == pytest.approx(15.0), "2 + 1 of 20 ms"


@pytest.mark.parametrize(("epoch_batches", "costs"), [(1000.0, 25.0), (100.0, 250.0)])
def test_workers_of_keras_2_have_to_save_more_than_the_end_of_each_epoch_costs(
    epoch_batches: float, costs: float
) -> None:
    """5 s for 1,000 steps are 5 ms of each."""
    python = (ScriptStage("Generator", None, 18.0e6, python_share=1.0),)
    gains = {}
    for kind in ("PyDataset", "Sequence"):
        own = recipe(DatasetCall(1, "from_generator", python=(PythonPart(kind, UserFunction("Rows", "", "", 1)),)))
        run = explain_script(replace(script(stages=python, epoch_batches=epoch_batches), recipe=own))
        assert isinstance(run, ScriptRun)
        found = predict_change(run, (SetTraining("workers", 4),))
        assert isinstance(found, ScriptPrediction)
        gains[kind] = found.gain_percent
        assert LOCK_UNKNOWN in found.notes
        if kind == "PyDataset":
            assert found.gain_percent == pytest.approx((found.low_percent + found.high_percent) / 2)
            assert found.step_ns == pytest.approx(run.step_ns * (1 - found.gain_percent / 100))
        unknown = predict_change(replace(run, epoch_batches=None), (SetTraining("workers", 4),))
        assert isinstance(unknown, Unavailable) == (kind == "Sequence")
    assert gains["PyDataset"] - gains["Sequence"] == pytest.approx(costs)


@pytest.mark.parametrize(
    "edit", [SetArgument(2, "seed", 3), Insert(3, "snapshot"), SetTraining("steps_per_execution", 8)]
)
def test_what_does_not_follow_from_the_run_is_not_predicted(edit: Edit):
    run = explain_script(script())
    assert isinstance(run, ScriptRun)
    assert isinstance(predict_change(run, (edit,)), Unavailable)


def test_a_map_that_tf_data_leaves_out_hides_no_other_change():
    """A map that hands on what it is given has no stage, but what is before and after it has."""
    own = recipe(DatasetCall(2, "map", inputs=(1,), text=".map(as_it_is)"))
    ran = tuple(replace(stage, calls=tuple(each + (each > 1) for each in stage.calls)) for stage in stages())
    run, of_load = script(recipe=own, stages=ran), SetArgument(3, "num_parallel_calls", 4)
    for edit in (SetArgument(2, "num_parallel_calls", 4), SetArgument(2, "deterministic", False), MoveBefore(4, 2)):
        assert predicted(run, edit).gain_percent == 0.0
        assert predicted(run, edit, of_load).gain_percent == 75.0
    for edit in (Insert(2, "cache"), Insert(2, "prefetch")):
        assert predicted(run, edit, of_load).gain_percent == pytest.approx(75.0, abs=0.1)
    unseen = explain_script(replace(run, stages=ran[:-1]))  # as what is before a full cache
    assert isinstance(unseen, ScriptRun)
    assert isinstance(predict_change(unseen, (SetArgument(2, "num_parallel_calls", 4),)), Unavailable)


def test_a_step_that_the_stages_do_not_explain_is_not_predicted():
    why = explain_script(script(step_ms=100.0))
    assert isinstance(why, Unavailable)
    assert "something else slows it down" in why.reason


def test_another_place_of_a_shuffle_is_not_predicted():
    """Its buffer would fill sooner or later than it does; how long that takes is not in the model."""
    own = recipe(DatasetCall(9, "shuffle", {"buffer_size": 8}, (1,), text=".shuffle(8)"))
    run = explain_script(replace(script(), recipe=own))
    assert isinstance(run, ScriptRun)
    assert isinstance(predict_change(run, (MoveBefore(9, 1),)), Unavailable)


def refilled(buffer: int, **more: float) -> ScriptRun:
    """Return a script whose ten batches an epoch are shuffled after the map: the first step of each waits until the buffer is full."""
    own, ran = recipe(), list(stages())
    shuffled = DatasetCall(4, "shuffle", {"buffer_size": buffer}, (2,), text=".shuffle()")
    own = replace(own, calls=(*own.calls[:2], shuffled, replace(own.calls[2], inputs=(4,))))
    ran[3:] = [
        ScriptStage("Shuffle", 2, 0.0, 10.0, (4,)),
        replace(ran[3], parent=3),
        replace(ran[4], parent=4),
    ]
    return script(recipe=own, stages=tuple(ran), epoch_batches=10.0, **more)


def test_what_fills_a_buffer_at_the_start_of_each_epoch_comes_on_top_of_the_steps():
    """All of an epoch is made before its first step: 200 ms, 20 for each of ten steps, which then take 5."""
    run = refilled(1000, step_ms=25.0, starting_ms=20.0)
    assert predicted(run).step_ns == 25e6
    assert predicted(run, Insert(3, "prefetch")).gain_percent == pytest.approx(0.0)
    assert predicted(run, PARALLEL).step_ns == pytest.approx(10e6)  # a quarter of 20, and 5
    kept = predicted(run, Insert(2, "cache"))
    assert kept.step_ns == pytest.approx(5e6, rel=0.01)
    assert [term.name for term in kept.terms[:1]] == ["training step"]


def test_what_is_not_in_the_buffer_is_made_beside_the_steps():
    """Half of an epoch fills the buffer, 10 ms for each step; the other half leaves 10 ms of map for a step of 5."""
    run = refilled(50, step_ms=20.0, starting_ms=10.0)
    found = predicted(run)
    assert found.step_ns == 20e6
    assert {term.name: round(term.time_ns / 1e6) for term in found.terms if term.time_ns > 1e5} == {
        "train.py:41 .map(load)": 10,
        "start of each epoch": 10,
        "training step": 5,
        "processor": 1,
    }


def test_without_a_shuffle_the_start_of_an_epoch_shortens_with_the_pipeline():
    run = script(step_ms=25.0, starting_ms=5.0, epoch_batches=10.0)
    assert predicted(run, PARALLEL).step_ns == pytest.approx(6.25e6)  # 5 of the step, and a quarter of 5


def test_a_cache_in_memory_hands_on_what_it_holds_and_one_in_files_reads_it_back():
    """A batch of ten elements of 100 MB: 200 ms to read back."""
    ran = [replace(stage, element_bytes=1e8) for stage in stages()]
    run = script(stages=tuple(ran))
    assert predicted(run, Insert(2, "cache")).step_ns == 5e6
    assert predicted(run, Insert(2, "cache", {"filename": "kept"})).step_ns == pytest.approx(200e6, rel=0.01)


def test_a_step_that_is_only_known_roughly_widens_the_range_of_what_is_gained_alone():
    noisy = script(noise_percent=30.0)
    nothing, much = predicted(noisy, Insert(3, "prefetch")), predicted(noisy, PARALLEL)
    assert (nothing.low_percent, nothing.high_percent) == (-2.0, 2.0)
    assert (much.low_percent, much.high_percent) == (67.0, 83.0)  # 75 ± (2 · 0.25 + 30 · 0.25)
