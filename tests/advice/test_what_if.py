"""Predictions that add up in the head, and laws that no prediction may break."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.what_if import Prediction, fit_to_run, predict
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from tests.support.measured import BATCH, EXAMPLE_BYTES, MAP_MS, MS, STEP_MS, mapped, measured, options, with_workload

REPEAT: dict[str, Any] = {"stage": "repeat"}
CACHE: dict[str, Any] = {"stage": "cache"}
SERIAL_MS = BATCH * MAP_MS


def predicted(what: RunOptions, run: Measured | None = None) -> Prediction:
    found = predict(run or measured(), what)
    assert isinstance(found, Prediction), found
    return found


def test_a_serial_map_takes_its_work_and_the_step_comes_next():
    found = predicted(options())
    assert (found.step_ns / MS, found.ceiling_ns / MS) == (SERIAL_MS, STEP_MS)
    assert [(term.name, term.time_ns / MS) for term in found.terms[:2]] == [
        ("map", SERIAL_MS),
        ("training step", STEP_MS),
    ]
    assert found.ceiling_gain == SERIAL_MS / STEP_MS


@pytest.mark.parametrize(("calls", "step_ms"), [(2, 10.0), (4, 5.0), (8, 5.0), ("autotune", 5.0)])
def test_parallel_calls_divide_the_work_until_the_step_binds(calls: int | str, step_ms: float):
    assert predicted(options(mapped(calls))).step_ns / MS == step_ms


def test_no_more_calls_run_than_the_pool_has_threads():
    found = predicted(options(mapped(8), private_threadpool_size=2))
    assert found.step_ns / MS == SERIAL_MS / 2
    assert {term.name for term in found.terms[:2]} == {"map", "thread pool"}


@pytest.mark.parametrize(("calls", "binding", "step_ms"), [(2, "map", 15.0), (4, "read", 10.0)])
def test_a_call_holds_its_place_while_its_input_is_fetched(calls: int, binding: str, step_ms: float):
    """Reading takes 1 ms and mapping 2 ms: two calls at a time are 1.5 ms an example; four wait for the one reader."""
    usual = measured()
    run = replace(usual, stages=(replace(usual.stages[0], ns_per_example=1.0 * MS), *usual.stages[1:]))
    found = predicted(options(mapped(calls)), run)
    assert (found.terms[0].name, found.step_ns / MS) == (binding, step_ms)


def test_a_shuffle_before_the_repeat_takes_turns_with_the_step_for_what_it_holds():
    """An epoch of a thousand examples: filling takes 1 ms of reading each, training on them 0.5 ms; two batches are ready."""
    usual = measured()
    stages = (
        replace(usual.stages[0], ns_per_example=1.0 * MS),
        *(replace(each, ns_per_example=0.0) for each in usual.stages[1:]),
    )
    run = replace(usual, options=with_workload(usual.options, map_ms=0.0), stages=stages, step_ns=10.0 * MS)

    def shuffled(size: int, *, behind: bool = False) -> RunOptions:
        shuffle = {"stage": "shuffle", "buffer_size": size}
        found = options(*((REPEAT, shuffle) if behind else (shuffle, REPEAT)), {"stage": "map"})
        return with_workload(found, map_ms=0.0)

    assert predicted(shuffled(500, behind=True), run).step_ns / MS == pytest.approx(10.0, rel=0.01)
    whole = predicted(shuffled(1000), run)
    assert whole.terms[0].name == "shuffle buffer, refilled each epoch"
    # 1,000 ms to fill and 500 ms to train on them, less two batches of 5 ms, in a hundred steps
    assert whole.step_ns / MS == pytest.approx(14.9, rel=0.01)
    half = predicted(shuffled(500), run)
    assert half.step_ns / MS == pytest.approx(10 + 0.5 * 5 - 0.1, rel=0.01)


@pytest.mark.parametrize(("prefetch", "rewrites", "held_batches"), [(None, False, 0), (2, False, 2), (None, True, 2)])
def test_only_what_is_held_behind_a_shuffle_is_ready_while_it_fills(
    prefetch: int | None, rewrites: bool, held_batches: int
):
    """Four files read at once hold 36 records, but before the shuffle: 2.5 ms a batch to fill it for half of the epoch."""
    usual = measured()
    read = replace(usual.stages[0], ns_per_example=1.0 * MS)
    stages = (read, *(replace(each, ns_per_example=0.0) for each in usual.stages[1:]))
    run = replace(usual, options=with_workload(usual.options, map_ms=0.0), stages=stages, step_cpu_ns=None)
    shuffle = {"stage": "shuffle", "buffer_size": 500}
    found = options(shuffle, REPEAT, {"stage": "map"}, prefetch=prefetch, tensorflow_rewrites=rewrites)
    document = with_workload(found, map_ms=0.0).model_dump(mode="json")
    document["pipeline"]["stages"][0] |= {"mode": "interleave", "cycle_length": 4, "num_parallel_calls": 4}
    step_ms = predicted(RunOptions.model_validate(document), run).step_ns / MS
    assert step_ms == pytest.approx(STEP_MS + 0.5 * 2.5 - held_batches * STEP_MS / 100, abs=0.02)


def test_without_prefetch_step_and_input_take_turns():
    found = predicted(options(prefetch=None))
    assert found.step_ns / MS == STEP_MS + SERIAL_MS
    assert found.terms[0].name == "compute and input, not overlapped"


def test_a_parallel_map_without_prefetch_works_ahead_as_far_as_its_slots_go():
    """Four of ten elements are made during the step, the other six at 0.5 ms each."""
    found = predicted(options(mapped(4), prefetch=None), measured(device_only_ms=4.0))
    assert found.step_ns / MS == pytest.approx(4.0 + 6 * MAP_MS / 4)


def test_rewrites_add_the_prefetch():
    assert predicted(options(prefetch=None, tensorflow_rewrites=True)).step_ns / MS == SERIAL_MS


def test_a_cache_behind_the_map_leaves_the_step():
    found = predicted(options(mapped(), CACHE, REPEAT))
    assert found.step_ns / MS == STEP_MS
    assert found.memory_bytes == (1000 + 2 * BATCH) * EXAMPLE_BYTES
    assert "first epoch" in found.notes[0]


def test_a_cache_before_the_map_saves_nothing_of_it():
    assert predicted(options(CACHE, REPEAT, mapped())).step_ns / MS == pytest.approx(SERIAL_MS, 0.01)


def test_a_cache_behind_an_endless_repeat_is_never_full():
    found = predicted(options(REPEAT, mapped(), CACHE))
    assert found.step_ns / MS == pytest.approx(SERIAL_MS, 0.01)
    assert isinstance(found.memory_bytes, Unavailable)


def test_a_map_that_keeps_cores_busy_is_held_by_the_processor():
    run = measured()
    busy = replace(run, stages=tuple(replace(cost, cpu_ns_per_example=cost.ns_per_example) for cost in run.stages))
    run = replace(busy, options=with_workload(run.options, work="spin"), step_cpu_ns=4.0 * MS, other_cores=2.0)
    found = predicted(with_workload(options(mapped(8)), work="spin"), run)
    assert (found.terms[0].name, found.step_ns / MS) == ("processor", (4.0 + SERIAL_MS) / 2)


def test_a_filter_makes_the_stages_before_it_work_more():
    assert predicted(options(mapped(), {"stage": "filter", "keep_percent": 50})).step_ns / MS == pytest.approx(
        2 * SERIAL_MS, 0.01
    )


def test_times_of_the_workload_are_added():
    assert predicted(with_workload(options(), map_ms=3.0)).step_ns / MS == 3.0 * BATCH
    assert predicted(with_workload(options(), compute_ms=25.0)).step_ns / MS == 25.0
    assert predicted(with_workload(options(), python_ms=30.0)).step_ns / MS == 35.0


def test_a_longer_step_that_sleeps_takes_no_more_processor_time():
    run = measured(other_cores=2.0, step_cpu_ms=30.0)
    found = predicted(with_workload(options(), compute_ms=50.0), run)
    assert {term.name: term.time_ns / MS for term in found.terms}["processor"] == 15.0


def test_times_that_were_not_measured_are_named():
    assert not any("not measured" in note for note in predicted(options(mapped(2))).notes)
    found = predicted(options({"stage": "shuffle", "buffer_size": 100}, REPEAT, mapped()))
    assert found.assumed == ("shuffle",)
    assert "The time of shuffle was not measured; 1 µs for each example is assumed." in found.notes


def test_what_a_call_takes_beside_its_set_time_goes_with_whole_batches():
    run = measured()
    stages = [replace(cost, ns_per_example=3.0 * MS) if cost.stage == "map" else cost for cost in run.stages]
    whole = options(REPEAT)
    whole = whole.model_copy(
        update={
            "pipeline": whole.pipeline.model_validate(
                {
                    **whole.pipeline.model_dump(),
                    "stages": [
                        {"stage": "read"},
                        REPEAT,
                        {"stage": "batch", "size": BATCH},
                        mapped(),
                        {"stage": "prefetch", "buffer_size": 2},
                    ],
                }
            )
        }
    )
    assert predicted(whole, replace(run, stages=tuple(stages))).step_ns / MS == pytest.approx(
        BATCH * (MAP_MS + 1.0 / BATCH)
    )


def test_a_larger_batch_counts_by_example():
    run = measured()
    found = predicted(options(batch=20), run)
    assert (found.step_ns / MS, found.gain_percent(run)) == (2 * SERIAL_MS, 0.0)


def test_buffers_are_counted_in_bytes():
    found = predicted(options({"stage": "shuffle", "buffer_size": 300}, REPEAT, mapped(4)))
    assert found.memory_bytes == (300 + 4 + 2 * BATCH) * EXAMPLE_BYTES
    assert found.threads == 8 + 2


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"element_bytes": 9}, "workload.element_bytes"),
        ({"work": "spin"}, "workload.work"),
        ({"tiny_ops": 3}, "tiny_ops"),
    ],
)
def test_what_a_run_does_not_tell_is_said(values: dict[str, Any], reason: str):
    found = predict(measured(), with_workload(options(), **values))
    assert isinstance(found, Unavailable)
    assert reason in found.reason


def test_what_makes_a_prediction_unsure_is_said():
    assert predicted(options()).notes == ()
    assert "3.0 of 4 cores" in predicted(options(), measured(other_cores=3.0)).notes[0]
    assert "± 30 %" in predicted(options(), measured(noise_percent=30.0)).notes[0]


def test_what_the_model_does_not_explain_goes_to_the_term_that_binds():
    explained = fit_to_run(measured(step_ms=22.0))
    assert isinstance(explained, Measured)
    assert explained.pipeline_factor == 1.1
    assert predicted(options(), explained).step_ns / MS == pytest.approx(22.0)
    assert predicted(options(mapped(2)), explained).step_ns / MS == pytest.approx(11.0)
    assert predicted(with_workload(options(), compute_ms=50.0), explained).step_ns / MS == 50.0


def test_of_turns_the_wait_is_the_pipelines_and_the_rest_is_the_steps():
    """A step of 5 ms and 20 of input took 32: the wait was 22, so seven are left for the step and 5 of them are its own."""
    explained = fit_to_run(measured(options=options(prefetch=None), step_ms=32.0, waited_ms=22.0))
    assert isinstance(explained, Measured)
    assert (explained.pipeline_factor, explained.between_ns / MS) == (pytest.approx(1.1), pytest.approx(5.0))
    assert predicted(options(prefetch=None), explained).step_ns / MS == pytest.approx(32.0)
    assert predicted(options(), explained).step_ns / MS == pytest.approx(22.0)


def test_a_wait_is_no_longer_than_what_the_step_leaves():
    """A step of 5 ms and 20 of input took 22, of which 21 are said to be the wait: 17 are the input's."""
    explained = fit_to_run(measured(options=options(prefetch=None), step_ms=22.0, waited_ms=21.0))
    assert isinstance(explained, Measured)
    assert explained.pipeline_factor == pytest.approx(17 / 20)
    assert predicted(options(), explained).step_ns / MS == pytest.approx(17.0)


