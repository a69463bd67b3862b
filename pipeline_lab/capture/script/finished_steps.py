"""Steps of a script's loop that are over, until it is known how long each waited for its batch.

Inside graphs nobody sees the wait: it is what lies between two requests, less the time that tf.data saw between them.
"""

import statistics
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pipeline_lab.capture.script.graph_waits import fit_waits
from pipeline_lab.capture.script.step_notes import Gaps, Pass
from pipeline_lab.data_classes import dataclass
from pipeline_lab.units import NS_PER_S

LOOK_AFTER_NS, LOOK_AFTER_STEPS = 1 * NS_PER_S, 50
"""tf.data is asked about waits inside graphs after a second or 50 steps; it remembers the last 100."""
GIVE_UP_NS = 3 * NS_PER_S
"""A wait that is not known this long after the step's request is guessed, or left out."""

ReadGaps = Callable[[Any], Gaps | None]
"""Reads what tf.data saw of an iterator; None where it keeps nothing of this one."""


@dataclass
class TimedStep:
    """A step, or the steps of one call; times in ns of ``perf_counter``."""

    of: Pass
    start_ns: int
    epoch: int
    wait_ns: int | None = None
    end_ns: int | None = None
    steps: int = 1
    """0 until the call is over that found out."""
    examples: int | None = None
    away_ns: int = 0
    next_ns: int | None = None
    last_element: int = 0
    knows_no_wait: bool = False
    """It traced its function first, which tf.data can't tell from waiting; or it takes no batch of tf.data's."""
    builds_graph: bool = False
    """It is seen to be the first call of its function: a warm-up, whenever it comes."""

    @property
    def length_ns(self) -> int:
        """From the request to the end, 0 before that is known."""
        return 0 if self.end_ns is None else self.end_ns - self.start_ns


class FinishedSteps:
    """Steps in the order in which they ran.

    Args:
        read_gaps: See :data:`ReadGaps`.
    """

    def __init__(self, read_gaps: ReadGaps) -> None:
        self._read_gaps = read_gaps
        self._steps: deque[TimedStep] = deque()
        self._compute_ns: deque[float] = deque(maxlen=100)

    def __len__(self) -> int:
        return len(self._steps)

    def append(self, step: TimedStep) -> None:
        self._steps.append(step)

    def take(self, now_ns: int) -> Iterator[TimedStep]:
        """Take out the first steps whose waits are known, or will not be."""
        while self._steps:
            step = self._steps[0]
            if step.wait_ns is None and not step.knows_no_wait and now_ns - step.start_ns <= GIVE_UP_NS:
                return
            yield self._steps.popleft()

    def resolve(self, now_ns: int) -> None:
        """Ask tf.data about waits inside graphs that are not known yet, if it is time to."""
        unknown = self._unknown
        if not unknown:
            return
        if len(unknown) < LOOK_AFTER_STEPS and now_ns - unknown[0].start_ns < LOOK_AFTER_NS:
            return
        newest = unknown[-1].of
        iterator = None if newest.iterator is None else newest.iterator()
        gaps = None if iterator is None else self._read_gaps(iterator)
        forgotten = 0
        if gaps is not None:
            self.assign(newest, gaps)
            forgotten = gaps.elements - len(gaps.between_ns)
        for step in unknown:
            is_late = step.last_element < forgotten or now_ns - step.start_ns > GIVE_UP_NS
            if step.wait_ns is None and (is_late or step.of.iterator != newest.iterator):
                self._guess_wait(step)

    @property
    def _unknown(self) -> list[TimedStep]:
        return [step for step in self._steps if step.wait_ns is None and not step.knows_no_wait]

    def assign(self, of: Pass, gaps: Gaps) -> None:
        """Assign what tf.data saw."""
        steps = [step for step in self._unknown if step.next_ns is not None and step.of.iterator == of.iterator]
        if not steps:
            return
        known_times = [
            (step.start_ns, step.next_ns or 0, (step.end_ns or 0) - step.start_ns, step.steps, step.last_element)
            for step in steps
        ]
        chosen = fit_waits(np.array(known_times, np.int64).T, gaps)
        for place, wait_ns in zip(chosen.places.tolist(), chosen.wait_ns.tolist(), strict=True):
            step = steps[place]
            step.wait_ns = min(max(0, wait_ns), step.length_ns)
            self._compute_ns.append((step.length_ns - step.wait_ns) / step.steps)

    def _guess_wait(self, step: TimedStep) -> None:
        """Take what exceeds the usual computation of the steps around for a wait, where tf.data was not asked in time."""
        if self._compute_ns:
            usual_ns = statistics.median(self._compute_ns) * step.steps
            step.wait_ns = max(0, round(step.length_ns - usual_ns))
