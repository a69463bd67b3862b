"""Processor time of this process, of those that it started, and of everybody else on the machine, between two readings."""

import contextlib
import os
import time
from dataclasses import dataclass

import psutil

FIRST_LOOK_S, LOOK_EVERY_S = 1.0, 5.0
"""Finding new processes means looking at all of the machine, a second after the beginning, then ever more rarely up to this; what
they used until then counts when they are found. Each look reads many small files, and where threads are busy with Python each
of these waits for the interpreter's lock.
"""


@dataclass(frozen=True)
class ProcessorUse:
    """Processor time between two readings, s; on many cores more than the time that passed."""

    elapsed_s: float
    own_s: float
    children_s: float
    """What the processes used that this one started: those behind a Python generator, say."""
    others_s: float
    """What all other programs used, those of low priority and time stolen by the host included."""


class _Children:
    """The processes that this one started, and those that they did."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._found: list[psutil.Process] = []
        self._look_s = time.monotonic()
        self._pause_s = FIRST_LOOK_S

    def spent_s(self) -> float:
        """Return the processor time of all of them, ended ones included, s."""
        if (now_s := time.monotonic()) >= self._look_s:
            self._found, self._look_s = self._own.children(recursive=True), now_s + self._pause_s
            self._pause_s = min(LOOK_EVERY_S, 2 * self._pause_s)
        ended = os.times()
        spent_s = ended.children_user + ended.children_system
        for child in self._found:
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                used = child.cpu_times()
                spent_s += used.user + used.system
        return spent_s


class ProcessorLoad:
    """Reads how much processor time went by since the last reading."""

    def __init__(self) -> None:
        self._children = _Children()
        self._last = self._read()

    def lap(self) -> ProcessorUse:
        """Return the use since the last lap and begin the next one."""
        now = self._read()
        elapsed_s, own_s, children_s, busy_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        children_s = max(0.0, children_s)  # what ended without being waited for is lost
        return ProcessorUse(elapsed_s, own_s, children_s, max(0.0, busy_s - own_s - children_s))

    def _read(self) -> tuple[float, float, float, float]:
        """Return clock, own processor time, that of children and that of the whole machine, s."""
        machine = psutil.cpu_times()
        stolen = getattr(machine, "steal", 0.0)
        busy_s = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + stolen
        return time.perf_counter(), time.process_time(), self._children.spent_s(), busy_s
