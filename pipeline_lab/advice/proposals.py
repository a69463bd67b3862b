"""What a rule proposes: changed options with the reason, what else changes, and how safe it is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.stage_costs import RunningStage, pool_threads, running_stages
from pipeline_lab.advice.step_terms import StageTime, stage_times
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.analysis.results import Results
from pipeline_lab.errors import OptionsError, Unavailable
from pipeline_lab.options.run_options import RunOptions, read_options

Document = dict[str, Any]
Stages = list[Document]


def edit_stages(
    options: RunOptions, change: Callable[[Stages], Iterable[Document]], **pipeline: Any
) -> RunOptions | None:
    """Return options with other stages and, where they are given, other fields of the pipeline."""
    document = options.model_dump(mode="json")
    stages = list(change([dict(stage) for stage in document["pipeline"]["stages"]]))
    document["pipeline"] = {**document["pipeline"], "stages": stages, **pipeline}
    return _read(document)


def with_cache(options: RunOptions, functions: Sequence[str], where: str | None) -> RunOptions | None:
    """Return options with the reader, some functions, a cache and then all others; an older cache goes.

    Args:
        options: To change.
        functions: Stages that the cache keeps the results of; they move to the reader in the order that they have.
        where: ``memory`` or ``file``; None for no cache at all.
    """

    def change(stages: Stages) -> Stages:
        others = [stage for stage in stages[1:] if stage["stage"] != "cache"]
        if where is None:
            return [stages[0], *others]
        kept = [stage for stage in others if stage["stage"] in functions]
        rest = [stage for stage in others if stage["stage"] not in functions]
        return [stages[0], *kept, {"stage": "cache", "where": where}, *rest]

    return edit_stages(options, change)


def with_whole_batches(options: RunOptions, functions: Sequence[str]) -> RunOptions | None:
    """Return options in which these functions come after ``batch``, so that each call sees a whole batch.

    None where there is no ``batch``, or where views are made, which are examples of their own from then on.
    """
    if options.pipeline.find("batch") is None or "views" in functions:
        return None

    def change(stages: Stages) -> Stages:
        moved = [stage for stage in stages if stage["stage"] in functions]
        others = [stage for stage in stages if stage["stage"] not in functions]
        place = next(index for index, stage in enumerate(others) if stage["stage"] == "batch") + 1
        return [*others[:place], *moved, *others[place:]]

    return edit_stages(options, change)


def set_stage(options: RunOptions, index: int, **values: Any) -> RunOptions | None:
    """Return options with fields of one stage changed."""

    def change(stages: Stages) -> Stages:
        stages[index] |= values
        return stages

    return edit_stages(options, change)


def set_pipeline(options: RunOptions, **values: Any) -> RunOptions | None:
    """Return options with fields of the pipeline changed."""
    return edit_stages(options, lambda stages: stages, **values)


def set_workload(options: RunOptions, **values: Any) -> RunOptions | None:
    """Return options with fields of the workload changed."""
    document = options.model_dump(mode="json")
    document["workload"] |= values
    return _read(document)


def _read(document: Document) -> RunOptions | None:
    try:
        return read_options(document)
    except OptionsError:
        return None


SAFE, CAREFUL, BOLD = 1.0, 1.5, 3.0
"""How much has to be thought over before a change: nothing, memory or disk, what the model learns from."""
RISKS = {SAFE: "low risk", CAREFUL: "some risk", BOLD: "high risk"}
"""The same for people."""


@dataclass(frozen=True)
class Proposal:
    """One change with what speaks for it.

    Attributes:
        change: What to do, a sentence.
        why: The evidence, a sentence.
        options: The changed options; None where they would not be allowed, or no option does it.
        side_effects: What else changes, a sentence each.
        risk: One of ``RISKS``; suggestions are ordered by gain per risk.
        serves_sampling: It is worth doing for what the model learns or for memory, whatever the step time does.
        in_words: No option of the lab does it.
    """

    change: str
    why: str
    options: RunOptions | None
    side_effects: tuple[str, ...] = ()
    risk: float = SAFE
    serves_sampling: bool = False
    in_words: bool = False


@dataclass(frozen=True)
class Case:
    """A run that is to become faster.

    Attributes:
        measured: What it measured.
        results: Its diagnosis.
    """

    measured: Measured
    results: Results

    @property
    def options(self) -> RunOptions:
        return self.measured.options

    @cached_property
    def own(self) -> Prediction:
        """The model's account of the run itself."""
        found = predict(self.measured, self.options)
        assert isinstance(found, Prediction)
        return found

    @cached_property
    def running(self) -> tuple[RunningStage, ...]:
        return running_stages(self.options, self.measured.machine)

    @cached_property
    def times(self) -> tuple[StageTime, ...]:
        return stage_times(self.running, self.measured, self.options)

    @property
    def pool_threads(self) -> int:
        return pool_threads(self.options, self.measured.machine)

    @property
    def ram_bytes(self) -> int | None:
        """Memory that AUTOTUNE would allow for buffers: half of what was free; None if it is not known."""
        model = self.results.live_model
        return None if isinstance(model, Unavailable) else model.ram_budget_bytes

    def ns_per_example(self, options: RunOptions | None) -> float:
        """Return the predicted time of changed options for one example, ns; infinite where there is none."""
        found = None if options is None else predict(self.measured, options)
        return found.ns_per_example if isinstance(found, Prediction) else float("inf")

    def memory_of(self, options: RunOptions) -> int | None:
        """Return what changed options hold in buffers and caches, bytes; None if it is not known."""
        found = predict(self.measured, options)
        if isinstance(found, Unavailable) or isinstance(found.memory_bytes, Unavailable):
            return None
        return found.memory_bytes


Rule: TypeAlias = Callable[[Case], Iterator[Proposal]]
