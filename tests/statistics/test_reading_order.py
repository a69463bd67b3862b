import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.statistics.reading_order import simulate
from pipeline_lab.statistics.reading_steps import (
    Batch,
    Bucket,
    Cache,
    Filter,
    OrderStep,
    RandomShard,
    ReadFiles,
    Repeat,
    SampleFiles,
    Shard,
    Shuffle,
    Skip,
    Take,
    Unbatch,
    Views,
)
from pipeline_lab.statistics.streams import shuffle_order

ALL = 10**6
SIZES = np.array([2, 3, 1])


def order(*steps: OrderStep, sizes: np.ndarray = SIZES, wanted: int = ALL, seed: int = 0) -> list[str]:
    """Return what came as words: b1 is the second record of the second file."""
    found = simulate(sizes, steps, wanted, seed=seed)
    return [f"{'abcdefgh'[file]}{record}" for file, record in zip(found.file, found.record, strict=True)]


def test_a_cycle_of_one_reads_one_file_after_the_other():
    assert order(ReadFiles()) == ["a0", "a1", "b0", "b1", "b2", "c0"]


def test_an_interleave_visits_its_slots_in_turn_and_opens_the_next_file_a_visit_after_the_end():
    assert order(ReadFiles(3)) == ["a0", "b0", "c0", "a1", "b1", "b2"]
    # c is opened in a's slot: the visit after a1 finds a's end, the one after that opens c
    assert order(ReadFiles(2)) == ["a0", "b0", "a1", "b1", "b2", "c0"]


def test_a_block_is_taken_from_one_file_before_the_next():
    assert order(ReadFiles(2, block_length=2)) == ["a0", "a1", "b0", "b1", "b2", "c0"]


def test_only_what_is_wanted_comes():
    assert order(ReadFiles(3), wanted=4) == ["a0", "b0", "c0", "a1"]
    assert order(ReadFiles(), Repeat(), wanted=8)[-2:] == ["a0", "a1"]


def test_empty_files_give_nothing():
    assert order(ReadFiles(2), sizes=np.array([0, 2, 0, 1])) == ["b0", "b1", "d0"]
    assert order(ReadFiles(), Repeat(), sizes=np.array([0])) == []


def test_the_last_batch_is_dropped_or_stays_short():
    kept = simulate(SIZES, [ReadFiles(), Batch(4, drop_remainder=False), Repeat(2)], ALL)
    assert kept.batch.tolist() == [0] * 4 + [1] * 2 + [2] * 4 + [3] * 2
    assert simulate(SIZES, [ReadFiles(), Batch(4)], ALL).batch.tolist() == [0] * 4


def test_a_shuffle_behind_batch_moves_whole_batches():
    found = order(ReadFiles(), Batch(2), Shuffle(3), seed=1)
    pairs = {tuple(found[at : at + 2]) for at in range(0, 6, 2)}
    assert pairs == {("a0", "a1"), ("b0", "b1"), ("b2", "c0")}


def test_each_epoch_is_shuffled_anew_unless_told_otherwise_or_cached():
    def epochs(*steps: OrderStep) -> tuple[list[str], list[str]]:
        found = order(*steps, Repeat(2), sizes=np.array([50]))
        return found[:50], found[50:]

    first, second = epochs(ReadFiles(), Shuffle(50))
    assert first != second
    first, second = epochs(ReadFiles(), Shuffle(50, reshuffle_each_iteration=False))
    assert first == second != sorted(first)
    first, second = epochs(ReadFiles(), Shuffle(50), Cache())
    assert first == second


def test_repeat_before_shuffle_mixes_epochs():
    mixed = order(ReadFiles(), Repeat(2), Shuffle(12))
    apart = order(ReadFiles(), Shuffle(12), Repeat(2))
    assert sorted(mixed) == sorted(apart)
    assert sorted(apart[:6]) == sorted(apart[6:])
    assert any(sorted(order(ReadFiles(), Repeat(2), Shuffle(12), seed=s)[:6]) != sorted(apart[:6]) for s in range(5))


def test_a_buffer_of_ten_thousand_over_300_files_of_4096_fills_from_three_files():
    buffered = simulate(np.full(300, 4096), [ReadFiles(), Take(10_000)], ALL)
    assert np.unique(buffered.file).tolist() == [0, 1, 2]


def test_a_buffer_smaller_than_a_file_less_a_batch_gives_a_first_batch_from_one_file():
    sizes = np.full(300, 4096)
    small = simulate(sizes, [ReadFiles(), Shuffle(4096 - 128), Batch(128)], 1)
    assert np.unique(small.file).tolist() == [0]


def test_sampling_by_size_uses_files_at_the_rate_of_their_size_and_every_record_once():
    found = simulate(np.array([1000, 2000, 3000]), [SampleFiles()], ALL)
    assert len(found.file) == 6000
    first = np.bincount(found.file[:600], minlength=3)
    assert np.abs(first - [100, 200, 300]).max() < 50
    assert len(np.unique(found.file * 3000 + found.record)) == 6000


