from typing import Any

import pytest
from hypothesis import given

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.stages.batches import BatchStage, BucketStage, RebatchStage
from pipeline_lab.stages.delivery import PrefetchStage, PrefetchToDeviceStage, ServiceStage
from pipeline_lab.stages.functions import AugmentStage, LookupStage, ParseStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Remark, Weight
from pipeline_lab.stages.stores import CacheStage, SaveStage, SnapshotStage
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from tests.support.option_strategies import RUN_OPTIONS

READ, PARSE, AUGMENT, CACHE = ReadStage(), ParseStage(num_parallel_calls=2), AugmentStage(), CacheStage()
SHUFFLE, REPEAT, BATCH, PREFETCH = ShuffleStage(buffer_size=6000), RepeatStage(), BatchStage(size=10), PrefetchStage()

STRETCHES = RandomShardStage(num_shards=4, shard_size=500)


def _options(*stages: Stage, sizes: tuple[int, ...] = (1000, 1000), **pipeline: int | bool) -> RunOptions:
    return RunOptions(
        workload=ImagesWorkload(data="random", examples_per_file=sizes),
        pipeline=PipelineOptions(stages=stages, **pipeline),
    )


def _find(options: RunOptions, kind: str) -> Remark:
    (finding,) = (finding for finding in lint_pipeline(options) if finding.kind == kind)
    return finding


@pytest.mark.parametrize(
    ("maker", "then"), [(BATCH, (RebatchStage(size=64),)), (BucketStage(drop_remainder=True), ()), (BATCH, ())]
)
def test_a_shuffle_of_batches_is_to_stand_before_the_stage_that_makes_them(
    maker: Stage, then: tuple[Stage, ...]
) -> None:
    stages = (READ, REPEAT, PARSE, maker, *then, SHUFFLE, PREFETCH)
    workload = AudioWorkload() if isinstance(maker, BucketStage) else ImagesWorkload(data="random")
    found = _find(RunOptions(workload=workload, pipeline=PipelineOptions(stages=stages)), "shuffled-batches")
    assert found.sentence.startswith(f"shuffle comes after {maker.stage}: ")
    assert found.sentence.endswith(f"; put it before {maker.stage}.")


