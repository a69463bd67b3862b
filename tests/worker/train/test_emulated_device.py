"""The emulated device on a clock that only moves when somebody sleeps or says so."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.units import NS_PER_MS, NS_PER_S
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.train.emulated_device import (
    EmulatedDevice,
    EmulatedStep,
    EmulatedTrainer,
    step_durations,
)
from pipeline_lab.worker.train.training_steps import PythonSteps

DURATIONS = st.lists(st.integers(1, 10**6), min_size=1, max_size=5)
PAUSES = st.lists(st.integers(0, 10**6), min_size=1, max_size=40)


@dataclass
class FakeClock:
    """A clock whose sleepers wake late by what is left of a microsecond."""

    now_ns: int = 0
    slept: list[float] = field(default_factory=list)

    def now(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_ns += math.ceil(seconds * NS_PER_S)


class JobClock(Clock):
    """A job's clock that tells the time of a fake one."""

    def __init__(self, fake: FakeClock) -> None:
        self._fake = fake

    def now_ns(self) -> int:
        return self._fake.now_ns


def run(durations: Sequence[int], pauses: Sequence[int]) -> tuple[list[EmulatedStep], list[int]]:
    """Submit a step after each pause of the host; return them, and when each was asked for."""
    clock = FakeClock()
    device = EmulatedDevice(durations, clock.now, clock.sleep)
    steps, asked_ns = [], []
    for pause_ns in pauses:
        clock.now_ns += pause_ns
        asked_ns.append(clock.now_ns)
        steps.append(device.submit(None))
    return steps, asked_ns


@pytest.mark.slow
@given(DURATIONS, PAUSES)
def test_steps_follow_each_other_and_each_takes_its_time(durations: list[int], pauses: list[int]) -> None:
    steps, _ = run(durations, pauses)
    for step in steps:
        assert step.end_ns - step.start_ns == durations[step.number % len(durations)]
        assert step.start_ns >= step.queued_ns
    for before, after in pairwise(steps):
        assert after.start_ns >= before.end_ns


@pytest.mark.slow
@given(DURATIONS, PAUSES)
def test_the_device_idles_only_while_it_has_nothing_to_do(durations: list[int], pauses: list[int]) -> None:
    steps, _ = run(durations, pauses)
    for before, after in pairwise(steps):
        assert after.start_ns == max(before.end_ns, after.queued_ns)


@given(DURATIONS, PAUSES)
def test_the_host_waits_only_while_one_step_runs_and_another_waits(durations: list[int], pauses: list[int]) -> None:
    steps, asked_ns = run(durations, pauses)
    for number, (step, asked) in enumerate(zip(steps, asked_ns, strict=True)):
        ahead = [each for each in steps[:number] if each.end_ns > asked]
        if len(ahead) < 2:
            assert step.queued_ns == asked
        else:
            assert step.queued_ns >= ahead[0].end_ns


@pytest.mark.slow
@given(DURATIONS, PAUSES)
def test_a_batch_is_held_until_its_step_has_ended_and_no_longer_than_to_the_next(
    durations: list[int], pauses: list[int]
) -> None:
    clock = FakeClock()
    device = EmulatedDevice(durations, clock.now, clock.sleep)
    for number, pause_ns in enumerate(pauses):
        clock.now_ns += pause_ns
        step = device.submit(number)
        assert [batch for _, batch in device._held] == [
            each.number for each, _ in device._held if each.end_ns > clock.now_ns
        ]
        assert device._held[-1][0] is step


def test_whoever_wants_a_result_waits_for_the_end_of_its_step() -> None:
    clock = FakeClock(now_ns=1_000)
    device = EmulatedDevice([20 * NS_PER_MS], clock.now, clock.sleep)
    step = device.submit("a batch")
    assert clock.slept == []
    device.wait(step)
    assert clock.slept == [pytest.approx(0.02)]
    assert clock.now_ns == step.end_ns
    device.wait(step)
    assert len(clock.slept) == 1


def test_a_step_has_no_loss_and_its_number_is_the_state() -> None:
    clock = FakeClock()
    trainer = EmulatedTrainer(EmulatedDevice([1, 2, 3], clock.now, clock.sleep))
    state = trainer.save_state()
    steps = [trainer.step({}) for _ in range(2)]
    assert all(map(math.isnan, trainer.read(steps[-1])))
    assert trainer.weights() == []
    trainer.restore_state(state)
    assert trainer.step({}).number == 0


def test_recorded_steps_include_those_on_the_device_when_recording_begins() -> None:
    clock = FakeClock()
    device = EmulatedDevice([10], clock.now, clock.sleep)
    ended, running = device.submit(None), device.submit(None)
    device.wait(ended)
    device.start_recording()
    following = device.submit(None)
    assert device.stop_recording() == [running, following]
    device.submit(None)
    assert device.stop_recording() == []


def test_durations_are_constant_recorded_or_drawn_with_exactly_the_mean_that_is_set() -> None:
    def of(**settings: object) -> tuple[int, ...]:
        return step_durations(TrainingOptions.model_validate({"device": "emulated", **settings}))

    assert of(step_ms=12.5) == (12_500_000,)
    assert of(step_times_ms="2x10,35") == (10_000_000, 10_000_000, 35_000_000)
    drawn = np.array(of(step_ms=20, step_variation_percent=30, seed=3))
    assert drawn.mean() == pytest.approx(20 * NS_PER_MS, rel=1e-6)
    assert drawn.std() / drawn.mean() == pytest.approx(0.3, rel=0.1)
    assert drawn.min() > 0
    assert tuple(drawn) == of(step_ms=20, step_variation_percent=30, seed=3)
    assert tuple(drawn) != of(step_ms=20, step_variation_percent=30, seed=4)


def test_a_loop_that_reads_every_result_requests_no_batch_before_the_step_has_ended() -> None:
    clock = FakeClock()
    device = EmulatedDevice([100], clock.now, clock.sleep)
    requested_ns = []

    def batches() -> Iterator[dict[str, int]]:
        while True:
            requested_ns.append(clock.now_ns)
            clock.now_ns += 40
            yield {}

    calls, source = PythonSteps(EmulatedTrainer(device), JobClock(clock), reads=True), batches()
    taken = [calls.take(source, 1)[0] for _ in range(3)]
    assert requested_ns == [0, 140, 280]
    assert [(step.start_ns, step.wait_ns) for step in taken] == [(0, 40), (140, 40), (280, 40)]
    calls = PythonSteps(EmulatedTrainer(device), JobClock(clock))
    device.settle()
    requested_ns.clear()
    taken = [calls.take(source, 1)[0] for _ in range(3)]
    begin_ns = requested_ns[0]
    assert [asked_ns - begin_ns for asked_ns in requested_ns] == [0, 40, 80], "the device works meanwhile"
