"""What went on in one trace, as interval sets: waits, host compute, device work, compiling, the training thread.

Every analysis of a trace starts from one :class:`Activity`, so that each set is made once. Events are selected by
masks over the plane's names; no loop runs over events.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.dataset_loops import DatasetLoops
from pipeline_lab.analysis.activity.devices import Device, join_checks, read_device
from pipeline_lab.analysis.activity.evaluations import find_evaluations
from pipeline_lab.analysis.activity.event_names import Kind
from pipeline_lab.analysis.activity.event_sets import union_of_named
from pipeline_lab.analysis.activity.intervals import (
    EMPTY,
    IntArray,
    as_intervals,
    intersect,
    length_within,
    subtract,
    total,
    union,
    union_by,
    union_of,
)
from pipeline_lab.analysis.activity.iterators import COPIES_TO_DEVICE, ON_DEVICE, iterators_read, leading
from pipeline_lab.analysis.activity.jitted_calls import find_step_calls
from pipeline_lab.analysis.activity.launches import MOST_QUEUED, NO_LAUNCHES, Launches, find_launches
from pipeline_lab.analysis.activity.markers import Markers, find_markers
from pipeline_lab.analysis.activity.step_spans import StepRule, StepSpans, end_steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace import line_columns
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import BoolArray, Line, Plane, Trace
from pipeline_lab.units import NS_PER_MS

Made = TypeVar("Made")

LOOP = "a loop in tf.function"
"""Names what returns once per step where TensorFlow itself goes through the dataset."""
RHYTHM = "rhythm of "
LOOP_LABEL = f"{RHYTHM}{LOOP}"
HOST_COMPUTE = "host compute"
"""What stands for the device where the trace has no device plane."""

UNFINISHED = (
    "What the device did is unknown: the loop hands it work without waiting for it, and none of the steps that began in the "
    "capture had ended on the device when it closed; record longer windows, or read a result (such as the loss) right before "
    "the profiler starts and before it stops."
)

SHORTEST_END_NS = 50 * NS_PER_MS
"""Giving up an iterator is told from giving up a tensor by its length: a large tensor, or one on several devices, took up to 25 ms."""

_NONE: IntArray = np.empty(0, np.int64)
_ENTRY_POINTS = ("TFE_Py_", "EagerExecute", "FunctionRun", "PjitFunction", "SessionRun", "IteratorGetNext")


@dataclass(frozen=True, eq=False)
class Waits:
    """The wait events of one host as they were recorded: nested, repeated, overlapping.

    Attributes:
        start_ns, end_ns: Shape (n,).
        iterator: Id of the iterator that each one reads, shape (n,).
        names: The event names that occur.
        moments: The time in which the job waited for input, a set.
    """

    start_ns: IntArray
    end_ns: IntArray
    iterator: IntArray
    names: tuple[str, ...]
    moments: IntArray

    @cached_property
    def calls(self) -> tuple[IntArray, IntArray, IntArray]:
        """Iterator, start and end of each time that the job waited for one iterator, ordered by start."""
        return union_by(self.iterator, self.start_ns, self.end_ns)


class Activity:
    """One trace seen as interval sets; everything is made on first use and kept.

    Args:
        trace: One host's capture of one window.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._made: dict[int, tuple[IntArray, object]] = {}
        self._names: dict[Kind, BoolArray] = {}

    @cached_property
    def host(self) -> Plane | None:
        return self.trace.host_plane

    @cached_property
    def markers(self) -> Markers | None:
        return find_markers(self.trace)

    @cached_property
    def _all_launches(self) -> Launches:
        return find_launches(self.trace)

    @property
    def launches(self) -> Launches:
        """What was handed to devices; none where the profiler saw that, but was kept from recording what they did."""
        return NO_LAUNCHES if self.has_unseen_work else self._all_launches

    @cached_property
    def has_unseen_work(self) -> bool:
        """Whether devices were handed work of which the profiler recorded none though they must have done some.

        It says so itself, or they were handed more than can wait for a device.
        """
        found, most = self._all_launches, MOST_QUEUED * max(1, len(self.trace.device_planes))
        if self._devices_at_work or found.is_seen.any():
            return False
        return found.count > most or (found.count > 0 and bool(self.trace.errors))

    @cached_property
    def requests(self) -> IntArray:
        """The time from each input wait to the next one, shape (n, 2), without those in which the job did something else.

        Where a step reads several iterators, as with MirroredStrategy, one of them sets the rhythm.
        """
        iterator, start, _ = self.waits.calls
        start = start[leading(iterator, start)]
        spans = as_intervals(start[:-1], start[1:])
        evaluations = EMPTY if self.host is None else find_evaluations(self.host, *self.host.lines)
        return _apart_from(
            spans, union_of(evaluations, self._asked_outside if self.waits_in_loops else self.loops.steps)
        )

    @cached_property
    def _rhythm(self) -> tuple[str, IntArray]:
        """What returns once per step where nothing marks them, and the time from each return to the next, shape (n, 2).

        What comes before the first and after the last one is partial.
        """
        if len(self.requests) or not self.is_of_jax or self.training_line is None or self.host is None:
            return " and ".join(self.waits.names), self.requests
        name, calls = find_step_calls(self.host, self.training_line, self.launches)
        return name, np.stack((calls[:-1, 0], calls[1:, 0]), axis=1)

    @property
    def rhythm_label(self) -> str:
        """What marks the steps where no marker does, in the field's words."""
        return f"{RHYTHM}{self._rhythm[0]}"

    @cached_property
    def host_spans(self) -> IntArray:
        """When the job was in each step, as marked; else from a request for input, or a call of the step, to the next, shape (n, 2)."""
        if self.markers is None:
            return self._rhythm[1]
        return as_intervals(self.markers.start_ns, self.markers.end_ns)

    @cached_property
    def step_spans(self) -> StepSpans:
        """Where the steps begin and end."""
        if self.markers is None:
            spans = self.host_spans
            follows = np.concatenate((spans[:1, 0] > spans[:1, 1], spans[1:, 0] == spans[:-1, 1]))
            return end_steps(StepRule.NEXT_REQUEST, spans, follows, self.launches)
        rule = StepRule.STEPS_LINE if self.markers.line is None else StepRule.HOST_SPAN
        return end_steps(rule, self.host_spans, self.markers.follows(), self.launches)

    @property
    def is_unfinished(self) -> bool:
        """Whether work was handed to devices, and they had done none of it when the capture ended."""
        return self.launches.count > 0 and not self.launches.is_seen.any()

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Start and end of the window: when the profiler was on, or from the first event to the last, ns.

        It is cut to where the trace shows all that the devices did (see :class:`StepSpans`). An event is recorded when it
        ends, so nothing is known of the training thread after its last one. Where host compute stands for the device the
        window ends there: the step under way would read as idle. A function that takes its batches itself is known to train
        until its last request.
        """
        lines = [line for plane in self.trace.planes for line in plane.lines if line.count]
        outer = on_all_cores(lambda line: line.reach, lines, self.trace.event_count)
        start = min((one.first_start_ns for one in outer), default=0)
        end = max((one.last_end_ns for one in outer), default=0)
        if self.trace.start_ns is not None and self.trace.stop_ns is not None:
            start, end = min(start, self.trace.start_ns), max(end, self.trace.stop_ns)
        if not self._devices_at_work and self.training_line is not None:
            end = max([_last_end_ns(self.host, self.training_line), *self.host_spans[-1:, 1].tolist()])
        known_from, known_until = self.step_spans.known
        return max(start, known_from or start), min(end, known_until or end)

    @cached_property
    def waits(self) -> Waits:
        """Input waits of all threads."""
        found = self._waits(Kind.WAIT)
        found = found if len(found.start_ns) else self._waits(Kind.OUTER_WAIT)
        if not self.waits_in_loops:
            return found
        start, end, iterator = self.loops.waits
        return Waits(start, end, iterator, (LOOP,), union(start, end))

    @cached_property
    def loops(self) -> DatasetLoops:
        """Loops over a dataset inside of ``tf.function``."""
        return DatasetLoops(self.host)

    @cached_property
    def waits_in_loops(self) -> bool:
        """Whether such loops went on for longer than what asks for its batches from outside."""
        if self.host is None or not len(self.loops.steps):
            return False
        others = [line.start_ns[self.rows(line, Kind.WAIT | Kind.OUTER_WAIT)] for line in self.host.lines]
        asked = np.sort(np.concatenate([_NONE, *others]))
        outside = _apart_from(as_intervals(asked[:-1], asked[1:]), self.loops.steps)
        return total(self.loops.steps) > total(outside)

    @property
    def _asked_outside(self) -> IntArray:
        """Moments at which batches were asked for from outside of such loops."""
        lines = self.host.lines if self.host else ()
        return union_of(*(self._line_set(line, Kind.WAIT | Kind.OUTER_WAIT) for line in lines))

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The devices that recorded work, or host compute in their place."""
        if self._devices_at_work:
            return tuple(device.without(self.trials) for device in self._devices_at_work)
        known = np.array([self.extent], np.int64)
        compute, collective = intersect(self._host_compute(), known), intersect(self.collectives, known)
        return (Device(HOST_COMPUTE, compute, subtract(collective, compute), EMPTY, EMPTY, EMPTY),)

    @cached_property
    def _devices_at_work(self) -> tuple[Device, ...]:
        return tuple(filter(None, map(read_device, self.trace.device_planes)))

    def once(self, work: IntArray, make: Callable[[IntArray], Made]) -> Made:
        """Make something of a device's work, or return what was made of that very array before."""
        if id(work) not in self._made:
            self._made[id(work)] = (work, make(work))  # the array is kept, so that no other gets its id
        return cast(Made, self._made[id(work)][1])

    @property
    def has_devices(self) -> bool:
        return self.devices[0].name != HOST_COMPUTE

    @property
    def is_of_jax(self) -> bool:
        return self.host is not None and any(name.startswith(event_names.JAX_CALL) for name in self.host.names)

    @cached_property
    def busy(self) -> IntArray:
        """Moments at which any device works."""
        if len(self.devices) == 1:
            return self.devices[0].work
        return union_of(*(device.work for device in self.devices))

    @cached_property
    def host_to_device(self) -> IntArray:
        """Copies of input to any device, seen from either side."""
        if not self.has_devices:
            return EMPTY
        return union_of(self._host_set(Kind.HOST_TO_DEVICE), *(device.host_to_device for device in self.devices))

    @cached_property
    def compiling(self) -> IntArray:
        """Moments of tracing, compiling, instantiating what was just traced, and trying out convolution algorithms."""
        return union_of(self._host_set(Kind.COMPILE), self._instantiating(), self.trials)

    @cached_property
    def checkpointing(self) -> IntArray:
        return self._host_set(Kind.CHECKPOINT)

    @cached_property
    def changing_iterators(self) -> IntArray:
        """Moments at which Python makes an iterator, or releases something for so long that it has to be one."""
        names = self.host.names if self.host else ()
        found = []
        for name, shortest_ns in ((event_names.MAKING, 0), (event_names.GIVING_UP, SHORTEST_END_NS)):
            if name not in names:
                continue
            number = names.index(name)
            for line in self._step_lines():
                rows = np.flatnonzero((line.name_index == number) & (line.duration_ns >= shortest_ns))
                found.append(union(line.start_ns[rows], line.start_ns[rows] + line.duration_ns[rows]))
        return union_of(*found)

    @cached_property
    def collectives(self) -> IntArray:
        """Moments at which an op of the host exchanges values with other workers or waits for them."""
        return self._host_set(Kind.COLLECTIVE)

    @cached_property
    def training_line(self) -> Line | None:
        """The Python thread that trains: it holds the markers, or else most calls into TensorFlow."""
        if self.markers is not None and self.markers.line is not None:
            return self.markers.line
        if self.host is None:
            return None
        entries = self.host.name_mask(lambda name: name.startswith(_ENTRY_POINTS))
        python = [line for line in self.host.lines if not event_names.is_runtime_thread(line.name) and line.count]
        calls = [line.count_named(entries) for line in python]
        return python[int(np.argmax(calls))] if any(calls) else next(iter(python), None)

    @cached_property
    def framework_calls(self) -> IntArray:
        """When the training thread called TensorFlow or JAX, ascending, shape (n,)."""
        if self.host is None or self.training_line is None:
            return _NONE
        is_entry = self.host.name_mask(lambda name: name.startswith(_ENTRY_POINTS))
        return np.sort(self.training_line.start_ns[self.training_line.rows_named(is_entry)])

    @cached_property
    def runtime(self) -> IntArray:
        """Moments at which the training thread is inside TensorFlow, or the runtime executes ops of its functions."""
        sets = [self._line_set(line, Kind.EXECUTOR | Kind.OP) for line in self._step_lines()]
        if self.training_line is not None:
            sets.append(self._inside_runtime(self.training_line))
        return union_of(*sets, self.loops.running)

    def events_of(self, kind: Kind) -> Iterator[tuple[Line, IntArray]]:
        """Yield, thread by thread, the numbers of the events of any of these kinds, tf.data's own threads left out."""
        for line in self._step_lines():
            rows = self.rows(line, kind)
            if len(rows):
                yield line, rows

    def rows(self, line: Line, kind: Kind) -> IntArray:
        """Return the numbers of a host line's events of that kind."""
        return line.rows_named(self._names_of(kind))

    def _names_of(self, kind: Kind) -> BoolArray:
        """Say which names of the host are of any of these kinds."""
        if kind not in self._names:
            self._names[kind] = (self._kinds & np.uint32(kind.value)) != 0
        return self._names[kind]

    @cached_property
    def _kinds(self) -> NDArray[np.uint32]:
        names = self.host.names if self.host else ()
        return np.fromiter((event_names.host_kind(name).value for name in names), np.uint32, len(names))

    def _step_lines(self) -> list[Line]:
        """Threads of the host that are not tf.data's."""
        lines = self.host.lines if self.host else ()
        return [line for line in lines if line.count and not event_names.is_tf_data_thread(line.name)]

    def _line_set(self, line: Line, kind: Kind) -> IntArray:
        return union_of_named(line, self._names_of(kind))

    def _host_set(self, kind: Kind) -> IntArray:
        return union_of(*(self._line_set(line, kind) for line in self._step_lines()))

    def _instantiating(self) -> IntArray:
        """Moments from the call of a function that was traced just before to the start of its run.

        TensorFlow optimizes and places the new graph there (Grappler), which leaves no events of its own; XLA compiles
        it inside the run, and passes without a name that says so lie before the ones that have one.
        """
        sets = [self._until_ready(line, traced) for line, traced in self.events_of(Kind.TRACING)]
        return union_of(*sets)

    def _until_ready(self, line: Line, traced: IntArray) -> IntArray:
        calls, runs = (_in_order(line, self.rows(line, kind)) for kind in (Kind.FUNCTION_CALL, Kind.FUNCTION_RUN))
        compiles = _in_order(line, self.rows(line, Kind.COMPILE))
        call = np.unique(np.searchsorted(calls[:, 0], line.start_ns[traced] + line.duration_ns[traced]))
        call = call[call < len(calls)]
        run = np.searchsorted(runs[:, 0], calls[call, 0])
        call, run = call[run < len(runs)], run[run < len(runs)]
        start, end = calls[call, 0], runs[run, 0]
        last = np.searchsorted(compiles[:, 0], calls[call, 1]) - 1
        compiled = np.maximum.accumulate(compiles[:, 1])[last]
        inside = compiles[last, 0] > start
        return union(start, np.where(inside, np.minimum(compiled, calls[call, 1]), end))

    @cached_property
    def trials(self) -> IntArray:
        """Moments at which algorithms were tried out: of the ops during which a device checked one, and between checks."""
        checks = union_of(*(device.autotuning for device in self._devices_at_work))
        if not len(checks):
            return EMPTY
        sets = [join_checks(checks)]
        for line, rows in self.events_of(Kind.OP | Kind.EAGER_OP):
            start = line.start_ns[rows]
            end = start + line.duration_ns[rows]
            trying = np.searchsorted(checks[:, 0], end) > np.searchsorted(checks[:, 0], start)
            sets.append(union(start[trying], end[trying]))
        return union_of(*sets)

    def _waits(self, kind: Kind) -> Waits:
        """Return the waits of a kind.

        Where an iterator on a device hands the elements over, waiting for it is also waiting for the copy to the device, and
        for the work that the device has to do before it copies. The input is late only while the iterator on the host, from
        which a thread of tf.data copies, is waited for at the same time (or may be: of what that thread was doing when the
        profiler started there is no event).
        """
        starts, ends, iterators, names = [_NONE], [_NONE], [_NONE], set[str]()
        for_device, of_host = [np.zeros(0, np.bool_)], [np.zeros(0, np.bool_)]
        plane_names = self.host.names if self.host else ()
        is_iterator = np.array([name.startswith(event_names.ITERATOR) for name in plane_names], np.bool_)
        on_device = [index for index, name in enumerate(plane_names) if name == ON_DEVICE]
        for line in self.host.lines if self.host else ():
            rows = self.rows(line, kind)
            starts.append(line.start_ns[rows])
            ends.append(starts[-1] + line.duration_ns[rows])
            iterator, read = iterators_read(line, rows, is_iterator)
            iterators.append(iterator)
            is_on_device = np.isin(read, on_device) if on_device else np.zeros(len(read), np.bool_)
            for_device.append(is_on_device)
            of_host.append(~is_on_device & (read >= 0) & event_names.is_tf_data_thread(line.name))
            used = line.names_used.indices
            names.update(plane_names[index] for index in used[self._names_of(kind)[used]])
        start, end, read_by = (np.concatenate(parts) for parts in (starts, ends, iterators))
        is_for_device, is_of_host = np.concatenate(for_device), np.concatenate(of_host)
        if not (is_for_device.any() and is_of_host.any()):
            return Waits(start, end, read_by, tuple(sorted(names)), union(start, end))
        others, jobs = ~is_for_device & ~is_of_host, ~is_of_host
        known_from = min([int(start[is_of_host].min()), *self._starts_of(COPIES_TO_DEVICE)])
        on_host = union(
            np.append(start[is_of_host], start.min()), np.append(end[is_of_host], max(known_from, int(start.min())))
        )
        late = intersect(union(start[is_for_device], end[is_for_device]), on_host)
        moments = union_of(late, union(start[others], end[others]))
        return Waits(start[jobs], end[jobs], read_by[jobs], tuple(sorted(names)), moments)

    def _starts_of(self, name: str) -> list[int]:
        """Return the first start of an event of the host on each thread that has any."""
        host = self.host
        if host is None or name not in host.names:
            return []
        named = host.name_mask(lambda each: each == name)
        rows = [(line, line.rows_named(named)) for line in host.lines]
        return [int(line.start_ns[found].min()) for line, found in rows if len(found)]

    def _host_compute(self) -> IntArray:
        """Union of op and executor events on threads that are not tf.data's; tf.data's work on them is taken out.

        An op called from Python counts only inside a marked step: between the steps it is a host operation that holds
        the device up (a checkpoint, a deserialization). The steps of a loop inside of a function run on threads of tf.data.
        """
        in_loops = self.loops.computing(self._names_of(Kind.INPUT_FUNCTION)) if self.waits_in_loops else EMPTY
        return union_of(*(self._line_compute(line) for line in self._step_lines()), in_loops)

    def _line_compute(self, line: Line) -> IntArray:
        from_graph = self._line_set(line, Kind.EXECUTOR | Kind.OP)
        from_python = self._line_set(line, Kind.EAGER_OP)
        if self.markers is not None and self.markers.line is not None:
            from_python = intersect(from_python, self.markers.intervals)
        waiting = self._line_set(line, Kind.WAIT | Kind.OUTER_WAIT)
        not_training = union_of(waiting, self._line_set(line, Kind.CHECKPOINT), self._input_functions(line))
        return subtract(union_of(from_graph, from_python), not_training)

    def _input_functions(self, line: Line) -> IntArray:
        """Moments at which a thread of the shared pool runs tf.data's functions (TensorFlow up to 2.4 or so)."""
        rows = self.rows(line, Kind.EXECUTOR) if len(self._input_function_ids) else np.empty(0, np.int64)
        if not len(rows):
            return EMPTY
        ids, known = line.stats.ints(rows, "id")
        rows = rows[known & np.isin(ids, self._input_function_ids)]
        start = line.start_ns[rows]
        return union(start, start + line.duration_ns[rows])

    @cached_property
    def _input_function_ids(self) -> IntArray:
        """Ids of the calls of tf.data's functions, where no pool of its own runs them."""
        lines = self.host.lines if self.host else ()
        if any(event_names.is_tf_data_pool(line.name) for line in lines):
            return np.empty(0, np.int64)
        found = [np.empty(0, np.int64)]
        for line in lines:
            ids, known = line.stats.ints(self.rows(line, Kind.INPUT_FUNCTION), "id")
            found.append(ids[known])
        return np.unique(np.concatenate(found))

    def _inside_runtime(self, line: Line) -> IntArray:
        assert self.host is not None
        marker = self.markers.event_name if self.markers else None
        is_marker = self.host.name_mask(lambda name: name == marker)
        inside = ~is_marker & ~self._names_of(Kind.MARK)
        return union_of_named(line, inside)


def _last_end_ns(host: Plane | None, line: Line) -> int:
    """Return when a thread's last event ended that says when the profiler was on; what its pool tells is recorded at any time."""
    if host is None or not any(
        host.names[index].startswith(event_names.POOL_TELLS) for index in line.names_used.indices
    ):
        return line.reach.last_end_ns
    wanted = host.name_mask(lambda name: not name.startswith(event_names.POOL_TELLS))
    first_ns = line.reach.first_start_ns
    return line_columns.find_last_end(line.start_ns, line.duration_ns, line.name_index, wanted, first_ns)


def _apart_from(spans: IntArray, others: IntArray) -> IntArray:
    """Return those of the spans in which the others have no part."""
    return spans[length_within(others, spans) == 0] if len(others) else spans


def _in_order(line: Line, rows: IntArray) -> IntArray:
    """Return start and end of events of a thread by start, shape (n, 2)."""
    start = line.start_ns[rows]
    order = np.argsort(start, kind="stable")
    return as_intervals(start, start + line.duration_ns[rows])[order]
