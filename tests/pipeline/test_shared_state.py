"""What a method changes of what its calls share."""

import pytest

from pipeline_lab.pipeline.shared_state import find_writes

CLASS = """\
import numpy as np
from random import shuffle

SEEN = []


class Base:
    def rest(self):
        self.left -= 1

    def __getitem__(self, index):
        self.asked = index


class Batches(Base):
    def __init__(self):
        self.kept, self.left = [], 9

    def __getitem__(self, index):
        {}

    def helper(self, value):
        self.seen = value

    @property
    def following(self):
        self.left += 1

    def on_epoch_end(self):
        np.random.shuffle(self.kept)


def tell(value):
    global COUNT
    COUNT += value
"""
LINE = CLASS.splitlines().index("        {}") + 1


def _changed(text: str) -> list[str]:
    return list(dict.fromkeys(each.name for each in find_writes(text, "__getitem__", LINE)))


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("self.left = index", "self.left"),
        ("self.left += 1", "self.left"),
        ("self.kept[index] = 1", "self.kept"),
        ("self.kept[0].size[1] = 2", "self.kept"),
        ("self[index] = 2", "self"),
        ("del self.kept[0]", "self.kept"),
        ("self.kept.append(index)", "self.kept"),
        ("self.bag.update(a=index)", "self.bag"),
        ("return self.kept.pop()", "self.kept"),
        ("np.random.shuffle(self.kept)", "self.kept"),
        ("shuffle(self.kept)", "self.kept"),
        ("np.copyto(self.kept, index)", "self.kept"),
        ("np.add(1, 2, out=self.kept)", "self.kept"),
        ("return next(self.kept)", "self.kept"),
        ("setattr(self, 'left', index)", "self"),
        ("type(self).left += 1", "self.left"),
        ("Batches.left = 1", "Batches"),
        ("SEEN.append(index)", "SEEN"),
        ("SEEN[0] = index", "SEEN"),
        ("global count", "count"),
        ("tell(index)", "COUNT"),
        ("return self.following", "self.left"),
        ("return self.helper(index)", "self.seen"),
        ("return super().__getitem__(index)", "self.asked"),
        ("return [self.rest() for _ in range(3)]", "self.left"),
        ("return (lambda: self.kept.pop())()", "self.kept"),
        ("with open(self.blocks): self.left += 1", "self.left"),
    ],
)
def test_what_outlives_a_call_is_named(line: str, changed: str) -> None:
    assert _changed(CLASS.format(line)) == [changed]


@pytest.mark.parametrize(
    "line",
    [
        "return self.kept[index]",
        "batch = np.empty(3); batch[0] = self.left; return batch",
        "found = []; found.append(self.left); return found",
        "return np.append(self.kept, 3)",
        "return self.processor.resize(index)",
        "return self.kept.copy()",
        "with self.lock: self.left += 1",
        "with self._read_lock(): self.left += 1",
    ],
)
def test_what_a_call_makes_or_guards_itself_is_not(line: str) -> None:
    assert _changed(CLASS.format(line)) == []


def test_the_line_is_that_of_the_change() -> None:
    (found,) = find_writes(CLASS.format("return self.helper(index)"), "__getitem__", LINE)
    assert found.line == 1 + CLASS.splitlines().index("        self.seen = value")


def test_the_method_is_the_one_at_the_line_whatever_its_class_is_called() -> None:
    of_base = CLASS.splitlines().index("        self.asked = index") + 1
    (found,) = find_writes(CLASS.format("pass"), "__getitem__", of_base)
    assert found.name == "self.asked"


@pytest.mark.parametrize("text", [CLASS.format("pass").replace("class Batches(Base)", "class Others"), "no Python ("])
def test_a_method_that_is_not_there_changes_nothing(text: str) -> None:
    assert list(find_writes(text, "make", LINE)) == []
