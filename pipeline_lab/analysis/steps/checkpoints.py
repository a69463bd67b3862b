"""What writing checkpoints takes from a job: all of them, whether a window saw them or not."""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, JobView, PerJob, as_it_is
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.interruptions import Interruptions
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import CheckpointEvent

NO_CHECKPOINT = (
    "No checkpoint was noted: the job wrote none, or it was not launched by `pipeline-lab run` or `pipeline-lab watch`."
)


class Checkpoints(Interruptions):
    """The checkpoints that a job wrote between its steps.

    Each lasts from the call that writes it, or from the end of the steps that the device had still to do then, to the call's
    return; the job's time is that from the end of the warm-up on.
    """


def checkpoint_spans(events: JobEvents) -> IntArray:
    """Return when checkpoints were being written, as a set of intervals, ns since the epoch."""
    return events.spans(CheckpointEvent)


def _measure(job: JobView) -> Checkpoints:
    return measure_checkpoints(job.tables.events, job.tables.steps)


def measure_checkpoints(events: JobEvents, steps: pa.Table) -> Checkpoints:
    """Sum up the checkpoints of a run after its warm-up; one after its last step delays nobody.

    Args:
        events: Of the job.
        steps: Of schema ``runs.run_tables.STEPS``.

    Raises:
        TraceIncompleteError: There is none.
    """
    if not steps.num_rows:
        raise TraceIncompleteError(NO_CHECKPOINT)
    first = np.argmin(tables.bools(steps, "warmup"))
    begun, ended = int(tables.ints(steps, "start_ns")[first]), int(tables.ints(steps, "end_ns")[-1])
    spans = checkpoint_spans(events)
    spans = spans[(spans[:, 0] >= begun) & (spans[:, 0] < ended)]
    if not len(spans) or ended <= begun:
        raise TraceIncompleteError(NO_CHECKPOINT)
    length = spans[:, 1] - np.clip(_ready_ns(steps, spans[:, 0]), spans[:, 0], spans[:, 1])
    return Checkpoints.of(length, ended - begun)


def _ready_ns(steps: pa.Table, when_ns: IntArray) -> IntArray:
    """Return when the device had done the steps that were launched before each moment, as far as steps say; shape of it.

    The values of the weights have to wait for them: that is the steps' time, not the checkpoint's.
    """
    last = np.searchsorted(tables.ints(steps, "start_ns"), when_ns) - 1
    ready_ns = tables.or_zero(steps, "ready_ns")
    return ready_ns[last]


CHECKPOINTS = Analysis(
    Checkpoints, per_job=PerJob(_measure, NO_CHECKPOINT, later=as_it_is), to_json=Checkpoints.to_json
)
