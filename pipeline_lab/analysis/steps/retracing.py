"""Which functions were retraced while the job trained.

TensorFlow marks the building of a ``tf.function``'s graph with ``tf.function-graph_building``; the concrete function
that comes out of it is the next one that the same thread calls (``EagerLocalExecute: __inference_<function>_<number>``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import FUNCTION_CALL, Kind
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, TraceView
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.errors import Unavailable
from pipeline_lab.trace.schema import Line

RETRACE_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("step", pa.int64()),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),  # of the tracing alone
        ("function", pa.string()),  # null where none was called afterwards
    ]
)
"""One row per tracing of a function inside a recorded step; functions traced inside another's tracing belong to it."""

NOT_STORED = Unavailable("The log holds only what TensorFlow derived from its trace, so what was traced is not known.")

_NUMBERED = re.compile(re.escape(FUNCTION_CALL) + r"(.+)_\d+")


@dataclass(frozen=True, eq=False)
class Retraces:
    """Every tracing inside the recorded steps.

    Attributes:
        table: :data:`RETRACE_TABLE`, ordered by start.
    """

    table: pa.Table

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def steps(self) -> int:
        """Number of steps in which something was traced."""
        return len({(row["host"], row["window"], row["step"]) for row in self.table.to_pylist()})

    @property
    def functions(self) -> tuple[str, ...]:
        return tuple(sorted({name for name in self.table.column("function").to_pylist() if name}))


def find_retraces(activity: Activity, steps: Steps) -> Retraces:
    """Find the tracing inside the steps of one trace.

    Args:
        activity: The trace.
        steps: Its own steps, not yet placed on a common axis.
    """
    spans, number = tables.intervals(steps.table), tables.ints(steps.table, "step")
    found = []
    for line, rows in activity.events_of(Kind.TRACING):
        rows = _outermost(line, rows)
        start = line.start_ns[rows]
        step = np.searchsorted(spans[:, 1], start, side="right")
        inside = step < len(spans)
        inside[inside] = spans[step[inside], 0] <= start[inside]
        found.append(
            tables.build(
                RETRACE_TABLE,
                int(inside.sum()),
                host=activity.trace.host,
                window=0,
                step=number[step[inside]],
                start_ns=start[inside],
                duration_ns=line.duration_ns[rows[inside]],
                function=_functions(activity, line, rows[inside]),
            )
        )
    return Retraces(tables.concat(RETRACE_TABLE, found))


def merge_retraces(parts: Sequence[Retraces]) -> Retraces:
    """Put several traces together."""
    return Retraces(tables.concat(RETRACE_TABLE, [part.table for part in parts]))


def _outermost(line: Line, rows: IntArray) -> IntArray:
    rows = rows[np.lexsort((-line.duration_ns[rows], line.start_ns[rows]))]
    end = line.start_ns[rows] + line.duration_ns[rows]
    before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]))
    return rows[line.start_ns[rows] >= before]


def _functions(activity: Activity, line: Line, traced: IntArray) -> list[str | None]:
    assert activity.host is not None
    calls = activity.rows(line, Kind.FUNCTION_CALL)
    calls = calls[np.argsort(line.start_ns[calls], kind="stable")]
    following = np.searchsorted(line.start_ns[calls], line.start_ns[traced] + line.duration_ns[traced])
    names = [
        activity.host.names[line.name_index[calls[index]]] if index < len(calls) else "" for index in following.tolist()
    ]
    return [match[1] if (match := _NUMBERED.fullmatch(name)) else None for name in names]


def _analyze(trace: TraceView) -> Retraces:
    return find_retraces(trace.activity, trace.found.need(Steps, "steps"))


def _to_json(found: Retraces) -> Document:
    return {
        "basis": "recorded steps",
        "count": found.count,
        "steps": found.steps,
        "functions": list(found.functions),
    }


RETRACES = Analysis(
    Retraces, per_trace=PerTrace(_analyze, merge_retraces, NOT_STORED), to_json=_to_json, json_name="retracing"
)
