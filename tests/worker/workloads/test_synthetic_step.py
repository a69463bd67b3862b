"""The synthetic step for a GPU; the process with TensorFlow is that of the other tests."""

from collections.abc import Callable
from typing import Any

import pytest

Ask = Callable[..., Any]

MOST_NODES = 800
"""500 products and what is left of a round, a round of 100, and a few nodes around them."""


@pytest.mark.parametrize("products", [1, 500, 599, 600, 1_234])
def test_a_step_computes_all_its_products_in_a_graph_of_bounded_size(ask_tensorflow: Ask, products: int) -> None:
    found = ask_tensorflow("describe_gpu_step", products=products, widths=[8])
    assert found["products"] == products
    assert found["nodes"] <= MOST_NODES


def test_the_lengths_of_payloads_do_not_retrace_the_step(ask_tensorflow: Ask) -> None:
    found = ask_tensorflow("describe_gpu_step", products=3, widths=[8, 9, 10, 11, 12])
    assert found["graphs"] == 2, "one for the first length, one for all"


def test_products_are_counted_at_the_clock_that_a_busy_gpu_has(ask_tensorflow: Ask) -> None:
    """A GPU that was idle takes three times as long at first; 20 ms are 200 products of 100 µs."""
    found = ask_tensorflow("count_gpu_products", compute_ms=20, product_us=[300, 200, 100])
    assert found == 200
