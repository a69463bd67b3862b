"""How long each step waited for its next input element, and how much of that left the device idle."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.intervals import IntArray, length_within, subtract, union
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import Partly
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, TraceView, longest_rows, to_ms
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS, Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile

WAIT_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("step", pa.int64()),  # null for a wait outside every step
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("exposed_ns", pa.int64()),
    ]
)
"""One row per wait: the union of overlapping wait events on one host."""

NO_WAITS = (
    "No input waits in this trace: it holds no IteratorGetNext events, so its input did not come from tf.data or the "
    "host was not recorded; record with host_tracer_level=2."
)


@dataclass(frozen=True, eq=False)
class InputStalls:
    """Waits for input, clipped to the steps.

    Attributes:
        wait_ns: Union of waits clipped to the steps, summed over steps.
        exposed_ns: That union minus device busy time.
        step_ns: Length of all steps.
        events: Number of wait events; None if they are not known one by one.
        event_sum_ns: Plain sum of the wait events' durations (what naive tools show); None likewise.
        event_names: The events that were counted as waits.
        table: One row per wait, :data:`WAIT_TABLE`.
        call_ns: The same as ``wait_ns`` of the calls for a batch; with ``prefetch_to_device`` they also wait for the device.
    """

    wait_ns: int
    exposed_ns: int
    step_ns: int
    events: int | None
    event_sum_ns: int | None
    event_names: tuple[str, ...]
    table: pa.Table
    call_ns: int | None = None

    @property
    def call_percent(self) -> float:
        return self.wait_percent if self.call_ns is None else 100.0 * self.call_ns / max(1, self.step_ns)

    @property
    def wait_percent(self) -> float:
        return 100.0 * self.wait_ns / self.step_ns if self.step_ns else 0.0

    @property
    def exposed_percent(self) -> float:
        return 100.0 * self.exposed_ns / self.step_ns if self.step_ns else 0.0


def find_stalls(activity: Activity, steps: Steps) -> InputStalls:
    """Find when the steps of one trace waited for input.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis.

    Raises:
        TraceIncompleteError: The trace has no iterator events.
    """
    waits = activity.waits
    if not len(waits.start_ns):
        raise TraceIncompleteError(NO_WAITS)
    moments = waits.moments
    exposed = subtract(moments, activity.busy)
    number, inside = _step_of(steps, moments[:, 0], moments[:, 1])
    return InputStalls(
        wait_ns=int(tables.ints(steps.table, "wait_ns").sum()),
        exposed_ns=int(tables.ints(steps.table, "exposed_ns").sum()),
        step_ns=int(steps.length_ns.sum()),
        events=len(waits.start_ns),
        event_sum_ns=int((waits.end_ns - waits.start_ns).sum()),
        event_names=waits.names,
        table=tables.build(
            WAIT_TABLE,
            len(moments),
            host=activity.trace.host,
            window=0,
            step=Partly(number, inside),
            start_ns=moments[:, 0],
            end_ns=moments[:, 1],
            exposed_ns=length_within(exposed, moments),
        ),
        call_ns=int(length_within(union(waits.start_ns, waits.end_ns), tables.intervals(steps.table)).sum()),
    )


def merge_stalls(parts: Sequence[InputStalls]) -> InputStalls:
    """Add up several traces.

    Raises:
        TraceIncompleteError: There are none.
    """
    if not parts:
        raise TraceIncompleteError(NO_STEPS)
    return InputStalls(
        wait_ns=sum(part.wait_ns for part in parts),
        exposed_ns=sum(part.exposed_ns for part in parts),
        step_ns=sum(part.step_ns for part in parts),
        events=_sum_known(part.events for part in parts),
        event_sum_ns=_sum_known(part.event_sum_ns for part in parts),
        event_names=tuple(sorted({name for part in parts for name in part.event_names})),
        table=tables.concat(WAIT_TABLE, [part.table for part in parts]),
        call_ns=_sum_known(part.call_ns for part in parts),
    )


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _step_of(steps: Steps, start: IntArray, end: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the step in which each wait ends (it needed that batch), and whether there is one."""
    spans = tables.intervals(steps.table)
    index = np.searchsorted(spans[:, 0], end, side="left") - 1
    inside = (index >= 0) & (spans[index, 1] > start)
    return tables.ints(steps.table, "step")[index], inside


def _analyze(trace: TraceView) -> InputStalls:
    return find_stalls(trace.activity, trace.found.need(Steps, "steps"))


def _read_stored(profile: DerivedProfile) -> InputStalls:
    """Read the stored wait; TensorFlow gives each moment of a step to one part, so all of it counts as exposed."""
    steps = profile.steps
    if not steps.count:
        raise TraceIncompleteError(NO_STEPS)
    wait_ns = int(steps.input_wait_ns.sum())
    return InputStalls(
        wait_ns=wait_ns,
        exposed_ns=wait_ns,
        step_ns=int(steps.total_ns.sum()),
        events=None,
        event_sum_ns=None,
        event_names=(),
        table=tables.empty(WAIT_TABLE),
    )


def _to_json(stalls: InputStalls) -> Document:
    table = stalls.table
    return {
        "wait_ms": to_ms(stalls.wait_ns),
        "exposed_ms": to_ms(stalls.exposed_ns),
        "step_ms": to_ms(stalls.step_ns),
        "wait_percent": stalls.wait_percent,
        "exposed_percent": stalls.exposed_percent,
        "events": stalls.events,
        "event_sum_ms": to_ms(stalls.event_sum_ns),
        "event_names": list(stalls.event_names),
        "longest": [
            {
                "step": row["step"],
                "start_ms": to_ms(row["start_ns"]),
                "wait_ms": to_ms(row["end_ns"] - row["start_ns"]),
                "exposed_ms": to_ms(row["exposed_ns"]),
            }
            for row in longest_rows(table, tables.ints(table, "end_ns") - tables.ints(table, "start_ns"))
        ],
    }


INPUT_STALLS = Analysis(InputStalls, per_trace=PerTrace(_analyze, merge_stalls, _read_stored), to_json=_to_json)