@pytest.mark.slow
@given(st.floats(1.0, 100.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.sampled_from([None, 2]))
def test_a_runs_own_options_give_its_own_step(step_ms: float, alone: float, waited: float, prefetch: int | None):
    own = options(prefetch=prefetch)
    run = measured(
        options=own,
        step_ms=step_ms,
        device_only_ms=max(0.01, alone * step_ms),
        waited_ms=waited * step_ms,
        step_cpu_ms=None,
    )
    explained = fit_to_run(run)
    if isinstance(explained, Measured) and explained.order_stall is None:
        assert predicted(own, explained).step_ns / MS == pytest.approx(step_ms)


def test_a_shuffle_before_a_repeat_is_filled_again_each_epoch():
    """Reading takes 10 ms a batch, the rest 5; for half of an epoch of 100 batches they take turns, less 2.4 batches held."""
    run = measured()
    stages = tuple(replace(cost, ns_per_example=1.0 * MS) if cost.stage == "read" else cost for cost in run.stages)
    run = replace(run, stages=stages, step_cpu_ns=None)
    shuffle = {"stage": "shuffle", "buffer_size": 500}
    found = predicted(options(shuffle, REPEAT, mapped(4)), run)
    assert found.terms[0].name == "shuffle buffer, refilled each epoch"
    assert found.step_ns / MS == pytest.approx(10.0 + 0.5 * 5.0 - 2.4 * 5.0 / 100, rel=0.02)
    assert predicted(options(REPEAT, shuffle, mapped(4)), run).step_ns / MS == pytest.approx(10.0, rel=0.02)


def test_a_run_that_refills_its_shuffle_has_that_in_its_own_step():
    own = options({"stage": "shuffle", "buffer_size": 500}, REPEAT, mapped(1))
    explained = fit_to_run(measured(options=own, step_ms=20.0))
    assert isinstance(explained, Measured)
    assert predicted(own, explained).step_ns / MS == pytest.approx(20.0)


def test_a_run_that_the_model_does_not_understand_predicts_nothing():
    found = fit_to_run(measured(step_ms=90.0))
    assert isinstance(found, Unavailable)
    assert "90 ms" in found.reason


def test_slow_records_that_keep_their_order_are_found_and_their_order_can_be_given_up():
    """Eight slots should take 2.5 ms; the run took 40, which 16 slots halve and no order takes away."""
    ran = options(mapped(8), private_threadpool_size=16)
    explained = fit_to_run(measured(options=ran, step_ms=40.0, waited_ms=35.0))
    assert isinstance(explained, Measured)
    assert predicted(ran, explained).terms[0].name == "order of map"
    assert predicted(ran, explained).step_ns / MS == 40.0
    assert predicted(options(mapped(16), private_threadpool_size=16), explained).step_ns / MS == 20.0
    assert (
        predicted(options(mapped(8, deterministic=False), private_threadpool_size=16), explained).step_ns / MS
        == STEP_MS
    )


def test_slow_records_that_are_told_keep_others_waiting_unless_they_fit_beside_them():
    """One record in 16 takes 32 ms, so ten take 20; among 32 slots two of them run at once."""

    def slow(calls: int, **more: Any) -> RunOptions:
        return with_workload(options(mapped(calls, **more), private_threadpool_size=64), tail_every=16, tail_ms=32.0)

    assert predicted(slow(8)).terms[0].name == "order of map"
    assert predicted(slow(8)).step_ns / MS == pytest.approx(20.0)
    assert predicted(slow(32)).step_ns / MS == pytest.approx(10.0)
    assert predicted(slow(32, deterministic=False)).step_ns / MS == STEP_MS
    explained = fit_to_run(measured(options=slow(8), step_ms=25.0, waited_ms=20.0))
    assert isinstance(explained, Measured)
    assert predicted(slow(8), explained).step_ns / MS == pytest.approx(25.0)


# step time that was predicted from one run, and measured: real jobs on two cores, from the notes on tf.data
MEASURED_MS = [
    ("one call", options(mapped(1)), {}, 19.1),
    ("four calls, pool of two", options(mapped(4)), {}, 9.32),
    ("16 calls, pool of two", options(mapped(16)), {}, 9.37),
    ("long computation", with_workload(options(mapped(4)), compute_ms=STEP_MS + 25.2), {}, 31.0),
    ("slow source", options(mapped(4)), {"read": 1.23}, 12.8),
    ("no prefetch, a map of four slots", options(mapped(4), prefetch=None), {"map": 0.8}, 11.2),
]


@pytest.mark.parametrize(
    ("what", "costs", "step_ms"), [row[1:] for row in MEASURED_MS], ids=[row[0] for row in MEASURED_MS]
)
def test_predictions_are_those_that_real_jobs_bore_out(what: RunOptions, costs: dict[str, float], step_ms: float):
    run = measured(device_only_ms=4.8, pool_threads=2, cores=2.0, step_cpu_ms=None)
    costs = {"map": 1.87, "read": 0.03} | costs
    stages = tuple(replace(cost, ns_per_example=costs.get(cost.stage, 0.0) * MS) for cost in run.stages)
    assert predicted(what, replace(run, stages=stages)).step_ns / MS == pytest.approx(step_ms, rel=0.08)


MAPS = st.builds(mapped, st.sampled_from([None, 1, 2, 3, 8, 16, "autotune"]))
RUNS = st.builds(
    measured,
    device_only_ms=st.floats(0.1, 50),
    step_cpu_ms=st.none() | st.floats(0, 100),
    other_cores=st.floats(0, 4),
    between_ms=st.floats(0, 10),
)


@pytest.mark.slow
@given(RUNS, MAPS, st.sampled_from([None, 1, 4]), st.sampled_from([None, 1, 4, 16]), st.booleans())
def test_a_step_never_takes_less_than_the_step_alone(
    run: Measured, stage: dict[str, Any], prefetch: int | None, pool: int | None, rewrites: bool
):
    found = predicted(
        options(stage, prefetch=prefetch, private_threadpool_size=pool, tensorflow_rewrites=rewrites), run
    )
    assert found.step_ns / MS >= found.ceiling_ns / MS >= run.device_only_ns / MS
    assert [term.time_ns / MS for term in found.terms] == sorted(
        (term.time_ns / MS for term in found.terms), reverse=True
    )


@given(RUNS, st.integers(1, 16), st.integers(1, 16), st.sampled_from([None, 2]), st.integers(1, 16))
@pytest.mark.slow
def test_more_parallel_calls_or_threads_are_never_slower(
    run: Measured, calls: int, more: int, prefetch: int | None, pool: int
):
    few = predicted(options(mapped(calls), prefetch=prefetch, private_threadpool_size=pool), run)
    many = predicted(options(mapped(calls + more), prefetch=prefetch, private_threadpool_size=pool), run)
    wide = predicted(options(mapped(calls), prefetch=prefetch, private_threadpool_size=pool + more), run)
    assert many.step_ns / MS <= few.step_ns / MS + 1e-9
    assert wide.step_ns / MS <= few.step_ns / MS + 1e-9


@given(RUNS, MAPS)
@pytest.mark.slow
def test_a_prefetch_is_never_slower(run: Measured, stage: dict[str, Any]):
    assert (
        predicted(options(stage, prefetch=2), run).step_ns / MS
        <= predicted(options(stage, prefetch=None), run).step_ns / MS + 1e-9
    )
