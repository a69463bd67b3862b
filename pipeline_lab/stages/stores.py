"""Stages that keep elements, in memory or in ``cache_dir``, so that what is before them runs once."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from pipeline_lab.stages.code import INDENT, Code, assign_call, quote
from pipeline_lab.stages.stage import OneForOne, Stage
from pipeline_lab.stages.stage_values import TAKEN_NS, Neighbors, Position, Reading, Remark, Weight, Writing
from pipeline_lab.statistics.reading_steps import Cache, OrderStep
from pipeline_lab.units import format_percent

FROM_DISK_NS = 20_000.0
"""Time to read an example of a few kB back from a cache on disk (2.5 GHz core, page cache warm)."""
COPIED_BYTES_PER_NS = 2.0
"""Bytes of a larger one that are read back in a nanosecond."""


def _named(compression: str | None) -> str:
    return (compression or "none").lower()


class StoreStage(OneForOne):
    """A stage that keeps all elements of the first epoch."""

    fixes_order: ClassVar[bool] = True
    fills: ClassVar[bool] = True

    @property
    def keeps(self) -> str:
        return "disk"

    def code(self) -> Code:
        return Code(imports=("import os",) if self.keeps == "disk" else ())

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Cache()]

    def holds(self, most: float) -> tuple[str, str, int] | None:
        return None if most == float("inf") else ("cache-size", f"The {self.stage}", int(most))

    def remarks(self, place: Position) -> Iterator[Remark]:
        random = next((stage for stage in place.before if stage.draws is not None), None)
        if random is not None:
            yield place.remark(
                "frozen-augmentation",
                Weight.PROBLEM,
                f"The {self.stage} comes after the random {random.draws}, so every epoch repeats the images of the first; "
                f"put the {self.stage} before {random.stage}.",
            )
        if any(stage.is_endless for stage in place.before):
            yield place.remark(
                "endless-cache",
                Weight.PROBLEM,
                f"The {self.stage} comes after an endless repeat: it is never complete, is never read, and fills the "
                f"{self.keeps}; put it before repeat.",
            )
        shares = [place.workload.padding_share(stage) or 0.0 for stage in place.before if stage.makes_batches]
        if shares and shares[0]:
            yield place.remark(
                "kept-padding",
                Weight.ADVICE,
                f"The {self.stage} comes after the batch, so about {format_percent(100 * shares[0])} of what it keeps is "
                "padding, and every epoch repeats the batches of the first; put it after parse.",
            )
        if any(stage.is_part and stage.mixes for stage in place.before):
            yield place.remark(
                "frozen-filter",
                Weight.ADVICE,
                f"{self.stage} comes after the random filter, so every epoch has the examples that the first one kept; "
                "put filter after it to draw again each epoch.",
            )


def _path(writing: Writing) -> str:
    return f'os.path.join(cache_dir, "stage-{writing.index}")'


def _compression(chosen: str, default: str) -> list[str]:
    if chosen == default:
        return []
    return [f"compression={'None' if chosen == 'none' else quote(chosen.upper())}"]


class CacheStage(StoreStage):
    """Keep elements after the first epoch; everything before this stage then runs once."""

    stage: Literal["cache"] = "cache"
    where: Literal["memory", "file"] = "memory"

    methods: ClassVar[frozenset[str]] = frozenset({"cache"})
    iterators: ClassVar[frozenset[str]] = frozenset({"MemoryCache", "FileCache"})

    @property
    def keeps(self) -> str:
        return "memory" if self.where == "memory" else "disk"

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.cache", [] if self.where == "memory" else [_path(writing)])]

    def assumed_ns(self, example_bytes: float) -> float:
        return TAKEN_NS if self.where == "memory" else FROM_DISK_NS + example_bytes / COPIED_BYTES_PER_NS

    def costs_like(self, other: Stage) -> bool:
        return isinstance(other, CacheStage) and other.where == self.where

    def remarks(self, place: Position) -> Iterator[Remark]:
        yield from super().remarks(place)
        if (cut := self._cut_by(place)) is not None:
            yield place.remark(
                "partly-read-cache",
                Weight.PROBLEM,
                f"{cut} after the cache stops before the end of the data, so the cache is never complete and is "
                f"discarded; put the cache after {cut}.",
            )

    def _cut_by(self, place: Position) -> str | None:
        """Name the stage that leaves the data before its end; after a repeat it leaves a later epoch."""
        for index, stage in enumerate(place.after, place.index + 1):
            if stage.repeats:
                return None
            amounts = place.amounts
            if stage.stops_early and (
                stage.always_stops or amounts is None or amounts[index - 1].elements > amounts[index].elements
            ):
                return stage.stage
        return None


class SnapshotStage(StoreStage):
    """Write elements to disk during the first epoch and read them from there in later ones (`snapshot`)."""

    stage: Literal["snapshot"] = "snapshot"
    compression: Literal["auto", "none", "gzip", "snappy"] = "auto"
    """``auto`` leaves it to tf.data, which takes Snappy."""

    methods: ClassVar[frozenset[str]] = frozenset({"snapshot"})
    iterators: ClassVar[frozenset[str]] = frozenset()
    needs_measuring: ClassVar[bool] = True
    hides_work: ClassVar[bool] = True

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.snapshot", [_path(writing), *_compression(self.compression, "auto")])]


class SaveStage(StoreStage):
    """Write every element to disk before the first step and read them from there (`save`, `load`)."""

    stage: Literal["save"] = "save"
    compression: Literal["none", "gzip"] = "none"

    methods: ClassVar[frozenset[str]] = frozenset({"save"})
    iterators: ClassVar[frozenset[str]] = frozenset()
    needs_measuring: ClassVar[bool] = True
    hides_work: ClassVar[bool] = True
    fills: ClassVar[bool] = False

    def lines(self, writing: Writing) -> Iterable[str]:
        compression = _compression(self.compression, default="none")
        return [
            f"{INDENT}saved = {_path(writing)}",
            f"{INDENT}if not os.path.exists(saved):",
            f"{INDENT * 2}dataset.save({', '.join(['saved', *compression])})  # the whole data, before the first step",
            assign_call("tf.data.Dataset.load", ["saved", *compression]),
        ]

    def check(self, standing: Neighbors) -> None:
        if any(stage.is_endless for stage in standing.before):
            raise ValueError("save never finishes after an endless repeat; put it before repeat")
