"""Shuffle quality for files of 1000, 2000 and 3000 records, from a pure simulation, against a table of known values."""

import numpy as np
import pytest

from pipeline_lab.statistics.mixing import Mixing, ideal_mixing, measure_mixing
from pipeline_lab.statistics.reading_order import (
    simulate,
)
from pipeline_lab.statistics.reading_steps import Batch, OrderStep, ReadFiles, SampleFiles, Shuffle, Take
from pipeline_lab.statistics.sampling import repeats_within_epochs

FILES = np.array([1000, 2000, 3000])
MOST_BATCHES = 10_000
"""More than there are; as many are drawn before it is looked which files are over."""


def mix(*steps: OrderStep, seed: int = 0) -> Mixing:
    found = simulate(FILES, (*steps, Batch(32, drop_remainder=False)), MOST_BATCHES, seed=seed)
    return measure_mixing(found.batch, found.file, found.record, FILES)


@pytest.mark.parametrize(
    ("steps", "entropy", "variation", "chi_square", "worst", "correlation"),
    [
        ((ReadFiles(), Shuffle(1000)), 0.71, 0.412, 14.9, 0.57, 0.87),
        ((ReadFiles(3),), 1.13, 0.224, 5.7, 0.50, 0.76),
        ((ReadFiles(3), Shuffle(1000)), 1.26, 0.202, 4.2, 0.31, 0.67),
        ((ReadFiles(3), Shuffle(6000)), 1.41, 0.097, 1.06, 0.03, 0.00),
        ((SampleFiles(),), 1.40, 0.100, 1.26, 0.06, 0.38),
        ((SampleFiles(repeats_inside=True), Take(6000)), 1.41, 0.098, 1.10, 0.04, 0.38),
    ],
    ids=["sequential+1000", "interleave", "interleave+1000", "interleave+6000", "by size", "by size, repeated inside"],
)
@pytest.mark.slow
def test_the_measured_pipelines_come_out_of_the_simulation(
    steps: tuple[OrderStep, ...], entropy: float, variation: float, chi_square: float, worst: float, correlation: float
):
    found = mix(*steps)
    assert found.batch_entropy == pytest.approx(entropy, abs=0.02)
    assert found.batch_total_variation == pytest.approx(variation, abs=0.01)
    assert found.batch_chi_square_per_df == pytest.approx(chi_square, rel=0.15)
    assert found.worst_tenth == pytest.approx(worst, abs=0.03)
    assert found.order_correlation == pytest.approx(correlation, abs=0.05)


def test_the_ideal_is_that_of_a_perfect_shuffle():
    ideal, found = ideal_mixing(32, 6000, FILES), mix(ReadFiles(3), Shuffle(6000))
    assert ideal.batch_entropy == pytest.approx(1.41, abs=0.01)
    assert ideal.batch_total_variation == pytest.approx(0.096, abs=0.006)
    assert ideal.same_file_neighbours == pytest.approx(1 / 36 + 1 / 9 + 1 / 4, abs=0.001)
    assert (found.displacement, found.jump) == (pytest.approx(1, abs=0.05), pytest.approx(1, abs=0.05))
    assert found.same_file_neighbours == pytest.approx(ideal.same_file_neighbours, abs=0.03)


def test_interleaving_equally_gives_thirds_then_halves_then_the_last_file_alone():
    found = simulate(FILES, (ReadFiles(3),), MOST_BATCHES)
    counts = [np.bincount(part, minlength=3).tolist() for part in np.split(found.file, [3000, 5000])]
    assert counts == [[1000, 1000, 1000], [0, 1000, 1000], [0, 0, 1000]]


@pytest.mark.parametrize(
    ("files", "steps"),
    [
        (FILES, (SampleFiles(),)),
        (np.full(3, 2000), (ReadFiles(3),)),
        (FILES, (ReadFiles(3), Shuffle(6000))),
    ],
    ids=["sampled by size", "rewritten to equal size", "a buffer that covers the data"],
)
@pytest.mark.slow
def test_each_fix_keeps_the_shares_all_the_time(files: np.ndarray, steps: tuple[OrderStep, ...]):
    found = simulate(files, (*steps, Batch(32)), MOST_BATCHES)
    fixed = measure_mixing(found.batch, found.file, found.record, files)
    assert fixed.worst_tenth is not None
    assert fixed.worst_tenth < 0.09
    assert len(np.unique(found.file * 3000 + found.record)) > 5950


def test_stored_order_is_no_order_at_all():
    # two files of two records, batches of two: one file per batch, every record at its own place
    found = measure_mixing(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([2, 2]))
    assert (found.batch_entropy, found.batch_total_variation, found.batch_chi_square_per_df) == (0, 0.5, 2)
    assert (found.order_correlation, found.displacement) == (pytest.approx(1), 0)
    assert found.same_file_neighbours == pytest.approx(2 / 3)
    assert found.jump == pytest.approx(1 / (4 / 3))
    assert (found.worst_tenth, found.drift) == (None, None)


def test_the_start_of_an_epoch_in_stored_order_stays_in_order_and_drifts():
    found = simulate(np.full(4, 100), (ReadFiles(), Batch(10)), 20)
    half = measure_mixing(found.batch, found.file, found.record, np.full(4, 100))
    assert (half.displacement, half.drift) == (0, 1)


def test_one_sample_of_one_file_is_survived():
    found = measure_mixing(*(np.array([0]) for _ in range(3)), np.array([1]))
    assert (found.batch_chi_square_per_df, found.jump, found.order_correlation) == (None, None, None)
    assert ideal_mixing(1, 1, np.array([1])).same_file_neighbours is None


def test_repeating_inside_uses_records_again_before_the_epoch_is_over():
    found = simulate(FILES, (SampleFiles(repeats_inside=True), Take(6000)), MOST_BATCHES)
    repeats = repeats_within_epochs(found.file * 3000 + found.record, 6000)
    # each file misses its share by about 0.4 standard deviations: 0.4 × (28.9 + 36.5 + 38.7) = 42
    assert 5 < repeats < 130
