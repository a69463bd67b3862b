"""Calls of Keras' ``predict`` between the steps of a job, by the line that makes them."""

from collections import defaultdict

from pipeline_lab.capture.script.step_notes import Predicted
from pipeline_lab.data_classes import dataclass

MOST_LINES = 5
"""Lines that are told of."""


@dataclass
class PredictCalls:
    """Calls from one line; the first one, which traces, is left out.

    Attributes:
        count, total_ns: Calls that a step followed, and what they took.
        held, held_ns: The same of those that no step has followed yet.
        is_traced: There was a first one.
    """

    count: int = 0
    total_ns: int = 0
    held: int = 0
    held_ns: int = 0
    is_traced: bool = False


class PredictLog:
    """Sums up the calls.

    Attributes:
        is_waiting: Whether there are any that no step has followed yet.
    """

    def __init__(self) -> None:
        self._of_line: defaultdict[str, PredictCalls] = defaultdict(PredictCalls)
        self.is_waiting = False

    def hold(self, note: Predicted, *, is_training: bool) -> None:
        """Take a call in that counts once a step follows it; those before the training count in no case."""
        found = self._of_line[note.call]
        if found.is_traced and is_training:
            found.held += 1
            found.held_ns += note.ended_ns - note.asked_ns
            self.is_waiting = True
        found.is_traced = True

    def count(self) -> None:
        """Count those that wait for a step, now that one follows them."""
        for found in self._of_line.values() if self.is_waiting else ():
            found.count, found.total_ns = found.count + found.held, found.total_ns + found.held_ns
            found.held = found.held_ns = 0
        self.is_waiting = False

    @property
    def longest(self) -> list[tuple[str, PredictCalls]]:
        """The lines whose calls took longest, with these, the first one longest; without those of which no call counts."""
        counted = [each for each in self._of_line.items() if each[1].count]
        return sorted(counted, key=lambda each: -each[1].total_ns)[:MOST_LINES]
