"""Hand the events of traces on as columns: Arrow batches, a Parquet file, a Chrome trace.

Everything is written line by line, so that memory stays that of one trace.
"""

import gzip
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.schema import Line, Plane, Trace

TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("window", TEXT),
        ("host", TEXT),
        ("plane", TEXT),
        ("line", TEXT),
        ("line_id", pa.int64()),
        ("name", TEXT),
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("origin_epoch_ns", pa.int64()),
    ]
)
"""``start_ns`` counts from the trace's origin; ``origin_epoch_ns`` says when that was, null if the capture does not."""
BATCH_EVENTS = 1 << 18
ENDINGS = (".parquet", ".json", ".json.gz")
Out = IO[bytes] | gzip.GzipFile


def write_events(traces: Iterable[Trace], output: Path) -> int:
    """Write all events to ``output``, in the format of its ending; return how many there were.

    Raises:
        TraceReadError: The ending is not in `ENDINGS`, or the file cannot be written.
    """
    if not output.name.endswith(ENDINGS):
        raise TraceReadError(f"{output.name}: events are written as {', '.join(ENDINGS)}; choose one of these endings.")
    try:
        with _replacing(output) as file:
            if output.name.endswith(".parquet"):
                return _write_parquet(traces, file)
            if output.name.endswith(".gz"):
                with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=5) as packed:
                    return _write_chrome(traces, packed)
            return _write_chrome(traces, file)
    except OSError as error:
        raise TraceReadError(f"{output} cannot be written: {error.strerror or error}.") from error


def event_batches(trace: Trace) -> Iterator[pa.RecordBatch]:
    """Yield the events of one trace as record batches of `SCHEMA`, each from one line."""
    for plane in trace.planes:
        names = pa.array(plane.names, pa.string())
        for line in plane.lines:
            for first in range(0, line.count, BATCH_EVENTS):
                yield _batch(trace, plane, names, line, slice(first, first + BATCH_EVENTS))


def _batch(trace: Trace, plane: Plane, names: pa.Array, line: Line, rows: slice) -> pa.RecordBatch:
    start = line.start_ns[rows]

    def same(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), len(start))

    def text(value: str) -> pa.Array:
        return pa.DictionaryArray.from_arrays(same(0, pa.int32()), pa.array([value], pa.string()))

    return pa.RecordBatch.from_arrays(
        [
            text(trace.window),
            text(trace.host),
            text(plane.name),
            text(line.name),
            same(line.id, pa.int64()),
            pa.DictionaryArray.from_arrays(pa.array(line.name_index[rows]), names),
            pa.array(start),
            pa.array(line.duration_ns[rows]),
            same(trace.origin_epoch_ns, pa.int64()),
        ],
        schema=SCHEMA,
    )


def _write_parquet(traces: Iterable[Trace], file: IO[bytes]) -> int:
    events = 0
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for trace in traces:
            for batch in event_batches(trace):
                writer.write_batch(batch)
                events += batch.num_rows
    return events


def _write_chrome(traces: Iterable[Trace], file: Out) -> int:
    """Write the Chrome trace format; traces with a known start share one axis."""
    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    events, process = 0, 0
    origin: int | None = None
    for trace in traces:
        origin = trace.origin_epoch_ns if origin is None else origin
        shift_ns = 0 if origin is None or trace.origin_epoch_ns is None else trace.origin_epoch_ns - origin
        for plane in trace.planes:
            process += 1
            label = " ".join(filter(None, (trace.window, trace.host, plane.name)))
            file.write(_name(process, None, label if trace.window else plane.name))
            labels = [_label(name, short) for name, short in zip(plane.names, plane.display_names, strict=True)]
            for thread, line in enumerate(plane.lines, 1):
                file.write(_name(process, thread, line.name))
                events += _write_line(file, line, labels, f'"pid":{process},"tid":{thread}', shift_ns)
    file.write(b"{}]}\n")
    return events


def _name(process: int, thread: int | None, name: str) -> bytes:
    kind, place = ("process_name", {}) if thread is None else ("thread_name", {"tid": thread})
    event = {"ph": "M", "pid": process, **place, "name": kind, "args": {"name": name}}
    return json.dumps(event).encode() + b",\n"


def _write_line(file: Out, line: Line, labels: list[str], place: str, shift_ns: int) -> int:
    for first in range(0, line.count, BATCH_EVENTS):
        rows = slice(first, first + BATCH_EVENTS)
        columns = zip(
            (line.start_ns[rows] + shift_ns).tolist(),
            line.duration_ns[rows].tolist(),
            line.name_index[rows].tolist(),
            strict=True,
        )
        file.writelines(
            f'{{"ph":"X",{place},"ts":{_microseconds(start)},"dur":{_microseconds(duration)},{labels[name]}}},\n'.encode()
            for start, duration, name in columns
        )
    return line.count


def _label(name: str, short: str) -> str:
    label = f'"name":{json.dumps(short)}'
    return label if name == short else f'{label},"args":{{"long_name":{json.dumps(name)}}}'


def _microseconds(nanoseconds: int) -> str:
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    return f"{sign}{size // 1000}.{size % 1000:03d}"


@contextmanager
def _replacing(output: Path) -> Iterator[IO[bytes]]:
    """Write next to ``output`` and move it there when it is complete."""
    handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(0o644)
        Path(name).replace(output)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
