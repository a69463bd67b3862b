"""Memory, CPU and GPU use over time, recorded beside the steps."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.machine.nvidia import ReadsGpu
from pipeline_lab.runs.run_tables import RESOURCES, TableWriter
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record.own_process import ResidentMemory, run_beside

FIRST_LOOK_S, LOOK_EVERY_S = 1.0, 5.0
"""Time between searches for new child processes, doubled up to the second number. A search reads many small files, each of
which waits for Python's lock. Earlier CPU time of a process counts when it is found.
"""


@dataclass(frozen=True)
class ProcessorUse:
    """CPU time between two readings, s, summed over cores."""

    elapsed_s: float
    own_s: float
    children_s: float
    """Of child processes, such as those behind a Python generator."""
    others_s: float
    """Of all other programs, including time stolen by the host."""


class _Children:
    """Child processes and their descendants."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._found: list[psutil.Process] = []
        self._look_s = time.monotonic()
        self._pause_s = FIRST_LOOK_S

    def spent_s(self) -> float:
        """Return their CPU time, ended ones included, s."""
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
    """Measures CPU time between readings."""

    def __init__(self) -> None:
        self._children = _Children()
        self._last = self._read()

    def lap(self) -> ProcessorUse:
        """Return the use since the last lap and begin the next one."""
        now = self._read()
        elapsed_s, own_s, children_s, busy_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        children_s = max(0.0, children_s)  # children that nobody waited for are lost
        return ProcessorUse(elapsed_s, own_s, children_s, max(0.0, busy_s - own_s - children_s))

    def _read(self) -> tuple[float, float, float, float]:
        """Return clock and CPU time of this process, its children and the whole machine, s."""
        machine = psutil.cpu_times()
        stolen = getattr(machine, "steal", 0.0)
        busy_s = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + stolen
        return time.perf_counter(), time.process_time(), self._children.spent_s(), busy_s


SAMPLE_PERIOD_S = 0.5


@contextlib.contextmanager
def sample_resources(path: Path, clock: Clock, on_sample: Callable[[int], bool], gpu: ReadsGpu) -> Iterator[None]:
    """Fill the resources table from a thread while the block runs.

    Args:
        path: The table.
        clock: The job's clock.
        on_sample: Called with the resident memory (bytes) at each sample; returns whether a window is being flushed.
        gpu: The one that the job trains on.
    """
    memory, processor = ResidentMemory(), ProcessorLoad()

    def sample(end: threading.Event) -> None:
        while not end.wait(SAMPLE_PERIOD_S):
            rss_bytes = memory.read_bytes()
            is_flushing = on_sample(rss_bytes)
            use = processor.lap()
            spent = (use.own_s, use.others_s, use.children_s)
            own_percent, other_percent, children_percent = (100 * each / use.elapsed_s for each in spent)
            seen = gpu.read()
            table.append(
                clock.now_ns(),
                rss_bytes,
                own_percent,
                other_percent,
                seen.memory_bytes,
                seen.busy_percent,
                is_flushing,
                seen.clock_mhz,
                seen.is_slowed,
                children_percent,
            )

    with contextlib.closing(TableWriter(path, RESOURCES)) as table, run_beside("resources", sample):
        yield
