"""Stages that put examples into batches and take them out again."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline_lab.fields import Parallelism, parse_file_sizes, parse_numbers
from pipeline_lab.stages.code import assign_call, parallel_arguments
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import (
    Amount,
    Element,
    Host,
    Neighbors,
    Position,
    Reading,
    Remark,
    Running,
    Weight,
    WorkloadTraits,
    Writing,
)
from pipeline_lab.statistics.reading_steps import Batch, Bucket, OrderStep, Unbatch
from pipeline_lab.units import format_percent

MUCH_PADDING_PERCENT = 25.0
_NOTES = {"padded_batch": "padded to the longest of the batch"}


class BatchingStage(Stage):
    """A stage that changes how many examples an element holds."""

    fixes_order: ClassVar[bool] = True

    def batch_size(self, before: int | None) -> int | None:
        return self.examples

    @property
    @abstractmethod
    def examples(self) -> int:
        """Examples in a batch, about."""

    @property
    def drops(self) -> bool:
        """Say whether the last batch is left out where it is not full."""
        return bool(getattr(self, "drop_remainder", False))

    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        if math.isinf(before.examples):
            return Amount(before.examples, before.examples)
        full = before.examples // self.examples
        if self.drops:
            return Amount(full, full * self.examples)
        return Amount(-(-before.examples // self.examples), before.examples)

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return before

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        return 1.0

    def running(self, host: Host) -> Running:
        return Running()


def _padded(before: Element, share: float | None) -> Element:
    """Return an element of which a share is padding."""
    if before.example_bytes is None or not share:
        return before
    return Element(
        before.examples,
        round(before.example_bytes / (1 - share)),
        before.is_decoded,
        before.image_size,
        before.number_bytes,
    )


def _padding(stage: Stage, place: Position, advice: str = "") -> Iterator[Remark]:
    share, lengths = place.workload.padding_share(stage), place.workload.lengths
    if share is None or lengths is None:
        return
    if not share:
        yield place.remark("padding", Weight.FACT, "Each clip keeps its own length: no padding is sent to the steps.")
        return
    is_much = 100 * share > MUCH_PADDING_PERCENT and bool(advice)
    yield place.remark(
        "padding",
        Weight.ADVICE if is_much else Weight.FACT,
        f"About {format_percent(100 * share)} of what the steps are sent will be padding, with {lengths} in shuffled order"
        f"{advice if is_much else ''}.",
    )


def _refuse_batches(stage: str, standing: Neighbors) -> None:
    if standing.size is not None:
        raise ValueError(
            f"{stage} takes examples, and batches come; use rebatch for another size, or put unbatch in between"
        )


def _refuse_examples(stage: str, standing: Neighbors) -> None:
    if standing.size is None:
        raise ValueError(f"{stage} takes batches; put batch before it")


class BatchStage(BatchingStage):
    """Put consecutive elements together into batches."""

    stage: Literal["batch"] = "batch"
    mode: Literal["batch", "padded_batch", "ragged_batch"] = "batch"
    """``batch`` stacks examples of one length; ``padded_batch`` fills shorter ones up to the longest of the batch;
    ``ragged_batch`` keeps each at its own length."""
    size: int = Field(128, ge=1, le=1_000_000)
    drop_remainder: bool = True
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    matters: ClassVar = ("size",)
    sliders: ClassVar = {"size": "Batch size"}
    methods: ClassVar[frozenset[str]] = frozenset({"batch", "padded_batch", "ragged_batch"})
    iterators: ClassVar[frozenset[str]] = frozenset(
        {"BatchV2", "ParallelBatch", "PaddedBatchV2", "Rebatch", "RebatchV2", "MapAndBatch"}
    )
    makes_batches: ClassVar[bool] = True
    fuses_with_map: ClassVar[bool] = True
    shown_with: ClassVar = {"num_parallel_calls": ("mode", ("batch",)), "deterministic": ("mode", ("batch",))}

    @model_validator(mode="after")
    def _fields_fit_mode(self) -> "BatchStage":
        if self.mode != "batch" and self.num_parallel_calls is not None:
            raise ValueError(f"mode = {self.mode} has no num_parallel_calls; remove it")
        return self

    @property
    def batches(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def examples(self) -> int:
        return self.size

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return _padded(before, workload.padding_share(self))

    def lines(self, writing: Writing) -> Iterable[str]:
        if writing.written is not None:
            return writing.written
        arguments = [str(self.size), *(["drop_remainder=True"] if self.drop_remainder else [])]
        parallel = parallel_arguments(self.num_parallel_calls, self.deterministic)
        return [assign_call(f"dataset.{self.mode}", [*arguments, *parallel], _NOTES.get(self.mode, ""))]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Batch(self.size, self.drop_remainder)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted * self.size

    def running(self, host: Host) -> Running:
        if self.num_parallel_calls is None:
            return Running()
        calls = host.calls(self.num_parallel_calls)
        return Running(calls, works_ahead=True, held_examples=calls * host.size)

    def with_calls(self, calls: int, files: int | None) -> Mapping[str, Any] | None:
        return None if self.num_parallel_calls == "autotune" else {"num_parallel_calls": calls}

    @property
    def maps_inside(self) -> bool:
        return self.mode == "ragged_batch"

    def check(self, standing: Neighbors) -> None:
        _refuse_batches(self.stage, standing)

    def remarks(self, place: Position) -> Iterator[Remark]:
        yield from _padding(self, place, "; bucket_by_sequence_length, or mode = ragged_batch, sends less")
        if not self.drop_remainder:
            yield place.remark(
                "last-batch",
                Weight.FACT,
                "drop_remainder is off: the last batch of the data is smaller, and TensorFlow traces the training step "
                "once more for it.",
            )


class BucketStage(BatchingStage):
    """Put clips into batches with others of about their length; only shorter ones of the same bucket are padded."""

    stage: Literal["bucket_by_sequence_length"] = "bucket_by_sequence_length"
    boundaries_s: Annotated[
        tuple[Annotated[float, Field(gt=0, le=86_400)], ...],
        BeforeValidator(parse_numbers),
        Field(min_length=1, max_length=100),
    ] = (10.0, 20.0, 40.0, 80.0)
    """Where one bucket ends and the next begins, s, written like 10,20,40."""
    batch_sizes: Annotated[
        tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...],
        BeforeValidator(parse_file_sizes),
        Field(min_length=2, max_length=101),
    ] = (32,) * 5
    """Clips in a batch of each bucket, the shortest first: one more than boundaries, written like 32,16,8 or 5x32."""
    drop_remainder: bool = False
    """Throw away what is left in a bucket at the end of the data: the rarest lengths would suffer most."""

    methods: ClassVar[frozenset[str]] = frozenset({"bucket_by_sequence_length"})
    iterators: ClassVar[frozenset[str]] = frozenset({"GroupByWindow"})
    makes_batches: ClassVar[bool] = True
    goes_by_length: ClassVar[bool] = True
    needs_measuring: ClassVar[bool] = True

    @model_validator(mode="after")
    def _buckets_follow_each_other(self) -> "BucketStage":
        for first, second in zip(self.boundaries_s, self.boundaries_s[1:], strict=False):
            if second <= first:
                raise ValueError(
                    f"boundaries_s must rise, but {second:g} comes after {first:g}; sort them, each one once"
                )
        buckets = len(self.boundaries_s) + 1
        if len(self.batch_sizes) != buckets:
            raise ValueError(
                f"{buckets - 1} boundaries make {buckets} buckets, but batch_sizes has {len(self.batch_sizes)}; give one "
                "for each bucket"
            )
        return self

    @property
    def size(self) -> int:
        """Examples in a batch, about: the mean over the buckets."""
        return round(sum(self.batch_sizes) / len(self.batch_sizes))

    @property
    def batches(self) -> tuple[int, ...]:
        return self.batch_sizes

    @property
    def examples(self) -> int:
        return self.size

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return _padded(before, workload.padding_share(self))

    def lines(self, writing: Writing) -> Iterable[str]:
        assert writing.written is not None, "the workload whose examples have a length writes it"
        return writing.written

    def order(self, reading: Reading) -> Iterable[OrderStep] | None:
        return None if reading.buckets is None else [Bucket(reading.buckets, self.batch_sizes, self.drop_remainder)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return wanted * max(self.batch_sizes) + sum(self.batch_sizes)

    def check(self, standing: Neighbors) -> None:
        _refuse_batches(self.stage, standing)

    def remarks(self, place: Position) -> Iterator[Remark]:
        yield from _padding(self, place)
        before = place.amounts[place.index - 1] if place.amounts and place.index else None
        if self.drop_remainder and before is not None and not before.is_endless:
            yield place.remark(
                "dropped-lengths",
                Weight.ADVICE,
                f"drop_remainder throws away up to {max(self.batch_sizes) - 1} clips of each bucket at the end of the data, "
                "most of them of rare lengths; turn it off, or put repeat before it.",
            )


class UnbatchStage(BatchingStage):
    """Take batches apart into examples again."""

    stage: Literal["unbatch"] = "unbatch"

    methods: ClassVar[frozenset[str]] = frozenset({"unbatch"})
    iterators: ClassVar[frozenset[str]] = frozenset({"Unbatch"})
    needs_measuring: ClassVar[bool] = True

    def batch_size(self, before: int | None) -> int | None:
        return None

    @property
    def examples(self) -> int:
        return 1

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.unbatch", [])]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Unbatch(reading.size)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return -(-wanted // size)

    def check(self, standing: Neighbors) -> None:
        _refuse_examples(self.stage, standing)


class RebatchStage(BatchingStage):
    """Cut and join batches to another size, the order of the examples unchanged."""

    stage: Literal["rebatch"] = "rebatch"
    size: int = Field(128, ge=1, le=1_000_000)
    drop_remainder: bool = True

    matters: ClassVar = ("size",)
    methods: ClassVar[frozenset[str]] = frozenset({"rebatch"})
    iterators: ClassVar[frozenset[str]] = frozenset({"Rebatch", "RebatchV2"})
    needs_measuring: ClassVar[bool] = True

    @property
    def batches(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def examples(self) -> int:
        return self.size

    def lines(self, writing: Writing) -> Iterable[str]:
        arguments = [str(self.size), *(["drop_remainder=True"] if self.drop_remainder else [])]
        return [assign_call("dataset.rebatch", arguments)]

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Unbatch(reading.size), Batch(self.size, self.drop_remainder)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return -(-wanted * self.size // size)

    def check(self, standing: Neighbors) -> None:
        _refuse_examples(self.stage, standing)
