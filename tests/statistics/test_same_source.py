import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.statistics.mixing import expected_same_source, same_source_examples


def test_examples_are_counted_that_share_their_source_inside_a_batch():
    batch = np.array([0, 0, 0, 0, 1, 1, 3, 3])
    source = np.array([7, 7, 7, 2, 7, 2, 5, 5])  # three of 7; none; both
    assert same_source_examples(batch, source).tolist() == [3, 0, 2]


@pytest.mark.parametrize(
    ("batch_size", "sources", "views", "expected"),
    [
        (2, 2, 2, 2 / 3),  # of the three others one is the example's other view
        (3, 3, 2, 3 * 2 / 5),
        (4, 2, 2, 4),  # a batch that holds all
        (9, 2, 2, 9),
        (8, 100, 1, 0),
        (1, 100, 10, 0),
    ],
)
def test_what_a_perfect_shuffle_has(batch_size: int, sources: int, views: int, expected: float):
    assert expected_same_source(batch_size, sources, views) == pytest.approx(expected)


@pytest.mark.slow
@given(st.integers(2, 5), st.integers(2, 4), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_shuffled_epochs_have_what_is_expected(sources: int, views: int, batch_size: int, seed: int):
    rng = np.random.default_rng(seed)
    total, epochs = sources * views, 3000
    batch_size = min(batch_size, total)
    number = rng.permuted(np.tile(np.arange(total), (epochs, 1)), axis=1)[:, :batch_size].ravel()
    found = same_source_examples(np.repeat(np.arange(epochs), batch_size), number // views)
    deviation = max(float(found.std()), 0.1) / epochs**0.5
    assert found.mean() == pytest.approx(expected_same_source(batch_size, sources, views), abs=6 * deviation)
