"""Stages that change the order of the elements, or start it over."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline_lab.stages.code import assign_call
from pipeline_lab.stages.stage import OneForOne
from pipeline_lab.stages.stage_values import Amount, Position, Reading, Remark, Weight, Writing
from pipeline_lab.statistics.reading_steps import OrderStep, Repeat, Shuffle
from pipeline_lab.units import format_bytes, format_count


class ShuffleStage(OneForOne):
    """Draw each element at random from a buffer of the next `buffer_size` ones."""

    stage: Literal["shuffle"] = "shuffle"
    buffer_size: int = Field(1000, ge=1, le=100_000_000)
    """Elements at this place of the pipeline: examples before `batch`, batches after it."""
    reshuffle_each_iteration: bool = True

    matters: ClassVar = ("buffer_size",)
    sliders: ClassVar = {"buffer_size": "Shuffle buffer"}
    methods: ClassVar[frozenset[str]] = frozenset({"shuffle"})
    iterators: ClassVar[frozenset[str]] = frozenset({"Shuffle", "ShuffleAndRepeat"})

    def lines(self, writing: Writing) -> Iterable[str]:
        again = [] if self.reshuffle_each_iteration else ["reshuffle_each_iteration=False"]
        return [assign_call("dataset.shuffle", [str(self.buffer_size), *again])]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Shuffle(self.buffer_size, self.reshuffle_each_iteration)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted + int(min(self.buffer_size, left))

    @property
    def buffered(self) -> int | None:
        return self.buffer_size

    @property
    def mixes(self) -> str | None:
        return "shuffle" if self.reshuffle_each_iteration else None

    def holds(self, most: float) -> tuple[str, str, int] | None:
        return "shuffle-memory", "The shuffle buffer", int(min(self.buffer_size, most))

    def remarks(self, place: Position) -> Iterator[Remark]:
        store = max((index for index, stage in enumerate(place.stages) if stage.keeps), default=0)
        if store > place.index and not any(stage.buffered for stage in place.stages[store + 1 :]):
            yield place.remark(
                "frozen-order",
                Weight.PROBLEM,
                f"The {place.stages[store].stage} comes after shuffle, so every epoch has the order of the first; put shuffle after "
                "it.",
            )
        if any(stage.repeats for stage in place.before):
            yield place.remark(
                "mixed-epochs",
                Weight.ADVICE,
                "repeat comes before shuffle, so epochs overlap: some examples come twice before others come "
                "once; put shuffle first.",
            )
        if place.sizes[place.index] is not None:
            made = next(at for at in range(place.index - 1, -1, -1) if at == 0 or place.sizes[at - 1] is None)
            batches = place.stages[made].stage
            yield place.remark(
                "shuffled-batches",
                Weight.ADVICE,
                f"shuffle comes after {batches}: it reorders whole batches and leaves the examples in each of them "
                f"together; put it before {batches}.",
            )
        views_before = any(stage.copies > 1 for stage in place.before)  # which come one after another, and decoded
        if place.element.is_decoded and not views_before:
            yield place.remark(
                "decoded-shuffle",
                Weight.ADVICE,
                "shuffle comes after parse, so its buffer holds decoded examples; before parse it would hold the smaller "
                "records.",
            )
        yield from self._sizes(place)

    def _sizes(self, place: Position) -> Iterator[Remark]:
        yield from self._weak(place)
        examples = self.buffer_size * place.element.examples
        if place.amounts is not None and examples > place.amounts[place.index].examples:
            yield place.remark(
                "buffer-beyond-data",
                Weight.FACT,
                f"The buffer has room for {format_count(examples)} examples, but the data has only "
                f"{format_count(int(place.amounts[place.index].examples))}: every epoch is shuffled perfectly, the first "
                "batch waits until all of them are read, and the rest of the buffer is never used.",
            )

    def _weak(self, place: Position) -> Iterator[Remark]:
        """Compare the buffer with files that are read one after the other."""
        sizes = place.stages[0].sizes_in_order(place.file_sizes or ())
        if sizes is None or len(place.file_sizes or ()) < 2 or any(stage.reorders_each_pass for stage in place.stages):
            return
        views = math.prod(stage.copies for stage in place.before)
        sizes, records = [size * views for size in sizes], sum(place.file_sizes or ()) * views
        examples, cover = self.buffer_size * place.element.examples, _to_cover(records, place)
        filling = bisect_left(list(accumulate(sizes)), examples) + 1
        if examples < max(sizes):
            yield place.remark(
                "weak-shuffle",
                Weight.ADVICE,
                f"The buffer holds {format_count(examples)} examples, less than the largest file "
                f"({format_count(max(sizes))}), and files are read one after the other: at any time the model sees one "
                f"or two files; interleave the files or use a larger buffer. {cover}",
            )
        elif filling < len(sizes):
            yield place.remark(
                "weak-shuffle",
                Weight.ADVICE,
                f"The buffer of {format_count(examples)} examples fills from the first {filling} of {len(sizes)} files, and "
                "files are read one after the other, so the first batches hold nothing else; interleave the files or visit "
                f"them in a new order each epoch. {cover}",
            )


def _to_cover(records: int, place: Position) -> str:
    size_bytes = place.element.example_bytes
    size = "" if size_bytes is None else f", {format_bytes(records * size_bytes)}"
    return f"A buffer that covers the data would hold {format_count(records)} examples{size}."


class RepeatStage(OneForOne):
    """Start over at the end of the data."""

    stage: Literal["repeat"] = "repeat"
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Epochs; None repeats without end."""

    methods: ClassVar[frozenset[str]] = frozenset({"repeat"})
    iterators: ClassVar[frozenset[str]] = frozenset({"ForeverRepeat", "FiniteRepeat", "ShuffleAndRepeat"})
    repeats: ClassVar[bool] = True

    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        count = math.inf if self.count is None else self.count
        return Amount(before.elements * count, before.examples * count) if before.elements else before

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.repeat", [] if self.count is None else [str(self.count)])]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Repeat(self.count)]

    @property
    def is_endless(self) -> bool:
        return self.count is None
