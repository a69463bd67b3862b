"""Put the stages of several traces together: what has the same place in the pipeline is one stage."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from pipeline_lab.analysis.tf_data.places import order_places
from pipeline_lab.analysis.tf_data.results import Operation, Stage, StageOrigin
from pipeline_lab.analysis.tf_data.settings import common_dataset

Setting = TypeVar("Setting")


def merge_stages(trees: Sequence[Sequence[Stage]]) -> tuple[tuple[Stage, ...], list[list[int]]]:
    """Merge the stages of traces in the order of time.

    Returns:
        The stages, and for each trace the new number of each of its stages.
    """
    places = order_places(stage.path for tree in trees for stage in tree)
    number = {place.path: index for index, place in enumerate(places)}
    same: list[list[Stage]] = [[] for _ in places]
    for tree in trees:
        for stage in tree:
            same[number[stage.path]].append(stage)
    merged = tuple(
        replace(reduce(_add, stages), number=index, parent=place.parent)
        for index, (place, stages) in enumerate(zip(places, same, strict=True))
    )
    return merged, [[number[stage.path] for stage in tree] for tree in trees]


def _add(one: Stage, other: Stage) -> Stage:
    """Add up two descriptions of a stage; of settings that change, the later one's stand."""
    return replace(
        one,
        node=common_dataset((one.node, other.node)),
        origin=other.origin if one.origin is StageOrigin.WRITTEN else one.origin,
        iterators=max(one.iterators, other.iterators),
        observed_ns=one.observed_ns + other.observed_ns,
        calls=one.calls + other.calls,
        elements=one.elements + other.elements,
        self_ns=one.self_ns + other.self_ns,
        blocked_ns=one.blocked_ns + other.blocked_ns,
        function_calls=one.function_calls + other.function_calls,
        function_on_thread_ns=one.function_on_thread_ns + other.function_on_thread_ns,
        function_latency=one.function_latency + other.function_latency,
        operations=add_operations((*one.operations, *other.operations)),
        parallelism=_later(one.parallelism, other.parallelism),
        cycle_length=_later(one.cycle_length, other.cycle_length),
        autotuned=_later(one.autotuned, other.autotuned),
        deterministic=_later(one.deterministic, other.deterministic),
        buffer_limit=_later(one.buffer_limit, other.buffer_limit),
        buffered=one.buffered + other.buffered,
        empty_calls=one.empty_calls + other.empty_calls,
        bytes_per_element=_later(one.bytes_per_element, other.bytes_per_element),
    )


def add_operations(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Add up ops of the same type; the costliest come first."""
    calls, self_ns = Counter[str](), Counter[str]()
    for operation in operations:
        calls[operation.name] += operation.calls
        self_ns[operation.name] += operation.self_ns
    return tuple(Operation(name, calls[name], spent) for name, spent in self_ns.most_common())


def _later(one: Setting | None, other: Setting | None) -> Setting | None:
    return one if other is None else other
