"""The stages of the pipeline that ran, and the numbers of each."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.trace_parts import analyze_trace
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.tf_data import traced_pipeline as tf_data
from pipeline_lab.analysis.tf_data.iterator_places import MAX_DEPTH, is_upstream, place_above, place_of
from pipeline_lab.analysis.tf_data.kinds import EventRole, role_of
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, StageOperation, StageOrigin, Tally
from pipeline_lab.trace.sources import open_traces
from tests.analysis.tf_data.pipelines import (
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
    stage,
)
from tests.support.traces import WAIT, host, line, trace

DATA = Path(__file__).parents[2] / "data"


def test_self_time_leaves_out_what_a_stage_called_waited_for_and_handed_to_its_function() -> None:
    pipeline = analyzed(*serial_map())
    found = stage(pipeline, "Map")
    assert [stage.path for stage in pipeline.stages] == ["Root", "Root::Map", "Root::Map::TFRecord"]
    assert [stage.parent for stage in pipeline.stages] == [None, 0, 1]
    assert (found.self_ns, found.function_calls, found.function_on_thread_ns) == (10_000, 1, 40_000)
    assert (found.function_latency_ns, found.queueing_ns) == (60_000, 20_000)
    assert found.operations == (StageOperation("DecodeJpeg", 1, 30_000),)
    assert found.work_ns == 50_000


def test_a_prefetch_is_blocked_until_its_element_comes() -> None:
    pipeline = analyzed(*prefetched())
    prefetch = stage(pipeline, "Prefetch")
    assert (prefetch.blocked_ns, prefetch.self_ns) == (95_000, 5_000)
    assert (prefetch.buffer_limit, prefetch.buffer_mean, prefetch.empty_share) == (2, 0.0, 1.0)
    assert (stage(pipeline, "BatchV2").self_ns, stage(pipeline, "TFRecord").self_ns) == (50_000, 20_000)


def test_what_a_stage_does_once_it_has_its_element_is_its_own_work() -> None:
    pipeline = analyzed(
        line("python", (WAIT, 0, 100), call("Prefetch", 0, 100), ("PrefetchConsume", 30, 5, {"element_id": 1})),
        line(OWN_THREAD, ("PrefetchProduce", 0, 30, {"element_id": 1}), call("Prefetch::Range", 0, 30)),
    )
    assert (stage(pipeline, "Prefetch").blocked_ns, stage(pipeline, "Prefetch").self_ns) == (30_000, 70_000)
    assert shares(pipeline) == {("Range", "own work"): 30, ("Prefetch", "own work"): 70}


def test_the_latency_of_a_function_in_the_background_ends_with_its_result() -> None:
    # Two calls of 10 and 30: mean 20, standard deviation 10.
    pipeline = analyzed(
        line(OWN_THREAD,
             ("ParallelMapProduce", 0, 10), call("ParallelMapV2::Range", 0, 5), (RUN_ASYNC, 5, 5, {"id": 1}),
             ("ParallelMapProduce", 20, 10), call("ParallelMapV2::Range", 20, 5), (RUN_ASYNC, 25, 5, {"id": 2})),
        line(POOL, (PROCESS, 7, 4, {"id": 1}), (DONE, 14, 1, {"id": 1}), (PROCESS, 26, 20, {"id": 2}), (DONE, 54, 1, {"id": 2})),
    )  # fmt: skip
    found = stage(pipeline, "ParallelMapV2")
    assert found.function_latency == Tally(2, 40_000.0, 1_000_000_000.0)
    assert found.function_latency.variation == pytest.approx(0.5)
    assert found.function_on_thread_ns == 26_000
    assert found.parallelism_used == pytest.approx(40 / 55)


def test_readers_of_many_files_are_one_stage() -> None:
    pipeline = analyzed(
        line("python", *(call(f"ParallelInterleaveV4[{k}]::FlatMap[0]::TFRecord", 10 * k, 5, id=k + 1, name=f"TFRecordDataset:{k}") for k in range(3)))
    )  # fmt: skip
    found = stage(pipeline, "TFRecord")
    assert (found.path, found.calls, found.iterators) == ("Root::ParallelInterleaveV4::FlatMap::TFRecord", 3, 3)
    assert found.node == "TFRecordDataset"


def test_the_call_that_finds_the_end_of_a_file_hands_nothing_over() -> None:
    first = [call("FlatMap[0]::TFRecord", at, 5) for at in (0, 10, 20)]
    second = [call("FlatMap[1]::TFRecord", at, 5) for at in (30, 40)]
    found = stage(analyzed(line("python", *first, *second)), "TFRecord")
    assert (found.calls, found.elements) == (5, 4)


def test_inputs_of_a_zip_stay_apart() -> None:
    pipeline = analyzed(line("python", call("Zip[1]::Range", 0, 5), call("Zip[0]::Range", 5, 5)))
    assert [stage.calls for stage in pipeline.stages if stage.name == "Range"] == [1, 1]
    (zipped,) = [stage for stage in pipeline.stages if stage.name == "Zip"]
    assert [stage.path for stage in pipeline.children(zipped.number)] == ["Root::Zip[0]::Range", "Root::Zip[1]::Range"]


@pytest.mark.parametrize(
    ("kind", "node", "origin"),
    [
        ("Map", "MapDataset:1", StageOrigin.WRITTEN),
        ("ParallelMapV2", "ParallelMapDatasetV2:1", StageOrigin.WRITTEN),
        ("ParallelMapV2", "MapDataset:1", StageOrigin.PARALLELISED),
        ("MapAndBatch", "fused(ParallelMapDatasetV2:27,BatchDatasetV2:28)", StageOrigin.FUSED),
        ("Prefetch", "inject/prefetch_RepeatDataset/_13", StageOrigin.INJECTED),
    ],
)
def test_what_tensorflow_made_of_a_stage_shows_in_its_name(kind: str, node: str, origin: StageOrigin) -> None:
    assert stage(analyzed(line("python", call(kind, 0, 5, name=node))), kind).origin is origin


def test_bytes_follow_from_types_and_shapes() -> None:
    told = {"types": "int64 float", "shapes": "[8] [8,2,2]"}
    assert stage(analyzed(line("python", call("Map", 0, 5, **told))), "Map").bytes_per_element == 8 * 8 + 8 * 4 * 4
    open_shape = {"types": "string float", "shapes": "[8] [?,2]"}
    assert stage(analyzed(line("python", call("Map", 0, 5, **open_shape))), "Map").bytes_per_element is None


def test_buffers_over_time_and_busy_threads() -> None:
    pipeline = analyzed(
        line("python", *(call("Prefetch", 20 * k, 10, buffered_elements=k, buffer_limit=2) for k in range(3))),
        line(POOL, (PROCESS, 0, 25)),
    )
    assert tables.ints(pipeline.history, "buffered_elements").tolist() == [0, 1, 2]
    assert tables.ints(pipeline.history, "start_ns").tolist() == [0, 20_000, 40_000]
    assert pipeline.pool_busy_ns == 25_000
    assert stage(pipeline, "Prefetch").empty_share == pytest.approx(1 / 3)


@pytest.mark.parametrize(("size", "share"), [(4, 0.4), (2, 0.8), (1, None), (None, None)])
def test_how_busy_threads_are_is_unknown_where_more_work_at_once_than_the_pipeline_has(
    size: int | None, share: float | None
) -> None:
    pool = line(POOL, (PROCESS, 0, 80)), line("tf_data_private_threadpool/2", (PROCESS, 0, 80))
    pipeline = replace(analyzed(line("python", call("Map", 0, 100)), *pool), threadpool_size=size, observed_ns=100_000)
    assert pipeline.pool_busy_share == (None if share is None else pytest.approx(share))


def test_two_traces_add_up() -> None:
    parts = [tf_data.analyze_pipeline(Activity(built(*serial_map(at))), lambda: None) for at in (0, 1000)]
    both = tf_data.merge_pipelines(parts)
    assert stage(both, "Map").self_ns == 2 * stage(parts[0], "Map").self_ns
    assert stage(both, "Map").operations == (StageOperation("DecodeJpeg", 2, 60_000),)
    assert shares(both) == {key: 2 * us for key, us in shares(parts[0]).items()}
    assert both.observed_ns == 200_000


def test_a_stage_seen_in_one_window_only_keeps_its_place() -> None:
    other = analyzed(line("python", call("Take", 0, 10), call("Take::Map", 0, 10)))
    both = tf_data.merge_pipelines([analyzed(*prefetched()), other])
    assert [(stage.number, stage.parent, stage.name) for stage in both.stages] == [
        (0, None, "Root"), (1, 0, "Prefetch"), (2, 1, "BatchV2"), (3, 2, "TFRecord"), (4, 0, "Take"), (5, 4, "Map")
    ]  # fmt: skip
    assert set(tables.ints(both.history, "stage").tolist()) == {1}


def test_what_a_multi_device_iterator_reads_lies_below_the_replicas() -> None:
    shared = "tf_data_multi_device_iterator_resource/2"
    pipeline = tf_data.analyze_pipeline(
        Activity(
            trace(
                host(
                    line("python", (WAIT, 0, 100), call("", 0, 100), call("Generator", 0, 100),
                         ("InstantiatedCapturedFunction::RunWithBorrowedArgs", 0, 100, {"id": 4})),
                    line(shared, call("", 0, 90), call("Batch", 0, 90)),
                    line(POOL, (PROCESS, 90, 10, {"id": 4})),
                )
            )
        ),
        lambda: None,
    )  # fmt: skip
    assert [stage.path for stage in pipeline.stages] == [
        "Root", "Root::Generator", "Root::Generator::Root", "Root::Generator::Root::Batch"
    ]  # fmt: skip
    assert shares(pipeline) == {("Batch", "own work"): 90, ("Generator", "other operations"): 10}


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("Root", ""),
        ("Root::Map", "Root"),
        ("Root::Zip[1]::Map", "Root::Zip"),
        ("Root::Zip[0]::Zip[1]::Map", "Root::Zip[0]::Zip"),
    ],
)
def test_each_place_lies_below_the_one_that_takes_its_elements(path: str, above: str) -> None:
    assert place_above(path) == above
    assert is_upstream(path, above) == bool(above)
    assert not is_upstream(path, path)


def test_a_longer_name_is_not_upstream_of_a_shorter_one() -> None:
    assert not is_upstream("Root::ZipX::Map", "Root::Zip")


def test_of_a_chain_of_a_thousand_concatenations_the_deeper_ones_are_one_stage() -> None:
    chain = "::".join(["Concatenate[0]"] * 1000)
    pipeline = analyzed(line("python", (WAIT, 0, 100), call(chain, 0, 100), call(f"{chain}::TFRecord", 10, 80)))
    assert len(pipeline.stages) == MAX_DEPTH
    assert shares(pipeline) == {("Concatenate", "own work"): 100}


def test_numbers_that_no_pipeline_has_are_not_told() -> None:
    shape = f"[{','.join(['9' * 18] * 20)}]"
    stats = {
        "types": "float",
        "shapes": shape,
        "ram_usage_megabytes": f"{'9' * 20} out of 1",
    }
    pipeline = analyzed(line("python", (WAIT, 0, 100), call("", 0, 100, **stats)))
    assert (stage(pipeline, "Root").bytes_per_element, pipeline.ram_used_bytes) == (None, None)


def test_a_root_tells_how_much_memory_of_the_machine_is_in_use_without_a_budget_too() -> None:
    stats = {"ram_usage_megabytes": "4431 out of 25276 (17.53%)"}
    pipeline = analyzed(line("python", (WAIT, 0, 100), call("", 0, 100, **stats), call("Map", 10, 80)))
    assert pipeline.ram_used_bytes == 4_431_000_000


@pytest.mark.parametrize("path", sorted(DATA.glob("**/*.xplane.pb")), ids=lambda path: path.name)
def test_real_captures_explain_exactly_the_waits_of_their_steps(path: Path) -> None:
    (recorded,) = open_traces(path)
    found = analyze_trace(recorded).found
    pipeline, stalls = found["tf_data"], found["input_stalls"]
    assert isinstance(pipeline, tf_data.TfData)
    assert isinstance(pipeline.critical_path, CriticalPath)
    if isinstance(stalls, InputStalls):
        assert pipeline.critical_path.wait_ns == stalls.wait_ns
        assert pipeline.critical_path.exposed_ns == stalls.exposed_ns


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Iterator::Root::Prefetch::ForeverRepeat[1]::BatchV2", "Root::Prefetch::ForeverRepeat::BatchV2"),
        ("ReduceIterator::Root::Prefetch::Scan::FiniteTake::MapAndBatch[0]::Range", "FiniteTake::MapAndBatch::Range"),
        ("ReduceIterator::Root::TakeWhile::Scan::BatchV2", "BatchV2"),
        ("ReduceIterator::Root::Prefetch::Scan", None),
        ("ReduceIterator::Root::Map", None),
        ("IteratorGetNextOp::DoCompute", None),
    ],
)
def test_a_loop_inside_of_a_function_has_the_stages_of_the_dataset_that_it_goes_through(name: str, path: str | None):
    assert place_of(name) == path
    assert (role_of(name) is EventRole.ITERATOR) is (path is not None)
