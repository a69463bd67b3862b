"""How the recorded steps call TensorFlow: op by op from Python, or in functions.

A step without a ``tf.function`` launches each of its ops from Python, forward and backward. TensorFlow writes an
``EagerLocalExecute`` for each; a function is one of them, named ``__inference_…``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import Kind
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, TraceView, only_derived, to_ms
from pipeline_lab.analysis.steps.recorded_steps import Steps

MANY_OPS = 20
"""Ops per step from which on a step is called eager: Keras' ``fit`` has a few, a small network forward and backward some fifty."""
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
    """

    steps: int
    ops: int
    ops_ns: int
    function_calls: int

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
    ops, ops_ns = _within(activity, Kind.EAGER_OP, spans)
    return EagerOps(steps.count, ops, ops_ns, _within(activity, Kind.FUNCTION_CALL, spans)[0])


def _within(activity: Activity, kind: Kind, spans: IntArray) -> tuple[int, int]:
    """Return number and length of events of a kind that begin in some spans, which do not overlap."""
    count, total_ns = 0, 0
    for line, rows in activity.events_of(kind):
        if event_names.is_runtime_thread(line.name) or event_names.is_tf_data_thread(line.name):
            continue
        start = line.start_ns[rows]
        place = np.searchsorted(spans[:, 0], start, side="right") - 1
        inside = (place >= 0) & (start < spans[place, 1])
        count += int(inside.sum())
        total_ns += int(line.duration_ns[rows][inside].sum())
    return count, total_ns


def merge_eager_ops(parts: Sequence[EagerOps]) -> EagerOps:
    """Add up several traces."""
    return EagerOps(
        steps=sum(part.steps for part in parts),
        ops=sum(part.ops for part in parts),
        ops_ns=sum(part.ops_ns for part in parts),
        function_calls=sum(part.function_calls for part in parts),
    )


def _analyze(trace: TraceView) -> EagerOps:
    return count_eager_ops(trace.activity, trace.found.need(Steps, "steps"))


def _to_json(found: EagerOps) -> Document:
    return {
        "steps": found.steps,
        "ops": found.ops,
        "ops_ms": to_ms(found.ops_ns),
        "function_calls": found.function_calls,
        "is_eager": found.is_eager,
    }


EAGER_OPS = Analysis(
    EagerOps,
    per_trace=PerTrace(_analyze, merge_eager_ops, only_derived("what its steps called from Python is")),
    to_json=_to_json,
)
