import json
import math
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pipeline_lab.worker.train.evaluate import EvaluationPasses
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import FakeTrainer, make_job


class LosingTrainer(FakeTrainer):
    """Finds the same loss in every batch, and no accuracy."""

    def __init__(self, loss: float) -> None:
        super().__init__()
        self._loss = loss

    def read(self, result: Any) -> tuple[float, float]:
        del result
        return self._loss, math.nan


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"JSON knows no {constant}")


@pytest.mark.parametrize(("loss", "told"), [(2.5, 2.5), (math.nan, None), (math.inf, None)])
def test_a_pass_writes_down_numbers_that_json_can_hold(tmp_path: Path, loss: float, told: float | None):
    job = make_job(tmp_path, SYNTHETIC.options)
    EvaluationPasses(job, LosingTrainer(loss), lambda: [{}, {}], None, 0).run(3)
    events = [json.loads(line, parse_constant=refuse) for line in job.folder.events.read_text().splitlines()]
    found = next(event for event in events if event["kind"] == "evaluation")
    assert (found["batches"], found["loss"], found["accuracy"]) == (2, told, None)
