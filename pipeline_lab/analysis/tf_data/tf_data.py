"""What a trace says about the tf.data pipeline that ran."""

import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable

HISTORY_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),
        ("stage", pa.int32()),  # number of the stage whose call it was
        ("buffered_elements", pa.int64()),  # what lay in the stage's buffer when it was called; null if not recorded
        ("buffer_limit", pa.int64()),
        ("parallelism", pa.int64()),
        ("ram_used_bytes", pa.int64()),  # of the machine, by all programs; recorded by the root
        ("ram_budget_bytes", pa.int64()),
    ]
)
"""One row per call whose settings were read: every call, or evenly chosen ones of a stage with very many."""

POOL_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("busy_threads", pa.float64()),  # mean over the stretch
    ]
)
"""How many threads ran the pipeline's functions, over equal stretches of each window."""


class StageOrigin(StrEnum):
    """How a stage came to be."""

    WRITTEN = "written"
    FUSED = "fused"
    """Several stages that TensorFlow made one."""
    INJECTED = "injected"
    """TensorFlow put it in."""
    PARALLELISED = "parallelised"
    """Written as a serial stage, which TensorFlow made parallel."""

    @property
    def words(self) -> str:
        return _ORIGIN_WORDS[self]


_ORIGIN_WORDS = {
    StageOrigin.WRITTEN: "runs as written",
    StageOrigin.FUSED: "several written stages, made one by TensorFlow",
    StageOrigin.INJECTED: "put in by TensorFlow",
    StageOrigin.PARALLELISED: "written as serial, made parallel by TensorFlow",
}


@dataclass(frozen=True)
class Tally:
    """Count, sum and sum of squares of some observations: all that their mean and spread need, and it adds up.

    Attributes:
        count: Number of observations.
        total: Their sum.
        squares: Sum of their squares.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def variation(self) -> float | None:
        """Standard deviation over mean; None without observations or with a mean of 0."""
        if not self.count or not self.total:
            return None
        mean = self.total / self.count
        return math.sqrt(max(0.0, self.squares / self.count - mean * mean)) / mean

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.count + other.count, self.total + other.total, self.squares + other.squares)


@dataclass(frozen=True)
class StageOperation:
    """One kind of op that ran inside a stage's function.

    Attributes:
        name: Its type: ``DecodeJpeg``, ``PyFunc``, …
        calls: How often it ran.
        self_ns: Time on threads, other ops that ran inside it left out.
    """

    name: str
    calls: int
    self_ns: int


@dataclass(frozen=True, kw_only=True)
class TracedStage:
    """One stage of the pipeline: all iterators with the same place in it, over all epochs, files, windows and hosts.

    Attributes:
        number: Place in ``TfData.stages``; parents come before their children.
        parent: Number of the stage that calls it; None for a root.
        name: Kind of its iterator: ``ParallelMapV2``, ``TFRecord``, …
        node: The dataset behind it: ``MapDataset:2``, ``fused(…)``, ``inject/…``; without its number where the
            iterators are of several datasets, empty if the trace does not tell.
        path: Its place: the kinds from the root down, ``Root::Prefetch::BatchV2``.
        origin: Whether it runs as written.
        iterators: How many iterators were seen in one trace, at least: files, epochs, replicas.
        observed_ns: Length of the windows in which it was seen, over hosts.
        calls: How often it was asked for an element.
        elements: Elements that it handed over: calls less those that found the end of a file or an epoch which another
            one followed in the trace; what a filter drops or a last end of all is not seen.
        self_ns: Time in its calls less that of the stages it called, of its function, and of waiting.
        blocked_ns: Time in its calls during which it waited for an element that other threads were making.
        function_calls: Calls of the user's function.
        function_on_thread_ns: Time that threads spent on the function.
        function_latency: Time from calling the function until its result was there, per finished call, ns.
        operations: Ops inside the function, the costliest first.
        parallelism: The number of parallel calls that it was last allowed; None if it has none or never told.
        cycle_length: Of an interleave.
        autotuned: Whether TensorFlow chooses its parallelism or buffer.
        deterministic: Whether elements must come out in order.
        buffer_limit: Elements that its buffer may hold, as last told.
        buffered: Elements in its buffer when it was called, per call that told.
        empty_calls: How many of those calls found nothing.
        bytes_per_element: Size of what it hands over; None if the trace does not tell.
    """

    number: int
    parent: int | None
    name: str
    node: str
    path: str
    origin: StageOrigin
    iterators: int
    observed_ns: int
    calls: int
    elements: int
    self_ns: int
    blocked_ns: int = 0
    function_calls: int = 0
    function_on_thread_ns: int = 0
    function_latency: Tally = Tally()
    operations: tuple[StageOperation, ...] = ()
    parallelism: int | None = None
    cycle_length: int | None = None
    autotuned: bool | None = None
    deterministic: bool | None = None
    buffer_limit: int | None = None
    buffered: Tally = Tally()
    empty_calls: int = 0
    bytes_per_element: float | None = None

    @property
    def function_latency_ns(self) -> int:
        """Latency of all finished calls of the function together."""
        return int(self.function_latency.total)

    @property
    def queueing_ns(self) -> int:
        """Time during which a called function ran on no thread."""
        return max(0, self.function_latency_ns - self.function_on_thread_ns)

    @property
    def queueing_share(self) -> float | None:
        """Part of the function's latency during which it ran on no thread; None without a function."""
        return self.queueing_ns / self.function_latency_ns if self.function_latency_ns else None

    @property
    def parallelism_used(self) -> float | None:
        """Mean number of calls of its function under way; None without a function."""
        return self.function_latency_ns / self.observed_ns if self.function_calls and self.observed_ns else None

    @property
    def buffer_mean(self) -> float | None:
        """Mean number of elements in its buffer when it was called."""
        return self.buffered.mean

    @property
    def empty_share(self) -> float | None:
        """Part of the calls that found its buffer empty; None if it has none or never told."""
        return self.empty_calls / self.buffered.count if self.buffered.count else None

    @property
    def work_ns(self) -> int:
        """Time of threads that it took: its own, and its function's."""
        return self.self_ns + self.function_on_thread_ns


