"""Which functions were retraced while the job trained.

TensorFlow marks the building of a ``tf.function``'s graph with ``tf.function-graph_building``; the concrete function
that comes out of it is the next one that the same thread calls (``EagerLocalExecute: __inference_<function>_<number>``). The function
of a dataset is traced likewise, just before the op that makes the dataset (``EagerLocalExecute: ParallelMapDatasetV2``).
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import FUNCTION_CALL, Kind
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerTrace, TraceView
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
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
        ("dataset", pa.string()),  # the op of the dataset that it was traced for, null for other functions
    ]
)
"""One row per tracing of a function inside a recorded step; functions traced inside another's tracing belong to it."""

NOT_STORED = Unavailable("The log holds only what TensorFlow derived from its trace, so what was traced is not known.")

_NEXT = re.compile(
    rf"{re.escape(FUNCTION_CALL)}(.+)_\d+|EagerLocalExecute: (\w*(?:Map|Filter|Interleave|Scan|TakeWhile|GroupBy|Generator)\w*Dataset(?:V\d+)?)"
)
"""What tells whose function was traced: its number at the end of its call, or the op of its dataset."""


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

    @property
    def datasets(self) -> tuple[str, ...]:
        """The ops of the datasets whose functions were traced."""
        return tuple(sorted({name for name in self.table.column("dataset").to_pylist() if name}))

    @property
    def is_of_datasets(self) -> bool:
        """Whether most of the time of tracing went into functions of datasets."""
        duration_ns = tables.ints(self.table, "duration_ns")
        of_datasets = np.array([name is not None for name in self.table.column("dataset").to_pylist()], np.bool_)
        return bool(2 * duration_ns[of_datasets].sum() > duration_ns.sum())


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
        function, dataset = _named_by(activity, line, rows[inside])
        found.append(
            tables.build(
                RETRACE_TABLE,
                int(inside.sum()),
                host=activity.trace.host,
                window=0,
                step=number[step[inside]],
                start_ns=start[inside],
                duration_ns=line.duration_ns[rows[inside]],
                function=function,
                dataset=dataset,
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


def _named_by(activity: Activity, line: Line, traced: IntArray) -> tuple[list[str | None], list[str | None]]:
    """Return of each tracing the function that is called next, or the op that makes a dataset before that."""
    assert activity.host is not None
    following = line.rows_named(activity.host.name_mask(lambda name: _NEXT.fullmatch(name) is not None))
    following = following[np.argsort(line.start_ns[following], kind="stable")]
    next_one = np.searchsorted(line.start_ns[following], line.start_ns[traced] + line.duration_ns[traced])
    names = [activity.host.names[index] for index in line.name_index[following].tolist()]
    matches = [_NEXT.fullmatch(names[index]) if index < len(names) else None for index in next_one.tolist()]
    return [match and match[1] for match in matches], [match and match[2] for match in matches]


def _analyze(trace: TraceView) -> Retraces:
    return find_retraces(trace.activity, trace.found.need(Steps, "steps"))


def _to_json(found: Retraces) -> Document:
    return {
        "basis": "recorded steps",
        "count": found.count,
        "steps": found.steps,
        "functions": list(found.functions),
        "datasets": list(found.datasets),
    }


RETRACES = Analysis(
    Retraces, per_trace=PerTrace(_analyze, merge_retraces, NOT_STORED), to_json=_to_json, json_name="retracing"
)
