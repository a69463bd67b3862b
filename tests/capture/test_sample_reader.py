"""How far a script's dataset is read for a proof."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline_lab.capture.script_sample import sample_reader
from pipeline_lab.capture.script_sample.sample_reader import read_sample
from pipeline_lab.pipeline.recipe import LOOP
from pipeline_lab.pipeline.samples import ReadingPlace, SampleRequest
from pipeline_lab.worker.recipe.notes import NOTE

READING = ReadingPlace(LOOP, "train.py", 1)


class _Slow:
    """A dataset of a hundred elements, each of which takes a second of a clock of its own."""

    now_s = 0.0

    def __iter__(self) -> Iterator[int]:
        for number in range(100):
            self.now_s += 1.0
            yield number

    def monotonic(self) -> float:
        return self.now_s


@pytest.mark.parametrize(("seconds", "passes"), [(20.0, [11, 10]), (0.0, [3, 3]), (1000.0, [100, 100])])
def test_both_passes_get_their_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float, passes: list[int]
) -> None:
    dataset = _Slow()
    monkeypatch.setattr(sample_reader, "time", dataset)
    monkeypatch.setattr(sample_reader, "_arrays", lambda element: [np.asarray([element])])
    request = SampleRequest("train.py", [], False, {}, READING, 200, seconds, str(tmp_path / "values.npz"), 60.0)
    found = read_sample(dataset, request)
    assert [len(each) for each in found.passes] == passes
    assert all(found.ended) == (passes == [100, 100])


def read(tmp_path: Path, *parts: object) -> tuple[str, dict[str, int]]:
    request = SampleRequest("train.py", [], False, {}, READING, 200, 1.0, str(tmp_path / "values.npz"), 60.0, passes=1)
    found = read_sample([parts], request)
    return found.passes[0][0], found.rows[0]


def texts(*values: bytes) -> Any:
    return np.array(values, dtype=object)


ELEMENTS = (
    [np.arange(6, dtype=np.int32).reshape(2, 3), np.array([0, 1])],
    [np.arange(6, dtype=np.int32).reshape(2, 3), np.array([1, 0])],
    [np.arange(6, dtype=np.int64).reshape(2, 3), np.array([0, 1])],
    [np.arange(6, dtype=np.int32).reshape(2, 3, 1), np.array([0, 1])],
    [np.arange(6, dtype=np.float16).reshape(2, 3), np.array([True, False])],
    [texts(b"a\0", b"b"), np.array([0, 1])],
    [texts(b"a", b"\0b"), np.array([0, 1])],
    [texts(b"", b"b"), np.array([0, 1])],
    [texts(b"\0", b"b"), np.array([0, 1])],
    [np.zeros([0, 3], np.int32), np.zeros([0])],
    [np.zeros([0, 4], np.int32), np.zeros([0])],
    [np.float32(1.0), np.array([0, 1])],
    [np.float32(2.0), np.array([0, 1])],
    [b"", np.float32(2.0)],
    [b"\0", np.float32(2.0)],
    [b"\0\0", np.float32(2.0)],
)


def test_elements_that_differ_in_anything_have_digests_of_their_own(tmp_path: Path) -> None:
    found = [read(tmp_path, *parts)[0] for parts in ELEMENTS]
    assert len(set(found)) == len(ELEMENTS)
    assert found == [read(tmp_path, *parts)[0] for parts in ELEMENTS]


def test_the_examples_of_a_batch_are_the_same_in_any_order_but_not_with_the_labels_of_others(tmp_path: Path) -> None:
    images, labels = np.arange(8.0).reshape(2, 4), texts(b"cat", b"dog")
    whole, examples = read(tmp_path, images, labels)
    turned, same = read(tmp_path, images[::-1], labels[::-1])
    assert examples == same
    assert whole != turned
    assert read(tmp_path, images, labels[::-1])[1] != examples


@pytest.mark.parametrize(
    ("value", "size"),
    [(b"four", 4), (texts(b"a", b"", b"three"), 6), (np.zeros([2, 3], np.float16), 12), (np.int64(1), 8)],
)
def test_an_element_takes_the_bytes_of_its_texts_and_numbers(tmp_path: Path, value: object, size: int) -> None:
    request = SampleRequest("train.py", [], False, {}, READING, 200, 1.0, str(tmp_path / "values.npz"), 60.0, passes=1)
    assert read_sample([(value,), (value,)], request).first_bytes == 2 * size


class _Dataset:
    """A dataset that was made by a noted call of others."""

    element_spec = "int64"

    def __init__(self, method: str, *inputs: "_Dataset", is_sorted: bool = False) -> None:
        self._made_of = tuple(reversed(inputs)) if is_sorted else inputs
        notes = [vars(each)[NOTE] for each in inputs]
        setattr(self, NOTE, SimpleNamespace(method=method, inputs=notes, stateful=()))

    def _inputs(self) -> tuple["_Dataset", ...]:
        return self._made_of


@pytest.mark.parametrize("is_sorted", [False, True])
def test_stages_come_in_the_order_in_which_calls_take_them_whatever_tensorflow_makes_of_it(
    monkeypatch: pytest.MonkeyPatch, is_sorted: bool
) -> None:
    monkeypatch.setattr(sample_reader, "_size", lambda *_: (8.0, 10))
    base = _Dataset("range")
    cached = _Dataset("cache", _Dataset("map", base))
    zipped = _Dataset("zip", _Dataset("shuffle", base), cached, is_sorted=is_sorted)
    stages = list(sample_reader.measure_stages(_Dataset("batch", zipped)))
    assert [stage.method for stage in stages] == ["batch", "zip", "shuffle", "range", "cache", "map"]
    assert [stage.method for stage in stages if stage.is_kept] == ["range", "map"]
