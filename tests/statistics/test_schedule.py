from collections import Counter

import numpy as np
import pytest

from pipeline_lab.statistics.schedule import draw_order, undisturbed_rounds


def test_every_order_is_drawn_equally_often() -> None:
    drawn = Counter(draw_order(3, number, seed=1) for number in range(3000))
    assert len(drawn) == 6
    assert sum((times - 500) ** 2 / 500 for times in drawn.values()) < 20.5  # chi-square of 5 degrees: p > 0.001


@pytest.mark.slow
def test_rounds_do_not_depend_on_each_other() -> None:
    first = np.array([draw_order(2, number, seed=2)[0] for number in range(4000)])
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.06


def test_a_seed_gives_the_same_order_again() -> None:
    assert [draw_order(4, number, 7) for number in range(5)] == [draw_order(4, number, 7) for number in range(5)]


def test_a_disturbed_block_takes_its_whole_round_with_it() -> None:
    load = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [np.nan, 0.1], [0.1, np.inf]])
    assert undisturbed_rounds(load, limit=0.5).tolist() == [True, False, False, True, False]


def test_a_machine_that_is_always_busy_keeps_its_rounds() -> None:
    load = np.array([[60.0, 70.0], [65.0, 70.0], [99.0, 70.0], [10.0, 70.0]])
    assert undisturbed_rounds(load, limit=25).tolist() == [True, True, False, True]


def test_what_was_said_of_a_round_stays_said() -> None:
    load = np.random.default_rng(0).gamma(1.0, 20.0, (40, 2))
    whole = undisturbed_rounds(load, limit=25)
    assert all((undisturbed_rounds(load[:count], limit=25) == whole[:count]).all() for count in range(1, 40))
