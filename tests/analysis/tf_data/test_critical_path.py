"""What the job waited for adds up to its waits, and each part is where one can see it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.input import input_stalls
from pipeline_lab.analysis.steps import recorded_steps
from pipeline_lab.analysis.tf_data import traced_pipeline as tf_data
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from tests.analysis.tf_data.pipelines import (
    DECODE,
    DONE,
    OWN_THREAD,
    POOL,
    PROCESS,
    RUN_ASYNC,
    analyzed,
    built,
    call,
    prefetched,
    serial_map,
    shares,
)
from tests.support import results
from tests.support.traces import WAIT, LineSpec, gpu, host, kernels, line, trace


def test_a_serial_map_holds_the_job_up_with_its_function() -> None:
    pipeline = analyzed(*serial_map())
    assert shares(pipeline) == {
        (None, "handing over"): 5,
        ("Root", "own work"): 5,
        ("Map", "own work"): 10,
        ("TFRecord", "own work"): 20,
        ("Map", "DecodeJpeg"): 30,
        ("Map", "other operations"): 10,
        ("Map", "queueing"): 20,
    }
    assert pipeline.bottleneck == 1


def test_a_prefetch_leads_to_the_thread_that_made_the_batch() -> None:
    # The thread woke up 20 late; the batch lay there for 5 before it was taken out, and taking it out took 5.
    assert shares(analyzed(*prefetched())) == {
        ("Prefetch", "not in this trace"): 20,
        ("BatchV2", "own work"): 50,
        ("TFRecord", "own work"): 20,
        ("Prefetch", "queueing"): 5,
        ("Prefetch", "own work"): 5,
    }


def test_a_batch_whose_making_began_before_the_trace_is_a_share_of_its_own() -> None:
    found = shares(analyzed(*prefetched(made_id=2)))
    # What its thread did inside of that making is seen all the same.
    assert found["Prefetch", "not in this trace"] == 25
    assert found["BatchV2", "own work"] == 50
    assert sum(found.values()) == 100


def parallel_map() -> tuple[LineSpec, ...]:
    """Return a wait of 100 for a parallel map: 10 reading on its thread, then its function: 15 queued, 60 decoding."""
    return (
        line("python", (WAIT, 0, 100), call("", 0, 100), call("ParallelMapV2", 0, 100),
             ("ParallelMapConsume", 90, 10, {"element_id": 5})),
        line(OWN_THREAD, ("ParallelMapProduce", 0, 15, {"element_id": 5}), call("ParallelMapV2::TFRecord", 0, 10),
             (RUN_ASYNC, 10, 5, {"id": 3})),
        line(POOL, (PROCESS, 30, 60, {"id": 3}), (DECODE, 30, 55), (DONE, 85, 5, {"id": 3})),
    )  # fmt: skip


def test_a_parallel_map_leads_to_its_function() -> None:
    assert shares(analyzed(*parallel_map())) == {
        ("TFRecord", "own work"): 10,
        ("ParallelMapV2", "own work"): 15,  # 5 starting the function, 10 taking the element out
        ("ParallelMapV2", "queueing"): 15,
        ("ParallelMapV2", "DecodeJpeg"): 55,
        ("ParallelMapV2", "other operations"): 5,
    }


def test_a_batch_of_many_calls_waits_for_whatever_call_frees_a_slot_next() -> None:
    # map_and_batch: two calls, one after the other; the thread that starts them rests while the first one runs.
    pipeline = analyzed(
        line("python", (WAIT, 0, 100), call("", 0, 100), call("MapAndBatch", 0, 100),
             ("MapAndBatchConsume", 98, 2, {"element_id": 9})),
        line(OWN_THREAD,
             ("MapAndBatchProduce", 0, 4, {"element_id": 9}), call("MapAndBatch::Range", 0, 2), (RUN_ASYNC, 2, 2, {"id": 1}),
             ("MapAndBatchProduce", 48, 4, {"element_id": 9}), call("MapAndBatch::Range", 48, 2), (RUN_ASYNC, 50, 2, {"id": 2})),
        line(POOL, (PROCESS, 4, 44, {"id": 1}), (DECODE, 4, 44), (DONE, 48, 0, {"id": 1}),
             (PROCESS, 54, 44, {"id": 2}), (DECODE, 54, 44), (DONE, 98, 0, {"id": 2})),
    )  # fmt: skip
    assert shares(pipeline) == {
        ("Range", "own work"): 4,
        ("MapAndBatch", "own work"): 6,
        ("MapAndBatch", "DecodeJpeg"): 88,
        ("MapAndBatch", "queueing"): 2,
    }


def test_only_what_leaves_the_device_idle_is_exposed() -> None:
    traced = trace(host(*serial_map()), gpu(kernels((0, 60))))
    path = tf_data.analyze_pipeline(Activity(traced), lambda: None).critical_path
    assert isinstance(path, CriticalPath)
    assert (path.wait_ns, path.exposed_ns) == (100_000, 40_000)
    assert max(path.shares, key=lambda share: share.exposed_ns).what == "DecodeJpeg"  # from 60 to 85
    assert path.shares[0].exposed_ns == 25_000


def test_calls_that_wait_for_a_busy_thread_are_held_up_by_all_that_run_there() -> None:
    found = results.tf_data()  # the only function is busy for 2,000 ms of two threads and 40 steps
    root, prefetch, _, decoding, reader = found.stages
    light = replace(decoding, number=2, parent=1, function_on_thread_ns=decoding.function_on_thread_ns // 4)
    two = replace(found, stages=(root, prefetch, light, decoding, reader))
    assert two.caused_ns[3] == (900 + 200 * 4 // 5) * results.MS
    assert two.caused_ns[2] == 200 * 1 // 5 * results.MS
    as_told = {3: 1100 * results.MS, 4: 60 * results.MS}
    idle = replace(two, stages=(replace(root, observed_ns=4 * root.observed_ns), *two.stages[1:]))
    assert idle.caused_ns == as_told, "the pool is not busy"
    validation = (replace(root, number=5), replace(decoding, number=6, parent=5))
    assert replace(found, stages=(*found.stages, *validation)).caused_ns[3] == as_told[3], "it has a pool of its own"


def test_waits_are_clipped_to_the_steps() -> None:
    train = line("trainer", ("train", 50, 100, {"step_num": 0, "_r": 1}), ("train", 150, 100, {"step_num": 1, "_r": 1}))
    activity = Activity(built(train, *serial_map()))
    found = recorded_steps.find_steps(activity)
    path = tf_data.analyze_pipeline(activity, lambda: found).critical_path
    assert isinstance(path, CriticalPath)
    assert path.wait_ns == input_stalls.find_stalls(activity, found).wait_ns


def test_without_waits_there_is_nothing_to_follow() -> None:
    pipeline = analyzed(line(OWN_THREAD, call("", 0, 10)))
    assert isinstance(pipeline.critical_path, Unavailable)
    assert pipeline.bottleneck is None


def test_without_tf_data_there_are_no_stages() -> None:
    with pytest.raises(TraceIncompleteError, match=r"No tf\.data events"):
        analyzed(line("python", ("PjitFunction(f)", 0, 10)))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "wait",
                "Prefetch",
                "Prefetch::Map",
                "PrefetchProduce",
                "PrefetchConsume",
                RUN_ASYNC,
                PROCESS,
                DECODE,
                DONE,
            ]
        ),
        st.integers(0, 60),
        st.integers(0, 40),
        st.integers(0, 3),
    ),
    max_size=25,
)


def scattered(name: str, events: list[tuple[str, int, int, int]]) -> LineSpec:
    names = {"wait": WAIT, "Prefetch": "Iterator::Root::Prefetch", "Prefetch::Map": "Iterator::Root::Prefetch::Map"}
    return line(
        name, *((names.get(kind, kind), at, length, {"id": key, "element_id": key}) for kind, at, length, key in events)
    )


@given(st.lists(EVENTS, min_size=1, max_size=4))
@pytest.mark.slow
def test_shares_add_up_to_the_waits_whatever_was_recorded(threads: list[list[tuple[str, int, int, int]]]) -> None:
    lines = [scattered(POOL if number == 2 else f"thread {number}", events) for number, events in enumerate(threads)]
    activity = Activity(built(line("python", call("", 0, 100)), *lines))
    waits = activity.waits.moments
    path = tf_data.analyze_pipeline(activity, lambda: None).critical_path
    total_ns = 0 if isinstance(path, Unavailable) else sum(share.wait_ns for share in path.shares)
    assert total_ns == (waits[:, 1] - waits[:, 0]).sum()
