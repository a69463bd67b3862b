"""The tables of a run, each declared once: its file, its columns, who needs it; ``RunFolder`` has the path of each.

They are Arrow IPC streams that can be read while they grow. A stream is a chain of record batches. The writer appends
whole batches; a reader takes the complete ones and ignores a torn end, so a killed worker loses at most its last batch.
pyarrow is loaded when a table is read or written, not before: the store, which every start needs, does without.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lab.data_classes import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline_lab.runs.run_folder import RunFolder


@dataclass(frozen=True)
class RunTable:
    """One table. As an attribute of a run folder it is the path of its file.

    Attributes:
        name: Of the file, without its ending.
        rows: What its rows say, for people.
        columns: Their names and types.
        later: Columns that were added later; an older table reads as null in them.
        is_diagnosed: The diagnosis is made from it, and made again when it changes.
    """

    name: str
    rows: str
    columns: tuple[tuple[str, str], ...]
    later: frozenset[str] = frozenset()
    is_diagnosed: bool = True

    def __get__(self, folder: "RunFolder", _owner: type) -> Path:
        return self.path(folder)

    def path(self, folder: "RunFolder") -> Path:
        """Return where a run keeps it."""
        return folder.path / self.file_name

    @property
    def file_name(self) -> str:
        return f"{self.name}.arrows"

    @cached_property
    def schema(self) -> "pa.Schema":
        import pyarrow as pa

        kinds = {"list<float32>": pa.list_(pa.float32())}
        return pa.schema([(name, kinds.get(kind) or pa.type_for_alias(kind)) for name, kind in self.columns])


STEPS = RunTable(
    "steps",
    "one row per training step: start, wait, end, loss, accuracy, window, memory",
    (
        ("step", "int32"),  # 0, 1, 2, … over the whole run, warm-up included
        ("warmup", "bool"),
        ("start_ns", "int64"),  # epoch; the batch was requested
        ("wait_ns", "int64"),  # until the batch arrived
        ("end_ns", "int64"),  # epoch; the host's call of the step returned
        ("loss", "float32"),
        ("accuracy", "float32"),  # NaN where the workload has none
        ("window", "int16"),  # number of the profile window that was open, -1 for none
        ("rss_bytes", "int64"),
        ("away_ns", "int64"),  # since the last step: evaluation, another pipeline, time between two fits
        ("epoch", "int32"),  # passes over the data before this one; null where that is not counted
        ("examples", "int32"),  # in the batch; null where samples are recorded, or nobody knows
        ("ready_ns", "int64"),  # epoch; the step's result was on the host; null where nobody waited for it
    ),
    later=frozenset({"away_ns", "epoch", "examples", "ready_ns"}),
)
"""One row per training step; waits are null where they could not be told."""

SAMPLES = RunTable(
    "samples",
    "one row per example: step, file, record",
    (
        ("step", "int32"),
        ("file", "int32"),
        ("record", "int32"),
    ),
)
"""One row per example that reached the model: index into ``files.json`` and record number in the file."""

OUTPUTS = RunTable(
    "outputs",
    "label and outputs of each example of the step whose outputs were kept",
    (
        ("step", "int32"),
        ("file", "int32"),  # as in SAMPLES, like the record; null without the sample probe
        ("record", "int32"),
        ("label", "int64"),
        ("outputs", "list<float32>"),  # logits, one per class; a single score where there are two
    ),
)
"""One row per example of the step whose outputs are kept."""

NAMES = RunTable(
    "names",
    "the name of each example, where examples have names",
    (
        ("step", "int32"),
        ("name", "string"),
    ),
    is_diagnosed=False,
)
"""One row per named example that reached the model, in the order of :data:`SAMPLES`."""

EVALUATED = RunTable(
    "evaluated",
    "one row per example of an evaluation: pass, file, record",
    (
        ("pass", "int32"),  # 0, 1, 2, …
        ("file", "int32"),
        ("record", "int32"),
        ("name", "string"),  # null where the example has none
    ),
)
"""One row per example of an evaluation pass."""

LABELS = RunTable(
    "labels",
    "labels per step, where the examples have any",
    (
        ("step", "int32"),
        ("label", "int64"),
        ("examples", "int32"),
    ),
)
"""One row per step and label in its batch; no rows where the examples have no label."""

PADDING = RunTable(
    "padding",
    "per step the number of elements and how many of them are padding, where examples differ in length",
    (
        ("step", "int32"),
        ("examples", "int32"),  # in the batch
        ("elements", "int64"),  # that the step was sent, padding included (frames of audio)
        ("padding", "int64"),  # of them, added as padding
    ),
)
"""One row per step of a workload whose examples carry their length."""

RESOURCES = RunTable(
    "resources",
    "about every half second: memory and CPU of the job, CPU of its child processes and of other programs, the GPU, whether a window is being written",
    (
        ("time_ns", "int64"),  # epoch
        ("rss_bytes", "int64"),
        ("cpu_percent", "float32"),  # this process; 100 is one core
        ("other_cpu_percent", "float32"),  # other programs, without child processes; 100 is one core
        ("gpu_memory_bytes", "int64"),  # null without a GPU
        ("gpu_percent", "float32"),  # null without a GPU
        ("flushing", "bool"),  # a profile window is being written
        ("gpu_clock_mhz", "int32"),  # null without a GPU
        ("gpu_slowed", "bool"),  # clocks lowered by heat or power; null without a GPU
        ("children_cpu_percent", "float32"),  # child processes; 100 is one core
    ),
    later=frozenset({"gpu_clock_mhz", "gpu_slowed", "children_cpu_percent"}),
)
"""One row per half second or so."""

MODEL = RunTable(
    "model",
    "tf.data's own model of the pipeline, sampled",
    (
        ("time_ns", "int64"),  # epoch
        ("node", "int32"),  # an iterator; a new epoch or file has a new one
        ("parent", "int32"),  # the consumer of this node, -1 for the outermost
        ("place", "int16"),  # index among the parent's inputs; 0 holds the arguments of an interleave
        ("name", "string"),  # as in the trace: ParallelMapV2, BatchV2, …
        ("node_class", "int16"),  # NodeClass of TensorFlow's model.proto
        ("ratio", "float64"),  # input elements per output element; 0 where not fixed
        ("elements", "int64"),  # produced since the node was made, like all its counts
        ("processing_ns", "int64"),  # thread time in this node, without its inputs
        ("bytes_consumed", "int64"),
        ("bytes_produced", "int64"),
        ("buffered_elements", "int64"),  # now
        ("buffered_bytes", "int64"),  # now
        ("parallelism", "float32"),  # now; null for stages without
        ("parallelism_tuned", "bool"),  # the autotuner may change it
        ("cycle_length", "float32"),  # inputs read in turn; null for stages without
        ("buffer_limit", "float32"),  # elements, now; null for stages without
        ("buffer_tuned", "bool"),  # the autotuner may change it
        ("cpu_budget", "int32"),  # cores that the autotuner may use
        ("ram_budget_bytes", "int64"),  # memory that it may use for buffers
    ),
)
"""One row per node of tf.data's performance model and sample; samples are a second apart, closer in a young run."""

