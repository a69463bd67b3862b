"""Which event a wait for input waited for: of the stage that the critical path blames, as far as it worked during this wait."""

from collections.abc import Sequence

import numpy as np

from pipeline_lab.analysis.activity.event_names import operation
from pipeline_lab.analysis.tf_data.iterator_places import place_of
from pipeline_lab.analysis.tf_data.tf_data import OTHER_OPERATIONS, OWN_WORK, QUEUEING, TfData
from pipeline_lab.analysis.timeline.index import Index
from pipeline_lab.analysis.timeline.lanes import LaneKind
from pipeline_lab.analysis.timeline.look import FoundEvent, NameTime
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable

LEAST_SHARE = 0.1
"""What took less than this part of a wait did not cause it, nor what takes less than this part of the critical path."""
_OF_STAGE = (OWN_WORK, OTHER_OPERATIONS, QUEUEING)
"""Parts of the critical path that are no op: the stage's own events show them."""


@dataclass(frozen=True)
class WaitCause:
    """What a wait was for.

    Attributes:
        event: The last of the events that caused it.
        path: Place of the stage that they belong to.
        time_ns: How long they took during the wait: ops their own time over all threads, a stage on the thread of the event.
    """

    event: FoundEvent
    path: str
    time_ns: int


def find_cause(
    index: Index, pipeline: TfData | Unavailable, host: str, span: tuple[int, int], ranked: Sequence[NameTime]
) -> WaitCause | None:
    """Return the cause of a wait: the first part of the critical path that is seen at work during it.

    Args:
        index: The timeline.
        pipeline: The stages and the critical path.
        host: Whose wait it is.
        span: Start and end of the wait, ns.
        ranked: What the host's threads did meanwhile, the longest first.
    """
    if isinstance(pipeline, Unavailable) or isinstance(pipeline.critical_path, Unavailable):
        return None
    least_ns = LEAST_SHARE * (span[1] - span[0])
    ops: dict[str, NameTime] = {}
    for one in ranked:
        name = index.names[one.name]
        ops.setdefault(operation(name) or name, one)
    for share in pipeline.critical_path.shares:
        if share.stage is None or share.wait_ns < LEAST_SHARE * pipeline.critical_path.wait_ns:
            continue
        path = pipeline.stages[share.stage].path
        if share.what in _OF_STAGE:
            cause = _stage_at_work(index, host, path, span)
        else:
            op = ops.get(share.what)
            event = _last(index, op.lane, {op.name}, span)[0] if op else None
            cause = WaitCause(event, path, op.self_ns) if op and event else None
        if cause is not None and cause.time_ns >= least_ns:
            return cause
    return None


def _stage_at_work(index: Index, host: str, path: str, span: tuple[int, int]) -> WaitCause | None:
    """Return the last event of a stage on the thread where its events fill most of a stretch of time."""
    names = {number for number, name in enumerate(index.names) if place_of(name) == path}
    lanes = index.lanes_of(LaneKind.THREAD, host=host) if names else []
    event, time_ns = max((_last(index, lane, names, span) for lane in lanes), key=lambda one: one[1], default=(None, 0))
    return None if event is None else WaitCause(event, path, time_ns)


def _last(index: Index, lane: int, names: set[int], span: tuple[int, int]) -> tuple[FoundEvent | None, int]:
    """Return the last event of these names on a thread that lies in a stretch of time, in whole or in part.

    Returns:
        The event, and how much of the stretch all such events of its layer fill, ns.
    """
    best: FoundEvent | None = None
    filled_ns = 0
    for layer, groups in index.of_lane(lane):
        for group in groups:
            first, last = group.rows(span[0], span[1] - 1)
            rows = first + np.flatnonzero(np.isin(group.name[first:last], list(names)))
            if not len(rows):
                continue
            ends = group.start_ns[rows] + group.before_ns[rows + 1] - group.before_ns[rows]
            row, end_ns = int(rows[-1]), int(ends[-1])
            start_ns = int(group.start_ns[row])
            if best is None or start_ns > best.start_ns:
                best = FoundEvent(lane, layer, group.event_class, int(group.name[row]), start_ns, end_ns - start_ns)
                filled_ns = int((np.minimum(ends, span[1]) - np.maximum(group.start_ns[rows], span[0])).sum())
    return best, filled_ns
