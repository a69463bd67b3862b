"""Examples that Python makes on the fly."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Place, Remark, Weight
from pipeline_lab.units import format_bytes
from pipeline_lab.workloads.workload import Workload

HAND_OVER_MS = 0.2
HAND_OVER_MS_PER_MB = 7.0
"""What it takes to get an example out of a process, on top of its making: 1.5 ms for an image of 256×256 (measured)."""


class GeneratorWorkload(Workload):
    """Train on examples that Python makes on the fly (`from_generator`); nothing is read from files."""

    kind: Literal["generator"] = "generator"
    examples_per_generator: FileSizes = (8000,)
    """Examples of each generator; the read stage visits generators as it would visit files."""
    examples_at_once: int = Field(1, ge=1, le=100_000)
    """Examples that a generator yields at a time; more than one is a batch made in Python, rebatched by `batch`."""
    example_ms: float = Field(0.1, ge=0, le=60_000)
    """Python's work on each example, ms; only one thread of a process at a time can do it."""
    producer: Literal["in_line", "threads", "processes"] = "in_line"
    """Who makes the examples: the generator itself, threads, or processes, which hand them over through a queue."""
    workers: int = Field(2, ge=1, le=256)
    """Threads or processes of each generator."""
    ids: Literal["numbers", "strings"] = "numbers"
    """strings: every example also carries a name that says nothing, as records of a database do; it comes back with the
    example in the run's `names.arrows`."""
    element_bytes: int = Field(1024, ge=8, le=100_000_000)
    """Payload of one example, bytes."""
    compute_ms: float = Field(10.0, ge=0, le=600_000)
    """Time of the training step on one batch, ms."""

    has_files: ClassVar = False
    shown_with: ClassVar = {"workers": ("producer", ("threads", "processes"))}

    made_by_python: ClassVar = True
    computes: ClassVar = False

    def check(self, pipeline: PipelineOptions) -> None:
        read = pipeline.first(ReadStage)
        if read is not None and read.mode == "sample":
            raise ValueError("mode = sample weighs files by their size, which generators do not have; use interleave")
        if read is not None and read.mode == "map":
            raise ValueError("mode = map makes datasets of files, which generators do not have; use flat_map")
        if self.ids == "strings" and pipeline.find("prefetch_to_device"):
            raise ValueError("strings cannot be copied to a device; use prefetch, or ids = numbers")
        if self.examples_at_once == 1:
            return
        if pipeline.find("unbatch"):
            raise ValueError("unbatch does not go with generators that yield several examples at once; remove it")
        for stage in pipeline.stages:
            if stage.stage == "batch":
                return
            if stage.is_part:
                raise ValueError(
                    f"{stage.stage} before batch would count what a generator yields at once, {self.examples_at_once} "
                    "examples; put it behind batch"
                )

    @property
    def has_names(self) -> bool:
        return self.ids == "strings"

    @property
    def known_fields(self) -> frozenset[str]:
        if self.producer != "in_line":  # how long the examples take is not how long one waits for them
            return frozenset({"compute_ms", "examples_per_generator"})
        return frozenset({"example_ms", "examples_at_once", "compute_ms", "examples_per_generator"})

    def set_ms(self, stage: str) -> float:
        return self.example_ms if stage == "read" and self.producer == "in_line" else 0.0

    def examples_per_call(self, stage: str) -> int:
        return self.examples_at_once if stage == "read" else 1

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return self.examples_per_generator

    @property
    def record_bytes(self) -> int:
        return self.element_bytes

    def remarks(self, places: Sequence[Place]) -> Iterator[Remark]:
        """Say who had better make the examples: Python in line, its threads, or processes."""
        hand_over_ms = HAND_OVER_MS + HAND_OVER_MS_PER_MB * self.element_bytes / 1e6
        if self.producer == "threads" and self.example_ms > 0:
            yield places[0].remark(
                "python-threads",
                Weight.ADVICE,
                f"{self.workers} Python threads make no more examples than one, for only one at a time can work; processes "
                "can all work at once.",
            )
        elif self.producer == "processes" and self.example_ms < hand_over_ms:
            yield places[0].remark(
                "process-queue",
                Weight.ADVICE,
                f"To hand over an example of {format_bytes(self.element_bytes)} takes a process about {hand_over_ms:.2g} ms, "
                f"longer than the {self.example_ms:g} ms of making it; make the examples in line.",
            )
