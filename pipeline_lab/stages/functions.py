"""Stages that call a function of the workload for each element, or for each batch where they come after ``batch``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import Parallelism
from pipeline_lab.stages.code import assign_call, parallel_arguments
from pipeline_lab.stages.stage import OneForOne
from pipeline_lab.stages.stage_values import (
    FLOAT_BYTES,
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
from pipeline_lab.statistics.reading_steps import OrderStep, Views

MOST_MAPPED_BATCHES = 16
"""Batches that a fused map and batch holds at most."""
MAPS = frozenset({"Map", "ParallelMapV2"})
HOW_IT_RUNS = frozenset({"num_parallel_calls", "deterministic"})
"""Fields that change how a function runs, and not what it does."""


class FunctionStage(OneForOne):
    """A stage that maps a function of the workload over the elements."""

    if TYPE_CHECKING:  # each stage declares them itself, as its last fields
        num_parallel_calls: Parallelism
        deterministic: bool | None

    iterators: ClassVar[frozenset[str]] = MAPS
    methods: ClassVar[frozenset[str]] = frozenset()
    is_function: ClassVar[bool] = True
    sliders: ClassVar[Mapping[str, str]] = {"num_parallel_calls": "Parallel calls of {stage}"}
    once: ClassVar[bool] = True

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return workload.apply(self.stage, before)

    def lines(self, writing: Writing) -> Iterable[str]:
        arguments = [writing.function, *parallel_arguments(self.num_parallel_calls, self.deterministic)]
        return [assign_call("dataset.map", arguments, "whole batches at once" if writing.is_vectorized else "")]

    def running(self, host: Host) -> Running:
        written = self.num_parallel_calls
        if written is None and host.rewrites and (host.ran_parallel or self.is_made_parallel(host.workload)):
            written = "autotune"
        if written is None:
            return Running()
        calls = host.calls(written)
        asked = calls if written == "autotune" else float(written)
        held = asked * host.size
        if host.fused_batch is not None:
            held = host.fused_batch * min(MOST_MAPPED_BATCHES, max(1.0, asked / host.fused_batch))
        in_order = calls > 1 and host.keeps_order(self.deterministic)
        return Running(calls, asked, True, held, uses_pool=True, keeps_order=in_order)

    def with_calls(self, calls: int, files: int | None) -> Mapping[str, Any] | None:
        return None if self.num_parallel_calls == "autotune" else {"num_parallel_calls": calls}

    def is_made_parallel(self, workload: WorkloadTraits) -> bool:
        """Say whether TensorFlow makes a serial function parallel by itself: not if it is random or runs Python."""
        return self.draws is None and not workload.runs_python(self.stage)

    def is_random(self, workload: WorkloadTraits) -> bool:
        return self.draws is not None or workload.is_random(self.stage)

    def remarks(self, place: Position) -> Iterator[Remark]:
        calls = self.num_parallel_calls
        if calls is None and not place.rewrites:
            yield place.remark(
                "serial-stage",
                Weight.ADVICE,
                f"{self.stage} is serial and uses one core at a time; give it num_parallel_calls.",
            )
        if place.pool is not None and isinstance(calls, int) and calls > place.pool:
            yield place.remark(
                "small-pool",
                Weight.ADVICE,
                f"{self.stage} asks for {calls} calls at once, but the thread pool has {place.pool} threads, which is the "
                "number that counts; raise private_threadpool_size.",
            )


class ParseStage(FunctionStage):
    """Turn records into tensors: parse the Example, decode the image. After `batch` it is vectorized."""

    stage: Literal["parse"] = "parse"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    vectorized_saves_ns: ClassVar[float] = 20_000.0
    is_tuned: ClassVar[bool] = True


def _after_parse(stage: str, standing: Neighbors) -> None:
    if any(isinstance(other, ParseStage) for other in standing.after):
        raise ValueError(f"{stage} needs decoded images; put parse before it")


class ViewsStage(FunctionStage):
    """Make several views of each image, random crops and their mirror images; each is an example of its own from then on."""

    stage: Literal["views"] = "views"
    crops: int = Field(5, ge=1, le=100)
    size: int = Field(24, ge=4, le=1024)
    """Height and width of a view, pixels."""
    mirror: bool = True
    """Every crop also as its mirror image, which makes twice as many views."""
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    iterators: ClassVar[frozenset[str]] = frozenset({"Unbatch"})
    inner_iterators: ClassVar[tuple[frozenset[str], ...]] = (MAPS,)
    placed_after: ClassVar[str | None] = "parse"

    @property
    def views(self) -> int:
        """Views of one image."""
        return self.crops * (2 if self.mirror else 1)

    @property
    def copies(self) -> int:
        return self.views

    def amount(self, before: Amount, size: int, file_sizes: Sequence[int]) -> Amount:
        return Amount(before.elements * self.views, before.examples * self.views)

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return before.as_pixels(self.size, before.number_bytes)

    def order(self, reading: Reading) -> Iterable[OrderStep]:
        return [Views(self.views)]

    def asks_for(self, wanted: int, size: int, left: float) -> int:
        return -(-wanted // self.views)

    def taken_for_each(self, before: Amount | None, after: Amount | None) -> float:
        return 1.0 / self.views

    def lines(self, writing: Writing) -> Iterable[str]:
        return [*super().lines(writing), assign_call("dataset.unbatch", [])]

    @property
    def draws(self) -> str:
        return "crops"

    def check(self, standing: Neighbors) -> None:
        _after_parse(self.stage, standing)
        if standing.size is not None:
            raise ValueError("views makes examples out of single images; put it before batch")

    def check_element(self, element: Element) -> None:
        size = element.image_size
        if self.size > size:
            raise ValueError(f"views of {self.size} pixels do not fit into images of {size} pixels")


class AugmentStage(FunctionStage):
    """Change images at random and scale them to zero mean and unit variance."""

    stage: Literal["augment"] = "augment"
    pad: int = Field(4, ge=0, le=256)
    """Pixels of zeros added on each side before the crop."""
    crop: int | None = Field(None, ge=4, le=1024)
    """Height and width of a random crop; None keeps the stored size."""
    flip: bool = True
    rotate_degrees: float = Field(15.0, ge=0, le=180)
    """Largest random rotation either way, degrees; 0 turns it off."""
    cutout: int = Field(8, ge=0, le=1024)
    """Height and width of a random square set to zero; 0 turns it off."""
    normalise: bool = True
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    vectorized_saves_ns: ClassVar[float] = 120_000.0
    is_tuned: ClassVar[bool] = True

    def element(self, before: Element, workload: WorkloadTraits) -> Element:
        return before.as_pixels(self.crop or before.image_size + 2 * self.pad, FLOAT_BYTES)

    @property
    def draws(self) -> str | None:
        return "augmentation" if self.flip or self.rotate_degrees or self.cutout or self.crop else None

    def check(self, standing: Neighbors) -> None:
        _after_parse(self.stage, standing)

    def check_element(self, element: Element) -> None:
        padded = element.image_size + 2 * self.pad
        if self.crop is not None and self.crop > padded:
            raise ValueError(f"a crop of {self.crop} does not fit into padded images of {padded} pixels")
        if self.cutout > (self.crop or element.image_size):
            raise ValueError(f"a cutout of {self.cutout} is larger than the image; make it smaller")


class LookupStage(FunctionStage):
    """Put the vector of its image into each caption (features workload). After `batch` it looks up all of a batch at once."""

    stage: Literal["lookup"] = "lookup"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class MapStage(FunctionStage):
    """The synthetic workload's own work on each record (`map_ms`)."""

    stage: Literal["map"] = "map"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    methods: ClassVar[frozenset[str]] = frozenset({"map"})
    is_tuned: ClassVar[bool] = True
