"""What tests share when they ask one process that has TensorFlow loaded."""

import pytest

from tests.support.warm_worker import Ask

pytestmark = pytest.mark.tensorflow


def test_a_task_finds_nothing_of_an_earlier_one(ask_tensorflow: Ask) -> None:
    ask_tensorflow("leave_something_behind")
    assert ask_tensorflow("find_remains") == {"precision": "float32", "seed": None, "batches": [False] * 4}
