"""Find the training steps of a trace, and say what marked them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.activity import LOOP_LABEL, UNFINISHED, Activity
from pipeline_lab.analysis.activity.intervals import IntArray, length_within, subtract
from pipeline_lab.analysis.activity.iterators import most_calls
from pipeline_lab.analysis.activity.step_spans import StepRule, join_spans
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, to_ms
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile

STEP_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),  # number of the window, in the order of time
        ("step", pa.int64()),  # step number where the marker carries one, else a running number
        ("start_ns", pa.int64()),  # on the diagnosis' axis; end of the step before, or start of the step's marker
        ("end_ns", pa.int64()),
        ("wait_ns", pa.int64()),  # union of input waits inside the step
        ("exposed_ns", pa.int64()),  # that union minus device busy time
        ("busy_ns", pa.int64()),  # device (or host compute) busy inside the step
    ]
)
"""One row per step."""

STEP_MARKS = (
    "tf.profiler.experimental.Trace('train', step_num=i, _r=1)",
    "jax.profiler.StepTraceAnnotation('train', step_num=i)",
)
"""What marks a step, in TensorFlow and in JAX."""
_NO_STEPS = "No steps in this trace: nothing marks them and {}; wrap each step in {}, or record more than one step."
NO_STEPS = _NO_STEPS.format("the input iterator is not called twice", f"{STEP_MARKS[0]}, in JAX {STEP_MARKS[1]}")
NO_STEPS_OF_JAX = _NO_STEPS.format("no jitted function is called twice", STEP_MARKS[1])
NO_STEPS_IN_PART = "No steps in the part of the file that could be read; copy the whole file, or record again."
_FIRST_NUMBER = 1  # Keras counts batches from 1, loops from 0
_COMPILING_SHARE = 0.2  # of a step that compiles


@dataclass(frozen=True)
class MarkedSteps:
    """Steps that one marker and one rule gave.

    Attributes:
        marker, rule: As in :class:`Steps`.
        count: Marked steps.
        known: Those of them whose training steps are known.
        training_steps: How many these hold.
    """

    marker: str
    rule: StepRule
    count: int
    known: int
    training_steps: float


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of all windows.

    Attributes:
        marker: What marked them, in the field's words (``Trace 'train' (step_num)``, ``Keras train_function``, …).
        steps_per_marker: Training steps inside one marked interval; None if the trace does not say.
        table: One row per step, :data:`STEP_TABLE`, ordered by start.
        first_step_only: The capture holds one step and it is the job's first (tracing, compiling).
        rule: What ends the steps; of several captures, most of them.
        cut_off: Steps on which the device still worked when their capture ended: left out, or cut short if it is the only one.
        merged: What it was merged of; empty for the steps of one capture.
    """

    marker: str
    steps_per_marker: float | None
    table: pa.Table
    first_step_only: bool
    rule: StepRule = StepRule.HOST_SPAN
    cut_off: int = 0
    merged: tuple[MarkedSteps, ...] = ()

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def is_in_function(self) -> bool:
        """Whether a loop inside ``tf.function`` takes them."""
        return self.marker == LOOP_LABEL

    @property
    def by_marker(self) -> tuple[MarkedSteps, ...]:
        """Its steps by what marked them, in the order of the captures."""
        known = 0 if self.steps_per_marker is None else self.count
        own = MarkedSteps(self.marker, self.rule, self.count, known, (self.steps_per_marker or 0.0) * known)
        return self.merged or (own,)

    @property
    def length_ns(self) -> IntArray:
        """Length of each step, shape (count,)."""
        return tables.ints(self.table, "end_ns") - tables.ints(self.table, "start_ns")

    @property
    def training_step_ns(self) -> NDArray[np.float64]:
        """Time per training step of each marked one, which may hold several (``steps_per_execution``), shape (count,)."""
        return self.length_ns / (self.steps_per_marker or 1.0)


def find_steps(activity: Activity) -> Steps:
    """Find the steps of one trace.

    Raises:
        TraceIncompleteError: Nothing marks them, not even a rhythm of the input iterator or of a jitted function.
    """
    if not len(activity.host_spans):
        raise TraceIncompleteError(NO_STEPS_OF_JAX if activity.is_of_jax else NO_STEPS)
    found = activity.step_spans
    spans = found.spans
    if not len(spans):
        raise TraceIncompleteError(UNFINISHED)
    if activity.markers is not None:
        label, number = activity.markers.label, activity.markers.number[found.kept]
    else:
        label, number = activity.rhythm_label, found.kept
    waits = activity.waits.moments
    table = tables.build(
        STEP_TABLE,
        len(spans),
        host=activity.trace.host,
        window=0,
        step=number,
        start_ns=spans[:, 0],
        end_ns=spans[:, 1],
        wait_ns=length_within(waits, spans),
        exposed_ns=length_within(subtract(waits, activity.busy), spans),
        busy_ns=length_within(activity.busy, spans),
    )
    is_first = _is_first_step(activity, number, spans)
    return Steps(label, _steps_per_marker(activity), table, is_first, found.rule, found.cut_off)