QUEUEING = "queueing"
"""Ready to go on, but on no thread: the function waits for one of the pool, or a thread for its turn."""
UNSEEN = "not in this trace"
"""What made the element began before the trace, or was not recorded."""
OWN_WORK = "own work"
"""The stage's own code, outside of the user's function."""

OTHER_OPERATIONS = "other operations"
"""Ops inside the user's function that TensorFlow writes no events for, as they are cheap."""
HANDOVER = "handing over"
"""The element is there and goes to the job."""


@dataclass(frozen=True)
class PathShare:
    """Part of the waits that one thing caused.

    Attributes:
        stage: Number of the stage, or None for what belongs to none.
        what: An op's type (``DecodeJpeg``), or :data:`QUEUEING`, :data:`UNSEEN`, :data:`OWN_WORK`,
            :data:`OTHER_OPERATIONS`, :data:`HANDOVER`.
        wait_ns: How much of the waits it fills.
        exposed_ns: How much of that left the device idle.
    """

    stage: int | None
    what: str
    wait_ns: int
    exposed_ns: int


@dataclass(frozen=True)
class CriticalPath:
    """What the job waited for whenever it waited for input, every moment of every wait counted once.

    Attributes:
        wait_ns: The waits, clipped to the steps where there are any: what ``InputStalls`` counts.
        exposed_ns: What of them left the device idle.
        shares: What filled them, the largest exposed part first; they add up to both.
    """

    wait_ns: int
    exposed_ns: int
    shares: tuple[PathShare, ...]

    @property
    def unseen_ns(self) -> int:
        """Exposed wait for what began before the trace."""
        return sum(share.exposed_ns for share in self.shares if share.what == UNSEEN)


BUSY_POOL = 0.5
"""Part of the time of all threads that run functions from which calls that wait for one are taken to wait for each other."""


