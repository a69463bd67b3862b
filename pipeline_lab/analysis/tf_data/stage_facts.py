"""The stages of the pipeline that ran: how long each worked, waited and kept threads busy; of several traces, one stage per place."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.element_links import Functions, Links
from pipeline_lab.analysis.tf_data.iterator_places import IteratorPlace, order_places
from pipeline_lab.analysis.tf_data.iterator_settings import (
    NOT_TOLD,
    Calls,
    common_dataset,
    dataset_name,
    element_bytes,
    origin_of,
)
from pipeline_lab.analysis.tf_data.kinds import EventRole
from pipeline_lab.analysis.tf_data.tf_data import StageOperation, StageOrigin, Tally, TracedStage
from pipeline_lab.analysis.tf_data.threads import IndexArray, Threads
from pipeline_lab.data_classes import dataclass


@dataclass(frozen=True, eq=False)
class OperationTypes:
    """The types of ops in a trace.

    Attributes:
        names: ``DecodeJpeg``, ``PyFunc``, …
        of_name: Of every event name of the host the index of its op's type, 0 for other names, shape (n_names,).
    """

    names: tuple[str, ...]
    of_name: IndexArray


def find_types(threads: Threads, names: Sequence[str]) -> OperationTypes:
    """Tell the ops of a trace apart by their type.

    Args:
        threads: The trace's events.
        names: The event names of the host's plane.
    """
    types: dict[str, int] = {}
    of_name = np.zeros(len(names), np.int32)
    for name in threads.names_of(EventRole.OPERATION):
        of_name[name] = types.setdefault(event_names.operation(names[name]) or names[name], len(types))
    return OperationTypes(tuple(types), of_name)


@dataclass(frozen=True, eq=False)
class WorkByStage:
    """Of every stage, shape (n_stages,); see :class:`results.Stage`."""

    self_ns: IntArray
    blocked_ns: IntArray
    function_calls: IntArray
    on_thread_ns: IntArray
    latency: tuple[Tally, ...]
    operations: tuple[tuple[StageOperation, ...], ...]


def measure_work(threads: Threads, functions: Functions, links: Links, types: OperationTypes) -> WorkByStage:
    """Add up each stage's time from its own part of every event."""
    stages = len(threads.places.places)
    own_ns, operations = np.zeros(stages, np.int64), np.zeros((stages, len(types.names), 2), np.int64)
    waiting_ns = np.zeros(len(links.row), np.int64)
    kernels.add_up(
        (threads.start_ns, threads.end_ns, threads.parent, threads.role, functions.stage),
        (threads.name, types.of_name),
        links.wait,
        own_ns,
        operations,
        waiting_ns,
    )

    blocked_ns, on_thread_ns = np.zeros(stages, np.int64), np.zeros(stages, np.int64)
    waiting_ns = np.minimum(links.ready_ns - threads.start_ns[links.row], waiting_ns)
    kernels.add_by_stage(links.row, waiting_ns, functions.stage, blocked_ns)
    kernels.add_runs(
        functions.runs,
        (threads.start_ns, threads.end_ns, threads.parent, threads.role, functions.stage),
        on_thread_ns,
    )
    finished = np.flatnonzero(functions.end_ns >= 0)
    latency = (functions.end_ns - functions.start_ns)[finished].astype(np.float64)
    stage = functions.call_stage[finished]
    count = np.bincount(stage, minlength=stages)
    total = np.bincount(stage, latency, minlength=stages)
    squares = np.bincount(stage, latency * latency, minlength=stages)
    return WorkByStage(
        self_ns=own_ns - blocked_ns,
        blocked_ns=blocked_ns,
        function_calls=np.bincount(functions.call_stage, minlength=stages),
        on_thread_ns=on_thread_ns,
        latency=tuple(map(Tally, count.tolist(), total.tolist(), squares.tolist())),
        operations=tuple(_rank(of_stage, types.names) for of_stage in operations),
    )


def _rank(operations: IntArray, names: tuple[str, ...]) -> tuple[StageOperation, ...]:
    """Rank the ops of a stage's function by their time; ``operations`` holds calls and time of each, shape (n, 2)."""
    ranked = np.argsort(-operations[:, 1], kind="stable")
    return tuple(StageOperation(names[kind], *operations[kind].tolist()) for kind in ranked if operations[kind, 0])


def describe_stages(
    threads: Threads, rows: list[IntArray], calls: list[Calls], observed_ns: int
) -> tuple[TracedStage, ...]:
    """Describe every stage of one trace, in the order of the tree, but for its work.

    Args:
        threads: The trace's events.
        rows: The rows of each stage's calls.
        calls: Those of each stage whose stats are read.
        observed_ns: Length of the window.
    """
    return tuple(
        _describe(number, place, threads, own_rows, own_calls, observed_ns)
        for number, (place, own_rows, own_calls) in enumerate(zip(threads.places.places, rows, calls, strict=True))
    )


def add_work(stages: Iterable[TracedStage], work: WorkByStage) -> tuple[TracedStage, ...]:
    """Return the stages with what each did."""
    return tuple(
        replace(
            stage,
            self_ns=int(work.self_ns[number]),
            blocked_ns=int(work.blocked_ns[number]),
            function_calls=int(work.function_calls[number]),
            function_on_thread_ns=int(work.on_thread_ns[number]),
            function_latency=work.latency[number],
            operations=work.operations[number],
        )
        for number, stage in enumerate(stages)
    )