def merge_steps(parts: Sequence[Steps]) -> Steps:
    """Put the steps of several traces together.

    Raises:
        TraceIncompleteError: There are none.
    """
    if not parts:
        raise TraceIncompleteError(NO_STEPS)
    merged = _add_up(one for part in parts for one in part.by_marker)
    known = sum(one.known for one in merged)
    table = tables.concat(STEP_TABLE, [part.table for part in parts])
    by_rule = Counter[StepRule]()
    for one in merged:
        by_rule[one.rule] += one.count
    return Steps(
        marker=", ".join(sorted({one.marker for one in merged})),
        steps_per_marker=sum(one.training_steps for one in merged) / known if known else None,
        table=table,
        first_step_only=table.num_rows == 1 and any(part.first_step_only for part in parts),
        rule=max(by_rule, key=by_rule.__getitem__),
        cut_off=sum(part.cut_off for part in parts),
        merged=merged,
    )


def _add_up(marked: Iterable[MarkedSteps]) -> tuple[MarkedSteps, ...]:
    """Add up the steps of each marker and rule."""
    found: dict[tuple[str, StepRule], MarkedSteps] = {}
    for one in marked:
        sofar = found.get((one.marker, one.rule), MarkedSteps(one.marker, one.rule, 0, 0, 0.0))
        found[one.marker, one.rule] = replace(
            one,
            count=sofar.count + one.count,
            known=sofar.known + one.known,
            training_steps=sofar.training_steps + one.training_steps,
        )
    return tuple(found.values())


def _steps_per_marker(activity: Activity) -> float | None:
    """Return how many training steps a marked one holds: how often the iterator was called in it on the host."""
    if activity.markers is None:
        return 1.0
    iterator, _, end = activity.waits.calls
    if not len(end):
        return None
    spans = join_spans(activity.markers.start_ns, activity.markers.end_ns, activity.markers.follows())
    return max(1.0, float(np.median(most_calls(iterator, end, spans))))


def _is_first_step(activity: Activity, number: IntArray, spans: IntArray) -> bool:
    if len(spans) != 1:
        return False
    if activity.markers is not None and activity.markers.is_numbered and number[0] <= _FIRST_NUMBER:
        return True
    compiling = length_within(activity.compiling, spans)[0]
    return bool(compiling >= _COMPILING_SHARE * (spans[0, 1] - spans[0, 0]))


def _read_stored(profile: DerivedProfile) -> Steps:
    """Lay stored steps one after another, for TensorFlow stores no times."""
    steps = profile.steps
    if not steps.count:
        raise TraceIncompleteError(NO_STEPS)
    end = np.cumsum(steps.total_ns)
    on_device = steps.device_compute_ns + steps.device_to_device_ns + steps.collective_ns + steps.output_ns
    table = tables.build(
        STEP_TABLE,
        steps.count,
        host=profile.host,
        window=0,
        step=steps.number,
        start_ns=end - steps.total_ns,
        end_ns=end,
        wait_ns=steps.input_wait_ns,
        exposed_ns=steps.input_wait_ns,
        busy_ns=on_device if on_device.any() else steps.host_compute_ns,
    )
    return Steps("TensorFlow's stored step table", None, table, first_step_only=False, rule=StepRule.STORED)


def _to_json(steps: Steps) -> Document:
    length = steps.length_ns
    return {
        "marker": steps.marker,
        "rule": steps.rule.value,
        "count": steps.count,
        "cut_off": steps.cut_off,
        "steps_per_marker": steps.steps_per_marker,
        "mean_ms": to_ms(float(length.mean())),
        "median_ms": to_ms(float(np.median(length))),
        "p95_ms": to_ms(float(np.percentile(length, 95))),
        "training_step_ms": to_ms(float(np.median(steps.training_step_ns))),
        "total_ms": to_ms(int(length.sum())),
        "first_step_only": steps.first_step_only,
    }


STEPS = Analysis(
    Steps, per_trace=PerTrace(lambda trace: find_steps(trace.activity), merge_steps, _read_stored), to_json=_to_json
)
