"""Several hosts side by side: whose steps are slow, and who holds the others back.

Where the hosts exchange values in every step, all of them take as long as the slowest, so the length of a step says
nothing. What does is the time that each spends in collectives: whoever comes last does not wait there, and the others
wait for it. A host's *own time* is its step without collectives. Steps are matched by window and step number, never
by the clocks of different machines.
"""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, times_to_ms, to_ms
from pipeline_lab.analysis.steps.step_breakdown import PARTS, StepBreakdown
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError

HOST_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("steps", pa.int64()),
        ("median_ns", pa.int64()),  # of the step
        ("p95_ns", pa.int64()),
        ("own_ns", pa.int64()),  # median of the step without collectives
        ("collective_ns", pa.int64()),  # median
        ("input_wait_ns", pa.int64()),  # median
        ("last_in", pa.int64()),  # steps that all hosts took in which this one's own time was the longest
        ("held_up_ns", pa.int64()),  # how much those steps would be shorter with the own time of the next slowest host
        ("cause", pa.string()),  # the part that its own time holds more of than the other hosts', or null
    ]
)
"""One row per host, by name."""

ONE_HOST = "All traces come from one host; put the traces of all hosts into one log directory to compare them."
NOT_TOGETHER = (
    "The hosts recorded no step in common, so their steps cannot be compared; profile them at the same steps."
)

LEAST_HOLD_UP = 0.1
"""Share of the common steps' time that a straggler costs before it is called one."""

_OWN = [PARTS.index(part) for part in PARTS if part != "collective_ns"]


@dataclass(frozen=True, eq=False)
class Hosts:
    """The hosts of a log side by side.

    Attributes:
        table: One row per host, :data:`HOST_TABLE`.
        common_steps: Steps that every host recorded.
        common_ns: Their length, of the slowest host each.
    """

    table: pa.Table
    common_steps: int
    common_ns: int

    @property
    def straggler(self) -> str | None:
        """The host that holds the others back, or None if none does."""
        held_up = tables.ints(self.table, "held_up_ns")
        worst = int(np.argmax(held_up))
        if not held_up[worst] or held_up[worst] < LEAST_HOLD_UP * self.common_ns:
            return None
        return str(self.table.column("host")[worst])


def compare_hosts(breakdown: StepBreakdown) -> Hosts:
    """Compare the recorded steps of several hosts.

    Raises:
        TraceIncompleteError: There is one host, or no step that all of them recorded.
    """
    names, steps, parts = _common_steps(breakdown)
    own = parts[:, :, _OWN].sum(axis=2)
    ranked = np.sort(own, axis=0)
    is_last = own == ranked[-1]
    held_up = np.where(is_last, ranked[-1] - ranked[-2], 0).sum(axis=1)
    length = parts.sum(axis=2)
    table = tables.build(
        HOST_TABLE,
        len(names),
        host=names,
        steps=np.array(steps),
        median_ns=_middle(length),
        p95_ns=np.percentile(length, 95, axis=1).astype(np.int64),
        own_ns=_middle(own),
        collective_ns=_middle(parts[:, :, PARTS.index("collective_ns")]),
        input_wait_ns=_middle(parts[:, :, PARTS.index("input_wait_ns")]),
        last_in=is_last.sum(axis=1),
        held_up_ns=held_up,
        cause=[_cause(parts, host) for host in range(len(names))],
    )
    return Hosts(table, parts.shape[1], int(length.max(axis=0).sum()))


def follow_last(breakdown: StepBreakdown) -> StepBreakdown:
    """Add up, of each step that all hosts took, the parts of the host that came last: it made the step as long as it was.

    The others spend what they had left in collectives, which says nothing of why the step took so long.

    Raises:
        TraceIncompleteError: As for :func:`compare`.
    """
    _, _, parts = _common_steps(breakdown)
    last = parts[:, :, _OWN].sum(axis=2).argmax(axis=0)
    total = parts[last, np.arange(parts.shape[1])].sum(axis=0)
    return StepBreakdown(**dict(zip(PARTS, total.tolist(), strict=True)))


def _common_steps(breakdown: StepBreakdown) -> tuple[list[str], list[int], IntArray]:
    """Return the hosts, how many steps each recorded, and the parts of those that all did, shape (hosts, steps, parts)."""
    names = sorted(name for (name,) in tables.name_numbers(breakdown.table, ("host",))[0])
    if len(names) < 2:
        raise TraceIncompleteError(ONE_HOST)
    by_host = _by_host(breakdown.table, names)
    common = sorted(set.intersection(*(set(rows) for rows in by_host.values())))
    if not common:
        raise TraceIncompleteError(NOT_TOGETHER)
    steps = [len(by_host[name]) for name in names]
    return names, steps, np.stack([np.stack([by_host[name][key] for key in common]) for name in names])


def _by_host(table: pa.Table, names: list[str]) -> dict[str, dict[tuple[int, int], IntArray]]:
    """Return the parts of each step of each host by window and step number.

    Loose files are a window each; where no window holds several hosts, the step number alone tells which belong
    together.
    """
    hosts = table.column("host").to_pylist()
    window, step = tables.ints(table, "window"), tables.ints(table, "step")
    if len(set(zip(hosts, window.tolist(), strict=True))) == len(set(window.tolist())):
        window = np.zeros_like(window)
    values = np.stack([tables.ints(table, part) for part in PARTS], axis=1)
    found: dict[str, dict[tuple[int, int], IntArray]] = {name: {} for name in names}
    for host, key, parts in zip(hosts, zip(window.tolist(), step.tolist(), strict=True), values, strict=True):
        found[host][key] = parts
    return found


def _middle(values: IntArray) -> IntArray:
    return np.asarray(np.median(values, axis=1), np.int64)


def _cause(parts: IntArray, host: int) -> str | None:
    """Return the part that a host's own time holds most more of than the median of the other hosts."""
    medians = np.median(parts, axis=1)
    excess = medians[host] - np.median(np.delete(medians, host, axis=0), axis=0)
    excess[PARTS.index("collective_ns")] = 0
    largest = int(np.argmax(excess))
    return PARTS[largest].removesuffix("_ns") if excess[largest] > 0 else None


def _to_json(found: Hosts) -> Document:
    return {
        "straggler": found.straggler,
        "common_steps": found.common_steps,
        "common_ms": to_ms(found.common_ns),
        "hosts": [times_to_ms(row) for row in found.table.to_pylist()],
    }


HOSTS = Analysis(
    Hosts,
    of_results=lambda found: compare_hosts(found.need(StepBreakdown, "step_breakdown")),
    to_json=_to_json,
)
