"""What the rendered pipelines really yield; one process with TensorFlow serves all of these tests."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.options.run_options import RunOptions, read_options, set_options
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import AugmentStage, LookupStage, MapStage, ParseStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, record_id
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]

SIZES = (3, 5, 4)
SMALL = SyntheticWorkload(examples_per_file=SIZES, element_bytes=16, map_ms=0)
IMAGES = ImagesWorkload(data="random", image_size=16, examples_per_file=(6, 6), classes=3)
EVERY_ID = sorted(record_id(file, record) for file, count in enumerate(SIZES) for record in range(count))

READS = {
    "sequential": ReadStage(),
    "shuffled-files": ReadStage(shuffle_files=True),
    "parallel-reads": ReadStage(mode="parallel_reads", num_parallel_calls=2),
    "parallel-reads-autotune": ReadStage(mode="parallel_reads", num_parallel_calls="autotune", shuffle_files=True),
    "sample": ReadStage(mode="sample"),
    "sample-uniformly": ReadStage(mode="sample", weights="uniform"),
    "interleave": ReadStage(mode="interleave", cycle_length=2, block_length=2),
    "interleave-parallel": ReadStage(mode="interleave", num_parallel_calls=2, deterministic=False, shuffle_files=True),
}
EXACT_ORDER = ("sequential", "shuffled-files", "parallel-reads", "parallel-reads-autotune", "interleave")


def _json(workload: Workload, *stages: Stage, **pipeline: Any) -> str:
    return RunOptions(workload=workload, pipeline=PipelineOptions(stages=stages, **pipeline)).to_json()


def _flat(batches: list[list[Any]]) -> list[Any]:
    return [value for batch in batches for value in batch]


@pytest.mark.parametrize("read_ms", [0, 0.1])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_way_of_reading_yields_every_record_once_per_epoch(
    ask_tensorflow: Ask, read: ReadStage, read_ms: float
) -> None:
    workload = SMALL.model_copy(update={"read_ms": read_ms})
    stages = (read, RepeatStage(count=2), BatchStage(size=12))
    first, second = ask_tensorflow("ids_of", options=_json(workload, *stages))
    assert sorted(first) == sorted(second) == EVERY_ID


@pytest.mark.parametrize("rewrites", [False, True])
@pytest.mark.parametrize(
    "stages",
    [
        (ReadStage(), MapStage(), BatchStage(size=5, drop_remainder=False)),
        (ReadStage(), BatchStage(size=5, drop_remainder=False), MapStage()),
        (ReadStage(), BatchStage(size=5, drop_remainder=False, num_parallel_calls=2), MapStage(num_parallel_calls=2)),
        (ReadStage(), CacheStage(where="file"), CacheStage(), BatchStage(size=5, drop_remainder=False)),
        (ReadStage(), PrefetchStage(buffer_size=2), MapStage(), BatchStage(size=5, drop_remainder=False)),
    ],
    ids=["map-first", "vectorized", "parallel", "caches", "prefetch-inside"],
)
@pytest.mark.parametrize("work", ["sleep", "spin"])
def test_stages_in_any_order_keep_the_records_and_their_order(
    ask_tensorflow: Ask, stages: tuple[Stage, ...], rewrites: bool, work: str
) -> None:
    workload = SMALL.model_copy(update={"map_ms": 0.1, "work": work})
    options = _json(workload, *stages, tensorflow_rewrites=rewrites, private_threadpool_size=2)
    assert _flat(ask_tensorflow("ids_of", options=options)) == EVERY_ID


def test_interleave_samples_open_files_equally_until_one_runs_out(ask_tensorflow: Ask) -> None:
    workload = SyntheticWorkload(examples_per_file=(1000, 2000, 3000), element_bytes=8, map_ms=0)
    read = ReadStage(mode="interleave", cycle_length=3)
    ids = _flat(ask_tensorflow("ids_of", options=_json(workload, read, BatchStage(size=1000))))
    files = [identity >> FILE_SHIFT for identity in ids]
    assert Counter(files[:3000]) == {0: 1000, 1: 1000, 2: 1000}  # thirds
    assert Counter(files[3000:5000]) == {1: 1000, 2: 1000}  # then halves
    assert Counter(files[5000:]) == {2: 1000}  # then the largest alone


def test_sampling_by_size_draws_files_by_their_length_from_beginning_to_end(ask_tensorflow: Ask) -> None:
    workload = SyntheticWorkload(examples_per_file=(1000, 2000, 3000), element_bytes=8, map_ms=0)
    ids = _flat(ask_tensorflow("ids_of", options=_json(workload, ReadStage(mode="sample"), BatchStage(size=1000))))
    for start in (0, 2500, 4500):
        drawn = Counter(identity >> FILE_SHIFT for identity in ids[start : start + 1000])
        assert all(abs(drawn[file] - expected) < 100 for file, expected in enumerate((167, 333, 500)))


@pytest.mark.parametrize(
    "read", [ReadStage(), ReadStage(mode="interleave", num_parallel_calls=2)], ids=["turns", "both"]
)
@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("producer", ["in_line", "threads", "processes"])
def test_generators_yield_every_example_once(ask_tensorflow: Ask, producer: str, at_once: int, read: ReadStage) -> None:
    workload = GeneratorWorkload.model_validate(
        {
            "examples_per_generator": SIZES,
            "examples_at_once": at_once,
            "example_ms": 0,
            "element_bytes": 8,
            "producer": producer,
        }
    )
    ids = ask_tensorflow("ids_of", options=_json(workload, read, BatchStage(size=5, drop_remainder=False)))
    assert sorted(_flat(ids)) == EVERY_ID
    assert [len(batch) for batch in ids] == [5, 5, 2]


@pytest.mark.parametrize("is_vectorized", [False, True], ids=["per-example", "vectorized"])
def test_sparse_features_reach_a_step_that_replicas_share(ask_tensorflow: Ask, is_vectorized: bool) -> None:
    workload = SparseWorkload(examples_per_file=(8, 8), features=3, vocabulary_size=20, embedding_size=4)
    batch, parse = BatchStage(size=8), ParseStage()
    tail = (batch, parse) if is_vectorized else (parse, batch)
    options = set_options(
        read_options(_json(workload, ReadStage(), RepeatStage(), *tail)), [("training.replicas", "2")]
    )
    result = ask_tensorflow("train", options=options.to_json(), steps=40)
    assert result["ids"] == [[record_id(0, record) for record in part] for part in (range(4), range(4, 8))]
    assert result["losses"][-1] < result["losses"][0]
    assert result["again"] == pytest.approx(result["losses"][0], rel=1e-5)


def test_lengths_that_vary_change_the_shape_of_the_batches(ask_tensorflow: Ask) -> None:
    workload = SyntheticWorkload(examples_per_file=(40,), element_bytes=1000, map_ms=0, varied_lengths=True)
    padded = BatchStage(size=8, mode="padded_batch")
    shapes = ask_tensorflow("shapes_of", options=_json(workload, ReadStage(), padded))
    assert len({tuple(shape) for shape in shapes}) > 1
    assert all(shape[0] == 8 and 500 <= shape[1] <= 1000 for shape in shapes)
    ragged = BatchStage(size=8, mode="ragged_batch")
    kept = ask_tensorflow("shapes_of", options=_json(workload, ReadStage(), ragged))
    assert kept == [[8]] * 5  # arrays of arrays: every example at its own length


@pytest.mark.parametrize("is_vectorized", [False, True], ids=["per-example", "vectorized"])
def test_one_record_in_so_many_is_slow(ask_tensorflow: Ask, is_vectorized: bool) -> None:
    workload = SMALL.model_copy(update={"tail_every": 4, "tail_ms": 60.0, "jitter_percent": 10.0})
    tail = (BatchStage(size=12), MapStage()) if is_vectorized else (MapStage(), BatchStage(size=12))
    slow = 3  # records 0 and 4, 0 and 4 of ids divisible by four: 0 of three, 0 and 4 of five, 0 of four
    assert ask_tensorflow("time_of", options=_json(workload, ReadStage(), *tail)) >= slow * 0.06 * 0.9


def test_tiny_operations_and_weights_are_part_of_the_imitated_step(ask_tensorflow: Ask) -> None:
    workload = SMALL.model_copy(update={"compute_ms": 0.0, "tiny_ops": 3, "weights_mb": 2.0})
    assert ask_tensorflow("checkpoint_bytes", options=_json(workload, ReadStage(), BatchStage(size=2))) >= 2_000_000


def test_files_come_in_a_new_order_each_epoch(ask_tensorflow: Ask) -> None:
    workload = SyntheticWorkload(examples_per_file=(1,) * 50, element_bytes=8, map_ms=0)
    stages = (ReadStage(shuffle_files=True), RepeatStage(count=2), BatchStage(size=50))
    first, second = ask_tensorflow("ids_of", options=_json(workload, *stages))
    assert sorted(first) == sorted(second)
    assert first != second


def test_the_seed_decides_the_order(ask_tensorflow: Ask) -> None:
    options = _json(SMALL, ReadStage(), ShuffleStage(buffer_size=12), BatchStage(size=12))
    assert ask_tensorflow("ids_of", options=options) == ask_tensorflow("ids_of", options=options)


@pytest.mark.parametrize(
    "still",
    [None, AugmentStage(pad=0, flip=False, rotate_degrees=0, cutout=0, normalise=False)],
    ids=["parse", "augment"],
)
def test_vectorized_and_per_example_code_yield_the_same_images(ask_tensorflow: Ask, still: AugmentStage | None) -> None:
    batch = BatchStage(size=5, drop_remainder=False)
    work: list[Stage] = [ParseStage(), *([still] if still else [])]
    single = ask_tensorflow("images_of", options=_json(IMAGES, ReadStage(), *work, batch))
    whole = ask_tensorflow("images_of", options=_json(IMAGES, ReadStage(), batch, *work))
    mixed = ask_tensorflow("images_of", options=_json(IMAGES, ReadStage(), work[0], batch, *work[1:]))
    assert single == whole == mixed
    assert [len(batch) for batch in single] == [5, 5, 2]


@pytest.mark.parametrize("is_vectorized", [False, True], ids=["per-example", "vectorized"])
def test_augmentation_gives_each_image_its_own_chance_and_normalises_it(
    ask_tensorflow: Ask, is_vectorized: bool
) -> None:
    one_image = IMAGES.model_copy(update={"examples_per_file": (1,)})
    work: list[Stage] = [ParseStage(), AugmentStage(pad=2, crop=12, cutout=4)]
    head = [ReadStage(), RepeatStage()]
    stages = [*head, BatchStage(size=8), *work] if is_vectorized else [*head, *work, BatchStage(size=8)]
    images = ask_tensorflow("first_images", options=_json(one_image, *stages))
    assert images["shape"] == [8, 12, 12, 3]
    assert images["different"] == 8
    assert images["means"] == pytest.approx([0.0] * 8, abs=1e-5)
    assert images["deviations"] == pytest.approx([1.0] * 8, abs=1e-3)


@pytest.mark.parametrize("is_vectorized", [False, True], ids=["per-example", "vectorized"])
def test_cutout_blackens_exactly_its_square(ask_tensorflow: Ask, is_vectorized: bool) -> None:
    cut = AugmentStage(pad=0, flip=False, rotate_degrees=0, cutout=4, normalise=False)
    batch = BatchStage(size=6)
    stages = [batch, ParseStage(), cut] if is_vectorized else [ParseStage(), cut, batch]
    images = ask_tensorflow("first_images", options=_json(IMAGES, ReadStage(), *stages))
    assert images["zeros"] == [16] * 6


@pytest.mark.parametrize("is_vectorized", [False, True], ids=["per-example", "vectorized"])
@pytest.mark.parametrize("name", EXACT_ORDER)
def test_the_probe_changes_neither_the_examples_nor_their_order(
    ask_tensorflow: Ask, name: str, is_vectorized: bool
) -> None:
    own = ImagesWorkload(data="random", image_size=8, examples_per_file=(4, 9, 6))
    folder = Path(
        ask_tensorflow("files_of", options=_json(own, ReadStage(), ParseStage(), BatchStage(size=1)))[0]
    ).parent
    workload = ImagesWorkload(data="files", pattern=f"{folder}/*.tfrecord", image_size=8)
    batch, parse = BatchStage(size=6, drop_remainder=False), ParseStage()
    tail = (batch, parse) if is_vectorized else (parse, batch)
    options = _json(workload, READS[name], ShuffleStage(buffer_size=4), RepeatStage(count=2), *tail)
    plain = ask_tensorflow("images_of", options=options)
    assert ask_tensorflow("images_of", options=options, probe=True) == plain
    assert len(_flat(plain)) == 38


def test_the_probe_names_file_and_record(ask_tensorflow: Ask) -> None:
    own = ImagesWorkload(data="random", image_size=8, examples_per_file=(4, 9, 6))
    stages = (ReadStage(mode="interleave", cycle_length=2, block_length=3), ParseStage(), BatchStage(size=19))
    written = ask_tensorflow("ids_of", options=_json(own, *stages))
    folder = Path(ask_tensorflow("files_of", options=_json(own, *stages))[0]).parent
    workload = ImagesWorkload(data="files", pattern=f"{folder}/*.tfrecord", image_size=8)
    assert ask_tensorflow("ids_of", options=_json(workload, *stages), probe=True) == written


def test_rewrites_that_are_off_leave_the_pipeline_as_written(ask_tensorflow: Ask) -> None:
    stages = (ReadStage(), RepeatStage(), ParseStage(), BatchStage(size=2))
    off = ask_tensorflow("iterator_names", options=_json(IMAGES, *stages, tensorflow_rewrites=False))
    on = ask_tensorflow("iterator_names", options=_json(IMAGES, *stages))
    assert not {"Prefetch", "ParallelMapV2", "MapAndBatch"} & set(off)
    assert "MapAndBatch" in on


def test_the_network_has_the_size_that_its_description_states(ask_tensorflow: Ask) -> None:
    assert ask_tensorflow("count_weights", image_size=32, classes=10) == 78_042


def test_digits_are_the_real_ones(ask_tensorflow: Ask) -> None:
    assert ask_tensorflow("digits") == {"count": 1797, "labels": list(range(10)), "shape": [32, 32, 3]}


def test_random_images_differ_and_their_labels_fit_the_classes(ask_tensorflow: Ask) -> None:
    images = ask_tensorflow("noise")
    assert images["different"] == 5
    assert set(images["labels"]) <= {0, 1, 2}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"precision": "mixed_bfloat16"},
        {"precision": "mixed_float16"},
        {"xla": True},
        {"accumulate": 5},
        {"replicas": 2},
        {"replicas": 2, "accumulate": 2, "precision": "mixed_float16"},
        {"xla": True, "accumulate": 2},
    ],
    ids=str,
)
def test_training_lowers_the_loss_and_can_be_undone(ask_tensorflow: Ask, settings: dict[str, Any]) -> None:
    options = RunOptions.model_validate_json(_json(IMAGES, ReadStage(), ParseStage(), BatchStage(size=12)))
    training = options.training.model_copy(update=settings)
    result = ask_tensorflow("train", options=options.model_copy(update={"training": training}).to_json(), steps=12)
    assert result["losses"][-1] < result["losses"][0]
    assert result["again"] == pytest.approx(result["losses"][0], rel=0.05)
    assert all(0 <= accuracy <= 1 for accuracy in result["accuracies"])
    assert [len(part) for part in result["ids"]] == ([6, 6] if "replicas" in settings else [12])
    assert result["rewritten"] == [], "AutoGraph takes a tenth of a launch, and no step of ours needs it"


def test_a_record_whose_content_is_damaged_is_named(ask_tensorflow: Ask, tmp_path: Path) -> None:
    (original, *_) = ask_tensorflow("files_of", options=_json(SMALL, ReadStage(), BatchStage(size=2)))
    content = bytearray(Path(original).read_bytes())
    content[2 * 32 + 20] ^= 1  # each record of 16 bytes takes 32; a byte in the data of the third
    damaged = tmp_path / "damaged.tfrecord"
    damaged.write_bytes(content)
    assert ask_tensorflow("name_damage", files=[original]) is None
    assert "damaged.tfrecord is damaged at record 2" in ask_tensorflow("name_damage", files=[original, str(damaged)])
    assert ask_tensorflow("name_damage", files=[original], stopped=True) == "stopped"


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"image": "jpeg", "label": 3}, "no failure"),
        ({"image": "jpeg", "label": 7}, "The data holds the label 7, but the model has 5 classes"),
        ({"picture": "jpeg", "label": 3}, "A record has no feature 'image' of type string"),
        ({"image": "jpeg", "label": 3.5}, "The feature 'label' of a record is of type float, not int64"),
        ({"image": "no image", "label": 3}, "An image of the data cannot be decoded"),
        ({}, "A record is not a tf.train.Example"),
    ],
    ids=["sound", "label", "name", "type", "image", "garbage"],
)
@pytest.mark.parametrize("is_vectorized", [False, True], ids=["per-example", "vectorized"])
def test_a_users_data_that_does_not_fit_is_explained(
    ask_tensorflow: Ask, record: dict[str, Any], sentence: str, is_vectorized: bool
) -> None:
    workload = ImagesWorkload(data="files", pattern="/set/later", image_size=8, classes=5)
    batch, parse = BatchStage(size=1), ParseStage()
    stages = (ReadStage(), *((batch, parse) if is_vectorized else (parse, batch)))
    explained = ask_tensorflow("explain_training", options=_json(workload, *stages), records=[record])
    assert explained.startswith(sentence)


def test_every_layout_trains_on_the_same_vectors(ask_tensorflow: Ask) -> None:
    small = FeaturesWorkload(examples_per_file=(12, 10), captions_per_image=2, vector_size=8, vocabulary_size=50)
    batch = BatchStage(size=22)
    results = {}
    for layout in ("replicated", "lookup", "constant", "variable", "sharded"):
        workload = small.model_copy(update={"layout": layout})
        look_up = () if layout == "replicated" else (LookupStage(),)
        orders = {"per-example": (ParseStage(), *look_up, batch), "vectorized": (batch, ParseStage(), *look_up)}
        if layout in ("variable", "sharded"):
            orders["in the step"] = (batch, ParseStage())
        for name, stages in orders.items():
            options = _json(workload, ReadStage(), *stages)
            results[layout, name] = ask_tensorflow("train_on_vectors", options=options, steps=30)
    first = results["replicated", "per-example"]
    assert first["losses"][-1] < first["losses"][0]
    assert first["accuracy"] > 0.5
    for (_, order), result in results.items():
        assert result["losses"] == pytest.approx(first["losses"], rel=1e-4)
        assert result["vectors"] == (None if order == "in the step" else first["vectors"])
    header_bytes = 128
    assert results["lookup", "vectorized"]["tables"] == [[11, 11 * 8 * 4 + header_bytes]]
    assert [rows for rows, _ in results["sharded", "vectorized"]["tables"]] == [3, 3, 3, 2]
    assert first["tables"] == []


@pytest.mark.parametrize("producer", ["in_line", "processes"])
@pytest.mark.parametrize("at_once", [1, 3])
def test_names_come_through_unharmed_and_in_order(ask_tensorflow: Ask, producer: str, at_once: int) -> None:
    workload = {"kind": "generator", "examples_per_generator": SIZES, "examples_at_once": at_once, "example_ms": 0}
    workload |= {"producer": producer, "ids": "strings"}
    stages = [{"stage": "read"}, {"stage": "batch", "size": 5, "drop_remainder": False}]
    options = read_options({"workload": workload, "pipeline": {"stages": stages}})
    expected = [name_of(generator, number) for generator, count in enumerate(SIZES) for number in range(count)]
    assert ask_tensorflow("names_of", options=options.to_json()) == expected


def test_processes_that_make_examples_end_with_their_pipeline(ask_tensorflow: Ask) -> None:
    workload = GeneratorWorkload(example_ms=1, producer="processes", workers=2)
    options = _json(workload, ReadStage(), RepeatStage(), BatchStage(size=4))
    assert ask_tensorflow("processes_of", options=options) == {"while it ran": 2, "behind it": 0}


def test_a_process_that_is_killed_is_an_error_and_no_standstill(ask_tensorflow: Ask) -> None:
    workload = GeneratorWorkload(example_ms=1, producer="processes", workers=2)
    options = _json(workload, ReadStage(), RepeatStage(), BatchStage(size=4))
    explained = ask_tensorflow("kill_a_process", options=options)
    assert explained.startswith("A process that produces examples was killed")


def test_names_go_through_an_evaluation_unharmed(ask_tensorflow: Ask) -> None:
    workload = {"kind": "generator", "examples_per_generator": [3, 2], "example_ms": 0, "ids": "strings"}
    stages = [{"stage": "read"}, {"stage": "batch", "size": 5}]
    options = read_options({"workload": {**workload, "compute_ms": 0}, "pipeline": {"stages": stages}})
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert ask_tensorflow("evaluate_names", options=options.to_json()) == [
        {"pass": 0, "file": file, "record": record, "name": name_of(file, record)} for file, record in places
    ]


def name_of(generator: int, number: int) -> str:
    return hashlib.sha256(f"{generator}/{number}".encode()).hexdigest()[:16]
