"""What setting up and tearing down iterators takes from a job: all that its script noted, whether a window saw it or not.

At its end an iterator joins tf.data's threads. The one that autotunes sleeps until its next turn, and is woken by a callback that
runs before the flag it asks for is set (``Model::OptimizeLoop`` and ``CancellationManager::StartCancel`` in
tensorflow/core/framework, TensorFlow 2.21): if it looks too early, it sleeps on. Its turns come at 10, 30, 70 ms and so on, each
twice as far away as the one before, up to a minute; so an end takes nothing, or as long as is left to the next turn. On two cores
it did in 6 of 16 ends, and in none of 16 without autotuning.

Before it begins, TensorFlow optimizes the graph of its dataset and builds it: 8 and 16 ms for five stages, on two cores.
"""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals, length_within, subtract, union, union_of
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, JobView, PerJob, as_it_is
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.interruptions import Interruptions
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_events import EvaluationEvent, Event, IteratorEndEvent, IteratorStartEvent

NO_END = (
    "No end of an iterator that took time was noted: none did, or the script did not run under `pipeline-lab watch`."
)
NO_START = (
    "No iterator that took time to make was noted: none did, or the script did not run under `pipeline-lab watch`."
)


class IteratorStarts(Interruptions):
    """The making of iterators between the epochs of a job; its time is that from the end of the warm-up on."""


class IteratorEnds(Interruptions):
    """The ends of iterators that took time, between the epochs of a job; its time is that from the end of the warm-up on."""


def end_spans(events: JobEvents) -> IntArray:
    """Return when iterators were ended, as a set of intervals, ns since the epoch; an evaluation's own ends are part of it alone."""
    return _spans(events, IteratorEndEvent)


def change_spans(events: JobEvents) -> IntArray:
    """Return when iterators were made and ended, likewise."""
    return union_of(end_spans(events), _spans(events, IteratorStartEvent))


def _spans(events: JobEvents, kind: type[Event]) -> IntArray:
    return subtract(events.spans(kind), events.spans(EvaluationEvent))


def measure_starts(events: JobEvents, steps: pa.Table) -> IteratorStarts:
    """Sum up the making of iterators between the epochs after the warm-up.

    Args:
        events: Of the job.
        steps: Of schema ``runs.run_tables.STEPS``.

    Raises:
        TraceIncompleteError: There is none.
    """
    return IteratorStarts(*_between_epochs(_spans(events, IteratorStartEvent), steps, NO_START))


def measure_ends(events: JobEvents, steps: pa.Table) -> IteratorEnds:
    """Sum up the ends of iterators, as :func:`measure_starts` does their making."""
    return IteratorEnds(*_between_epochs(end_spans(events), steps, NO_END))


def _between_epochs(spans: IntArray, steps: pa.Table, missing: str) -> tuple[int, int, int, int]:
    """Return how many spans lie between epochs, or between any steps where no epochs are known, their sum, the longest, and the job.

    The step before counts from when its batch was there: a pass that is broken off gives its iterator up at any time from then on.
    What belongs to no step, as the time between two calls of ``fit``, is left out.
    """
    measured = ~tables.bools(steps, "warmup")
    if not measured.any() or not len(spans):
        raise TraceIncompleteError(missing)
    request, returned, epoch = (tables.ints(steps, name) for name in ("start_ns", "end_ns", "epoch"))
    goes_on = (np.diff(epoch) == 0) & tables.valid(steps, "epoch")[1:]
    before = np.flatnonzero(measured[:-1] & ~goes_on)
    away = tables.or_zero(steps, "away_ns")[before + 1]
    arrived = request[before] + tables.or_zero(steps, "wait_ns")[before]
    left = np.where(away > 0, returned[before], np.minimum(returned[before], arrived))
    room = request[before + 1] - left - away
    lasting = room > 0  # others come of a clock that was set back
    breaks = as_intervals(left[lasting], request[before + 1][lasting])
    total_ns = int(np.minimum(length_within(spans, breaks), room[lasting]).sum())
    inside = length_within(union(breaks[:, 0], breaks[:, 1]), spans)
    begun, ended = int(request[measured][0]), int(returned[-1])
    if not total_ns or ended <= begun:
        raise TraceIncompleteError(missing)
    return int((inside > 0).sum()), total_ns, int(min(inside.max(), total_ns)), ended - begun


def serve_one_step(starts: IteratorStarts | Unavailable, job: JobSteps | Unavailable) -> bool:
    """Say whether nearly every step creates an iterator of its own, of which it takes the first batch."""
    if isinstance(starts, Unavailable) or isinstance(job, Unavailable):
        return False
    return starts.count > NEARLY_ALL * job.count


NEARLY_ALL = 0.9
"""Share of the steps that creates an iterator; with epochs of two batches each it is a half."""


def _measure_starts(job: JobView) -> IteratorStarts:
    return measure_starts(job.tables.events, job.tables.steps)


def _measure_ends(job: JobView) -> IteratorEnds:
    return measure_ends(job.tables.events, job.tables.steps)


ITERATOR_STARTS = Analysis(
    IteratorStarts, per_job=PerJob(_measure_starts, NO_START, later=as_it_is), to_json=IteratorStarts.to_json
)
ITERATOR_ENDS = Analysis(
    IteratorEnds, per_job=PerJob(_measure_ends, NO_END, later=as_it_is), to_json=IteratorEnds.to_json
)