def test_files_that_repeat_on_their_own_are_used_again_before_the_epoch_is_over():
    found = simulate(np.array([10, 1000]), [SampleFiles((1.0, 1.0), repeats_inside=True), Take(200)], ALL)
    small = found.record[found.file == 0]
    assert len(small) > 50
    assert small[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_the_place_in_the_output_is_that_of_a_buffer_drawn_uniformly():
    # a record leaves a buffer of 20 with probability 1/20 per draw: it stays 20 draws on average
    given_out = shuffle_order(20_000, 20, np.random.default_rng(0))
    delay = np.arange(20_000) - given_out
    assert delay.min() >= -19
    assert np.abs(delay[2000:-2000]).mean() == pytest.approx(20 * 0.74, rel=0.1)


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any),
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 30),
    st.booleans(),
)
def test_every_record_comes_once_per_epoch_whatever_the_stages(
    sizes: list[int], cycle: int, block: int, buffer: int, shuffled: bool
):
    records = np.array(sizes)
    steps = (ReadFiles(cycle, block, shuffled), Shuffle(buffer), Repeat(2))
    found = simulate(records, steps, ALL)
    ids = found.file * 10 + found.record
    half = len(ids) // 2
    assert half == records.sum()
    assert sorted(ids[:half]) == sorted(ids[half:]) == sorted(set(ids.tolist()))


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(1, 60))
def test_a_shuffle_is_a_permutation_that_never_looks_further_ahead_than_its_buffer(elements: int, buffer: int):
    given_out = shuffle_order(elements, buffer, np.random.default_rng(elements))
    assert sorted(given_out.tolist()) == list(range(elements))
    assert (given_out <= np.arange(elements) + buffer - 1).all()


def test_parts_of_the_data_come_in_their_order():
    assert order(ReadFiles(), Skip(2), Take(3)) == ["b0", "b1", "b2"]
    assert order(ReadFiles(), Shard(3, 1)) == ["a1", "b2"]
    assert order(ReadFiles(num_shards=2)) == ["a0", "a1", "c0"]
    assert order(ReadFiles(num_shards=2, shard_index=1), wanted=2) == ["b0", "b1"]
    assert order(ReadFiles(), Take(2), Repeat(2)) == ["a0", "a1", "a0", "a1"]


def test_stretches_stay_whole_while_their_order_changes():
    found = order(ReadFiles(), RandomShard(3, 2), Repeat(20))
    pairs = [tuple(found[at : at + 2]) for at in range(0, 120, 2)]
    epochs = [tuple(pairs[at : at + 3]) for at in range(0, 60, 3)]
    assert {tuple(sorted(epoch)) for epoch in epochs} == {(("a0", "a1"), ("b0", "b1"), ("b2", "c0"))}
    assert len(set(epochs)) == 6


def test_batches_that_are_taken_apart_leave_no_gap():
    steps = (ReadFiles(), Batch(4, drop_remainder=False), Repeat(3), Unbatch(4))
    assert order(*steps) == 3 * ["a0", "a1", "b0", "b1", "b2", "c0"]
    assert len(order(*steps, wanted=9)) == 9


@pytest.mark.slow
@given(st.floats(0.05, 1), st.integers(1, 400))
def test_a_filter_gives_as_many_as_are_wanted_as_long_as_data_comes(share: float, wanted: int):
    found = simulate(np.array([50]), [ReadFiles(), Repeat(), Filter(share)], wanted)
    assert len(found.file) == wanted


LONG = np.array([0, 1, 0, 1, 1, 0])
"""a1, b1 and b2 are long."""


def batches(*steps: OrderStep, wanted: int = ALL) -> list[str]:
    """Return each batch as a word."""
    found = simulate(SIZES, steps, wanted)
    records = zip(found.batch, found.file, found.record, strict=True)
    words: dict[int, str] = {}
    for batch, file, record in records:
        words[batch] = words.get(batch, "") + f"{'abc'[file]}{record}"
    return list(words.values())


def test_a_bucket_gives_a_batch_when_it_is_full_and_what_is_left_at_the_end() -> None:
    assert batches(ReadFiles(), Bucket(LONG, (2, 2))) == ["a0b0", "a1b1", "c0", "b2"]
    assert batches(ReadFiles(), Bucket(LONG, (2, 2), drop_remainder=True)) == ["a0b0", "a1b1"]
    assert batches(ReadFiles(), Bucket(LONG, (1, 3))) == ["a0", "b0", "a1b1b2", "c0"]


def test_a_bucket_goes_on_filling_over_epochs() -> None:
    assert batches(ReadFiles(), Repeat(), Bucket(LONG, (2, 2)), wanted=4) == ["a0b0", "a1b1", "c0a0", "b2a1"]


def test_a_bucket_behind_which_nothing_is_joined_gives_every_record() -> None:
    steps = (ReadFiles(), Bucket(LONG, (2, 2)), Unbatch(2), Batch(3, drop_remainder=False))
    assert batches(*steps) == ["a0b0a1", "b1c0b2"]


def test_a_filter_keeps_its_share():
    kept = simulate(np.array([10_000]), [ReadFiles(), Filter(0.3)], ALL)
    assert len(kept.file) == pytest.approx(3000, rel=0.1)
    assert (np.diff(kept.record) > 0).all()


def test_an_order_begins_with_reading():
    with pytest.raises(ValueError, match="begins with a reading step"):
        simulate(SIZES, [Repeat()], 1)
    with pytest.raises(ValueError, match="can only come first"):
        simulate(SIZES, [ReadFiles(), ReadFiles()], 1)


def test_views_of_a_record_follow_each_other_and_are_numbered_through():
    assert order(ReadFiles(), Views(2)) == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "b4", "b5", "c0", "c1"]
    found = simulate(SIZES, (ReadFiles(), Views(2), Batch(5)), 2)
    assert found.records.tolist() == [4, 6, 2]
    assert found.number.tolist() == list(range(10))
