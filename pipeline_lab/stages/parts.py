"""Stages that let only a part of the data through."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lab.stages.code import INDENT, assign_call
from pipeline_lab.stages.stage import OneForOne
from pipeline_lab.stages.stage_values import Amount, Element, Position, Reading, Remark, Weight, Writing
from pipeline_lab.statistics.reading_steps import Filter, OrderStep, RandomShard, Shard, Skip, Take
from pipeline_lab.units import format_bytes, format_count


class PartStage(OneForOne):
    """A stage that leaves elements out; those that it hands on are as they came."""

    is_part: ClassVar[bool] = True
    fixes_order: ClassVar[bool] = True

    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        left = self.left(before.elements)
        return before if left == before.elements else Amount(left, min(before.examples, left * size))

    @abstractmethod
    def left(self, elements: float) -> float:
        """Return how many of the elements it hands on."""

    def remarks(self, place: Position) -> Iterator[Remark]:
        work = [stage.stage for stage in place.before if stage.is_function]
        if work and self.wastes_work:
            yield place.remark(
                "wasted-work",
                Weight.ADVICE,
                f"{self.stage} comes after {work[-1]}, so work on the discarded elements is wasted; put {self.stage} before it.",
            )


def _count(count: float, element: Element) -> str:
    """Write elements as examples, and their size where it is known."""
    size = "" if element.size_bytes is None else f" ({format_bytes(int(count) * element.size_bytes)})"
    return f"{format_count(int(count) * element.examples)} examples{size}"


def _wasted(place: Position, sentence: str, weight: Weight = Weight.FACT) -> Remark:
    return place.remark("wasted-reads", weight, f"{sentence}.")


class TakeStage(PartStage):
    """Stop after a number of elements."""

    stage: Literal["take"] = "take"
    count: int = Field(1000, ge=1, le=1_000_000_000)
    """Elements at this place of the pipeline: examples before `batch`, batches after it."""

    methods: ClassVar[frozenset[str]] = frozenset({"take"})
    iterators: ClassVar[frozenset[str]] = frozenset({"FiniteTake"})
    stops_early: ClassVar[bool] = True

    def left(self, elements: float) -> float:
        return min(elements, self.count)

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.take", [str(self.count)])]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Take(self.count)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return min(wanted, self.count)


class SkipStage(PartStage):
    """Leave out the first elements; they are still read."""

    stage: Literal["skip"] = "skip"
    count: int = Field(100, ge=1, le=1_000_000_000)
    """Elements at this place of the pipeline: examples before `batch`, batches after it."""

    methods: ClassVar[frozenset[str]] = frozenset({"skip"})
    iterators: ClassVar[frozenset[str]] = frozenset({"FiniteSkip"})
    wastes_work: ClassVar[bool] = True

    def left(self, elements: float) -> float:
        return max(0, elements - self.count)

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.skip", [str(self.count)])]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Skip(self.count)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted + self.count

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        if before is None or after is None:
            return 1.0
        return before.elements / after.elements if math.isfinite(before.elements) and after.elements else 1.0

    def remarks(self, place: Position) -> Iterator[Remark]:
        yield from super().remarks(place)
        if place.amounts is not None:
            lost = _count(self.count, place.element)
            yield _wasted(place, f"skip reads and discards {lost} each time the data starts")


class ShardStage(PartStage):
    """Keep every n-th element, as one of n jobs does; all are still read."""

    stage: Literal["shard"] = "shard"
    num_shards: int = Field(2, ge=1, le=100_000)
    index: int = Field(0, ge=0, le=99_999)
    """Which of the shards, counted from 0."""

    methods: ClassVar[frozenset[str]] = frozenset({"shard"})
    iterators: ClassVar[frozenset[str]] = frozenset({"Shard"})
    wastes_work: ClassVar[bool] = True

    @model_validator(mode="after")
    def _index_is_a_shard(self) -> "ShardStage":
        if self.index >= self.num_shards:
            raise ValueError(f"index {self.index} is out of range for {self.num_shards} shards; the first is 0")
        return self

    def left(self, elements: float) -> float:
        return elements if math.isinf(elements) else max(0, -(-(elements - self.index) // self.num_shards))

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.shard", [str(self.num_shards), str(self.index)])]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Shard(self.num_shards, self.index)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted * self.num_shards

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        return float(self.num_shards)

    def remarks(self, place: Position) -> Iterator[Remark]:
        if (mixer := place.mixed_by) is not None:
            yield place.remark(
                "unsteady-shards",
                Weight.PROBLEM,
                f"shard comes after {mixer}: each job shuffles differently, so shards overlap; shuffle after shard.",
            )
        yield from super().remarks(place)
        if place.amounts is not None:
            can_share_files = place.stages[0].can_share_files(place.file_sizes or (), self.num_shards)
            fix = (
                "; shard the files instead (num_shards of read), which reads only what it keeps"
                if can_share_files
                else ""
            )
            part = f"{self.num_shards - 1} of {self.num_shards} elements"
            weight = Weight.ADVICE if can_share_files else Weight.FACT
            yield _wasted(place, f"shard reads and discards {part}{fix}", weight)


class RandomShardStage(PartStage):
    """Visit stretches of the data in a new random order each epoch; everything before a stretch is read and discarded to reach it."""

    stage: Literal["random_shard"] = "random_shard"
    num_shards: int = Field(8, ge=1, le=100_000)
    """Consecutive stretches, from the start of the data."""
    shard_size: int = Field(512, ge=1, le=100_000_000)
    """Elements in each stretch; what comes after the last stretch is never used."""

    methods: ClassVar[frozenset[str]] = frozenset()
    iterators: ClassVar[frozenset[str]] = frozenset({"FlatMap"})
    wastes_work: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True
    always_stops: ClassVar[bool] = True
    reorders_each_pass: ClassVar[bool] = True

    def left(self, elements: float) -> float:
        return min(elements, self.num_shards * self.shard_size)

    def lines(self, writing: Writing) -> Iterable[str]:
        shards, size = f"tf.data.Dataset.range({self.num_shards}).shuffle({self.num_shards})", self.shard_size
        return [
            f"{INDENT}shards = {shards}  # a new order each epoch",
            f"{INDENT}whole = dataset",
            assign_call("shards.flat_map", [f"lambda shard: whole.skip(shard * {size}).take({size})"]),
        ]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [RandomShard(self.num_shards, self.shard_size)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted * (self.num_shards + 1) // 2 + self.num_shards * self.shard_size

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        return 1.0 + (self.num_shards - 1) / 2.0  # all before a stretch is read to reach it

    def remarks(self, place: Position) -> Iterator[Remark]:
        if (mixer := place.mixed_by) is not None:
            yield place.remark(
                "unsteady-shards",
                Weight.PROBLEM,
                f"random_shard comes after {mixer}: each stretch is cut from a different order, so some examples come twice "
                "and others never; shuffle after random_shard.",
            )
        yield from super().remarks(place)
        if place.amounts is None or place.amounts[place.index - 1].is_endless:
            return
        before = int(place.amounts[place.index - 1].elements)
        begins = [min(shard * self.shard_size, before) for shard in range(self.num_shards)]
        used = max(1, min(before, self.num_shards * self.shard_size))
        yield _wasted(
            place,
            f"random_shard reads and discards {sum(begins) / used:.2g} elements for each one it passes on, and up to "
            f"{_count(begins[-1], place.element)} before the first element of a stretch",
        )


class FilterStage(PartStage):
    """Keep a random part of the elements, different ones each epoch."""

    stage: Literal["filter"] = "filter"
    keep_percent: float = Field(50.0, ge=1, le=100)
    """Chance of an element to be kept, percent."""

    methods: ClassVar[frozenset[str]] = frozenset({"filter"})
    iterators: ClassVar[frozenset[str]] = frozenset({"Filter"})
    wastes_work: ClassVar[bool] = True
    fixes_order: ClassVar[bool] = False

    @property
    def mixes(self) -> str:
        return "filter"

    def left(self, elements: float) -> float:
        return elements if math.isinf(elements) else round(elements * self.keep_percent / 100)

    def lines(self, writing: Writing) -> Iterable[str]:
        keep = f"lambda _: tf.random.uniform([]) < {self.keep_percent / 100!r}"
        return [assign_call("dataset.filter", [keep], "each time others")]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Filter(self.keep_percent / 100)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return int(wanted / self.keep_percent * 100)

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        return 100.0 / self.keep_percent

    def remarks(self, place: Position) -> Iterator[Remark]:
        yield from super().remarks(place)
        if place.amounts is None:
            return
        before, after = place.amounts[place.index - 1 : place.index + 1]
        if not before.is_endless and after.elements < before.elements:
            lost = _count(before.elements - after.elements, place.element)
            yield _wasted(place, f"filter reads and discards about {lost} of each epoch")
