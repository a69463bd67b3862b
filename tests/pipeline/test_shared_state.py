"""What a method changes of what its calls share."""

import pytest

from pipeline_lab.pipeline.shared_state import find_writes

CLASS = """\
import numpy as np


class Base:
    def rest(self):
        self.left -= 1


class Batches(Base):
    def __init__(self):
        self.kept, self.left = [], 9

    def __getitem__(self, index):
        {}

    def helper(self, value):
        self.seen = value

    def on_epoch_end(self):
        np.random.shuffle(self.kept)
"""


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("self.left = index", "self.left"),
        ("self.left += 1", "self.left"),
        ("self.kept[index] = 1", "self.kept"),
        ("self.kept[0].size[1] = 2", "self.kept"),
        ("del self.kept[0]", "self.kept"),
        ("self.kept.append(index)", "self.kept"),
        ("np.random.shuffle(self.kept)", "self.kept"),
        ("np.add(1, 2, out=self.kept)", "self.kept"),
        ("global count", "count"),
        ("return self.helper(index)", "self.seen"),
        ("return [self.rest() for _ in range(3)]", "self.left"),
        ("return (lambda: self.kept.pop())()", "self.kept"),
    ],
)
def test_what_outlives_a_call_is_named(line: str, changed: str) -> None:
    assert [each.name for each in find_writes(CLASS.format(line), "Batches", "__getitem__")] == [changed]


@pytest.mark.parametrize(
    "line",
    [
        "return self.kept[index]",
        "batch = np.empty(3); batch[0] = self.left; return batch",
        "found = []; found.append(self.left); return found",
        "return self.kept.copy()",
        "with self.lock: self.left += 1",
    ],
)
def test_what_a_call_makes_or_guards_itself_is_not(line: str) -> None:
    assert not list(find_writes(CLASS.format(line), "Batches", "__getitem__"))


def test_the_line_is_that_of_the_change() -> None:
    (found,) = find_writes(CLASS.format("return self.helper(index)"), "Batches", "__getitem__")
    assert found.line == 1 + CLASS.splitlines().index("        self.seen = value")


def test_a_class_that_is_not_there_changes_nothing() -> None:
    assert not list(find_writes(CLASS.format("pass"), "Others", "__getitem__"))
