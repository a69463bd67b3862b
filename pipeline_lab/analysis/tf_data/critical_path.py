"""What the job waited for: every moment of every wait, followed back to the op, file or queue that took the time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray, intersect, subtract, union
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.element_links import NONE, Links
from pipeline_lab.analysis.tf_data.functions import Functions
from pipeline_lab.analysis.tf_data.iterator_places import is_shared
from pipeline_lab.analysis.tf_data.kinds import Role
from pipeline_lab.analysis.tf_data.tf_data import (
    HANDOVER,
    OTHER_OPERATIONS,
    OWN_WORK,
    QUEUEING,
    UNSEEN,
    CriticalPath,
    PathShare,
)
from pipeline_lab.analysis.tf_data.threads import IndexArray, Threads
from pipeline_lab.analysis.tf_data.work import OperationTypes

_WHAT = {
    kernels.OWN: OWN_WORK,
    kernels.QUEUED: QUEUEING,
    kernels.HIDDEN: UNSEEN,
    kernels.OTHER_OPS: OTHER_OPERATIONS,
    kernels.HANDOVER: HANDOVER,
}


def find_waits(threads: Threads) -> IntArray:
    """Return thread, start and end of the waits; what several cover belongs to the one that began first.

    Returns:
        Ordered by start, shape (n, 3).
    """
    rows = threads.rows(Role.WAIT)
    if not len(rows):
        rows = threads.rows(Role.OUTER_WAIT)
    rows = rows[np.argsort(threads.start_ns[rows], kind="stable")]
    start, end = threads.start_ns[rows], threads.recorded_end_ns(rows)
    if len(rows):
        start = np.maximum(start, np.concatenate((start[:1], np.maximum.accumulate(end)[:-1])))
    lasts = end > start
    return np.stack((threads.thread_of(rows), start, end), axis=1)[lasts]


def follow_waits(
    threads: Threads,
    functions: Functions,
    links: Links,
    types: OperationTypes,
    busy: IntArray,
    within: IntArray | None,
) -> CriticalPath:
    """Divide the waits of one trace among what caused them.

    Args:
        threads: The trace's events.
        functions: The calls of functions.
        links: What made each element.
        types: The types of ops.
        busy: When a device works; a wait outside of that is exposed.
        within: The steps, to which the waits are clipped; None to follow all of them.
    """
    waits = find_waits(threads)
    moments = waits[:, 1:]
    if within is not None:
        moments = intersect(moments, union(within[:, 0], within[:, 1]))
    exposed = _pieces(waits, subtract(moments, busy))
    hidden = _pieces(waits, intersect(moments, busy))
    shape = (len(threads.places.places) + 1, kernels.FIRST_OP + len(types.names))
    exposed_ns, hidden_ns = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for pieces, spent in ((exposed, exposed_ns), (hidden, hidden_ns)):
        _walk(pieces, threads, functions, links, types, spent)
    labels = [*_WHAT.values(), *types.names]
    shares = [
        PathShare(
            None if stage == shape[0] - 1 else stage,
            labels[code],
            int(exposed_ns[stage, code] + hidden_ns[stage, code]),
            int(exposed_ns[stage, code]),
        )
        for stage, code in np.argwhere(exposed_ns + hidden_ns).tolist()
    ]
    return CriticalPath(int((exposed_ns + hidden_ns).sum()), int(exposed_ns.sum()), rank_shares(shares))


def rank_shares(shares: Sequence[PathShare]) -> tuple[PathShare, ...]:
    """Order shares: the largest exposed part first, of equal ones the largest wait."""
    return tuple(sorted(shares, key=lambda share: (-share.exposed_ns, -share.wait_ns)))


def _pieces(waits: IntArray, moments: IntArray) -> IntArray:
    """Return the waits clipped to moments that lie in them, with their threads, shape (n, 3)."""
    if not len(moments):
        return np.empty((0, 3), np.int64)
    wait = np.searchsorted(waits[:, 1], moments[:, 0], side="right") - 1
    return np.column_stack((waits[wait, 0], moments))


def _walk(
    pieces: IntArray,
    threads: Threads,
    functions: Functions,
    links: Links,
    types: OperationTypes,
    spent: NDArray[np.int64],
) -> None:
    stages = len(threads.places.places)
    finished = np.flatnonzero(functions.end_ns >= 0)
    by_end = finished[np.lexsort((functions.end_ns[finished], functions.call_stage[finished]))]
    bounds = np.searchsorted(functions.call_stage[by_end], np.arange(stages + 1))
    kernels.walk(
        pieces,
        threads.bounds,
        (threads.start_ns, threads.end_ns, threads.parent, threads.role, functions.stage, threads.name),
        types.of_name,
        (links.wait, links.call),
        (links.ready_ns, links.source, links.source_thread),
        (functions.call_stage, functions.start_ns, functions.end_ns),
        (functions.first_run, functions.runs, threads.start_ns[functions.runs]),
        (bounds.astype(np.int64), by_end.astype(np.int64), functions.end_ns[by_end]),
        _beyond(threads),
        spent,
    )


def _beyond(threads: Threads) -> IndexArray:
    """Return the thread that each stage's function waits for: one that deals out elements of a multi-device iterator."""
    beyond = np.full(len(threads.places.places), NONE, np.int32)
    for number, line in enumerate(threads.lines):
        places = threads.place[threads.rows_of(number)]
        roots = np.unique(places[(places >= 0) & (threads.parent[threads.rows_of(number)] < 0)])
        if not is_shared(line.name) or not len(roots):
            continue
        above = int(threads.places.above[roots.min()])
        if above >= 0 and threads.places.places[int(roots.min())].name in ("Root", "Model"):
            beyond[above] = number
    return beyond
