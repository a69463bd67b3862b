"""The order of a script's examples, drawn again on numbers: TensorFlow gives the data in the same one."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow


@pytest.fixture(name="found", scope="module")
def _found(ask_tensorflow: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = ask_tensorflow("tests.worker.recipe.numbered_tasks:order_by_numbers")
    return found


def test_numbers_come_in_the_order_of_the_data(found: dict[str, Any]) -> None:
    told = {name: each for name, each in found.items() if "why" not in each}
    assert len(told) == len(found) - 2
    for name, each in told.items():
        assert each["numbered"] == each["real"], name


def test_files_have_the_records_that_the_pipeline_can_read(found: dict[str, Any]) -> None:
    whole = [["0.txt", 5, 20], ["1.txt", 3, 12], ["2.txt", 4, 16]]
    assert [list(file) for file in found["in turn"]["files"]] == whole
    assert [file[1] for file in found["without a head"]["files"]] == [4, 2, 3]
    ((name, records, size),) = found["no files"]["files"]
    assert "range(6)" in name
    assert (records, size) == (6, 0)


def test_what_goes_by_values_is_named_and_left_alone(found: dict[str, Any]) -> None:
    assert ".filter(" in found["filtered"]["why"]
    assert "goes by values" in found["filtered"]["why"]
    assert "from_generator" in found["by Python"]["why"]
