"""How the recorded steps call TensorFlow: op by op from Python, or in functions.

A step without a ``tf.function`` launches each of its ops from Python, forward and backward. TensorFlow writes an
``EagerLocalExecute`` for each; a function is one of them, named ``__inference_…``.
"""

from collections.abc import Sequence

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import Kind
from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals, subtract, union
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, TraceView, only_derived, to_ms
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass

MANY_OPS = 20
"""Ops per step from which on a step is called eager: Keras' ``fit`` has a few, a small network forward and backward some fifty."""
BETWEEN_OPS_NS = 1_000_000
"""What Python may take between two ops for launching them alone, as an optimizer of Keras does."""
FEW_CALLS = 0.5
"""Calls of functions per step below which the step itself is none."""


@dataclass(frozen=True)
class EagerOps:
    """What Python called in the recorded steps, outside of tf.data's threads.

    Attributes:
        steps: How many there are.
        ops: Ops that were called one by one.
        ops_ns: Time in them.
        function_calls: Calls of functions.
        paused_ns: Time between two ops, without waits for input, beyond :data:`BETWEEN_OPS_NS`. Python that launches ops takes
            little between any two; what is longer makes a batch, acts or writes a log, and takes as long beside a function.
    """

    steps: int
    ops: int
    ops_ns: int
    function_calls: int
    paused_ns: int = 0

    @property
    def ops_per_step(self) -> float:
        return self.ops / self.steps if self.steps else 0.0

    @property
    def is_eager(self) -> bool:
        """Say whether steps run op by op, without a function."""
        return self.ops_per_step >= MANY_OPS and self.function_calls < FEW_CALLS * self.steps


def count_eager_ops(activity: Activity, steps: Steps) -> EagerOps:
    """Count what Python called in the steps of one trace.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis.
    """
    spans = tables.intervals(steps.table)
    ops, calls = (_within(activity, kind, spans) for kind in (Kind.EAGER_OP, Kind.FUNCTION_CALL))
    called = union(*np.concatenate((ops, calls)).T)
    between = subtract(as_intervals(called[:-1, 1], called[1:, 0]), activity.waits.moments)
    length = (between[:, 1] - between[:, 0])[_step_of(between[:, 0], spans) >= 0]
    return EagerOps(
        steps=steps.count,
        ops=len(ops),
        ops_ns=int((ops[:, 1] - ops[:, 0]).sum()),
        function_calls=len(calls),
        paused_ns=int(length[length > BETWEEN_OPS_NS].sum()),
    )


def _within(activity: Activity, kind: Kind, spans: IntArray) -> IntArray:
    """Return the events of a kind that begin in some spans, which do not overlap, shape (n, 2)."""
    found = [np.empty((0, 2), np.int64)]
    for line, rows in activity.events_of(kind):
        if event_names.is_runtime_thread(line.name) or event_names.is_tf_data_thread(line.name):
            continue
        start = line.start_ns[rows]
        own = np.stack((start, start + line.duration_ns[rows]), axis=1)
        found.append(own[_step_of(start, spans) >= 0])
    return np.concatenate(found)


def _step_of(moments: IntArray, spans: IntArray) -> IntArray:
    """Return the span in which each moment lies, -1 for none."""
    place = np.searchsorted(spans[:, 0], moments, side="right") - 1
    return np.where((place >= 0) & (moments < spans[place, 1]), place, -1)


def merge_eager_ops(parts: Sequence[EagerOps]) -> EagerOps:
    """Add up several traces."""
    return EagerOps(
        steps=sum(part.steps for part in parts),
        ops=sum(part.ops for part in parts),
        ops_ns=sum(part.ops_ns for part in parts),
        function_calls=sum(part.function_calls for part in parts),
        paused_ns=sum(part.paused_ns for part in parts),
    )


def _analyze(trace: TraceView) -> EagerOps:
    return count_eager_ops(trace.activity, trace.found.need(Steps, "steps"))


def _to_json(found: EagerOps) -> Document:
    return {
        "steps": found.steps,
        "ops": found.ops,
        "ops_ms": to_ms(found.ops_ns),
        "function_calls": found.function_calls,
        "paused_ms": to_ms(found.paused_ns),
        "is_eager": found.is_eager,
    }


EAGER_OPS = Analysis(
    EagerOps,
    per_trace=PerTrace(_analyze, merge_eager_ops, only_derived("what its steps called from Python is")),
    to_json=_to_json,
)