@pytest.mark.parametrize(
    ("kind", "stage", "options"),
    [
        ("frozen-augmentation", 3, _options(READ, PARSE, AUGMENT, CACHE, SHUFFLE, REPEAT, BATCH, PREFETCH)),
        ("endless-cache", 2, _options(READ, REPEAT, CACHE, PARSE, BATCH, PREFETCH)),
        ("frozen-order", 1, _options(READ, SHUFFLE, CACHE, REPEAT, PARSE, BATCH, PREFETCH)),
        ("mixed-epochs", 2, _options(READ, REPEAT, SHUFFLE, PARSE, BATCH, PREFETCH)),
        ("shuffled-batches", 3, _options(READ, PARSE, BATCH, SHUFFLE, REPEAT, PREFETCH)),
        ("decoded-shuffle", 2, _options(READ, PARSE, SHUFFLE, REPEAT, BATCH, PREFETCH)),
        ("frozen-augmentation", 3, _options(READ, PARSE, AUGMENT, SaveStage(), SHUFFLE, REPEAT, BATCH, PREFETCH)),
        ("endless-cache", 2, _options(READ, REPEAT, SnapshotStage(), PARSE, BATCH, PREFETCH)),
        ("partly-read-cache", 1, _options(READ, CACHE, TakeStage(count=50), REPEAT, PARSE, BATCH, PREFETCH)),
        ("partly-read-cache", 1, _options(READ, CACHE, STRETCHES, REPEAT, PARSE, BATCH, PREFETCH)),
        ("unsteady-shards", 2, _options(READ, SHUFFLE, ShardStage(), REPEAT, PARSE, BATCH, PREFETCH)),
        (
            "unsteady-shards",
            1,
            _options(ReadStage(shuffle_files=True), STRETCHES, SHUFFLE, REPEAT, PARSE, BATCH, PREFETCH),
        ),
        ("wasted-work", 2, _options(READ, PARSE, SkipStage(), SHUFFLE, REPEAT, BATCH, PREFETCH)),
        ("frozen-filter", 2, _options(READ, FilterStage(), CACHE, SHUFFLE, REPEAT, PARSE, BATCH, PREFETCH)),
        ("idle-slack", 3, _options(READ, REPEAT, PARSE, BATCH, slack=True)),
        ("weak-shuffle", 1, _options(READ, ShuffleStage(buffer_size=999), REPEAT, PARSE, BATCH, PREFETCH)),
        ("prefetch-not-last", 4, _options(READ, REPEAT, PARSE, PREFETCH, BATCH)),
        ("injected-prefetch", 3, _options(READ, REPEAT, PARSE, BATCH)),
        ("no-prefetch", 3, _options(READ, REPEAT, PARSE, BATCH, tensorflow_rewrites=False)),
        ("serial-stage", 2, _options(READ, REPEAT, ParseStage(), BATCH, PREFETCH, tensorflow_rewrites=False)),
        ("small-pool", 2, _options(READ, REPEAT, PARSE, BATCH, PREFETCH, private_threadpool_size=1)),
        ("repeated-by-service", 1, _options(READ, ServiceStage(sharding="off"), REPEAT, PARSE, BATCH, PREFETCH)),
        ("idle-service-workers", 1, _options(READ, ServiceStage(workers=3), REPEAT, PARSE, BATCH, PREFETCH)),
        ("endless-in-service", 1, _options(READ, REPEAT, PARSE, BATCH, ServiceStage(), PREFETCH)),
        ("service-on-loopback", 1, _options(READ, ServiceStage(), REPEAT, PARSE, BATCH, PREFETCH)),
        ("service-reads-there", 1, _options(READ, ServiceStage(address="a:1"), REPEAT, PARSE, BATCH, PREFETCH)),
        ("too-little-data", None, _options(READ, PARSE, BATCH, PREFETCH)),
        ("last-batch", 3, _options(READ, REPEAT, PARSE, BatchStage(drop_remainder=False), PREFETCH)),
        (
            "unequal-files",
            0,
            _options(ReadStage(mode="interleave"), REPEAT, PARSE, BATCH, PREFETCH, sizes=(1000, 2000, 3000)),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rule_finds_its_stage(kind: str, stage: int | None, options: RunOptions) -> None:
    assert _find(options, kind).stage == stage


def test_an_interleave_that_tf_data_refuses_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    def interleave(calls: int, cycle: int | None = None) -> RunOptions:
        read = ReadStage(mode="interleave", num_parallel_calls=calls, cycle_length=cycle)
        return _options(read, REPEAT, PARSE, BATCH, PREFETCH)

    assert "one for each core" in _find(interleave(3), "interleave-refused").sentence
    assert "one for each core" not in _find(interleave(8, 4), "interleave-refused").sentence
    for sound in (interleave(2), interleave(8, 8)):
        assert all(finding.kind != "interleave-refused" for finding in lint_pipeline(sound))


def test_a_sound_order_has_no_problem_and_no_advice() -> None:
    options = _options(READ, CACHE, SHUFFLE, REPEAT, PARSE, AUGMENT, BATCH, PREFETCH)
    assert {finding.weight for finding in lint_pipeline(options)} == {Weight.FACT}


def test_the_optimised_preset_is_sound() -> None:
    assert {finding.weight for finding in lint_pipeline(find_preset("optimised").options)} <= {Weight.FACT}


def test_a_cache_before_an_augmentation_without_chance_is_fine() -> None:
    still = AugmentStage(pad=0, flip=False, rotate_degrees=0, cutout=0)
    options = _options(READ, PARSE, still, CACHE, SHUFFLE, REPEAT, BATCH, PREFETCH)
    assert "frozen-augmentation" not in {finding.kind for finding in lint_pipeline(options)}


def test_prefetch_depth_counts_batches_examples_and_bytes() -> None:
    options = _options(READ, REPEAT, PARSE, BATCH, PrefetchStage(buffer_size=2))
    # 2 batches × 10 examples × (32 × 32 × 3 pixels + 16 bytes of label and id) = 61,760 bytes
    assert _find(options, "prefetch-depth").sentence == "prefetch(2) holds 2 batches, 20 examples, 61.8 kB."


def test_a_shuffle_buffer_holds_no_more_than_the_data() -> None:
    options = _options(READ, PARSE, ShuffleStage(buffer_size=10_000), REPEAT, BATCH, PREFETCH)
    assert "holds 2,000 examples, 6.18 MB" in _find(options, "shuffle-memory").sentence


def test_a_shuffle_buffer_behind_repeat_fills_up() -> None:
    options = _options(READ, PARSE, REPEAT, ShuffleStage(buffer_size=10_000), BATCH, PREFETCH)
    assert "holds 10,000 examples" in _find(options, "shuffle-memory").sentence


def test_too_little_data_counts_the_warm_up() -> None:
    sentence = _find(_options(READ, PARSE, BATCH, PREFETCH), "too-little-data").sentence
    assert "200 of 205 steps" in sentence  # 2000 examples in batches of 10; 200 steps after 5 of warm-up


@given(RUN_OPTIONS)
@pytest.mark.slow
def test_advice_is_a_sentence_about_a_stage_that_is_there(options: RunOptions) -> None:
    for finding in lint_pipeline(options):
        assert finding.sentence.endswith(".")
        assert finding.stage is None or 0 <= finding.stage < len(options.pipeline.stages)


def test_a_buffer_of_ten_thousand_over_300_files_of_4096_fills_from_three_files():
    options = _options(READ, ShuffleStage(buffer_size=10_000), REPEAT, PARSE, BATCH, PREFETCH, sizes=(4096,) * 300)
    sentence = _find(options, "weak-shuffle").sentence
    assert "fills from the first 3 of 300 files" in sentence
    # a record is 85 % of 3 × 32 × 32 bytes and 64 more: 2675 bytes, times 1,228,800
    assert sentence.endswith("would hold 1,228,800 examples, 3.29 GB.")


def test_the_coverage_of_a_run_is_told_before_it_runs():
    # 205 batches of 10 are 2,050 of 3,000 examples; files are read in order, the third is not reached
    options = _options(READ, REPEAT, PARSE, BATCH, PREFETCH, sizes=(1000, 1050, 950))
    found = _find(options, "coverage")
    assert "2,050 examples, 68.3 % of an epoch: 68.3 % of the records, from 2 of 3 files;" in found.sentence
    assert found.weight is Weight.ADVICE
    assert _find(_options(READ, REPEAT, PARSE, BATCH, PREFETCH), "coverage").sentence.endswith("from 2 of 2 files.")


def test_the_coverage_counts_epochs_of_what_the_stages_let_through():
    # half of 3,000 records are an epoch: 205 batches of 10 are more than one
    shard = ShardStage(num_shards=2, index=0)
    found = _find(_options(READ, shard, REPEAT, PARSE, BATCH, PREFETCH, sizes=(1000, 1050, 950)), "coverage")
    assert "2,050 examples, 137 % of an epoch: 50 % of the records, from 3 of 3 files; shard" in found.sentence


def test_what_skip_reads_and_discards_is_told_in_examples_and_bytes():
    options = _options(READ, SkipStage(count=100), REPEAT, PARSE, BATCH, PREFETCH)
    # a record is 85 % of 3 × 32 × 32 bytes and 64 more, 2675 bytes
    assert (
        "skip reads and discards 100 examples (268 kB) each time the data starts"
        in _find(options, "wasted-reads").sentence
    )


def test_what_random_shards_read_and_discard():
    # stretches of 500 begin at 0, 500, 1000 and 1500: 3000 elements discarded for 2000
    sentence = _find(_options(READ, STRETCHES, REPEAT, PARSE, BATCH, PREFETCH), "wasted-reads").sentence
    assert "discards 1.5 elements for each one it passes on, and up to 1,500 examples (4.01 MB)" in sentence


def test_stretches_in_a_random_order_leave_nothing_out_where_they_are_all_of_the_data():
    found = {finding.kind: finding.sentence for finding in lint_pipeline(find_preset("random-shards").options)}
    assert found["coverage"].endswith("from 7 of 7 files.")
    assert "weak-shuffle" not in found  # files are not read one after the other


def test_sharding_records_is_advised_against_where_files_can_be_shared():
    shard = ShardStage(num_shards=2)
    found = _find(_options(READ, shard, REPEAT, PARSE, BATCH, PREFETCH), "wasted-reads")
    assert (found.weight, "1 of 2 elements" in found.sentence) == (Weight.ADVICE, True)
    one_file = _options(READ, shard, REPEAT, PARSE, BATCH, PREFETCH, sizes=(2000,))
    assert _find(one_file, "wasted-reads").weight is Weight.FACT


def test_a_run_that_takes_a_part_can_see_only_that():
    options = _options(READ, TakeStage(count=500), REPEAT, PARSE, BATCH, PREFETCH)
    sentence = _find(options, "coverage").sentence
    assert sentence.endswith("25 % of the records, from 1 of 2 files; take leaves out the others.")


def test_buffers_are_measured_behind_a_part():
    options = _options(READ, TakeStage(count=500), SHUFFLE, CACHE, REPEAT, PARSE, BATCH, PrefetchToDeviceStage())
    assert "holds 500 examples" in _find(options, "shuffle-memory").sentence
    assert "The cache holds 500 examples" in _find(options, "cache-size").sentence
    assert "prefetch_to_device(2) holds 2 batches, 20 examples" in _find(options, "prefetch-depth").sentence
    assert "no-prefetch" not in {finding.kind for finding in lint_pipeline(options)}


def test_two_hundred_images_and_a_larger_buffer():
    options = _options(READ, SHUFFLE, REPEAT, PARSE, BATCH, PREFETCH, sizes=(200,))
    assert "the data has only 200" in _find(options, "buffer-beyond-data").sentence


def _captions(*stages: Stage, **workload: Any) -> RunOptions:
    return RunOptions(workload=FeaturesWorkload(**workload), pipeline=PipelineOptions(stages=stages))


def test_vectors_in_every_record_are_told_of_in_bytes() -> None:
    finding = _find(_captions(READ, REPEAT, BATCH, PARSE, PREFETCH, layout="replicated"), "replicated-vectors")
    assert "stored 20 times, 65.5 MB in all" in finding.sentence
    assert "they take 3.28 MB" in finding.sentence


@pytest.mark.slow
def test_a_stage_that_holds_vectors_is_told_of() -> None:
    options = _captions(READ, PARSE, LookupStage(), SHUFFLE, REPEAT, BATCH, PREFETCH)
    assert _find(options, "early-lookup").stage == 3
    assert "16.4 kB" in _find(options, "early-lookup").sentence
    assert _find(options, "lookup-by-example").stage == 2
    kinds = {finding.kind for finding in lint_pipeline(find_preset("features-lookup").options)}
    assert not kinds & {"early-lookup", "lookup-by-example", "replicated-vectors"}


def test_views_that_nothing_shuffles_meet_in_batches() -> None:
    options = _options(READ, SHUFFLE, REPEAT, PARSE, ViewsStage(), BATCH, PREFETCH)
    finding = _find(options, "views-together")
    assert (finding.weight, finding.stage) == (Weight.PROBLEM, 4)
    assert "The 10 views" in finding.sentence
    assert "of 10, 10 share their image" in finding.sentence


def test_views_behind_a_shuffle_are_counted_before_the_run() -> None:
    covering = _options(READ, PARSE, ViewsStage(), ShuffleStage(buffer_size=20_000), REPEAT, BATCH, PREFETCH)
    assert _find(covering, "views-in-batch").weight is Weight.FACT
    assert "a perfect shuffle has 0.0404" in _find(covering, "views-in-batch").sentence  # about 10 × 9 × 9 ÷ 20,000
    small = _options(READ, PARSE, ViewsStage(), ShuffleStage(buffer_size=20), REPEAT, BATCH, PREFETCH)
    assert _find(small, "views-in-batch").weight is Weight.ADVICE
    assert not {"decoded-shuffle", "views-together"} & {finding.kind for finding in lint_pipeline(small)}


def test_a_cache_behind_views_freezes_their_crops() -> None:
    finding = _find(_options(READ, PARSE, ViewsStage(), CACHE, SHUFFLE, REPEAT, BATCH, PREFETCH), "frozen-augmentation")
    assert "random crops" in finding.sentence
    assert finding.sentence.endswith("put the cache before views.")


def test_folders_of_classes_that_are_read_one_after_the_other() -> None:
    workload = ImagesWorkload(data="folder", folder="/data/pets")
    orders = {
        "problem": (READ, PARSE, BATCH),
        "advice": (READ, SHUFFLE, PARSE, BATCH),
        "": (ReadStage(mode="interleave"), PARSE, BATCH),
    }
    for weight, stages in orders.items():
        options = RunOptions(workload=workload, pipeline=PipelineOptions(stages=stages))
        found = [each.weight.value for each in lint_pipeline(options) if each.kind == "class-by-class"]
        assert found == ([weight] if weight else [])
    assert "class-by-class" not in {each.kind for each in lint_pipeline(_options(READ, PARSE, BATCH))}


def test_a_large_constant_is_advised_against() -> None:
    stages = (READ, PARSE, REPEAT, BATCH, LookupStage(), PREFETCH)
    large = _captions(*stages, layout="constant", captions_per_image=1)
    assert _find(large, "large-constant").stage == 4
    assert "65.5 MB" in _find(large, "large-constant").sentence
    assert _find(_captions(*stages, layout="constant"), "table").weight is Weight.FACT


def _made(**workload: Any) -> RunOptions:
    stages = (READ, REPEAT, BATCH, PREFETCH)
    return RunOptions(workload=GeneratorWorkload(**workload), pipeline=PipelineOptions(stages=stages))


def test_threads_do_not_help_python_and_processes_cost_what_they_hand_over() -> None:
    assert "2 Python threads make no more" in _find(_made(producer="threads"), "python-threads").sentence
    image = {"producer": "processes", "element_bytes": 256 * 256 * 3}
    assert "takes a process about 1.6 ms" in _find(_made(example_ms=1, **image), "process-queue").sentence
    for sound in (_made(example_ms=2, **image), _made(producer="threads", example_ms=0), _made()):
        assert not {"python-threads", "process-queue"} & {finding.kind for finding in lint_pipeline(sound)}