def calls_by_stage(threads: Threads) -> list[IntArray]:
    """Return the rows of each stage's calls."""
    rows = threads.rows(EventRole.ITERATOR)
    ends, by_stage = np.zeros(len(threads.places.places) + 1, np.int64), np.empty(len(rows), np.int64)
    kernels.sort_by_number(rows, threads.place[rows], ends, by_stage)
    return [by_stage[first:after] for first, after in pairwise([0, *ends[:-1].tolist()])]


def _describe(
    number: int, place: IteratorPlace, threads: Threads, rows: IntArray, calls: Calls, observed_ns: int
) -> TracedStage:
    dataset = dataset_name(calls)
    named, ended = _count_iterators(threads, rows)
    ids = calls.ints("id")
    buffered = calls.ints("buffered_elements")
    return TracedStage(
        number=number,
        parent=place.parent,
        name=place.name,
        node=dataset,
        path=place.path,
        origin=origin_of(place.name, dataset),
        iterators=max(len(np.unique(ids[ids != NOT_TOLD])), named),  # not every call's id is read
        observed_ns=observed_ns,
        calls=len(rows),
        elements=len(rows) - ended,
        self_ns=0,
        parallelism=calls.last("parallelism"),
        cycle_length=calls.last("cycle_length"),
        autotuned=calls.claim("autotune"),
        deterministic=calls.claim("deterministic"),
        buffer_limit=_first_told(calls.last("buffer_limit"), calls.last("buffer_size")),
        buffered=tally(buffered[buffered != NOT_TOLD]),
        empty_calls=int((buffered == 0).sum()),
        bytes_per_element=element_bytes(calls),
    )


def tally(values: IntArray) -> Tally:
    numbers = values.astype(np.float64)
    return Tally(len(numbers), float(numbers.sum()), float((numbers * numbers).sum()))


def _count_iterators(threads: Threads, rows: IntArray) -> tuple[int, int]:
    """Count the iterators of a stage by their names, and those of its calls that found the end of a file or an epoch.

    An iterator is at its end when another one of its stage begins after its last call; that one was answered with nothing.
    """
    names = int(threads.name[rows].max(initial=-1)) + 1
    first, last = np.full(names, np.iinfo(np.int64).max), np.full(names, np.iinfo(np.int64).min)
    kernels.find_spans(rows, threads.start_ns, threads.name, first, last)
    occurs = last >= first
    return int(occurs.sum()), int((last[occurs] < first[occurs].max(initial=np.iinfo(np.int64).min)).sum())


def _first_told(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


Setting = TypeVar("Setting")


def merge_stages(trees: Sequence[Sequence[TracedStage]]) -> tuple[tuple[TracedStage, ...], list[list[int]]]:
    """Merge the stages of traces in the order of time.

    Returns:
        The stages, and for each trace the new number of each of its stages.
    """
    places = order_places(stage.path for tree in trees for stage in tree)
    number = {place.path: index for index, place in enumerate(places)}
    same: list[list[TracedStage]] = [[] for _ in places]
    for tree in trees:
        for stage in tree:
            same[number[stage.path]].append(stage)
    merged = tuple(
        replace(_add_up(stages), number=index, parent=place.parent)
        for index, (place, stages) in enumerate(zip(places, same, strict=True))
    )
    return merged, [[number[stage.path] for stage in tree] for tree in trees]


def _add_up(stages: Sequence[TracedStage]) -> TracedStage:
    """Add up descriptions of a stage, in the order of time; of settings that change, the latest stand."""
    return replace(
        stages[0],
        node=common_dataset(stage.node for stage in stages),
        origin=next((stage.origin for stage in stages if stage.origin is not StageOrigin.WRITTEN), StageOrigin.WRITTEN),
        iterators=max(stage.iterators for stage in stages),
        observed_ns=sum(stage.observed_ns for stage in stages),
        calls=sum(stage.calls for stage in stages),
        elements=sum(stage.elements for stage in stages),
        self_ns=sum(stage.self_ns for stage in stages),
        blocked_ns=sum(stage.blocked_ns for stage in stages),
        function_calls=sum(stage.function_calls for stage in stages),
        function_on_thread_ns=sum(stage.function_on_thread_ns for stage in stages),
        function_latency=reduce(Tally.__add__, (stage.function_latency for stage in stages)),
        operations=add_operations(chain.from_iterable(stage.operations for stage in stages)),
        parallelism=_latest(stage.parallelism for stage in stages),
        cycle_length=_latest(stage.cycle_length for stage in stages),
        autotuned=_latest(stage.autotuned for stage in stages),
        deterministic=_latest(stage.deterministic for stage in stages),
        buffer_limit=_latest(stage.buffer_limit for stage in stages),
        buffered=reduce(Tally.__add__, (stage.buffered for stage in stages)),
        empty_calls=sum(stage.empty_calls for stage in stages),
        bytes_per_element=_latest(stage.bytes_per_element for stage in stages),
    )


def add_operations(operations: Iterable[StageOperation]) -> tuple[StageOperation, ...]:
    """Add up ops of the same type; the costliest come first."""
    calls, self_ns = Counter[str](), Counter[str]()
    for operation in operations:
        calls[operation.name] += operation.calls
        self_ns[operation.name] += operation.self_ns
    ranked = sorted(self_ns.items(), key=lambda item: (-item[1], item[0]))
    return tuple(StageOperation(name, calls[name], spent) for name, spent in ranked)


def _latest(settings: Iterable[Setting | None]) -> Setting | None:
    latest = None
    for setting in settings:
        latest = latest if setting is None else setting
    return latest