@dataclass(frozen=True, eq=False)
class TfData:
    """The pipeline that ran.

    Attributes:
        stages: In the order of the tree, parents first; a stage's number is its index.
        critical_path: What the job waited for.
        observed_ns: Length of all windows, over hosts.
        threadpool_size: Threads that may run the pipeline's functions; None if not recorded.
        cpu_budget: Cores that autotuning plans with; None if not told.
        history: Buffers and parallelism over time, :data:`HISTORY_TABLE`.
        pool: Busy threads over time, :data:`POOL_TABLE`.
    """

    stages: tuple[TracedStage, ...]
    critical_path: CriticalPath | Unavailable
    observed_ns: int
    threadpool_size: int | None
    cpu_budget: int | None
    history: pa.Table
    pool: pa.Table

    @property
    def bottleneck(self) -> int | None:
        """Number of the stage that caused most of the exposed wait; None if none did."""
        caused = {stage: ns for stage, ns in self.caused_ns.items() if ns > 0}
        return max(caused, key=lambda stage: caused[stage], default=None)

    @cached_property
    def caused_ns(self) -> dict[int, int]:
        """The exposed wait that each stage caused, what the trace does not hold left out.

        Where the threads that run functions are busy, calls that wait for one are held up by all that run there, whatever stage of
        the pipeline those belong to.
        """
        found, roots = Counter[int](), dict[int, int]()
        for number, stage in enumerate(self.stages):  # parents come first; each pipeline has a pool of its own
            roots[number] = number if stage.parent is None else roots[stage.parent]
        runs_ns, queueing_ns = Counter[int](), Counter[int]()
        for number, stage in enumerate(self.stages):
            runs_ns[roots[number]] += stage.function_on_thread_ns
        threads = (
            self.threadpool_size or math.ceil(tables.floats(self.pool, "busy_threads").max(initial=0.0)) or math.inf
        )
        busy = {root for root, ns in runs_ns.items() if ns > BUSY_POOL * threads * self.stages[root].observed_ns}
        for share in () if isinstance(self.critical_path, Unavailable) else self.critical_path.shares:
            if share.stage is None or share.what == UNSEEN:
                continue
            root = roots.get(share.stage)
            if root in busy and share.what == QUEUEING and self.stages[share.stage].function_on_thread_ns:
                queueing_ns[roots[share.stage]] += share.exposed_ns
            else:
                found[share.stage] += share.exposed_ns
        for number, root in roots.items():
            if queueing_ns[root]:
                found[number] += round(queueing_ns[root] * self.stages[number].function_on_thread_ns / runs_ns[root])
        return dict(found)

    @property
    def pool_busy_ns(self) -> int | None:
        """Time that the pipeline's threads were busy, all together; None if it had no threads of its own."""
        if not self.pool.num_rows:
            return None
        length_ns = tables.ints(self.pool, "end_ns") - tables.ints(self.pool, "start_ns")
        return round(float((tables.floats(self.pool, "busy_threads") * length_ns).sum()))

    @property
    def pool_busy_share(self) -> float | None:
        """How busy the pipeline's threads were: 1 if all of them worked all the time; None if it is not known.

        It isn't where more were busy at a time than the pipeline has: those of other pipelines cannot be told apart.
        """
        if self.pool_busy_ns is None or not self.threadpool_size or not self.observed_ns:
            return None
        if tables.floats(self.pool, "busy_threads").max() > self.threadpool_size:
            return None
        return self.pool_busy_ns / (self.threadpool_size * self.observed_ns)

    @property
    def ram_used_bytes(self) -> int | None:
        """Most memory of the machine that was in use at a time, by all programs; None if not told."""
        return self._largest_told("ram_used_bytes")

    @property
    def ram_budget_bytes(self) -> int | None:
        """What all buffers may hold; None if not told."""
        return self._largest_told("ram_budget_bytes")

    def _largest_told(self, column: str) -> int | None:
        told = tables.ints(self.history, column)[tables.valid(self.history, column)]
        return int(told.max()) if len(told) else None

    def children(self, number: int) -> Sequence[TracedStage]:
        return [stage for stage in self.stages if stage.parent == number]
