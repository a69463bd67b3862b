"""An accelerator that does not exist: each step takes its batch and holds it for a set time, without using the CPU.

It behaves as a device does: a step is queued at once and runs when the one before it has ended, at most one step waits
behind the one that runs, and whoever wants a result waits for it. When a step ends follows from when it was queued and
how long it takes, so no thread keeps the time, and a late wake-up of the host delays nothing on the device:

    start(n) = max(end(n - 1), queued(n)),  end(n) = start(n) + duration(n)

The idea is that of MLPerf Storage, whose accelerators sleep.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.units import NS_PER_MS, NS_PER_S
from pipeline_lab.worker.note.event_log import Clock, find_offset_ns
from pipeline_lab.worker.train.training_steps import Batch, OneDeviceTrainer

MOST_QUEUED = 2
"""Steps on the device: one runs, one waits behind it."""
DRAWN = 4096
"""Times that are drawn before they repeat; their mean is then exactly the one that is set."""


def step_durations(training: TrainingOptions) -> tuple[int, ...]:
    """Return how long successive steps take, ns; they repeat in order."""
    if training.step_times_ms:
        return tuple(round(ms * NS_PER_MS) for ms in training.step_times_ms)
    variation = training.step_variation_percent / 100.0
    if not variation:
        return (round(training.step_ms * NS_PER_MS),)
    spread = math.sqrt(math.log1p(variation**2))  # of the logarithm
    drawn = np.random.default_rng(training.seed).lognormal(sigma=spread, size=DRAWN)
    return tuple(np.rint(drawn * (training.step_ms * NS_PER_MS / drawn.mean())).astype(np.int64).tolist())


@dataclass(frozen=True)
class EmulatedStep:
    """One step on the device; times in ns since the epoch."""

    number: int
    queued_ns: int
    start_ns: int
    end_ns: int


class EmulatedDevice:
    """Runs steps one after another, each for its duration.

    Args:
        durations_ns: Of successive steps, repeated in order.
        now_ns, sleep_s: The clock; that of jobs if None.

    Attributes:
        next_number: Number of the next step, which decides how long it takes.
    """

    def __init__(
        self,
        durations_ns: Sequence[int],
        now_ns: Callable[[], int] | None = None,
        sleep_s: Callable[[float], None] = time.sleep,
    ) -> None:
        self._durations_ns, self._now_ns, self._sleep_s = durations_ns, now_ns or Clock().now_ns, sleep_s
        self._held: deque[tuple[EmulatedStep, Any]] = deque()
        self._free_ns = 0
        self._recorded: list[EmulatedStep] | None = None
        self._lock = threading.Lock()
        self.next_number = 0

    @property
    def clock_error_ns(self) -> int:
        """How far the system's clock, by which the profiler tells time, is ahead of the device's."""
        return find_offset_ns(self._now_ns)

    @property
    def mean_ns(self) -> float:
        """Mean duration of a step."""
        return float(np.mean(self._durations_ns))

    def submit(self, batch: Any) -> EmulatedStep:
        """Queue a step, which holds the batch until it has ended; waits while the queue is full."""
        with self._lock:
            blocking = self._held[-MOST_QUEUED][0] if len(self._held) >= MOST_QUEUED else None
        if blocking is not None:
            self.wait(blocking)
        now_ns, number = self._now_ns(), self.next_number
        start_ns = max(now_ns, self._free_ns)
        self._free_ns = start_ns + self._durations_ns[number % len(self._durations_ns)]
        step = EmulatedStep(number, now_ns, start_ns, self._free_ns)
        self.next_number += 1
        with self._lock:
            self._held.append((step, batch))
            if self._recorded is not None:
                self._recorded.append(step)
        self._let_go()
        return step

    def wait(self, step: EmulatedStep) -> None:
        """Wait until a step has ended."""
        while (left_ns := step.end_ns - self._now_ns()) > 0:
            self._sleep_s(left_ns / NS_PER_S)
        self._let_go()

    def settle(self) -> None:
        """Wait until no step is left on the device."""
        with self._lock:
            last = self._held[-1][0] if self._held else None
        if last is not None:
            self.wait(last)

    def start_recording(self) -> None:
        """Note steps from now on, those that are on the device too."""
        with self._lock:
            self._recorded = [step for step, _ in self._held]

    def stop_recording(self) -> list[EmulatedStep]:
        """Return the steps since :meth:`start_recording`; the last ones may not have ended."""
        with self._lock:
            recorded, self._recorded = self._recorded or [], None
        return recorded

    def _let_go(self) -> None:
        """Let go of the batches of steps that have ended."""
        with self._lock:
            while self._held and self._held[0][0].end_ns <= self._now_ns():
                self._held.popleft()


class EmulatedTrainer(OneDeviceTrainer):
    """Steps of the emulated device; there is no model, so there is no loss.

    Args:
        device: Takes the steps.
        mark_launch: Surrounds the launch of a step with its marker in the trace, which carries the step's number.
        came: Called with each batch, as a user's pipeline requires; None where nobody asks.
    """

    def __init__(
        self,
        device: EmulatedDevice,
        mark_launch: Callable[[int], AbstractContextManager[None]] = lambda _: nullcontext(),
        came: Callable[[], None] | None = None,
    ) -> None:
        self.device, self._mark_launch, self._came = device, mark_launch, came

    def step(self, batch: Batch) -> EmulatedStep:
        if self._came is not None:
            self._came()
        with self._mark_launch(self.device.next_number):
            return self.device.submit(batch)

    def evaluate(self, batch: Batch) -> EmulatedStep:
        return self.device.submit(batch)

    def read(self, result: EmulatedStep) -> tuple[float, float]:
        self.device.wait(result)
        return math.nan, math.nan

    def ended_ns(self, result: EmulatedStep) -> int:
        return result.end_ns

    def save_state(self) -> int:
        return self.device.next_number

    def restore_state(self, state: int) -> None:
        self.device.next_number = state
