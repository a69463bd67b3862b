"""Where the time of the steps went, in parts that add up to it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.gap_causes import GapCause, attribute
from pipeline_lab.analysis.intervals import intersect, subtract, total, union_of
from pipeline_lab.analysis.steps import NO_STEPS, Steps
from pipeline_lab.errors import TraceIncompleteError


@dataclass(frozen=True)
class StepBreakdown:
    """Parts of all steps, ns. Each moment belongs to one part; device work comes before host activity.

    With several devices a moment is idle when none of them works. Without a device plane the ops of the step are
    ``host_compute_ns`` and the device's parts are 0. Python between ops and what nothing explains is ``other_ns``.
    """

    input_wait_ns: int
    host_to_device_ns: int
    device_compute_ns: int
    device_copy_ns: int
    collective_ns: int
    compile_ns: int
    dispatch_ns: int
    host_compute_ns: int
    other_ns: int

    @property
    def total_ns(self) -> int:
        return sum(getattr(self, field.name) for field in fields(self))


def analyse(activity: Activity, steps: Steps) -> StepBreakdown:
    """Divide the steps of one trace.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis.
    """
    spans = tables.intervals(steps.table)
    spans = union_of(spans)
    compute = union_of(*(device.compute for device in activity.devices))
    collective = subtract(union_of(*(device.collective for device in activity.devices)), compute)
    copy = subtract(union_of(*(device.copy for device in activity.devices)), union_of(compute, collective))
    idle = attribute(activity, activity.busy).causes

    def inside(*causes: GapCause) -> int:
        return sum(total(intersect(idle[cause], spans)) for cause in causes)

    compute_ns = total(intersect(compute, spans))
    return StepBreakdown(
        input_wait_ns=inside(GapCause.INPUT_WAIT),
        host_to_device_ns=inside(GapCause.HOST_TO_DEVICE),
        device_compute_ns=compute_ns if activity.has_devices else 0,
        device_copy_ns=total(intersect(copy, spans)),
        collective_ns=total(intersect(collective, spans)),
        compile_ns=inside(GapCause.COMPILE),
        dispatch_ns=inside(GapCause.DISPATCH),
        host_compute_ns=inside(GapCause.HOST_OPERATION, GapCause.CHECKPOINT)
        + (0 if activity.has_devices else compute_ns),
        other_ns=inside(GapCause.PYTHON, GapCause.UNKNOWN),
    )


def merge(parts: Sequence[StepBreakdown]) -> StepBreakdown:
    """Add up several traces.

    Raises:
        TraceIncompleteError: There are none.
    """
    if not parts:
        raise TraceIncompleteError(NO_STEPS)
    return StepBreakdown(*(sum(getattr(part, field.name) for part in parts) for field in fields(StepBreakdown)))
