"""Make a timeline's index from a run's traces and its diagnosis. Runs where traces are read, never in the app."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import Kind
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.causes import GapCause, Work
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.axis import place_captures
from pipeline_lab.analysis.diagnosis.inputs import Progress, is_run, opened_log, window_files
from pipeline_lab.analysis.diagnosis.job_tables import read_job
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.timeline.lanes import CLASS_NUMBER, LaneKind, Thread, find_layers, find_threads
from pipeline_lab.analysis.timeline.writing import IndexWriter, Lane
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.trace.sources import SourceKind, TraceFile, find_traces, session_file

_LABELS = {LaneKind.STEPS: "Steps", LaneKind.WAITS: "Input waits"}


@dataclass(frozen=True)
class TimelineCapture:
    """A capture whose events are in the index; see :class:`pipeline_lab.analysis.diagnosis.axis.Capture`."""

    number: int
    name: str
    host: str
    window: str
    origin_epoch_ns: int | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class TimelineSource:
    """The captures of a run, each with its name for the progress, and the epoch of its axis' zero if the job noted it."""

    files: tuple[tuple[str, TraceFile], ...]
    origin_epoch_ns: int | None


def build_index(path: Path, diagnosis: Diagnosis, folder: Path, progress: Progress | None = None) -> None:
    """Write the index of a run's timeline.

    Args:
        path: A run or any profile log.
        diagnosis: What its analysis found; its steps, waits and gaps become lanes.
        folder: An empty folder.
        progress: Told how many traces are done, how many there are, and the next one's name.
    """
    writer = IndexWriter(folder)
    with _open_source(path) as source:
        captures = _add_captures(writer, source, progress)
        places, _ = place_captures(captures, source.origin_epoch_ns)
    shifts = {place.capture.number: place.shift_ns for place in places}
    spans = [
        (place.window, place.capture.start_ns + place.shift_ns, place.capture.end_ns + place.shift_ns)
        for place in places
    ]
    _add_windows(writer, spans, apart=diagnosis.source.kept_apart)
    _add_diagnosis(writer, diagnosis)
    gaps = diagnosis.idle_gaps
    writer.finish(
        [shifts[number] for number in range(len(captures))],
        captures=len(captures),
        unreadable=len(source.files) - len(captures),
        gaps_left_out=0 if isinstance(gaps, Unavailable) else gaps.gaps_left_out,
        left_out_ns=0 if isinstance(gaps, Unavailable) else gaps.left_out_ns,
    )


@contextmanager
def _open_source(path: Path) -> Iterator[TimelineSource]:
    """Find the captures just as the diagnosis does, so that both lie on the same axis."""
    if is_run(path):
        run = RunFolder(path)
        log = opened_log(run)
        if log is not None:
            with _open_source(log) as source:
                yield source
        else:
            files = tuple((file.parent.name, session_file(file)) for file in window_files(run))
            yield TimelineSource(files, read_job(run).origin_epoch_ns)
        return
    with find_traces(path) as found:
        if found.kind is SourceKind.RUN:
            with _open_source(found.root) as source:
                yield source
        else:
            yield TimelineSource(tuple((file.path.name, file) for file in found.files), None)


def _add_captures(writer: IndexWriter, source: TimelineSource, progress: Progress | None) -> list[TimelineCapture]:
    captures: list[TimelineCapture] = []
    for number, (name, file) in enumerate(source.files):
        if progress:
            progress(number, len(source.files), name)
        try:
            trace = file.read()
        except TraceReadError:  # the diagnosis says which and why
            continue
        activity = Activity(trace)
        start, end = activity.extent
        capture = TimelineCapture(
            len(captures), str(trace.path), trace.host, trace.window, trace.origin_epoch_ns, start, end
        )
        for thread in find_threads(activity):
            _add_thread(writer, activity, thread, capture)
        captures.append(capture)
    return captures


def _add_thread(writer: IndexWriter, activity: Activity, thread: Thread, capture: TimelineCapture) -> None:
    plane, line = thread.plane, thread.line
    key = (thread.kind.value, capture.host, plane.name, line.name, str(line.id))
    number = writer.lane(key, Lane(thread.kind, thread.role, capture.host, plane.name, line.name))
    lane = writer.describe(number)
    if thread.role == "training":
        lane.role = "training"
    if plane is activity.host and len(activity.rows(line, Kind.WAIT | Kind.OUTER_WAIT | Kind.LOOP_WAIT)):
        lane.waits = True
    used = np.unique(line.name_index)
    name_of = np.zeros(len(plane.names), np.uint32)
    name_of[used] = [writer.name(plane.names[index], plane.display_names[index]) for index in used]
    layers, deeper = find_layers(line.start_ns, line.end_ns)
    lane.deeper += deeper
    for layer, rows in enumerate(layers):
        index = line.name_index[rows]
        times = line.start_ns[rows], line.duration_ns[rows]
        writer.add((number, layer), thread.class_of_name[index], times, name_of[index], capture.number)


