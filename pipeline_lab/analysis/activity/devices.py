"""What a device does, as interval sets, from its plane alone."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.event_names import DeviceKind
from pipeline_lab.analysis.activity.event_sets import union_of_named
from pipeline_lab.analysis.activity.intervals import IntArray, subtract, union, union_of
from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.record import EMULATED_ACCELERATOR, EMULATED_PLANE
from pipeline_lab.trace.schema import Plane

TRIAL_NS = 10_000_000
"""Checks of tried algorithms that follow each other within this time belong to one trial, and so do the kernels between."""


@dataclass(frozen=True, eq=False)
class Device:
    """One device's work as interval sets.

    Attributes:
        name: Its plane's name, the emulated accelerator's, or ``HOST_COMPUTE``.
        compute, collective, copy: Kernels; communication; copies other than from the host.
        host_to_device: Copies from the host and infeed; brings work but is none.
        autotuning: Kernels, counted in ``compute`` too, that check an algorithm which is being tried out.
    """

    name: str
    compute: IntArray
    collective: IntArray
    copy: IntArray
    host_to_device: IntArray
    autotuning: IntArray

    def without(self, trials: IntArray) -> "Device":
        """Return the device without what it computed while algorithms were tried out: that trains nothing."""
        return replace(self, compute=subtract(self.compute, trials)) if len(trials) else self

    @cached_property
    def work(self) -> IntArray:
        return union_of(self.compute, self.collective, self.copy)


def read_device(plane: Plane) -> Device | None:
    """Read a device plane's work lines; None if it has none (an idle device leaves an empty plane)."""
    lines = [line for line in plane.lines if line.count and event_names.is_work_line(plane, line.name)]
    if not lines:
        return None
    kinds = np.fromiter((event_names.device_kind(name).value for name in plane.names), np.uint8, len(plane.names))

    def moments(kind: DeviceKind) -> IntArray:
        names = (kinds & np.uint8(kind.value)) != 0
        return union_of(*(union_of_named(line, names) for line in lines))

    return Device(
        EMULATED_ACCELERATOR if plane.name == EMULATED_PLANE else plane.name,
        compute=moments(DeviceKind.COMPUTE),
        collective=moments(DeviceKind.COLLECTIVE),
        copy=moments(DeviceKind.COPY),
        host_to_device=moments(DeviceKind.HOST_TO_DEVICE),
        autotuning=moments(DeviceKind.AUTOTUNING),
    )


def join_checks(checks: IntArray) -> IntArray:
    """Return the time of checks and of the trials between them.

    Args:
        checks: A set.
    """
    joined = union(checks[:, 0], checks[:, 1] + TRIAL_NS)
    joined[:, 1] -= TRIAL_NS
    return joined
