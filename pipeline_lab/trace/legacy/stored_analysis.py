"""TensorFlow's own step table and verdict, as files of TensorFlow 2.2 to 2.8 keep them (`derived` reads those).

The numbers are TensorFlow's. They are right where it found steps, but its input wait counts every host event whose name
begins with `IteratorGetNext`, transfers such as `IteratorGetNext/_3:_Send` included: read it as an upper bound.
"""

from pathlib import Path

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.schema import IntArray

WAIT_CAVEAT = (
    "TensorFlow's stored input wait also counts transfers such as IteratorGetNext/_3:_Send, which are no waits; "
    "the true wait is this or less."
)


@dataclass(frozen=True, eq=False)
class StoredSteps:
    """The step table, one entry per step in the order of the file.

    The parts of a step add up to its total. A TPU step fills total, input wait, device compute, collective, output
    and unknown (its idle time); a generic one everything.

    Attributes:
        number: Step number, counted from 0 inside the capture by TensorFlow 2.2 to 2.8, shape (n,).
        names: Name of each step, such as ``train 3``; empty where the file has none.
        total_ns: Length of each step, shape (n,); so are all that follow.
        input_wait_ns: The host waits for data (see `WAIT_CAVEAT`).
        host_to_device_ns: The host sends data to the device.
        device_compute_ns: Kernels.
        device_to_device_ns: Copies between devices.
        collective_ns: Collective communication.
        output_ns: Copies to the host.
        host_compute_ns: Operations on the host.
        host_prepare_ns: Kernel launches.
        compile_ns: Compilation.
        unknown_ns: What belongs to none of these ("All Others").
    """

    number: IntArray
    names: tuple[str, ...]
    total_ns: IntArray
    input_wait_ns: IntArray
    host_to_device_ns: IntArray
    device_compute_ns: IntArray
    device_to_device_ns: IntArray
    collective_ns: IntArray
    output_ns: IntArray
    host_compute_ns: IntArray
    host_prepare_ns: IntArray
    compile_ns: IntArray
    unknown_ns: IntArray

    @property
    def count(self) -> int:
        return len(self.number)

    @property
    def input_percent(self) -> float | None:
        """Total wait and transfer to the device over total time, which TensorFlow's verdict speaks of; None without steps."""
        total = int(self.total_ns.sum())
        return 100.0 * int(self._input_ns.sum()) / total if total else None

    @property
    def mean_step_input_percent(self) -> float | None:
        """Mean of the steps' own shares, which TensorFlow's summary shows; None without steps."""
        timed = self.total_ns > 0
        return float(np.mean(100.0 * self._input_ns[timed] / self.total_ns[timed])) if timed.any() else None

    @property
    def _input_ns(self) -> IntArray:
        return self.input_wait_ns + self.host_to_device_ns


@dataclass(frozen=True)
class StoredVerdict:
    """TensorFlow's own judgment, word for word.

    Attributes:
        bottleneck: ``host``, ``device``, ``both`` or ``unknown``; empty if the file has none.
        input_statement, launch_statement, other_statement: Its sentences on input, kernel launches and all others.
        next_step: What it tells the user to do.
    """

    bottleneck: str = ""
    input_statement: str = ""
    launch_statement: str = ""
    other_statement: str = ""
    next_step: str = ""


@dataclass(frozen=True)
class StoredStage:
    """One tf.data stage or input operation, times added over calls and threads.

    Attributes:
        path: ``Iterator::Model::ParallelMap::Zip[0]``, …
        calls: Number of events.
        total_ns, self_ns: With and without the stages below it.
        category: ``Preprocessing``, ``Advanced file read``, ``Demanded file read``, ``Enqueue``.
    """

    path: str
    calls: int
    total_ns: int
    self_ns: int
    category: str


@dataclass(frozen=True)
class StoredSummary:
    """What the file's summary says, which need not agree with its table: step time and input share averaged over steps.

    Attributes:
        mean_step_ns: Average step time; None if not stored.
        mean_step_input_percent: Average of the steps' input shares; None if not stored.
    """

    mean_step_ns: int | None = None
    mean_step_input_percent: float | None = None


@dataclass(frozen=True, eq=False)
class DerivedProfile:
    """What one host's derived files say.

    Attributes:
        path: The file that was read.
        host: The host's name as the file name has it, empty if it has none.
        hardware: ``CPU_ONLY``, ``GPU`` or ``TPU``; empty if not stored.
        device_type: The device in words, from the overview page; empty if not stored.
        hosts: Hosts that the overview page names.
        device_count: Device cores of the job, from the overview page; None if not stored.
        steps: The step table.
        summary: The stored averages.
        verdict: TensorFlow's judgment.
        stages: Input operations, longest own time first as stored, at most `MAX_STAGES`.
        warnings: TensorFlow's warnings and errors about the capture.
    """

    path: Path
    host: str
    hardware: str
    device_type: str
    hosts: tuple[str, ...]
    device_count: int | None
    steps: StoredSteps
    summary: StoredSummary
    verdict: StoredVerdict
    stages: tuple[StoredStage, ...]
    warnings: tuple[str, ...]