def _add_windows(writer: IndexWriter, spans: list[tuple[int, int, int]], *, apart: bool) -> None:
    """Add a lane of the windows and of the time between them, when the profiler was off."""
    if not spans:
        return
    number = writer.lane(("windows",), Lane(LaneKind.WINDOWS, "", "", "", "Profile windows"))
    bounds: dict[int, tuple[int, int]] = {}
    for window, begin, stop in spans:
        first, last = bounds.get(window, (begin, stop))
        bounds[window] = min(first, begin), max(last, stop)
    windows = sorted(bounds)
    start, end = np.array([bounds[window] for window in windows], np.int64).T
    end[:-1] = np.minimum(end[:-1], start[1:])
    names = [writer.name(f"Profile window {window + 1}") for window in windows]
    _add_rows(writer, number, Work.WINDOW.value, start, end, names)
    between = np.flatnonzero(start[1:] > end[:-1])
    if len(between) and not apart:
        off = [writer.name("Profiler off")] * len(between)
        _add_rows(writer, number, GapCause.CAPTURE_GAP.value, end[between], start[between + 1], off)


def _add_diagnosis(writer: IndexWriter, diagnosis: Diagnosis) -> None:
    """Add what the analysis found: steps, input waits, and each device's work and gaps."""
    if not isinstance(diagnosis.steps, Unavailable):
        table = diagnosis.steps.table
        names = [f"Step {number}" for number in table.column("step").to_pylist()]
        _add_table(writer, LaneKind.STEPS, table, tables.ints(table, "end_ns"), names, Work.STEP.value)
    if not isinstance(diagnosis.input_stalls, Unavailable):
        table = diagnosis.input_stalls.table
        end = tables.ints(table, "end_ns")
        hidden = 2 * tables.ints(table, "exposed_ns") < end - tables.ints(table, "start_ns")
        classes = np.where(hidden, Work.HIDDEN_WAIT.value, GapCause.INPUT_WAIT.value).tolist()
        _add_table(writer, LaneKind.WAITS, table, end, ["Input wait"] * len(end), classes)
    if not isinstance(diagnosis.idle_gaps, Unavailable):
        gaps = diagnosis.idle_gaps.gaps
        for table, name, work in (
            (diagnosis.idle_gaps.busy, "Device busy", Work.BUSY),
            (diagnosis.idle_gaps.mixed, "Work and short idle gaps", Work.SHORT_GAPS),
        ):
            end = tables.ints(table, "end_ns")
            _add_table(writer, LaneKind.DEVICE, table, end, [name] * len(end), work.value)
        end = tables.ints(gaps, "start_ns") + tables.ints(gaps, "duration_ns")
        causes = gaps.column("cause").to_pylist()
        names = [f"Idle: {GapCause(cause).label}" for cause in causes]
        _add_table(writer, LaneKind.DEVICE, gaps, end, names, causes)


def _add_table(
    writer: IndexWriter, kind: LaneKind, table: pa.Table, end: IntArray, names: list[str], classes: str | list[str]
) -> None:
    """Add the rows of a table, one lane for each host, and for each device where there is a column for it."""
    start = tables.ints(table, "start_ns")
    name = np.array([writer.name(one) for one in names], np.uint32)
    of_class = [classes] * len(names) if isinstance(classes, str) else classes
    event_class = np.array([CLASS_NUMBER[one] for one in of_class], np.uint8)
    hosts = table.column("host").to_pylist()
    devices = table.column("device").to_pylist() if "device" in table.column_names else [_LABELS[kind]] * len(hosts)
    places = {place: number for number, place in enumerate(dict.fromkeys(zip(hosts, devices, strict=True)))}
    place_of = np.array([places[place] for place in zip(hosts, devices, strict=True)], np.int64)
    for (host, device), place in places.items():
        number = writer.lane((kind.value, host, device), Lane(kind, "", host, "", device))
        rows = np.flatnonzero(place_of == place)
        for layer, inside in enumerate(find_layers(start[rows], end[rows])[0]):
            at = rows[inside]
            writer.add((number, layer), event_class[at], (start[at], (end - start)[at]), name[at])


def _add_rows(
    writer: IndexWriter, lane: int, event_class: str, start: IntArray, end: IntArray, names: list[int]
) -> None:
    classes = np.full(len(start), CLASS_NUMBER[event_class], np.uint8)
    writer.add((lane, 0), classes, (start, end - start), np.array(names, np.uint32))
