"""The axis as it is drawn: stretches of time in which the profiler was off are collapsed, so that they hardly take room."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.timeline.index import Index
from pipeline_lab.analysis.timeline.lanes import CLASSES, LaneKind
from pipeline_lab.data_classes import dataclass

WIDEST, TOGETHER = 0.015, 0.1
"""A collapsed stretch is drawn as wide as this part of all that was recorded; all of them as this part, if they are many."""
_FAR = 2**52
"""Beyond the first and the last event the axis goes on to scale this far, ns."""


@dataclass(frozen=True, eq=False)
class ShownAxis:
    """Where moments are drawn.

    Attributes:
        breaks: Start and length of the stretches that are collapsed, ns, shape (n, 2), in order.
        room_ns: How long each of them is drawn.
    """

    breaks: IntArray
    room_ns: int

    @cached_property
    def _knots(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Moments, and where they are drawn; between them the axis is straight."""
        end = self.breaks.sum(axis=1)
        saved = np.cumsum(self.breaks[:, 1] - self.room_ns)
        times = np.stack((self.breaks[:, 0], end), axis=1).ravel()
        drawn = np.stack((end - saved - self.room_ns, end - saved), axis=1).ravel()
        total = saved[-1] if len(saved) else 0
        return np.concatenate(([-_FAR], times, [_FAR])), np.concatenate(([-_FAR], drawn, [_FAR - total]))

    def drawn(self, times_ns: ArrayLike) -> NDArray[np.float64]:
        """Return where moments are drawn, in ns of the drawn axis."""
        return np.interp(np.asarray(times_ns, np.float64), *self._knots)

    def times(self, drawn: ArrayLike) -> IntArray:
        """Return the moments that are drawn there, ns."""
        times, places = self._knots
        return np.interp(np.asarray(drawn, np.float64), places, times).astype(np.int64)


TO_SCALE = ShownAxis(np.empty((0, 2), np.int64), 0)


def collapse_unrecorded(index: Index) -> ShownAxis:
    """Return the axis on which the stretches without profiler are collapsed, as far as that makes them shorter."""
    found = [
        np.stack((group.start_ns, group.duration_ns(0, len(group.start_ns))), axis=1)
        for lane in index.lanes_of(LaneKind.WINDOWS)
        for group in index.at(lane, 0)
        if CLASSES[group.event_class] == GapCause.CAPTURE_GAP
    ]
    if not found:
        return TO_SCALE
    breaks = np.concatenate(found).astype(np.int64)
    recorded_ns = index.end_ns - index.start_ns - int(breaks[:, 1].sum())
    room_ns = int(max(1, recorded_ns) * min(WIDEST, TOGETHER / len(breaks)))
    return ShownAxis(breaks[breaks[:, 1] > room_ns], room_ns)
