"""Append-only tables of a run: Arrow IPC streams that can be read while they grow.

A stream is a chain of record batches. The writer appends whole batches; a reader takes the complete ones and ignores a
torn end, so a killed worker loses at most its last batch.
"""

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

STEPS = pa.schema(
    [
        ("step", pa.int32()),  # 0, 1, 2, … over the whole run, warm-up included
        ("warmup", pa.bool_()),
        ("start_ns", pa.int64()),  # epoch; the batch was requested
        ("wait_ns", pa.int64()),  # until the batch arrived
        ("end_ns", pa.int64()),  # epoch; the step's result was there
        ("loss", pa.float32()),
        ("accuracy", pa.float32()),  # NaN where the workload has none
        ("window", pa.int16()),  # number of the profile window that was open, -1 for none
        ("rss_bytes", pa.int64()),
        (
            "away_ns",
            pa.int64(),
        ),  # evaluation and rebuilding of the pipeline since the last step
    ]
)
"""One row per training step."""

SAMPLES = pa.schema([("step", pa.int32()), ("file", pa.int32()), ("record", pa.int32())])
"""One row per example that reached the model: index into ``files.json`` and record number in the file."""

EVALUATED = pa.schema(
    [
        ("pass", pa.int32()),  # 0, 1, 2, …
        ("file", pa.int32()),
        ("record", pa.int32()),
        ("name", pa.string()),  # null where the example has none
    ]
)
"""One row per example of an evaluation pass."""

LABELS = pa.schema([("step", pa.int32()), ("label", pa.int64()), ("examples", pa.int32())])
"""One row per step and label in its batch; no rows where the examples have no label."""

PADDING = pa.schema(
    [
        ("step", pa.int32()),
        ("examples", pa.int32()),  # in the batch
        ("elements", pa.int64()),  # that the step was sent, padding included (frames of audio)
        ("padding", pa.int64()),  # of them, added as padding
    ]
)
"""One row per step of a workload whose examples carry their length."""

RESOURCES = pa.schema(
    [
        ("time_ns", pa.int64()),  # epoch
        ("rss_bytes", pa.int64()),
        ("cpu_percent", pa.float32()),  # this process; 100 is one core
        (
            "other_cpu_percent",
            pa.float32(),
        ),  # other programs, without child processes; 100 is one core
        ("gpu_memory_bytes", pa.int64()),  # null without a GPU
        ("gpu_percent", pa.float32()),  # null without a GPU
        ("flushing", pa.bool_()),  # a profile window is being written
        ("gpu_clock_mhz", pa.int32()),  # null without a GPU
        ("gpu_slowed", pa.bool_()),  # clocks lowered by heat or power; null without a GPU
        ("children_cpu_percent", pa.float32()),  # child processes; 100 is one core
    ]
)
"""One row per half second or so."""

MODEL = pa.schema(
    [
        ("time_ns", pa.int64()),  # epoch
        ("node", pa.int32()),  # an iterator; a new epoch or file has a new one
        ("parent", pa.int32()),  # the consumer of this node, -1 for the outermost
        ("place", pa.int16()),  # index among the parent's inputs; 0 holds the arguments of an interleave
        ("name", pa.string()),  # as in the trace: ParallelMapV2, BatchV2, …
        ("node_class", pa.int16()),  # NodeClass of TensorFlow's model.proto
        ("ratio", pa.float64()),  # input elements per output element; 0 where not fixed
        ("elements", pa.int64()),  # produced since the node was made, like all its counts
        ("processing_ns", pa.int64()),  # thread time in this node, without its inputs
        ("bytes_consumed", pa.int64()),
        ("bytes_produced", pa.int64()),
        ("buffered_elements", pa.int64()),  # now
        ("buffered_bytes", pa.int64()),  # now
        ("parallelism", pa.float32()),  # now; null for stages without
        ("parallelism_tuned", pa.bool_()),  # the autotuner may change it
        ("cycle_length", pa.float32()),  # inputs read in turn; null for stages without
        ("buffer_limit", pa.float32()),  # elements, now; null for stages without
        ("buffer_tuned", pa.bool_()),  # the autotuner may change it
        ("cpu_budget", pa.int32()),  # cores that the autotuner may use
        ("ram_budget_bytes", pa.int64()),  # memory that it may use for buffers
    ]
)
"""One row per node of tf.data's performance model and sample; samples are a second apart, closer in a young run."""

