"""What ending iterators takes from a job: all ends that its script noted, whether a window saw them or not.

At its end an iterator joins tf.data's threads. The one that autotunes sleeps until its next turn, and is woken by a callback that
runs before the flag it asks for is set (``Model::OptimizeLoop`` and ``CancellationManager::StartCancel`` in
tensorflow/core/framework, TensorFlow 2.21): if it looks too early, it sleeps on. Its turns come at 10, 30, 70 ms and so on, each
twice as far away as the one before, up to a minute; so an end takes nothing, or as long as is left to the next turn. On two cores
it did in 6 of 16 ends, and in none of 16 without autotuning.
"""

import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray, subtract
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, JobView, PerJob, as_it_is
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.interruptions import Interruptions
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import EvaluationEvent, IteratorEndEvent

NO_END = (
    "No end of an iterator that took time was noted: none did, or the script did not run under `pipeline-lab watch`."
)


class IteratorEnds(Interruptions):
    """The ends of iterators that took time, between the steps of a job; its time is that from the end of the warm-up on."""


def end_spans(events: JobEvents) -> IntArray:
    """Return when iterators were ended, as a set of intervals, ns since the epoch; an evaluation's own ends are part of it alone."""
    return subtract(events.spans(IteratorEndEvent), events.spans(EvaluationEvent))


def _measure(job: JobView) -> IteratorEnds:
    return measure_ends(job.tables.events, job.tables.steps)


def measure_ends(events: JobEvents, steps: pa.Table) -> IteratorEnds:
    """Sum up the ends of iterators between the steps after the warm-up.

    Args:
        events: Of the job.
        steps: Of schema ``runs.run_tables.STEPS``.

    Raises:
        TraceIncompleteError: There is none.
    """
    measured = ~tables.bools(steps, "warmup")
    if not measured.any():
        raise TraceIncompleteError(NO_END)
    begun, ended = int(tables.ints(steps, "start_ns")[measured][0]), int(tables.ints(steps, "end_ns")[-1])
    spans = end_spans(events)
    spans = spans[(spans[:, 0] >= begun) & (spans[:, 1] <= ended)]
    if not len(spans) or ended <= begun:
        raise TraceIncompleteError(NO_END)
    length = spans[:, 1] - spans[:, 0]
    return IteratorEnds.of(length, ended - begun)


ITERATOR_ENDS = Analysis(IteratorEnds, per_job=PerJob(_measure, NO_END, later=as_it_is), to_json=IteratorEnds.to_json)