BLOCKS = RunTable(
    "blocks",
    "of a race: one row per block",
    (
        ("round", "int32"),
        ("arm", "int8"),
        ("position", "int8"),  # in the order of the round
        ("start_ns", "int64"),  # epoch; the first measured batch was requested
        ("first_step", "int64"),  # of the arm's steps table; the block's measured steps follow each other
        ("steps", "int32"),
        (
            "wall_ns",
            "int64",
        ),  # from that request to the result of the last measured step; in a script, with its share of a pass's start
        ("wait_ns", "int64"),  # for batches while the device had nothing to do, summed over the measured steps
        ("cpu_ns", "int64"),  # CPU time of this process
        ("other_load_percent", "float32"),  # share of the cores that other programs used, 0 to 100
        ("throttled", "bool"),  # clocks lowered by heat or missing power, not by the power limit
        ("drained_batches", "int32"),  # buffered while the other arms ran, dropped before the block
    ),
    is_diagnosed=False,
)
"""One row per block of a race."""


RUN_TABLES = (STEPS, SAMPLES, OUTPUTS, NAMES, EVALUATED, LABELS, PADDING, RESOURCES, MODEL, BLOCKS)


class TableWriter:
    """Append rows to an Arrow stream, buffered into batches that are flushed when written. Thread-safe."""

    def __init__(self, path: Path, table: RunTable, seconds_per_batch: float = 0.5, rows_per_batch: int = 16_384):
        import pyarrow as pa

        self._schema = schema = table.schema
        self._seconds, self._rows = seconds_per_batch, rows_per_batch
        self._columns: list[list[Any]] = [[] for _ in schema.names]
        self._written_s = time.monotonic()
        self._lock = threading.Lock()
        self._file = path.open("wb")
        self._stream = pa.ipc.new_stream(self._file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def append(self, *values: Any) -> None:
        """Add one row, values in the schema's order; the last ones may be left out and are null then."""
        left_out = (None,) * (len(self._columns) - len(values))
        with self._lock:
            for column, value in zip(self._columns, (*values, *left_out), strict=True):
                column.append(value)
            self._write_if_due()

    def extend(self, *columns: Any) -> None:
        """Add many rows, given as one sequence per column."""
        with self._lock:
            for column, values in zip(self._columns, columns, strict=True):
                column.extend(values)
            self._write_if_due()

    def flush(self) -> None:
        """Write what is buffered."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Write what is buffered and end the stream; closing twice does nothing."""
        if self._file.closed:
            return
        with self._lock:
            try:
                self._write()
                self._stream.close()
            finally:
                self._file.close()

    def _write_if_due(self) -> None:
        due = time.monotonic() - self._written_s >= self._seconds
        if due or len(self._columns[0]) >= self._rows:
            self._write()

    def _write(self) -> None:
        self._written_s = time.monotonic()
        if not self._columns[0]:
            return
        import pyarrow as pa

        arrays = [pa.array(column, field.type) for column, field in zip(self._columns, self._schema, strict=True)]
        self._columns = [[] for _ in self._schema.names]
        self._stream.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._file.flush()


def read_table(path: Path, table: RunTable) -> "pa.Table":
    """Read every complete batch of a stream.

    Returns:
        A table of that schema; without rows if there is no file yet or nothing in it is complete.
    """
    return TableReader(path, table).read()


class TableReader:
    """Reads a table that grows: each time only the batches that came since.

    Args:
        path: Of its file, which may be another one each time, or none.
        table: Which one it is.
        append: Puts new rows under those that were read before.
    """

    def __init__(
        self, path: Path, table: RunTable, append: "Callable[[pa.Table, pa.Table], pa.Table] | None" = None
    ) -> None:
        self._path, self._table, self._append = path, table, append or _put_under_each_other
        self._start_over(0)

    def read(self) -> "pa.Table":
        """Return all complete batches as :func:`read_table` does."""
        import pyarrow as pa

        with contextlib.suppress(OSError, pa.ArrowException):
            self._take_new()
        return self._found

    def _start_over(self, inode: int) -> None:
        import pyarrow as pa

        self._inode, self._head, self._end = inode, b"", 0
        self._found = pa.Table.from_batches([], self._table.schema)  # `empty_table` imports pandas

    def _take_new(self) -> None:
        """Read what stands behind the last batch that was read, as a stream of the same beginning.

        Raises:
            OSError, ArrowException: There is no file, or not even its schema can be read.
        """
        import pyarrow as pa

        inode = self._path.stat().st_ino
        with pa.memory_map(str(self._path)) as source:
            content = source.read_buffer()
        if inode != self._inode or content.size < self._end:
            self._start_over(inode)
        if not self._head:
            opened = pa.BufferReader(content)
            if not _fits(_open(opened).schema, self._table):
                return
            self._head = content.slice(0, opened.tell()).to_pybytes()
            self._end = len(self._head)
        elif content.size == self._end:
            return
        new = content if len(self._head) == self._end else self._head + content.slice(self._end).to_pybytes()
        rows, read = _read_what_is_complete(pa.py_buffer(new), self._table)
        self._end += read - len(self._head)
        self._found = self._append(self._found, rows)


def _put_under_each_other(whole: "pa.Table", new: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    return pa.concat_tables([whole, new]).combine_chunks()


END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""What an Arrow stream ends with that was closed (Arrow columnar format, "IPC Streaming Format")."""


def find_damage(path: Path, table: RunTable) -> str:
    """Say what is wrong with a table that its writer has closed; empty if nothing is, or if there is no table.

    A table that is still written, or whose writer was killed, has no end; ask only where the job ended by itself.
    """
    import pyarrow as pa

    if not path.exists():
        return ""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - len(END_OF_STREAM)))
            is_closed = file.read() == END_OF_STREAM
        with pa.memory_map(str(path)) as source:
            _read_whole(source, table)
    except (OSError, pa.ArrowException):
        is_closed = False
    if is_closed:
        return ""
    rows = read_table(path, table).num_rows
    left = f"only its first {rows:,} rows can be read" if rows else "nothing in it can be read"
    return f"{path.name} of this run is damaged: {left}; restore the file, or run the job again."


def _open(source: "pa.NativeFile") -> "pa.RecordBatchStreamReader":
    """Open a stream of small batches: handing each column of each to a thread takes five times as long as reading it.

    Raises:
        ArrowException: It is no stream, or the name of a column is no text, which Arrow itself does not look at.
    """
    import pyarrow as pa

    stream = pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(use_threads=False))
    try:
        _ = stream.schema.names
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"a column's name is no text: {error}") from None
    return stream


def _read_what_is_complete(content: "pa.Buffer", table: RunTable) -> tuple["pa.Table", int]:
    """Return the complete batches of a stream, and where the last of them ends."""
    import pyarrow as pa

    source = pa.BufferReader(content)
    with contextlib.suppress(OSError, pa.ArrowException):
        return _read_whole(source, table), source.tell()
    source.seek(0)
    batches: list[pa.Table] = []
    with _open(source) as stream, contextlib.suppress(StopIteration, OSError, pa.ArrowException):
        end = source.tell()
        while True:
            batch = pa.Table.from_batches([stream.read_next_batch()])
            batch.validate(full=True)
            batches.append(_fit(batch, table.schema))
            end = source.tell()
    return pa.concat_tables([pa.Table.from_batches([], table.schema), *batches]), end


def _read_whole(source: "pa.NativeFile", table: RunTable) -> "pa.Table":
    """Read a stream in one call, in half the time of reading batch by batch."""
    import pyarrow as pa

    with _open(source) as stream:
        if not _fits(stream.schema, table):
            return pa.Table.from_batches([], table.schema)
        found = stream.read_all()
        found.validate(full=True)  # an offset outside the batch would crash the process
        return _fit(found.combine_chunks(), table.schema)


def _fits(found: "pa.Schema", table: RunTable) -> bool:
    """Say whether each column exists once with its type, or was added after the table was written."""
    return all(
        len(found.get_all_field_indices(field.name)) <= 1 and (field in found or field.name in table.later)
        for field in table.schema
    )


def _fit(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """Put the columns in order and add missing ones as nulls."""
    import pyarrow as pa

    columns = [
        table.column(field.name) if field.name in table.schema.names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
