"""Stages that take, keep, store and rebatch, as tf.data runs them; the process with TensorFlow is that of the other tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.predicted_order import predict_order
from pipeline_lab.stages.batches import BatchStage, RebatchStage, UnbatchStage
from pipeline_lab.stages.delivery import PrefetchStage, PrefetchToDeviceStage, ServiceStage
from pipeline_lab.stages.functions import ParseStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import SaveStage, SnapshotStage
from pipeline_lab.worker.workloads.data_files import record_id
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]

SIZES = (6, 4, 5)
SMALL = SyntheticWorkload(examples_per_file=SIZES, element_bytes=16, map_ms=0)
EVERY_ID = [record_id(file, record) for file, count in enumerate(SIZES) for record in range(count)]
ROUGH = BatchStage(size=4, drop_remainder=False)


def _ids(ask: Ask, *stages: Stage, workload: Workload = SMALL, **pipeline: Any) -> list[int]:
    options = RunOptions(workload=workload, pipeline=PipelineOptions(stages=stages, **pipeline)).to_json()
    return [one for batch in ask("ids_of", options=options) for one in batch]


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ((ReadStage(mode="flat_map"), ROUGH), EVERY_ID),
        ((ReadStage(mode="map"), ROUGH), EVERY_ID),
        ((ReadStage(num_shards=2), ROUGH), EVERY_ID[:6] + EVERY_ID[10:]),
        ((ReadStage(mode="interleave", cycle_length=1, num_shards=2, shard_index=1), ROUGH), EVERY_ID[6:10]),
        ((ReadStage(), SkipStage(count=2), TakeStage(count=5), ROUGH), EVERY_ID[2:7]),
        ((ReadStage(), ShardStage(num_shards=4, index=1), ROUGH), EVERY_ID[1::4]),
        ((ReadStage(), BatchStage(size=4), SkipStage(count=1), TakeStage(count=1)), EVERY_ID[4:8]),
        ((ReadStage(), BatchStage(size=4), UnbatchStage(), BatchStage(size=5)), EVERY_ID[:10]),
        ((ReadStage(), ROUGH, RebatchStage(size=7, drop_remainder=False)), EVERY_ID),
        ((ReadStage(), SnapshotStage(), RepeatStage(count=2), ROUGH), 2 * EVERY_ID),
        ((ReadStage(), SnapshotStage(compression="gzip"), RepeatStage(count=2), ROUGH), 2 * EVERY_ID),
        ((ReadStage(), SaveStage(), RepeatStage(count=2), ROUGH), 2 * EVERY_ID),
        ((ReadStage(), ROUGH, SaveStage(compression="gzip")), EVERY_ID),
        ((ReadStage(), ROUGH, PrefetchToDeviceStage()), EVERY_ID),
    ],
    ids=lambda value: "-".join(each.stage for each in value) if isinstance(value, tuple) else "",
)
def test_stages_hand_on_exactly_their_part(ask_tensorflow: Ask, stages: tuple[Stage, ...], expected: list[int]) -> None:
    assert _ids(ask_tensorflow, *stages) == expected


@pytest.mark.parametrize(("sharding", "times"), [("dynamic", 1), ("off", 2)])
def test_a_service_divides_the_files_among_its_workers_or_repeats_them(
    ask_tensorflow: Ask, sharding: Literal["dynamic", "off"], times: int
) -> None:
    service = ServiceStage(workers=2, sharding=sharding, compression=False)
    found = _ids(ask_tensorflow, ReadStage(), service, ROUGH)
    assert sorted(found) == sorted(times * EVERY_ID)


def test_random_shards_are_whole_stretches_in_an_order_of_their_own(ask_tensorflow: Ask) -> None:
    shards = RandomShardStage(num_shards=5, shard_size=3)
    ids = _ids(ask_tensorflow, ReadStage(), shards, RepeatStage(count=4), BatchStage(size=3))
    stretches = [tuple(ids[at : at + 3]) for at in range(0, 60, 3)]
    whole = [tuple(EVERY_ID[at : at + 3]) for at in range(0, 15, 3)]
    epochs = [stretches[at : at + 5] for at in range(0, 20, 5)]
    assert [sorted(epoch) for epoch in epochs] == [whole] * 4
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_a_filter_keeps_about_its_share_and_others_each_time(ask_tensorflow: Ask) -> None:
    workload = SyntheticWorkload(examples_per_file=(2000,), element_bytes=8, map_ms=0)
    stages = (ReadStage(), FilterStage(keep_percent=25), RepeatStage(count=2), BatchStage(size=1))
    ids = _ids(ask_tensorflow, *stages, workload=workload)
    assert len(ids) == pytest.approx(1000, rel=0.15)
    assert len(set(ids)) == pytest.approx(2000 * (1 - 0.75**2), rel=0.15)


@pytest.mark.parametrize("algorithm", [None, "max_parallelism", "hill_climb", "gradient_descent", "stage_based"])
def test_options_of_the_dataset_leave_the_records_alone(ask_tensorflow: Ask, algorithm: str | None) -> None:
    settings = {"autotune_cpu_budget": 1, "autotune_ram_budget_mb": 100, "slack": True, "warm_start": True}
    read = ReadStage(mode="interleave", num_parallel_calls=2)
    stages = (read, BatchStage(size=3, num_parallel_calls="autotune"), PrefetchStage())
    ids = _ids(ask_tensorflow, *stages, autotune_algorithm=algorithm, deterministic=False, **settings)
    assert sorted(ids) == EVERY_ID


def test_sparse_features_can_be_rebatched_stored_and_taken_apart(ask_tensorflow: Ask) -> None:
    workload = SparseWorkload(examples_per_file=(6, 6), features=2)
    stages = (ReadStage(), ParseStage(), SnapshotStage(), BatchStage(size=4), RebatchStage(size=3), UnbatchStage())
    ids = _ids(ask_tensorflow, *stages, SaveStage(), BatchStage(size=6), workload=workload)
    assert ids == [record_id(file, record) for file in range(2) for record in range(6)]


def test_the_probe_follows_a_users_records_through_every_part(ask_tensorflow: Ask) -> None:
    own = ImagesWorkload(data="random", image_size=8, examples_per_file=(6, 6, 6, 6))
    stages = (
        ReadStage(mode="map", num_shards=2, shard_index=1),
        SkipStage(count=1),
        ShardStage(num_shards=2),
        RandomShardStage(num_shards=1, shard_size=5),
        SnapshotStage(),
        ShuffleStage(buffer_size=1),
        BatchStage(size=2, drop_remainder=False),
        RebatchStage(size=1),
        UnbatchStage(),
        ParseStage(),
        BatchStage(size=5),
    )
    written = _ids(ask_tensorflow, *stages, workload=own)
    options = RunOptions(workload=own, pipeline=PipelineOptions(stages=stages)).to_json()
    folder = Path(ask_tensorflow("files_of", options=options)[0]).parent
    users = own.model_copy(update={"data": "files", "pattern": f"{folder}/*.tfrecord"})
    options = RunOptions(workload=users, pipeline=PipelineOptions(stages=stages)).to_json()
    assert ask_tensorflow("ids_of", options=options, probe=True) == [written]
    assert written == [record_id(1, 1), record_id(1, 3), record_id(1, 5), record_id(3, 1), record_id(3, 3)]


def test_views_are_parts_of_their_image_and_carry_ids_that_count_on(ask_tensorflow: Ask) -> None:
    own = ImagesWorkload(data="random", image_size=8, examples_per_file=(2, 3))
    views = ViewsStage(crops=2, size=4, num_parallel_calls=2)
    ids = _ids(ask_tensorflow, ReadStage(), ParseStage(), views, BatchStage(size=20), workload=own)
    assert ids == [record_id(file, view) for file, count in enumerate((8, 12)) for view in range(count)]
    options = RunOptions(
        workload=own, pipeline=PipelineOptions(stages=(ReadStage(), ParseStage(), views, BatchStage(size=4)))
    )
    assert ask_tensorflow("look_at_views", options=options.to_json()) == {"mirrored": [2, 3], "inside": 4}
    order = predict_order(options.pipeline, np.array([2, 3]), 5, cores=1)
    assert order is not None
    assert [
        record_id(file, record) for file, record in zip(order.file.tolist(), order.record.tolist(), strict=True)
    ] == ids
