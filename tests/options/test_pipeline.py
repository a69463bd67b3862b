from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage, ServiceStage
from pipeline_lab.stages.functions import MapStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.registry import STAGE_TYPES


def pipeline(*stages: dict[str, Any], **options: Any) -> PipelineOptions:
    return PipelineOptions.model_validate({"stages": list(stages), **options})


def test_stages_keep_their_order() -> None:
    kinds = ["read", "shuffle", "repeat", "batch", "parse", "augment", "cache", "prefetch"]
    assert [stage.stage for stage in pipeline(*[{"stage": kind} for kind in kinds]).stages] == kinds


def test_every_stage_is_offered_by_its_name() -> None:
    assert {name: kind().stage for name, kind in STAGE_TYPES.items()} == {name: name for name in STAGE_TYPES}


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        (["batch", "read"], "the first stage must be read"),
        (["read", "parse"], "a batch stage is missing"),
        (["read", "batch", "batch"], "batch takes examples, and batches come; use rebatch"),
        (["read", "batch", "unbatch"], "a batch stage is missing after unbatch"),
        (["read", "unbatch", "batch"], "unbatch takes batches; put batch before it"),
        (["read", "rebatch", "batch"], "rebatch takes batches; put batch before it"),
        (["read", "batch", "prefetch_to_device", "prefetch"], "nothing may come after prefetch_to_device"),
        (["read", "repeat", "save", "batch"], "save never finishes after an endless repeat"),
        (["read", "augment", "parse", "batch"], "put parse before it"),
        (["read", "read", "batch"], "read may occur only once"),
    ],
)
def test_an_order_that_cannot_run_is_refused(kinds: list[str], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        pipeline(*[{"stage": kind} for kind in kinds])


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        ({"cycle_length": 4}, "cycle_length only applies to mode = interleave, not to sequential"),
        ({"mode": "parallel_reads", "num_parallel_calls": 2, "block_length": 2}, "block_length only applies"),
        ({"num_parallel_calls": 2}, "mode = sequential has no num_parallel_calls"),
        ({"mode": "parallel_reads"}, "parallel_reads needs num_parallel_calls"),
        ({"mode": "flat_map", "num_parallel_calls": 2}, "mode = flat_map has no num_parallel_calls"),
        ({"num_shards": 2, "shard_index": 2}, "shard_index 2 is out of range for 2 shards"),
        ({"mode": "sample", "num_shards": 2}, "mode = sample draws from all files; remove num_shards"),
    ],
)
def test_reading_options_must_fit_the_mode(read: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        ReadStage.model_validate(read)


@pytest.mark.parametrize(
    ("written", "meant"), [("", None), ("serial", None), ("None", None), ("autotune", "autotune"), (3, 3)]
)
def test_parallelism_is_serial_a_number_or_autotune(written: object, meant: object) -> None:
    assert MapStage.model_validate({"num_parallel_calls": written}).num_parallel_calls == meant


@pytest.mark.parametrize("wrong", [0, -1, 1025, "many", 1.5])
def test_other_parallelism_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        MapStage.model_validate({"num_parallel_calls": wrong})


@pytest.mark.parametrize(
    ("written", "meant"),
    [(None, None), ("", None), (" grpc://data-1.local:5050", "data-1.local:5050"), ("10.0.0.1:80", "10.0.0.1:80")],
)
def test_a_service_is_named_by_host_and_port(written: str | None, meant: str | None) -> None:
    assert ServiceStage(address=written).address == meant


@pytest.mark.parametrize("wrong", ["host", "http://a:1", "a:b", "a:1/x", "a:123456"])
def test_another_address_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        ServiceStage(address=wrong)


def test_a_service_cannot_divide_sampled_files() -> None:
    read = {"stage": "read", "mode": "sample"}
    with pytest.raises(ValidationError, match="cannot divide files that are sampled"):
        pipeline(read, {"stage": "service"}, {"stage": "batch"})
    pipeline(read, {"stage": "service", "sharding": "off"}, {"stage": "batch"})


def test_an_unknown_option_is_refused_rather_than_ignored() -> None:
    with pytest.raises(ValidationError, match="buffersize"):
        PrefetchStage.model_validate({"buffersize": 2})


def test_a_stage_is_found_by_name() -> None:
    options = pipeline({"stage": "read"}, {"stage": "batch", "size": 7})
    assert options.find("batch") == BatchStage(size=7)
    assert options.find("cache") is None
    assert options.batch_size == 7


def test_batches_have_a_size_at_each_place() -> None:
    kinds = ["read", "batch", "unbatch", "batch", "rebatch", "prefetch"]
    stages = [{"stage": kind} for kind in kinds]
    stages[4]["size"] = 7
    assert pipeline(*stages).batch_sizes == (None, 128, None, 128, 7, 7)
    assert pipeline(*stages).batch_size == 7


def test_a_shard_is_one_of_those_there_are() -> None:
    with pytest.raises(ValidationError, match="index 4 is out of range for 4 shards"):
        pipeline({"stage": "read"}, {"stage": "shard", "num_shards": 4, "index": 4}, {"stage": "batch"})


def test_options_are_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        BatchStage().size = 3


def test_a_second_save_that_would_never_finish_is_refused_as_well() -> None:
    stages = [{"stage": kind} for kind in ("read", "save", "repeat", "save", "batch")]
    with pytest.raises(ValidationError, match="save never finishes after an endless repeat"):
        PipelineOptions.model_validate({"stages": stages})
