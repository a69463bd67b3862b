"""Where the time of the steps went, in parts that add up to it: of each step, and of all together."""

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.intervals import IntArray, length_within, subtract, union_of
from pipeline_lab.analysis.causes import GapCause, StepPart
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, TraceView, to_ms
from pipeline_lab.analysis.idle.gap_causes import attribute
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS, Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile

PARTS = tuple(part.column for part in StepPart)
"""The parts of a step, in the order in which charts stack them."""

PARTS_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("step", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        *[(part, pa.int64()) for part in PARTS],  # they add up to end_ns - start_ns
    ]
)
"""One row per recorded step."""

_IDLE_PARTS = {part.column: part.cause for part in StepPart if part.cause is not None}
_OTHER_CAUSES = {
    part.cause: part.column
    for part in (
        StepPart.COLLECTIVE,
        StepPart.HOST_OPERATION,
        StepPart.CHECKPOINT,
        StepPart.ITERATOR_END,
        StepPart.PYTHON,
        StepPart.OTHER,
    )
    if part.cause is not None
}
"""What is idle time of no class of its own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepBreakdown:
    """Parts of the recorded steps, ns. Each moment belongs to one part; device work comes before host activity.

    With several devices a moment is idle when none of them works. Without a device plane the ops of the step are
    ``host_compute_ns``, and the device's own parts are 0.

    Attributes:
        input_wait_ns: The device idles, and the job waits for its next batch.
        host_to_device_ns: It idles, and input is copied to it.
        device_compute_ns, device_copy_ns: It computes; it copies without computing.
        collective_ns: Communication with other devices or workers and the wait for them, without computing.
        compile_ns: It idles during tracing, compiling or autotuning.
        checkpoint_ns: It idles while a checkpoint is written or read.
        iterator_end_ns: It idles while Python sets up an iterator, or tears one down.
        host_operation_ns: It idles, and one op of the host fills at least half of the gap.
        dispatch_ns: It idles while TensorFlow prepares or launches ops.
        host_compute_ns: Ops of the step on the host, where no device was recorded.
        python_ns: It idles while the training thread is outside TensorFlow.
        other_ns: Nothing in the trace explains why it idles.
        adds_up: No part of any step is negative, and together they are as long as it; false for a damaged trace.
        table: The same of each step, :data:`PARTS_TABLE`, ordered by start.
    """

    input_wait_ns: int = 0
    host_to_device_ns: int = 0
    device_compute_ns: int = 0
    device_copy_ns: int = 0
    collective_ns: int = 0
    compile_ns: int = 0
    checkpoint_ns: int = 0
    iterator_end_ns: int = 0
    host_operation_ns: int = 0
    dispatch_ns: int = 0
    host_compute_ns: int = 0
    python_ns: int = 0
    other_ns: int = 0
    adds_up: bool = True
    table: pa.Table = field(default_factory=lambda: tables.empty(PARTS_TABLE))

    @property
    def parts_ns(self) -> dict[str, int]:
        """Every part by its name in :data:`PARTS`."""
        return {part: getattr(self, part) for part in PARTS}

    @property
    def total_ns(self) -> int:
        return sum(self.parts_ns.values())

    @property
    def idle_by_cause_ns(self) -> dict[GapCause, int]:
        """The parts of :attr:`idle_otherwise_ns`."""
        return {cause: getattr(self, part) for cause, part in _OTHER_CAUSES.items()}

    @property
    def idle_otherwise_ns(self) -> int:
        """Time of the steps without computing that is neither input, copies, compiling nor dispatch."""
        return sum(self.idle_by_cause_ns.values())

    @property
    def idle_otherwise_cause(self) -> GapCause:
        """The largest part of :attr:`idle_otherwise_ns`."""
        return max(_OTHER_CAUSES, key=self.idle_by_cause_ns.__getitem__)


def sum_up(table: pa.Table) -> StepBreakdown:
    """Add up the parts of some steps.

    Args:
        table: Of :data:`PARTS_TABLE`.
    """
    parts = np.stack([tables.ints(table, part) for part in PARTS])
    length = tables.ints(table, "end_ns") - tables.ints(table, "start_ns")
    return StepBreakdown(
        **dict(zip(PARTS, parts.sum(axis=1).tolist(), strict=True)),
        adds_up=bool((parts >= 0).all() and (parts.sum(axis=0) == length).all()),
        table=table,
    )


def count_training_steps(breakdown: StepBreakdown, steps: Steps | Unavailable) -> float:
    """Return how many training steps the parts add up to; a marked step may hold several."""
    if isinstance(steps, Unavailable):
        return float(breakdown.table.num_rows)
    return (breakdown.table.num_rows or steps.count) * (steps.steps_per_marker or 1.0)


def mean_parts_ns(breakdown: StepBreakdown, steps: Steps | Unavailable) -> dict[StepPart, float] | Unavailable:
    """Return how long each part of a profiled training step takes on average, in their order; parts that take nothing left out."""
    count = count_training_steps(breakdown, steps)
    if not count or not breakdown.total_ns:
        return Unavailable("The profiled steps have no length; run it again with longer windows.")
    return {part: length / count for part in StepPart if (length := breakdown.parts_ns[part.column])}


def divide_steps(activity: Activity, steps: Steps) -> StepBreakdown:
    """Divide each step of one trace.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis.
    """
    spans = tables.intervals(steps.table)
    return sum_up(
        tables.build(
            PARTS_TABLE,
            steps.count,
            host=activity.trace.host,
            window=0,
            step=tables.ints(steps.table, "step"),
            start_ns=spans[:, 0],
            end_ns=spans[:, 1],
            **_parts(activity, spans),
        )
    )


def merge_breakdowns(parts: Sequence[StepBreakdown]) -> StepBreakdown:
    """Put the steps of several traces together.

    Raises:
        TraceIncompleteError: There are none.
    """
    if not parts:
        raise TraceIncompleteError(NO_STEPS)
    return StepBreakdown(
        **{part: sum(getattr(each, part) for each in parts) for part in PARTS},
        adds_up=all(each.adds_up for each in parts),
        table=tables.concat(PARTS_TABLE, [each.table for each in parts]),
    )


def _parts(activity: Activity, spans: IntArray) -> dict[str, IntArray]:
    compute = union_of(*(device.compute for device in activity.devices))
    collective = subtract(union_of(*(device.collective for device in activity.devices)), compute)
    copy = subtract(union_of(*(device.copy for device in activity.devices)), union_of(compute, collective))
    idle = attribute(activity, activity.busy).causes
    compute_ns, nothing = length_within(compute, spans), np.zeros(len(spans), np.int64)
    return {
        **{part: length_within(idle[cause], spans) for part, cause in _IDLE_PARTS.items()},
        "device_compute_ns": compute_ns if activity.has_devices else nothing,
        "host_compute_ns": nothing if activity.has_devices else compute_ns,
        "device_copy_ns": length_within(copy, spans),
        "collective_ns": length_within(collective, spans) + length_within(idle[GapCause.COLLECTIVE], spans),
    }


def _analyze(trace: TraceView) -> StepBreakdown:
    return divide_steps(trace.activity, trace.found.need(Steps, "steps"))


def _read_stored(profile: DerivedProfile) -> StepBreakdown:
    steps = profile.steps
    if not steps.count:
        raise TraceIncompleteError(NO_STEPS)
    end = np.cumsum(steps.total_ns)
    known = {
        "input_wait_ns": steps.input_wait_ns,
        "host_to_device_ns": steps.host_to_device_ns,
        "device_compute_ns": steps.device_compute_ns,
        "device_copy_ns": steps.device_to_device_ns + steps.output_ns,
        "collective_ns": steps.collective_ns,
        "compile_ns": steps.compile_ns,
        "dispatch_ns": steps.host_prepare_ns,
        "host_compute_ns": steps.host_compute_ns,
        "other_ns": steps.unknown_ns,
    }
    return sum_up(
        tables.build(
            PARTS_TABLE,
            steps.count,
            host=profile.host,
            window=0,
            step=steps.number,
            start_ns=end - steps.total_ns,
            end_ns=end,
            **{part: known.get(part, 0) for part in PARTS},
        )
    )


def _to_json(breakdown: StepBreakdown) -> Document:
    return {name.removesuffix("_ns") + "_ms": to_ms(part_ns) for name, part_ns in breakdown.parts_ns.items()}


STEP_BREAKDOWN = Analysis(StepBreakdown, per_trace=PerTrace(_analyze, merge_breakdowns, _read_stored), to_json=_to_json)
