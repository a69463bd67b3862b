"""Why a stage is slow: pipelines of four stages seen for one second, whose step waits for 60 % of its 50 ms."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline_lab.analysis.activity.activity import LOOP_LABEL
from pipeline_lab.analysis.causes import InputCause
from pipeline_lab.analysis.declaring.tables import build, empty, ints, replace_column
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.step_phases import EpochBoundaries, StepPhases
from pipeline_lab.analysis.tf_data.tf_data import (
    HISTORY_TABLE,
    POOL_TABLE,
    UNSEEN,
    CriticalPath,
    PathShare,
    StageOperation,
    StageOrigin,
    Tally,
    TfData,
    TracedStage,
)
from pipeline_lab.analysis.verdict.input_causes import CAUSE_RULES, find_blame
from pipeline_lab.analysis.verdict.verdict import Blame
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import SourcePlace
from pipeline_lab.runs.run_documents import WrittenCall, WrittenPipeline, WrittenStage
from tests.support import results

MS = 1_000_000
SECOND_NS = 1000 * MS
SLEEPING = JobLoad(cores=4.0, pool_threads=None, cores_used=0.1, cpu_ns_per_step=5.0 * MS, other_cores=0.0)
NO_MODEL = Unavailable("Only known for own runs.")
UNCALIBRATED = Unavailable("Not calibrated.")


def steady(latency_ms: float, count: int = 100, variation: float = 0.0) -> Tally:
    """Return latencies with that mean and that spread over mean."""
    mean = latency_ms * MS
    return Tally(count, count * mean, count * mean * mean * (1 + variation**2))


def stage(number: int, name: str, self_ms: int = 1, **changes: Any) -> TracedStage:
    own: dict[str, Any] = {
        "parent": number - 1 if number else None,
        "node": "",
        "path": name,
        "origin": StageOrigin.WRITTEN,
        "iterators": 1,
        "observed_ns": SECOND_NS,
        "calls": 100,
        "elements": 100,
        "self_ns": self_ms * MS,
    }
    return TracedStage(number=number, name=name, **{**own, **changes})


def pipeline(*chain: TracedStage, blamed: int, pool: int = 8, busy_threads: float = 1.0, unseen_ms: int = 0) -> TfData:
    """Return a pipeline in which one stage is behind 90 of 100 ms of exposed wait, or less if part of it is not seen."""
    seen = (100 - unseen_ms) * MS
    shares = (
        PathShare(blamed, "own work", seen * 9 // 10, seen * 9 // 10),
        PathShare(0, "own work", seen // 10, seen // 10),
        PathShare(blamed, UNSEEN, unseen_ms * MS, unseen_ms * MS),
    )
    return TfData(
        stages=chain,
        critical_path=CriticalPath(100 * MS, 100 * MS, shares),
        observed_ns=SECOND_NS,
        threadpool_size=pool,
        cpu_budget=4,
        history=empty(HISTORY_TABLE),
        pool=build(POOL_TABLE, 1, host="h", window=0, start_ns=0, end_ns=SECOND_NS, busy_threads=busy_threads),
    )


def with_map(*, prefetch: bool = True, **changes: Any) -> tuple[TracedStage, ...]:
    """Return Root, Prefetch (or Repeat), a parallel map and a reader."""
    return (
        stage(0, "Root"),
        stage(1, "Prefetch" if prefetch else "ForeverRepeat"),
        stage(2, changes.pop("name", "ParallelMapV2"), **changes),
        stage(3, "TFRecord"),
    )


def blame(pipeline: TfData, load: JobLoad = SLEEPING, calibration: object = UNCALIBRATED, wait: float = 0.6) -> Blame:
    whole = results.diagnosis(tf_data=pipeline, job_load=load, calibration=calibration, live_model=NO_MODEL)
    return find_blame(whole, wait)


# Two calls of 10 ms at a time for a second: 200 calls, 2,000 ms on threads, none of it in a queue.
BUSY = {
    "function_calls": 200,
    "function_on_thread_ns": 2 * SECOND_NS,
    "function_latency": steady(10, 200),
    "parallelism": 2,
}
# Eight calls allowed, two threads: each takes 40 ms, of which it runs 10.
QUEUED = {**BUSY, "function_latency": steady(40, 200), "parallelism": 8}
# Eight slots; calls of 5 ms with a spread of twice that: one of eight slots is at work on average.
UNSTEADY = {**BUSY, "function_on_thread_ns": SECOND_NS, "function_latency": steady(5, 200, 2.0), "parallelism": 8}
PYTHON = {**BUSY, "operations": (StageOperation("PyFunc", 200, 2 * SECOND_NS),)}


def test_a_shuffle_that_fills_again_with_each_epoch_is_to_blame_for_waits_at_its_start():
    chain = (stage(0, "Root"), stage(1, "Prefetch"), stage(2, "Shuffle"), stage(3, "ParallelMapV2", **BUSY))
    base = results.diagnosis(tf_data=pipeline(*chain, blamed=3), job_load=SLEEPING, live_model=NO_MODEL)

    def at_boundaries(share: float) -> Blame:
        phases = StepPhases((), EpochBoundaries(count=5, wait_ns=5 * SECOND_NS, share=share))
        return find_blame(replace(base, step_phases=phases, calibration=UNCALIBRATED), 0.6)

    found = at_boundaries(0.45)  # 45 of the 60 % that it waits
    assert (found.stage, found.cause) == ("Shuffle", "epoch-start")
    assert {one.name: one.value for one in found.evidence}["part of Shuffle"] == "75 % of the exposed wait"
    assert at_boundaries(0.2).cause == "under-parallel"


@pytest.mark.parametrize(
    ("marker", "passes", "longest_wait_ms", "cause"),
    [
        (LOOP_LABEL, 25, 90, "loop-start"),  # passes of 8 steps, windows of 10; passes begin with a wait of 200 ms
        (LOOP_LABEL, 25, 110, "epoch-start"),  # a request for a batch takes more than half as long: the buffer fills
        (LOOP_LABEL, 20, 90, "epoch-start"),  # passes of 10 steps: perhaps none begins in a window
        ("train", 25, 90, "epoch-start"),
    ],
)
def test_a_loop_inside_of_a_function_that_is_prepared_for_each_pass_is_no_wait_for_its_pipeline(
    marker: str, passes: int, longest_wait_ms: int, cause: str
):
    chain = (stage(0, "Root"), stage(1, "Prefetch"), stage(2, "Shuffle"), stage(3, "ParallelMapV2", **BUSY))
    steps, stalls = results.steps(), results.input_stalls()
    lengths = np.append(np.full(stalls.table.num_rows - 1, MS), longest_wait_ms * MS)
    waits = replace_column(stalls.table, "end_ns", ints(stalls.table, "start_ns") + lengths)
    begins = EpochBoundaries(passes - 1, 200 * MS * (passes - 1), 0.45)
    phase = replace(results.step_phases().phases[0], steps=200)
    found = find_blame(
        results.diagnosis(
            tf_data=pipeline(*chain, blamed=3),
            steps=replace(steps, marker=marker),
            input_stalls=replace(stalls, table=waits),
            step_phases=StepPhases((phase,), begins),
            live_model=NO_MODEL,
            calibration=UNCALIBRATED,
        ),
        0.6,
    )
    assert found.cause == cause
    if cause == "loop-start":
        assert [one.value for one in found.evidence] == ["200 ms", "90 ms"]


def test_what_fills_a_shuffle_buffer_is_named_with_it():
    path = "Root::Shuffle::ParallelMapV2::TensorSlice"
    names = path.split("::")
    chain = [stage(at, name, path="::".join(names[: at + 1]), node=f"{name}:{at}") for at, name in enumerate(names)]
    chain[2] = replace(chain[2], **BUSY)
    calls = [WrittenCall(text, SourcePlace("train.py", line, line, 4, 30, line)) for line, text in LINES]
    written = tuple(
        WrittenStage(f"{name}:{at}", f"{name}Dataset", None, {}, (at,) if at < 3 else (), call)
        for at, (name, call) in enumerate(zip(names[1:], calls, strict=True), 1)
    )
    base = results.diagnosis(
        tf_data=pipeline(*chain, blamed=2), job_load=SLEEPING, live_model=NO_MODEL, written=WrittenPipeline(written, 2)
    )
    phases = StepPhases((), EpochBoundaries(count=5, wait_ns=5 * SECOND_NS, share=0.5))
    found = find_blame(replace(base, step_phases=phases, calibration=UNCALIBRATED), 0.6)
    assert [str(call) for call in found.calls] == ["train.py:42 .shuffle(100)"]
    assert [str(call) for call in found.filled_by] == ["train.py:41 .map(load)"]


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        (StageOrigin.WRITTEN, "ParallelMapV2"),
        (StageOrigin.PARALLELISED, "ParallelMapV2 (written as serial, made parallel by TensorFlow)"),
    ],
)
def test_what_tensorflow_made_of_a_line_is_told_with_what_it_runs_as(
    monkeypatch: pytest.MonkeyPatch, origin: StageOrigin, shown: str
) -> None:
    call = WrittenCall(".map(load)", SourcePlace("train.py", 41, 41, 4, 30, 41))
    monkeypatch.setattr("pipeline_lab.analysis.verdict.input_facts._calls", lambda *_: (call,))
    found = blame(pipeline(*with_map(**BUSY, origin=origin), blamed=2))
    assert {one.name: one.value for one in found.evidence}["runs as"] == shown


LINES = ((42, ".shuffle(100)"), (41, ".map(load)"), (40, "from_tensor_slices(files)"))


def test_a_map_whose_slots_are_all_at_work_is_under_parallel():
    found = blame(pipeline(*with_map(**BUSY), blamed=2))
    assert (found.stage, found.cause, found.is_clear) == ("ParallelMapV2", "under-parallel", True)
    shown = {evidence.name: evidence.value for evidence in found.evidence}
    assert shown["part of ParallelMapV2"] == "90 % of the exposed wait"
    assert shown["calls allowed at once"] == "2"


def test_calls_that_queue_for_a_full_pool_are_pool_bound():
    full = pipeline(*with_map(**QUEUED), blamed=2, pool=2, busy_threads=1.9)
    assert blame(full).cause == "pool-bound"
    free = pipeline(*with_map(**QUEUED), blamed=2, pool=8, busy_threads=1.9)
    assert blame(free).cause == "under-parallel"


def test_full_cores_are_cpu_bound_whatever_the_pool_does():
    full = pipeline(*with_map(**QUEUED), blamed=2, pool=2, busy_threads=2.0)
    # steps of 50 ms on four cores of which others take two: 90 of 100 ms
    load = JobLoad(cores=4.0, pool_threads=None, cores_used=1.8, cpu_ns_per_step=90.0 * MS, other_cores=2.0)
    assert blame(full, load).cause == "cpu-bound"


@pytest.mark.parametrize(
    ("cores_used", "at_once", "cause"), [(2.6, 4, "cpu-bound"), (2.6, 2, "under-parallel"), (2.0, 4, "under-parallel")]
)
def test_a_stage_that_runs_on_all_cores_is_not_told_to_run_on_more(cores_used: float, at_once: int, cause: str):
    chain = with_map(**{**BUSY, "parallelism": at_once})
    assert blame(pipeline(*chain, blamed=2), replace(SLEEPING, cores_used=cores_used)).cause == cause


def test_a_wide_spread_with_idle_slots_is_the_order():
    assert blame(pipeline(*with_map(**UNSTEADY), blamed=2)).cause == "ordering"
    loose = pipeline(*with_map(**UNSTEADY, deterministic=False), blamed=2)
    assert blame(loose).cause == "under-parallel"


def test_python_counts_only_if_it_keeps_a_core_busy():
    python = pipeline(*with_map(**PYTHON), blamed=2)
    assert blame(python).cause == "python-waits"  # 5 ms of processor in a step of 50: the function sleeps
    working = replace(SLEEPING, cores_used=0.9)
    assert blame(python, working).cause == "python-bound"


def test_python_that_sleeps_is_held_up_by_a_full_pool_and_by_its_order_like_any_other_function():
    python = {"operations": PYTHON["operations"]}
    assert blame(pipeline(*with_map(**QUEUED, **python), blamed=2, pool=2, busy_threads=2.0)).cause == "pool-bound"
    assert blame(pipeline(*with_map(**UNSTEADY, **python), blamed=2)).cause == "ordering"


def test_python_that_keeps_several_cores_busy_is_not_limited_by_the_lock():
    hashing = {**PYTHON, "operations": (StageOperation("PyFunc", 200, 4 * SECOND_NS),), "parallelism": 4}
    full = replace(SLEEPING, cores=4.0, cores_used=3.8)
    assert blame(pipeline(*with_map(**hashing), blamed=2), full, wait=0.9).cause == "cpu-bound"
    assert (
        blame(pipeline(*with_map(**hashing), blamed=2), replace(full, cores_used=1.6), wait=0.9).cause == "python-bound"
    )


def test_python_comes_before_full_cores_that_others_fill():
    # others take one of two cores, the job almost all of the other one: not the processor is what to look at, but Python
    beside = JobLoad(cores=2.0, pool_threads=None, cores_used=0.9, cpu_ns_per_step=45.0 * MS, other_cores=1.0)
    assert blame(pipeline(*with_map(**PYTHON), blamed=2), beside).cause == "python-bound"
    assert blame(pipeline(*with_map(**BUSY), blamed=2), beside).cause == "cpu-bound"


def test_python_that_sleeps_beside_other_programs_still_waits():
    # others fill the cores, and the job takes what is left of them: a sleeping function does not compute because of that
    filled = JobLoad(cores=2.0, pool_threads=None, cores_used=0.15, cpu_ns_per_step=8.0 * MS, other_cores=1.85)
    assert blame(pipeline(*with_map(**PYTHON), blamed=2), filled).cause == "python-waits"
    assert blame(pipeline(*with_map(**PYTHON), blamed=2), replace(filled, cores_used=0.5)).cause == "python-bound"


@pytest.mark.parametrize("name", ["TFRecord", "Map"])
def test_what_runs_once_for_each_file_is_the_source(name: str):
    chain = (
        stage(0, "Root"),
        stage(1, "Prefetch"),
        stage(2, "FlatMap"),
        stage(3, name, self_ms=900, path=f"Root::Prefetch::FlatMap::{name}"),
        stage(4, "TFRecord"),
    )
    assert blame(pipeline(*chain, blamed=3)).cause == "source"


GENERATOR = (
    stage(0, "Root"),
    stage(1, "Prefetch"),
    stage(2, "FlatMap"),
    stage(
        3,
        "Generator",
        path="Root::Prefetch::FlatMap::Generator",
        operations=(StageOperation("PyFunc", 100, SECOND_NS),),
    ),
)


def test_a_generator_that_keeps_a_core_busy_is_bound_by_python():
    assert blame(pipeline(*GENERATOR, blamed=3), replace(SLEEPING, cores_used=1.1)).cause == "python-bound"


def test_more_calls_at_once_are_no_cure_for_python_that_keeps_a_core_busy():
    serial = (
        stage(0, "Root"),
        stage(1, "FlatMap"),
        replace(GENERATOR[3], number=2, parent=1, path="Root::FlatMap::Generator"),
    )
    found = blame(pipeline(*serial, blamed=2), replace(SLEEPING, cores_used=1.1), wait=0.9)
    assert found.cause == "python-bound"
    cures = [one.name for one in found.evidence if one.name.endswith("would save")]
    assert cures == ["overlap alone would save"]


def test_a_generator_that_waits_for_its_own_processes_is_a_slow_source():
    # two cores are busy, but 1.9 of them with processes that the generator started
    pooled = replace(SLEEPING, cores_used=2.0, children_cores=1.9)
    found = blame(pipeline(*GENERATOR, blamed=3), pooled)
    assert (found.stage, found.cause) == ("Generator", "source")
    shown = {evidence.name: evidence.value for evidence in found.evidence}
    assert shown["processes that the job started"] == "1.9 of these cores"
    # four of four cores: what limits the job is the processor, whoever works on it
    assert blame(pipeline(*GENERATOR, blamed=3), replace(pooled, cores_used=4.0)).cause == "cpu-bound"


SERIAL = with_map(name="Map", prefetch=False, self_ms=600)


@pytest.mark.parametrize(
    ("wait", "pool", "cause"),
    [
        (0.3, 2, "no-overlap"),  # overlap saves 30 of 100 ms: all of the wait
        (0.6, 2, "no-overlap"),  # overlap saves 40 of 100 ms, the map (0.9 of the wait) on two threads 27
        (0.6, 16, "under-parallel"),  # on sixteen 51
        (0.75, 2, "under-parallel"),  # overlap saves 25, two calls at once 34
        (0.95, 2, "under-parallel"),
    ],
)
def test_of_a_serial_pipeline_what_saves_more_of_the_step_is_named(wait: float, pool: int, cause: str):
    found = blame(pipeline(*SERIAL, blamed=2, pool=pool), wait=wait)
    assert found.cause == cause


def test_the_evidence_of_a_serial_pipeline_says_what_each_cure_would_save():
    shown = {one.name: one.value for one in blame(pipeline(*SERIAL, blamed=2, pool=2), wait=0.75).evidence}
    assert shown["overlap alone would save"] == "up to 25 % of the step"
    assert shown["2 times as many calls of Map at once alone would save"] == "up to 33.8 % of the step"


def test_a_pipeline_that_works_ahead_overlaps():
    ahead = pipeline(*with_map(name="Map", self_ms=600), blamed=2)
    assert blame(ahead, wait=0.3).cause == "under-parallel"


@pytest.mark.parametrize(("hidden_ms", "cause"), [(4, "no-overlap"), (12, "under-parallel")])
def test_a_device_that_works_while_the_loop_waits_overlaps_without_a_prefetch(hidden_ms: int, cause: str):
    # it works for 15 ms of each step, so many of them while the loop waits
    stalls = results.input_stalls()
    stalls = replace(stalls, exposed_ns=stalls.wait_ns - len(stalls.table) * hidden_ms * MS)
    found = results.diagnosis(
        tf_data=pipeline(*SERIAL, blamed=2, pool=2),
        job_load=SLEEPING,
        calibration=UNCALIBRATED,
        live_model=NO_MODEL,
        input_stalls=stalls,
    )
    assert find_blame(found, 0.3).cause == cause


def test_on_full_cores_nothing_can_overlap():
    busy = replace(SLEEPING, cores_used=3.8)
    assert blame(pipeline(*SERIAL, blamed=2, pool=2), busy, wait=0.4).cause == "cpu-bound"


def test_a_wait_that_the_trace_does_not_explain_blames_nobody():
    assert blame(pipeline(*with_map(name="Map", self_ms=600), blamed=2, unseen_ms=80)) == Blame()


def modeled(
    map_work_ms: float,
    parallelism: float | None,
    load: JobLoad = SLEEPING,
    reader_ms: float = 1,
    prefetch_ms: float = 0.01,
) -> Blame:
    """Blame a stage by the model alone: steps of 50 ms that wait for 30, batches of 32, a map and a reader of so much work."""
    works = (
        results.stage_work("Root", None, 1.0, 1e4, path="Root"),
        results.stage_work("Prefetch", 0, 1.0, prefetch_ms * MS, path="Root::Prefetch", is_asynchronous=True),
        results.stage_work(
            "ParallelMapV2",
            1,
            32.0,
            map_work_ms * MS / 32,
            path="Root::Prefetch::ParallelMapV2",
            parallelism=parallelism,
            is_asynchronous=True,
        ),
        results.stage_work(
            "TFRecord", 2, 32.0, reader_ms * MS / 32, path="Root::Prefetch::ParallelMapV2::FlatMap::TFRecord"
        ),
    )
    model = replace(results.live_model(), stages=works)
    missing = Unavailable("No window.")
    return find_blame(
        results.diagnosis(tf_data=missing, live_model=model, job_load=load, calibration=UNCALIBRATED), 0.6
    )


def test_the_model_blames_the_longest_work_for_what_can_run_at_once():
    pool_of_two, pool_of_eight = replace(SLEEPING, pool_threads=2), replace(SLEEPING, pool_threads=8)
    # steps of 50 ms: 100 ms of work on two threads fill them, though eight calls are allowed
    assert modeled(100, 8.0, pool_of_two).cause == "pool-bound"
    assert modeled(100, 2.0, pool_of_eight).cause == "under-parallel"
    assert modeled(0.5, 1.0, pool_of_eight, reader_ms=40).cause == "source"
    assert modeled(100, 8.0, pool_of_two).stage == "ParallelMapV2"


def test_stages_that_hand_on_thousands_of_tiny_elements_have_overhead_where_they_call_no_function():
    """40 ms for 2,048 elements, as `sample_from_datasets` takes them: 20 µs each; more calls at once are no cure."""
    assert single_elements(2048, 40).cause == "call-overhead"
    assert single_elements(2048, 140).cause == "under-parallel"  # 68 µs each
    assert single_elements(8, 0.3, step_ms=1).cause == "under-parallel"  # eight for a batch
    assert single_elements(2048, 40, name="TFRecord").cause == "under-parallel"  # records come one by one
    csv = single_elements(2048, 40, name="LegacyParallelInterleaveV2")  # what `make_csv_dataset` reads and parses with
    assert csv.cause == "source"


def single_elements(count: int, work_ms: float, name: str = "DirectedInterleave", step_ms: float = 50.0) -> Blame:
    """Blame the only stage that works, before the batch of so many elements, in a step that waits for 60 % of its time."""
    works = (
        results.stage_work("Root", None, 1.0, 0.0, path="Root"),
        results.stage_work("Prefetch", 0, 1.0, 0.0, path="Root::Prefetch", is_asynchronous=True),
        results.stage_work("BatchV2", 1, 1.0, 0.0, path="Root::Prefetch::BatchV2"),
        results.stage_work(name, 2, float(count), work_ms * MS / count, path=f"Root::Prefetch::BatchV2::{name}"),
    )
    base = results.diagnosis(
        tf_data=Unavailable("No window."),
        live_model=replace(results.live_model(), stages=works),
        job_load=SLEEPING,
        calibration=UNCALIBRATED,
    )
    job = (
        replace(base.job_steps, median_ns=step_ms * MS)
        if not isinstance(base.job_steps, Unavailable)
        else base.job_steps
    )
    return find_blame(replace(base, job_steps=job), 0.6)


def test_the_call_whose_stages_take_longest_together_is_to_blame(monkeypatch: pytest.MonkeyPatch):
    """`sample_from_datasets` runs as three stages of 10, 8 and 6 ms; no other stage takes longer than 15."""
    path = "Root::Prefetch::BatchV2"
    times_ms = {"DirectedInterleave": 6, "Map": 10, "Random": 8, "Shuffle": 15}
    works = (
        results.stage_work("Root", None, 1.0, 0.0, path="Root"),
        results.stage_work("Prefetch", 0, 1.0, 0.0, path="Root::Prefetch", is_asynchronous=True),
        results.stage_work("BatchV2", 1, 1.0, 0.0, path=path),
        *(results.stage_work(name, 2, 1.0, ms * MS, path=f"{path}::{name}") for name, ms in times_ms.items()),
    )
    sampling = WrittenCall("Dataset.sample_from_datasets([a, b])")
    calls = {f"{path}::{name}": (sampling,) for name in ("DirectedInterleave", "Map", "Random")}
    monkeypatch.setattr("pipeline_lab.analysis.verdict.input_facts._calls", lambda _, path: calls.get(path, ()))
    model = replace(results.live_model(), stages=works)
    base = results.diagnosis(tf_data=Unavailable("No window."), live_model=model, job_load=SLEEPING)
    found = find_blame(base, 0.6)
    assert (found.stage, found.calls) == ("Map", (sampling,))
    assert found.evidence[0].value == "61.5 % of the time that all stages need"  # 24 of 39 ms


def test_a_prefetch_that_lost_its_core_to_others_is_not_to_blame():
    found = modeled(20, 2.0, replace(SLEEPING, pool_threads=8), prefetch_ms=30)
    assert (found.stage, found.cause) == ("ParallelMapV2", "under-parallel")


def test_stages_of_far_less_work_than_the_wait_are_not_to_blame():
    assert modeled(0.5, 1.0, replace(SLEEPING, pool_threads=8)) == Blame()


def test_without_stages_only_the_calibration_speaks():
    missing = Unavailable("No iterators in this trace.")
    assert blame(missing, calibration=Calibration(20e6, 30e6, 50e6)) == Blame(
        cause=found_cause("no-overlap"),
        overlap_gain=0.4,  # of the 50 ms the 30 of the slower one would be left
    )
    assert blame(missing) == Blame()


def found_cause(value: str) -> Any:
    return next(cause for cause, _ in CAUSE_RULES if cause == value)


# A thousand calls in a batch, each of 20 µs on a thread, which take very unlike times: no order that holds anything up.
TINY = {**UNSTEADY, "function_calls": 100_000, "function_on_thread_ns": 100_000 * 20_000}


def test_many_calls_of_microseconds_are_overhead_and_not_the_order():
    found = blame(pipeline(*with_map(**TINY), blamed=2))
    assert found.cause == "call-overhead"
    slower = {**TINY, "function_on_thread_ns": 100_000 * 60_000}
    assert blame(pipeline(*with_map(**slower), blamed=2)).cause == "ordering"
    fewer = {**TINY, "function_calls": 800, "function_on_thread_ns": 800 * 20_000}
    assert blame(pipeline(*with_map(**fewer), blamed=2)).cause == "ordering"  # eight for a batch


def test_what_other_programs_take_is_part_of_the_evidence():
    load = replace(SLEEPING, other_cores=1.1)
    shown = {evidence.name: evidence.value for evidence in blame(pipeline(*with_map(**BUSY), blamed=2), load).evidence}
    assert shown["other programs"] == "1.1 of 4 cores"


def test_without_waits_in_the_windows_the_stage_that_works_longest_is_to_blame():
    """As of a loop inside of ``tf.function``, whose waits the steps alone tell."""
    chain = (stage(0, "MapAndBatch", **PYTHON), stage(1, "TFRecord", 300))
    unseen = replace(pipeline(*chain, blamed=0), critical_path=Unavailable("No waits."))
    found = blame(unseen)
    assert (found.stage, found.cause) == ("MapAndBatch", InputCause.PYTHON_WAITS)
    quick = replace(unseen, stages=(stage(0, "MapAndBatch", 1), stage(1, "TFRecord", 300)))
    assert blame(quick).stage == "TFRecord"
    assert blame(replace(unseen, stages=())).stage is None


def test_what_makes_its_batches_between_the_calls_of_its_step_is_told_so_whatever_else_it_reads() -> None:
    stages = pipeline(stage(0, "Root"), stage(1, "Map", 40), blamed=1)
    steps = replace(results.job_steps(), own_call="step at train.py:4")
    load = replace(SLEEPING, cores_used=3.0)
    found = find_blame(results.diagnosis(job_steps=steps, tf_data=stages, job_load=load), 0.6)
    assert (found.stage, found.cause) == ("step at train.py:4", InputCause.OWN_BATCHES)
    assert found.overlap_gain == pytest.approx(0.25), "of four cores one is idle"
