"""Processor time of this process and of everybody else on the machine, from one reading to the next."""

import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ProcessorUse:
    """Processor time between two readings, s; on many cores more than the time that passed."""

    elapsed_s: float
    own_s: float
    others_s: float
    """What all other programs used, those of low priority and time stolen by the host included."""


class ProcessorLoad:
    """Reads how much processor time went by since the last reading."""

    def __init__(self) -> None:
        self._last = self._read()

    def lap(self) -> ProcessorUse:
        """Return the use since the last lap and begin the next one."""
        now = self._read()
        elapsed_s, own_s, busy_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        return ProcessorUse(elapsed_s, own_s, max(0.0, busy_s - own_s))

    def _read(self) -> tuple[float, float, float]:
        """Return clock, own processor time and that of the whole machine, s."""
        machine = psutil.cpu_times()
        stolen = getattr(machine, "steal", 0.0)
        busy_s = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + stolen
        return time.perf_counter(), time.process_time(), busy_s