BLOCKS = pa.schema(
    [
        ("round", pa.int32()),
        ("arm", pa.int8()),
        ("position", pa.int8()),  # in the order of the round
        ("start_ns", pa.int64()),  # epoch; the first measured batch was requested
        ("first_step", pa.int64()),  # of the arm's steps table; the block's measured steps follow each other
        ("steps", pa.int32()),
        ("wall_ns", pa.int64()),  # from that request to the result of the last measured step
        ("wait_ns", pa.int64()),  # for batches, summed over the measured steps
        ("cpu_ns", pa.int64()),  # CPU time of this process
        ("other_load_percent", pa.float32()),  # share of the cores that other programs used, 0 to 100
        ("throttled", pa.bool_()),  # clocks lowered by heat or power
        ("drained_batches", pa.int32()),  # buffered while the other arms ran, dropped before the block
    ]
)
"""One row per block of a race."""

LATER = ("away_ns", "gpu_clock_mhz", "gpu_slowed", "children_cpu_percent")
"""Columns added later; an older table reads as null in them."""


NAMES = pa.schema([("step", pa.int32()), ("name", pa.string())])
"""One row per named example that reached the model, in the order of :data:`SAMPLES`."""


OUTPUTS = pa.schema(
    [
        ("step", pa.int32()),
        ("file", pa.int32()),  # as in SAMPLES, like the record; null without the sample probe
        ("record", pa.int32()),
        ("label", pa.int64()),
        ("outputs", pa.list_(pa.float32())),  # logits, one per class; a single score where there are two
    ]
)
"""One row per example of the step whose outputs are kept."""


class TableWriter:
    """Append rows to an Arrow stream, buffered into batches that are flushed when written. Thread-safe."""

    def __init__(self, path: Path, schema: pa.Schema, seconds_per_batch: float = 0.5, rows_per_batch: int = 16_384):
        self._schema = schema
        self._seconds, self._rows = seconds_per_batch, rows_per_batch
        self._columns: list[list[Any]] = [[] for _ in schema.names]
        self._written_s = time.monotonic()
        self._lock = threading.Lock()
        self._file = path.open("wb")
        self._stream = pa.ipc.new_stream(self._file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def append(self, *values: Any) -> None:
        """Add one row, values in the schema's order."""
        with self._lock:
            for column, value in zip(self._columns, values, strict=True):
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
        arrays = [pa.array(column, field.type) for column, field in zip(self._columns, self._schema, strict=True)]
        self._columns = [[] for _ in self._schema.names]
        self._stream.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._file.flush()


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read every complete batch of a stream.

    Returns:
        A table of that schema; without rows if there is no file yet or nothing in it is complete.
    """
    try:
        return _read_whole(path, schema)
    except (OSError, pa.ArrowException):
        return _read_what_is_complete(path, schema)


def _read_whole(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a stream in one call, in half the time of reading batch by batch."""
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
        if not all(_holds(stream.schema, field) for field in schema):
            return pa.Table.from_batches([], schema)  # `empty_table` imports pandas
        found = stream.read_all()
        found.validate(full=True)  # an offset outside the batch would crash the process
        return _fit(found.combine_chunks(), schema)


def _read_what_is_complete(path: Path, schema: pa.Schema) -> pa.Table:
    batches: list[pa.Table] = []
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
            if all(_holds(stream.schema, field) for field in schema):
                while True:
                    batch = pa.Table.from_batches([stream.read_next_batch()])
                    batch.validate(full=True)
                    batches.append(_fit(batch, schema))
    except (StopIteration, OSError, pa.ArrowException):
        pass
    return pa.concat_tables([pa.Table.from_batches([], schema), *batches])


def _holds(found: pa.Schema, field: pa.Field) -> bool:
    """Say whether a column exists once with its type, or was added after the table was written."""
    return len(found.get_all_field_indices(field.name)) <= 1 and (field in found or field.name in LATER)


def _fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Put the columns in order and add missing ones as nulls."""
    columns = [
        table.column(field.name) if field.name in table.schema.names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
