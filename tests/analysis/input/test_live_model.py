"""The live model of tf.data: work per batch, also over epochs, files and caches that make nodes anew."""

import pyarrow as pa
import pytest

from pipeline_lab.analysis.input import live_model
from pipeline_lab.analysis.input.live_model import LiveModel, StageWork
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_tables import MODEL, STEPS
from tests.support.models import ASYNC_INTERLEAVE, ASYNC_KNOWN, INTERLEAVE, MS, UNKNOWN, Node, model_table

NO_STEPS = STEPS.schema.empty_table()


def measure(*samples: tuple[float, list[Node]], warm_ms: float = 0.0) -> LiveModel:
    """Measure a run whose warm-up ended at that time."""
    steps = pa.Table.from_pylist([{"warmup": False, "start_ns": int(warm_ms * MS)}], schema=STEPS.schema)
    return live_model.measure_model(model_table(*samples), steps, 0)


def stage(model: LiveModel, name: str) -> StageWork:
    return next(found for found in model.stages if found.name == name)


def batches_of_four(batches: int, records: int, record_ms: float, *, number: int = 3) -> list[Node]:
    return [
        Node(1, -1, "Root", batches),
        Node(2, 1, "BatchV2", batches, ms=1.0 * batches, ratio=4.0),
        Node(number, 2, "TFRecord", records, ms=record_ms, ratio=0.0, produced_bytes=100 * records),
    ]


def test_work_is_visits_times_self_time_after_the_warm_up():
    model = measure(
        (0, batches_of_four(0, 0, 0)),
        (1000, batches_of_four(10, 40, 4000)),  # slow: the warm-up
        (2000, batches_of_four(20, 80, 4000 + 80)),
        warm_ms=900,
    )
    read = stage(model, "TFRecord")
    assert (read.visits_per_batch, read.self_ns, read.work_ns) == (4.0, 2.0 * MS, 8.0 * MS)
    assert stage(model, "BatchV2").work_ns == 1.0 * MS
    assert (read.path, read.parent, read.elements, read.element_bytes) == ("Root::BatchV2::TFRecord", 1, 40, 100.0)
    assert (model.batches, model.start_ns, model.end_ns, model.samples) == (10, 1000 * MS, 2000 * MS, 3)


def test_a_new_epoch_makes_new_nodes_whose_counts_begin_at_zero():
    model = measure(
        (0, batches_of_four(0, 0, 0)),
        (1000, batches_of_four(10, 40, 80)),
        (2000, batches_of_four(20, 4, 8, number=9)),  # 36 records of the old node went by unseen
    )
    read = stage(model, "TFRecord")
    assert (read.visits_per_batch, read.self_ns) == (4.0, 2.0 * MS)
    assert read.elements == 44


