"""How far a script's dataset is read for a proof."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.capture.script_sample import sample_reader
from pipeline_lab.capture.script_sample.sample_reader import read_sample
from pipeline_lab.pipeline.samples import SampleRequest


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
    request = SampleRequest("train.py", [], False, {}, 0, 200, seconds, str(tmp_path / "values.npz"), 60.0)
    found = read_sample(dataset, request)
    assert [len(each) for each in found.passes] == passes
    assert all(found.ended) == (passes == [100, 100])
