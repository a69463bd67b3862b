import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.worker import calibration
from pipeline_lab.worker.calibration import calibrate, time_pipeline, time_step
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.steps import PythonSteps
from tests.worker.fakes import FakeTrainer

TICK_NS = 100_000_000


@pytest.fixture(autouse=True)
def _ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is 100 ms after the one before, so the budget is over after three."""
    ticks = iter(range(0, 10**12, TICK_NS))
    monkeypatch.setattr(calibration.time, "perf_counter_ns", lambda: next(ticks))


def test_the_first_batch_is_timed_apart() -> None:
    timed = time_pipeline([{"id": index} for index in range(100)])
    assert (timed.first_batch_ns, timed.batch_ns, timed.batches) == (TICK_NS, TICK_NS, 2)
    assert timed.batch == {"id": 2}


def test_data_that_ends_in_between_is_timed_as_far_as_it_goes() -> None:
    timed = time_pipeline([{"id": 0}, {"id": 1}])
    assert (timed.batch_ns, timed.batches) == (TICK_NS, 1)


def test_a_single_batch_has_no_time_per_batch() -> None:
    timed = time_pipeline([{"id": 0}])
    assert (timed.batch_ns, timed.batches) == (None, 0)


def test_a_pipeline_without_a_batch_says_why() -> None:
    with pytest.raises(DataError, match="yields no batch"):
        time_pipeline([])


def test_the_step_is_warmed_up_and_then_timed_within_the_budget() -> None:
    trainer = FakeTrainer()
    timed = time_step(trainer, PythonSteps(trainer, Clock()), {})
    assert trainer.reads == list(range(1, 3 + timed.steps))
    assert timed.steps >= calibration.MIN_STEPS
    assert timed.step_ns == pytest.approx(calibration.BUDGET_NS / timed.steps, rel=0.5)


def test_what_was_learnt_is_undone() -> None:
    trainer = FakeTrainer()
    trainer.steps = 7
    time_step(trainer, PythonSteps(trainer, Clock()), {})
    assert trainer.steps == 7


def test_the_step_is_timed_on_the_batch_that_the_device_holds() -> None:
    held: list[object] = []

    def hold(batch: object) -> dict[str, object]:
        held.append(batch)
        return {}

    trainer = FakeTrainer()
    event = calibrate(trainer, PythonSteps(trainer, Clock()), lambda: [{"id": 0}, {"id": 1}], hold)
    assert held == [{"id": 1}]
    assert (event.pipeline_only_batches, event.first_batch_ns) == (1, TICK_NS)
