"""A pipeline as an ordered sequence of stages, whatever it was made from, and what they say together.

Each stage stands for one line (or a few) of tf.data code; :mod:`pipeline_lab.pipeline.source` renders them in the
order given here. Parsing that comes after `batch` is vectorized: it sees a batch of records at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from pipeline_lab.fields import Options
from pipeline_lab.stages.registry import AnyStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Amount, Element, Neighbors, WorkloadTraits
from pipeline_lab.statistics.reading_steps import Epoch

StageT = TypeVar("StageT", bound=Stage)


class StageSequence:
    """Stages in the order in which the elements pass them; a subclass says where they come from."""

    stages: tuple[Stage, ...]

    def find(self, stage: str) -> Stage | None:
        """Return the first stage of that name, or None."""
        return next((found for found in self.stages if found.stage == stage), None)

    def first(self, kind: type[StageT]) -> StageT | None:
        """Return the first stage of a kind, or None."""
        return next((found for found in self.stages if isinstance(found, kind)), None)

    @property
    def views(self) -> int:
        """Examples that become of one record."""
        copies = 1
        for stage in self.stages:
            copies *= stage.copies
        return copies

    def is_vectorized(self, stage: str) -> bool:
        """Say whether a stage sees whole batches because it comes after ``batch``."""
        return any(
            found.stage == stage and size is not None for found, size in zip(self.stages, self.batch_sizes, strict=True)
        )

    @property
    def batch_sizes(self) -> tuple[int | None, ...]:
        """Examples in one element after each stage, on average after buckets; None for single elements."""
        return tuple(self._batch_sizes())

    @property
    def batch_size(self) -> int:
        size = self.batch_sizes[-1]
        assert size is not None
        return size

    def amounts(self, file_sizes: Sequence[int]) -> tuple[Amount, ...]:
        """Count what each stage hands on, a filter's share as expected.

        Args:
            file_sizes: Records of each file.
        """
        return tuple(self._amounts(file_sizes))

    def epoch(self, file_sizes: Sequence[int]) -> Epoch:
        """Return what one pass over the data sends to the training step; what stages leave out is no part of it.

        Args:
            file_sizes: Records of each file.
        """
        amounts = self.amounts(file_sizes)
        repeat = next((index for index, stage in enumerate(self.stages) if stage.repeats), len(self.stages))
        examples = amounts[repeat - 1].examples
        if repeat < len(self.stages):
            examples *= self.batch_size / self.examples_for_batch(amounts)[repeat]
        return Epoch(max(1, round(examples)), any(stage.is_part and stage.mixes for stage in self.stages))

    def elements(self, workload: WorkloadTraits) -> tuple[Element, ...]:
        """Describe the elements after each stage."""
        return tuple(self._elements(workload))

    def examples_for_batch(self, amounts: Sequence[Amount] | None) -> tuple[float, ...]:
        """Return the examples that each stage hands on for one batch, in the steady part of a run.

        Args:
            amounts: What each stage hands on in one pass over the data. A ``skip`` before an endless repeat reads what it
                leaves out once for each pass; where the amounts are not known, that is left out.
        """
        found, examples = [0.0] * len(self.stages), float(self.batch_size)
        for index in range(len(self.stages) - 1, -1, -1):
            found[index] = examples
            before, after = (None, None) if amounts is None or not index else amounts[index - 1 : index + 1]
            examples *= self.stages[index].taken_for_each(before, after)
        return tuple(found)

    def check_places(self) -> None:
        """Refuse stages that stand where they cannot.

        Raises:
            ValueError: One of them does.
        """
        kinds = [stage.stage for stage in self.stages]
        if not kinds:
            return
        if kinds[0] != "read":
            raise ValueError("the first stage must be read")
        for stage in self.stages:
            if stage.once and kinds.count(stage.stage) > 1:
                raise ValueError(f"{stage.stage} may occur only once, but occurs {kinds.count(stage.stage)} times")
        if not any(stage.makes_batches for stage in self.stages):
            raise ValueError("a batch stage is missing; the training step takes batches")
        sizes = (None, *self.batch_sizes)
        for index, stage in enumerate(self.stages):
            stage.check(Neighbors(self.stages[:index], self.stages[index + 1 :], sizes[index]))
        if sizes[-1] is None:
            raise ValueError("a batch stage is missing after unbatch; the training step takes batches")

    def _batch_sizes(self) -> Iterator[int | None]:
        size = None
        for stage in self.stages:
            size = stage.batch_size(size)
            yield size

    def _elements(self, workload: WorkloadTraits) -> Iterator[Element]:
        element = workload.record()
        for stage, size in zip(self.stages, self.batch_sizes, strict=True):
            element = stage.element(replace(element, examples=size or 1), workload)
            yield element

    def _amounts(self, file_sizes: Sequence[int]) -> Iterator[Amount]:
        amount = Amount(0, 0)
        for stage, size in zip(self.stages, self.batch_sizes, strict=True):
            amount = stage.amount(amount, size or 1, file_sizes)
            yield amount


class PipelineOptions(StageSequence, Options):
    """Ordered stages, and the ``tf.data.Options`` around them."""

    stages: tuple[AnyStage, ...] = Field((), max_length=40)
    """Empty where the dataset comes from a module of the user's."""
    private_threadpool_size: int | None = Field(None, ge=1, le=1024)
    """Threads that run user functions; None leaves tf.data's default, the number of cores."""
    tensorflow_rewrites: bool = True
    """Let TensorFlow parallelize maps, fuse stages and inject a prefetch; off runs the pipeline just as written."""
    autotune_algorithm: Literal["max_parallelism", "hill_climb", "gradient_descent", "stage_based"] | None = None
    """How AUTOTUNE looks for parallelism and buffer sizes; None leaves it to tf.data."""
    autotune_cpu_budget: int | None = Field(None, ge=1, le=1024)
    """Cores that AUTOTUNE may plan with; None for all."""
    autotune_ram_budget_mb: int | None = Field(None, ge=1, le=10_000_000)
    """Memory that AUTOTUNE may fill with buffers, MB; None for tf.data's default, half of what is free."""
    deterministic: bool | None = None
    """Keep the order in parallel stages that do not say it themselves; None leaves tf.data's default, which keeps it."""
    slack: bool = False
    """Begin the final prefetch a little later, so that it does not disturb the start of the step."""
    warm_start: bool = False
    """Start background threads when the iterator is made, not at its first batch."""

    matters: ClassVar = ("private_threadpool_size", "deterministic")
    labels: ClassVar = {
        "private_threadpool_size": "Private thread pool",
        "tensorflow_rewrites": "TensorFlow rewrites",
        "autotune_algorithm": "AUTOTUNE's algorithm",
        "autotune_cpu_budget": "AUTOTUNE's cores",
        "autotune_ram_budget_mb": "AUTOTUNE's memory (MB)",
    }

    @model_validator(mode="after")
    def _order_makes_sense(self) -> "PipelineOptions":
        self.check_places()
        return self
