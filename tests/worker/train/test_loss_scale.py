"""Steps that half precision made worthless are told."""

from dataclasses import dataclass

import pytest

from pipeline_lab.worker.train.loss_scale import WAITS, tell_loss_scale


@dataclass
class Variable:
    name: str
    value: float

    def numpy(self) -> float:
        return self.value


def _weights(scale: float, applied: int) -> list[Variable]:
    """As Keras has them: the scale's own counter first, which stays 0."""
    return [
        Variable("kernel", 1.0),
        Variable("iteration", 0),
        Variable("dynamic_scale", scale),
        Variable("iteration", applied),
    ]


def _told(weights: list[Variable], steps: int) -> str:
    return " ".join(tell_loss_scale(weights, steps, is_asynchronous=False))


@pytest.mark.parametrize(("scale", "applied"), [(32768.0, 200), (2048.0, 196)])
def test_a_scale_that_comes_down_in_a_few_steps_is_not_told(scale: float, applied: int) -> None:
    assert not _told(_weights(scale, applied), 200)


def test_a_device_that_works_beside_the_host_is_waited_for() -> None:
    assert tell_loss_scale(_weights(32768.0, 200), 200, is_asynchronous=True) == [WAITS]


def test_steps_that_overflowed_are_counted() -> None:
    said = _told(_weights(1024.0, 150), 200)
    assert said.startswith("50 of 200 steps changed no weights")
    assert "loss scale ended at 1,024;" in said


def test_a_scale_that_collapsed_is_told_however_late() -> None:
    assert "9.537e-07" in _told(_weights(2.0**-20, 9_980), 10_000)


def test_other_precisions_have_no_scale() -> None:
    assert not tell_loss_scale([Variable("kernel", 1.0), Variable("iteration", 0)], 200, is_asynchronous=True)