def test_an_interleave_takes_each_element_from_one_of_its_files():
    def sample(records: int) -> list[Node]:
        return [
            Node(1, -1, "Root", records, node_class=ASYNC_KNOWN),
            Node(2, 1, "ParallelInterleaveV4", records, node_class=ASYNC_INTERLEAVE, ratio=0.0),
            Node(3, 2, "TensorSlice", records // 20, ratio=0.0, place=0),
            Node(4, 2, "FlatMap", records // 4, node_class=INTERLEAVE, ratio=0.0, place=1),  # its neighbor ended
            Node(5, 4, "TFRecord", records // 4, ms=records // 4, ratio=0.0, place=1),
        ]

    model = measure((0, sample(0)), (1000, sample(40)))
    assert [round(found.visits_per_batch, 3) for found in model.stages] == [1, 1, 0.05, 1, 1]
    assert stage(model, "TFRecord").work_ns == 1.0 * MS


def test_a_filter_asks_for_as_many_elements_as_were_counted():
    def sample(kept: int, asked: int, below: int = 3) -> list[Node]:
        return [
            Node(1, -1, "Root", kept),
            Node(2, 1, "Filter", kept, node_class=UNKNOWN, ratio=0.0),
            Node(below, 2, "TFRecord", asked, ratio=0.0),
        ]

    both_last = measure((0, sample(0, 0)), (1000, sample(10, 30)))
    assert stage(both_last, "TFRecord").visits_per_batch == 3.0
    new_epoch = measure((0, sample(0, 0)), (1000, sample(10, 30)), (2000, sample(20, 1, below=4)))
    assert stage(new_epoch, "TFRecord").visits_per_batch == 3.0  # the interval in which it was made does not count


def test_what_stands_behind_a_full_cache_costs_nothing_any_more():
    cache = [Node(1, -1, "Root", 10), Node(2, 1, "MemoryCache", 10), Node(3, 2, "MemoryCacheImpl", 10)]
    full = [Node(1, -1, "Root", 30), Node(7, 1, "MemoryCache", 10), Node(8, 7, "MemoryCacheImpl", 10, ratio=0.0)]
    filling = [*cache, Node(4, 3, "Map", 10, ms=50)]
    model = measure((0, filling), (1000, full))
    read = stage(model, "Map")
    assert (read.visits_per_batch, read.work_ns, read.self_ns) == (0.0, 0.0, 5.0 * MS)
    assert stage(model, "MemoryCacheImpl").visits_per_batch == 1.0


def test_a_zip_asks_each_of_its_inputs_of_the_same_kind():
    def sample(batches: int) -> list[Node]:
        return [
            Node(1, -1, "Root", batches),
            Node(2, 1, "Zip", batches),
            Node(3, 2, "Map", batches, ms=2.0 * batches, place=0),
            Node(4, 2, "Map", batches, ms=4.0 * batches, place=1),
        ]

    mapped = stage(measure((0, sample(0)), (1000, sample(10))), "Map")
    assert (mapped.visits_per_batch, mapped.work_ns) == (2.0, 6.0 * MS)


def test_what_filled_a_shuffle_buffer_made_all_that_it_hands_on():
    def sample(batches: int, *filled: Node) -> list[Node]:
        return [Node(1, -1, "Root", batches), Node(2, 1, "Shuffle", batches), *filled]

    source = [Node(3, 2, "Map", 40, ms=80.0), Node(4, 3, "Range", 40, ms=40.0)]
    model = measure((0, sample(0)), (1000, sample(10, *source)), (2000, sample(40)))
    assert [(found.name, found.visits_per_batch) for found in model.stages[2:]] == [("Map", 1.0), ("Range", 1.0)]
    assert stage(model, "Map").work_ns == 2.0 * MS


def test_what_came_to_its_end_before_a_sample_made_all_that_was_batched():
    def sample(batches: int, *still_there: Node) -> list[Node]:
        return [Node(1, -1, "Root", batches), Node(2, 1, "BatchV2", batches, ratio=4.0), *still_there]

    read = Node(3, 2, "Map", 40, ms=80.0)
    model = measure((0, sample(0)), (1000, sample(10, read)), (2000, sample(40)))
    assert (stage(model, "Map").visits_per_batch, stage(model, "Map").work_ns) == (4.0, 8.0 * MS)


def test_a_validation_that_takes_turns_with_the_training_counts_by_its_batches():
    def train(batches: int, *below: Node) -> list[Node]:
        return [Node(1, -1, "Root", batches), Node(2, 1, "Prefetch", batches), *below]

    validate = [Node(7, -1, "Root", 20), Node(8, 7, "BatchV2", 20, ratio=4.0), Node(9, 8, "Range", 80)]
    model = measure(
        (0, train(0)), (1000, train(10, Node(3, 2, "Map", 10))), (2000, train(80)), (3000, validate), warm_ms=-1.0
    )
    shares = {found.path: found.visits_per_batch for found in model.stages}
    assert shares["Root::Prefetch"] == shares["Root::Prefetch::Map"] == 0.8
    assert (shares["Root::BatchV2"], shares["Root::BatchV2::Range"]) == (pytest.approx(0.2), pytest.approx(0.8))


def test_inputs_that_follow_each_other_share_the_batches():
    def sample(batches: int, number: int, name: str, count: int) -> list[Node]:
        return [Node(1, -1, "Root", batches), Node(2, 1, "Concatenate", batches), Node(number, 2, name, count)]

    model = measure((0, sample(0, 3, "Map", 0)), (1000, sample(10, 3, "Map", 10)), (2000, sample(40, 4, "Range", 30)))
    assert [(found.name, found.visits_per_batch) for found in model.stages[2:]] == [("Map", 0.25), ("Range", 0.75)]


def test_buffers_and_parallelism_are_means_over_time_and_their_changes_are_dated():
    def sample(threads: float, held: int) -> list[Node]:
        prefetch = Node(
            2,
            1,
            "Prefetch",
            10,
            node_class=ASYNC_KNOWN,
            buffered=held,
            buffered_bytes=100 * held,
            limit=2.0,
            tuned=True,
        )
        mapped = Node(3, 2, "ParallelMapV2", 10, node_class=ASYNC_KNOWN, parallelism=threads, tuned=True)
        return [Node(1, -1, "Root", round(10 * threads)), prefetch, mapped]

    model = measure((0, sample(1, 0)), (1000, sample(4, 2)), (3000, sample(4, 1)))
    prefetch, mapped = stage(model, "Prefetch"), stage(model, "ParallelMapV2")
    assert (mapped.parallelism, mapped.parallelism_tuned, mapped.is_asynchronous) == (4.0, True, True)
    assert prefetch.buffered_elements == pytest.approx((2 * 1 + 1 * 2) / 3)  # 2 for one second, 1 for two
    assert (prefetch.buffer_limit, prefetch.buffer_tuned, prefetch.peak_bytes) == (2.0, True, 200)
    assert mapped.buffered_bytes is None
    assert (model.peak_bytes, model.ram_budget_bytes, model.last_change_ns) == (200, 1000, 1000 * MS)
    row = model.timeline.to_pylist()[5]
    assert row == {
        "time_ns": 1000 * MS,
        "stage": 2,
        "elements": 0,
        "parallelism": 4.0,
        "buffered_elements": 0,
        "buffered_bytes": 0,
        "buffer_limit": None,
    }


def test_a_long_run_keeps_a_bounded_timeline_whose_elements_still_add_up():
    model = measure(*((float(second), batches_of_four(second, 4 * second, second)) for second in range(1000)))
    assert model.timeline.num_rows == live_model.MAX_SAMPLES * 3
    root = [row["elements"] for row in model.timeline.to_pylist() if row["stage"] == 0]
    assert sum(root) == 999


@pytest.mark.parametrize(
    ("table", "reason"), [(None, live_model.OLD_RUN), (MODEL.schema.empty_table(), live_model.MODEL_OFF)]
)
def test_without_a_sample_it_says_why(table: pa.Table | None, reason: str):
    with pytest.raises(TraceIncompleteError, match=reason.split(";")[0]):
        live_model.measure_model(table, NO_STEPS, 0)
