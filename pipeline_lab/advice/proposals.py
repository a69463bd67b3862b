"""What a rule proposes: changed options with the reason, what else changes, and how safe it is."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.stage_costs import RunningStage, pool_threads, running_stages
from pipeline_lab.advice.step_terms import StageTime, stage_times
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.analysis.results import Results
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions

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
