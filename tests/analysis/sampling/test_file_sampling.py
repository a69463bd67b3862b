from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.sampling import file_reads, file_sampling, sample_history
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.steps.recorded_steps import STEP_TABLE, Steps
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_tables import SAMPLES
from pipeline_lab.statistics.reading_order import (
    ReadingOrder,
    simulate,
)
from pipeline_lab.statistics.reading_steps import (
    Batch,
    Epoch,
    ReadFiles,
    Repeat,
    Take,
    Views,
)
from tests.support.traces import Event, host, line, trace

NOTHING = FileReads({}, {})
OPENING = "TFRecordDatasetOp::Iterator::SetupStreamsLocked"


def files(*records: int | None) -> list[DataFile]:
    return [DataFile(f"/data/f{index}.tfrecord", count, 100) for index, count in enumerate(records)]


def samples(*rows: tuple[int, int, int]) -> pa.Table:
    """Return samples given as (step, file, record)."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(dict(zip(SAMPLES.schema.names, columns, strict=True)), schema=SAMPLES.schema)


def column(sampling: FileSampling, name: str) -> list[object]:
    return sampling.table.column(name).to_pylist()


def test_samples_stand_beside_expected_shares():
    # two of three samples from a file that holds one record in four
    found = file_sampling.measure_sampling(files(1, 3), samples((0, 0, 0), (0, 1, 2), (1, 0, 0)), NOTHING)
    assert found.basis == "samples"
    assert column(found, "samples") == [2, 1]
    assert column(found, "expected_share") == [0.25, 0.75]
    assert found.total_variation == pytest.approx(2 / 3 - 1 / 4)
    assert (found.unopened, found.coverage_percent, found.duplicates) == (0, 50.0, 1)
    assert found.within_batch_entropy == 0.5


def test_an_epoch_covers_all_and_repeats_nothing_even_when_the_next_begins():
    found = file_sampling.measure_sampling(files(2, 2), samples(*((0, n // 2 % 2, n % 2) for n in range(8))), NOTHING)
    assert (found.coverage_percent, found.duplicates, found.total_variation, found.total_variation_ideal) == (
        100,
        0,
        0,
        0,
    )


def test_the_worst_tenth_shows_a_mix_that_is_right_only_in_the_end():
    one_after_the_other = samples(*((n, n // 500, n % 500) for n in range(1000)))
    found = file_sampling.measure_sampling(files(500, 500), one_after_the_other, NOTHING)
    assert (found.total_variation, found.worst_tenth) == (0, 0.5)
    assert found.worst_tenth_ideal is not None
    assert found.worst_tenth_ideal < 0.12


def test_the_timeline_has_at_most_sixty_bins_and_every_sample():
    found = file_sampling.measure_sampling(
        files(500, 500), samples(*((n, n % 2, n // 2) for n in range(1000))), NOTHING
    )
    timeline = found.timeline
    assert set(timeline.column("bin").to_pylist()) == set(range(60))
    assert sum(timeline.column("samples").to_pylist()) == 1000
    assert (min(timeline.column("step").to_pylist()), max(timeline.column("step").to_pylist())) > (0, 900)


def test_a_short_run_has_a_bin_per_step():
    timeline = file_sampling.measure_sampling(files(9), samples((5, 0, 0), (6, 0, 1), (6, 0, 2)), NOTHING).timeline
    assert timeline.column("step").to_pylist() == [5, 6]
    assert timeline.column("samples").to_pylist() == [1, 2]


def test_coverage_is_followed_over_the_steps():
    # two samples a step; the second step brings one new record, the third none
    rows = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0)]
    coverage = file_sampling.measure_sampling(files(2, 2), samples(*rows), NOTHING).coverage.to_pydict()
    assert coverage == {
        "step": [0, 1, 2],
        "samples": [2, 4, 6],
        "records_percent": [50, 75, 75],
        "even_percent": [50, 100, 100],
        "files": [2, 2, 2],
        "predicted_percent": [None, None, None],
    }


def test_what_the_options_predict_stands_beside_what_came():
    def predict(records: np.ndarray, batches: int) -> ReadingOrder | None:
        return simulate(records, [ReadFiles(), Repeat(), Batch(2)], batches)

    rows = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0)]
    found = file_sampling.measure_sampling(files(2, 2), samples(*rows), NOTHING, predict)
    assert column(found, "predicted_share") == pytest.approx([4 / 6, 2 / 6])
    assert found.coverage.column("predicted_percent").to_pylist() == [50, 100, 100]
    assert found.predicted is not None
    assert found.predicted.batch_entropy == 0
    assert found.visible_percent is None
    assert file_sampling.measure_sampling(files(2), samples((0, 0, 0)), NOTHING, lambda *_: None).predicted is None


def test_what_stages_leave_out_for_good_is_known_from_the_options():
    def predict(records: np.ndarray, batches: int) -> ReadingOrder:
        return replace(simulate(records, [ReadFiles(), Take(2), Repeat(), Batch(2)], batches), visible=2)

    found = file_sampling.measure_sampling(files(2, 6), samples((0, 0, 0), (0, 0, 1)), NOTHING, predict)
    assert found.visible_percent == 25


def test_each_epochs_worth_is_counted_apart():
    rows = [(0, 0, 0), (0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 0), (1, 1, 0), (2, 1, 0)]
    found = file_sampling.measure_sampling(files(2, 1), samples(*rows), NOTHING)
    assert found.epochs_seen == pytest.approx(7 / 3)
    assert found.epochs.select(["samples", "records", "files"]).to_pylist() == [
        {"samples": 3, "records": 2, "files": 2},
        {"samples": 3, "records": 2, "files": 2},
        {"samples": 1, "records": 1, "files": 1},
    ]
    assert found.epochs.column("total_variation").to_pylist() == pytest.approx([0, 1 / 3, 2 / 3])


def test_shares_by_bytes_stand_beside_those_by_records():
    both = [DataFile("a", 1, 300), DataFile("b", 1, 100)]
    found = file_sampling.measure_sampling(both, samples((0, 0, 0), (0, 1, 0)), NOTHING)
    assert column(found, "expected_share_by_bytes") == [0.75, 0.25]
    assert column(found, "expected_share") == [0.5, 0.5]


def test_a_shuffled_run_is_as_mixed_as_its_ideal():
    order = np.random.default_rng(0).permutation(600)
    found = file_sampling.measure_sampling(
        files(200, 400),
        samples(*((n // 30, r // 200 and 1, r % 200 + 200 * (r // 400)) for n, r in enumerate(order))),
        NOTHING,
    )
    assert found.mixing is not None
    assert found.mixing_ideal is not None
    assert found.mixing.batch_entropy == pytest.approx(found.mixing_ideal.batch_entropy, abs=0.03)
    assert found.mixing.displacement == pytest.approx(1, abs=0.1)
    assert found.total_variation_limit == 0


def test_uncounted_files_have_no_expected_share():
    found = file_sampling.measure_sampling(files(None, 3), samples((0, 0, 0)), NOTHING)
    assert column(found, "expected_share") == [None, None]
    assert (found.total_variation, found.coverage_percent, found.duplicates) == (None, None, None)


def test_reads_are_matched_to_files_by_name():
    reads = FileReads({"/elsewhere/f1.tfrecord": 7}, {})
    assert column(file_sampling.measure_sampling(files(10, 10), samples((0, 0, 0)), reads), "reads") == [0, 7]


def test_readers_without_a_file_leave_reads_unknown():
    reads = FileReads({"/data/f1.tfrecord": 7}, {"FlatMap[0]": 3})
    assert column(file_sampling.measure_sampling(files(10, 10), samples((0, 0, 0)), reads), "reads") == [None, None]


def test_without_files_each_reader_is_a_row():
    found = file_sampling.measure_sampling(
        [], SAMPLES.schema.empty_table(), FileReads({}, {"FlatMap[0]": 30, "FlatMap[1]": 10})
    )
    assert (found.basis, column(found, "file")) == ("reads", ["FlatMap[0]", "FlatMap[1]"])
    assert column(found, "observed_share") == [0.75, 0.25]
    assert (found.unopened, found.total_variation) == (None, None)


def test_records_that_a_file_does_not_hold_are_said_to_contradict_it():
    with pytest.raises(TraceIncompleteError, match=r"says that \S+ holds 2 records, but the job used its record 3;"):
        file_sampling.measure_sampling(files(4, 2), samples((0, 0, 0), (0, 1, 1), (1, 1, 2)), FileReads({}, {}))


def test_nothing_to_count_is_said():
    with pytest.raises(TraceIncompleteError, match="sample probe"):
        file_sampling.measure_sampling(files(1), SAMPLES.schema.empty_table(), NOTHING)


def reading(name: str, *starts: int) -> list[Event]:
    return [(name, start, 2) for start in starts]


def opening(at: float, file: str) -> Event:
    return (OPENING, at, 0.5, {"filename": file})


def test_files_are_named_where_they_are_opened_and_the_call_at_the_end_is_no_record():
    first, second = (f"Iterator::Root::BatchV2::FlatMap[{index}]::TFRecord" for index in range(2))
    events = [*reading(first, 0, 10, 20), *reading(second, 30, 40), opening(0.5, "a"), opening(30.5, "b")]
    found = file_reads.count_reads(trace(host(line("tf_data_iterator_resource/1", *events))), None)
    assert found == FileReads({"a": 2, "b": 2}, {})


def test_a_slot_of_an_interleave_takes_files_in_turn():
    slot = "Iterator::Root::Interleave[0]::FlatMap[0]::TFRecord"
    events = [*reading(slot, 0, 10, 20, 30, 40), opening(20.5, "next")]
    found = file_reads.count_reads(trace(host(line("tf_data_iterator_resource/1", *events))), None)
    assert found == FileReads({"next": 3}, {"Root::Interleave[0]": 1})


def test_readers_on_several_threads_are_told_apart_by_their_place():
    name = "Iterator::Root::ForeverRepeat[{}]::ParallelInterleaveV4[{}]::FlatMap[0]::TFRecord"
    found = file_reads.count_reads(
        trace(
            host(
                line("tf_data_a", *reading(name.format(0, 0), 0, 4), *reading(name.format(0, 1), 8)),
                line("tf_data_b", *reading(name.format(0, 1), 1, 5), *reading(name.format(1, 0), 3)),
            )
        ),
        None,
    )
    slots = [f"Root::ForeverRepeat::ParallelInterleaveV4[{slot}]" for slot in range(2)]
    assert found == FileReads({}, {slots[0]: 3, slots[1]: 3})
    assert file_reads.name_readers(slots) == {slots[0]: "ParallelInterleaveV4[0]", slots[1]: "ParallelInterleaveV4[1]"}
    assert found.by_epoch == {0: 5, 1: 1}
    sampling = file_sampling.measure_sampling([], SAMPLES.schema.empty_table(), found)
    assert sampling.reads_by_epoch == ((1, 5), (2, 1))


def test_an_epoch_that_no_job_reaches_is_not_counted():
    name = f"Iterator::Root::ForeverRepeat[{'9' * 5000}]::BatchV2::TFRecord"
    found = file_reads.count_reads(trace(host(line("tf_data_a", *reading(name, 0, 4)))), None)
    assert (found.total, found.by_epoch) == (2, {})


def test_text_files_in_turn_in_one_slot_are_told_apart_by_their_dataset():
    slot = "Iterator::Root::Interleave[0]::FlatMap[0]::TextLine"
    lines = [(slot, 10 * at, 2, {"name": f"TextLineDataset:{number}"}) for at, number in enumerate((5, 5, 5, 9, 9, 12))]
    found = file_reads.count_reads(trace(host(line("tf_data_a", *lines))), None)
    # the last call on each of the first two files only found its end
    files = {f"Root::Interleave[0]::TextLineDataset:{number}": reads for number, reads in ((5, 2), (9, 1), (12, 1))}
    assert found == FileReads({}, files)
    assert set(file_reads.name_readers(list(files)).values()) == {
        f"Interleave[0] TextLineDataset:{n}" for n in (5, 9, 12)
    }


def test_readers_of_training_and_validation_are_told_apart():
    training, validation = (
        "Iterator::Root::BatchV2::Shuffle::FlatMap[0]::TFRecord",
        "Iterator::Root::BatchV2::FlatMap[0]::TFRecord",
    )
    events = [*reading(training, 0, 10, 20), *reading(validation, 30, 40)]
    found = file_reads.count_reads(trace(host(line("tf_data_a", *events))), None)
    sampling = file_sampling.measure_sampling([], SAMPLES.schema.empty_table(), found)
    assert column(sampling, "file") == ["FlatMap[0] of BatchV2, FlatMap", "FlatMap[0] of BatchV2, Shuffle, FlatMap"]
    assert column(sampling, "reads") == [2, 3]


def test_reads_are_laid_over_the_steps_that_ran_meanwhile():
    first, second = (f"Iterator::Root::FlatMap[{index}]::TFRecord" for index in range(2))
    # steps 7, 8 and 9 begin at 0, 100 and 200 µs; what is read before or after them belongs to the nearest
    events = [*reading(first, -9, 10, 110, 120), *reading(second, 130, 210, 900)]
    steps = Steps("Trace", None, step_table(7, (0, 100, 200)), first_step_only=False)
    found = file_reads.count_reads(trace(host(line("tf_data_a", *events))), steps)
    # the last call on the first file, at 120 µs, only found its end
    assert {reader: counts.tolist() for reader, counts in found.by_step.items()} == {
        "Root::FlatMap[0]": [[7, 2], [8, 1]],
        "Root::FlatMap[1]": [[8, 1], [9, 2]],
    }
    timeline = file_sampling.measure_sampling(
        [], SAMPLES.schema.empty_table(), file_reads.add_reads([found, found])
    ).timeline
    assert list(zip(*(timeline.column(name).to_pylist() for name in ("file", "step", "samples")), strict=True)) == [
        ("FlatMap[0]", 7, 4),
        ("FlatMap[0]", 8, 2),
        ("FlatMap[1]", 8, 2),
        ("FlatMap[1]", 9, 4),
    ]


def test_reads_of_a_window_without_steps_lie_over_none():
    name = "Iterator::Root::FlatMap[0]::TFRecord"
    steps = Steps("Trace", None, step_table(7, (0, 100, 200)), first_step_only=False)
    only_its_end = file_reads.count_reads(trace(host(line("tf_data_a", (name, 10, 0)))), steps)
    without_steps = file_reads.count_reads(trace(host(line("tf_data_a", *reading(name, 10, 20)))), None)
    both = file_reads.add_reads([only_its_end, without_steps])
    assert file_sampling.measure_sampling([], SAMPLES.schema.empty_table(), both).timeline.num_rows == 0


def step_table(number: int, starts_us: tuple[int, ...]) -> pa.Table:
    zeros = dict.fromkeys(("window", "wait_ns", "exposed_ns", "busy_ns"), 0)
    rows = [
        {"host": "h", "step": number + n, "start_ns": 1000 * start, "end_ns": 1000 * (start + 100), **zeros}
        for n, start in enumerate(starts_us)
    ]
    return pa.Table.from_pylist(rows, schema=STEP_TABLE)


def test_reads_of_several_windows_add_up():
    one, two = FileReads({"a": 1}, {"FlatMap[0]": 2}), FileReads({"a": 3}, {})
    assert (
        file_reads.add_reads([one, two]) == file_reads.add_reads([two, one]) == FileReads({"a": 4}, {"FlatMap[0]": 2})
    )
    assert file_reads.add_reads([one]) == one


def test_a_trace_without_readers_has_no_reads():
    assert file_reads.count_reads(trace(), None).total == 0
    assert np.array_equal(
        column(file_sampling.measure_sampling(files(4), samples((0, 0, 1)), NOTHING), "reads"), [None]
    )


def test_views_of_one_image_in_a_batch_are_counted_beside_a_perfect_shuffle():
    # two images of two views each; the first batch holds both views of image 0, the others one of each
    rows = samples((0, 0, 0), (0, 0, 1), (1, 0, 2), (1, 0, 0), (2, 0, 1), (2, 0, 3))
    found = file_sampling.measure_sampling(files(4), rows, NOTHING, views=2).same_source
    assert found is not None
    assert (found.views, found.batch_size, found.per_batch) == (2, 2, pytest.approx(2 / 3))
    assert found.expected == pytest.approx(2 / 3)
    assert found.predicted is None
    assert file_sampling.measure_sampling(files(4), rows, NOTHING).same_source is None


def test_the_views_that_options_predict_stand_beside_those_that_came():
    def predict(records: np.ndarray, batches: int) -> ReadingOrder:
        return simulate(records // 2, (ReadFiles(), Views(2), Batch(2)), batches)

    found = file_sampling.measure_sampling(files(4), samples((0, 0, 0), (0, 0, 2)), NOTHING, predict, views=2)
    assert found.same_source is not None
    assert (found.same_source.per_batch, found.same_source.predicted) == (0, 2)


def test_an_epoch_is_counted_in_what_the_stages_hand_on():
    # two files of 8, of which only the first is read: each of its records once, then all of them again
    rows = [(n // 4, 0, n % 8) for n in range(16)]
    found = file_sampling.measure_sampling(files(8, 8), samples(*rows), NOTHING, epoch=Epoch(8))
    assert (found.duplicates, found.epochs_seen) == (0, 2)
    assert found.epochs.column("samples").to_pylist() == [8, 8]


def test_where_chance_decides_how_long_an_epoch_is_nothing_is_called_used_again():
    # a filter keeps half of 8 records, others each time: 1 comes in both epochs of about four
    rows = [(0, 0, n) for n in (0, 1, 2, 3, 1, 4, 5, 6)]
    assert file_sampling.measure_sampling(files(8), samples(*rows), NOTHING).duplicates == 1
    found = file_sampling.measure_sampling(files(8), samples(*rows), NOTHING, epoch=Epoch(4, is_drawn=True))
    assert (found.duplicates, found.epochs_seen) == (None, 2)


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=80),
    st.sampled_from([4, 500]),
)
def test_every_sample_lies_in_the_bin_of_its_step_and_file_however_many_files_there_are(
    rows: list[tuple[int, int, int]], files: int
):
    names = [f"file-{number}" for number in range(files)]
    step, file, count = map(np.array, zip(*rows, strict=True))
    first, last = int(step.min()), int(step.max())
    bins = min(60, last + 1 - first)
    wanted: Counter[tuple[int, str]] = Counter()
    for row_step, row_file, row_count in rows:
        wanted[(row_step - first) * bins // (last + 1 - first), names[row_file]] += row_count
    found = sample_history.over_steps(names, step, file, count).to_pylist()
    assert {(row["bin"], row["file"]): row["samples"] for row in found} == wanted
    assert [(row["bin"], row["file"]) for row in found] == sorted(wanted)
