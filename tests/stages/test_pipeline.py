"""What the stages of a pipeline say together."""

from typing import Any

import pytest

from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.statistics.reading_steps import Epoch

FILES = (50, 50)


@pytest.mark.parametrize(
    ("stages", "epoch"),
    [
        ([{"stage": "repeat"}], Epoch(100)),
        ([{"stage": "repeat", "count": 3}], Epoch(100)),
        ([], Epoch(100)),
        ([{"stage": "take", "count": 30}, {"stage": "repeat"}], Epoch(30)),
        ([{"stage": "shard", "num_shards": 4}, {"stage": "repeat"}], Epoch(25)),
        ([{"stage": "repeat"}, {"stage": "shard", "num_shards": 4}], Epoch(25)),
        ([{"stage": "filter", "keep_percent": 50}, {"stage": "repeat"}], Epoch(50, is_drawn=True)),
        ([{"stage": "repeat"}, {"stage": "filter", "keep_percent": 50}], Epoch(50, is_drawn=True)),
        ([{"stage": "random_shard", "num_shards": 2, "shard_size": 20}, {"stage": "repeat"}], Epoch(40)),
    ],
)
def test_an_epoch_is_what_the_steps_are_sent_of_one_pass(stages: list[dict[str, Any]], epoch: Epoch) -> None:
    pipeline = PipelineOptions.model_validate({"stages": [{"stage": "read"}, *stages, {"stage": "batch", "size": 5}]})
    assert pipeline.epoch(FILES) == epoch


def test_an_epoch_of_a_job_that_reads_a_part_of_the_files_is_that_part() -> None:
    stages = [{"stage": "read", "num_shards": 2}, {"stage": "repeat"}, {"stage": "batch", "size": 5}]
    assert PipelineOptions.model_validate({"stages": stages}).epoch(FILES) == Epoch(50)


def test_what_a_batch_before_repeat_leaves_out_is_no_part_of_an_epoch() -> None:
    stages = [{"stage": "read"}, {"stage": "batch", "size": 30}, {"stage": "repeat"}]
    assert PipelineOptions.model_validate({"stages": stages}).epoch(FILES) == Epoch(90)
