"""Rules that send less padding to the training step."""

from collections.abc import Iterator

from pipeline_lab.advice.edits import set_stage
from pipeline_lab.advice.proposals import CAREFUL, Case, Proposal, Rule
from pipeline_lab.analysis.verdict.sampling_findings import MUCH_PADDING_PERCENT
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.stages import BatchStage
from pipeline_lab.units import format_percent


def ragged(case: Case) -> Iterator[Proposal]:
    """Let each example keep its own length."""
    padding = case.results.padding
    if isinstance(padding, Unavailable) or padding.percent < MUCH_PADDING_PERCENT:
        return
    for index, stage in enumerate(case.options.pipeline.stages):
        if isinstance(stage, BatchStage) and stage.mode == "padded_batch":
            yield Proposal(
                "Set mode = ragged_batch on batch.",
                f"{format_percent(padding.percent)} of what a step is sent is padding.",
                set_stage(case.options, index, mode="ragged_batch"),
                (
                    "The model has to take ragged tensors; batches sorted by length, which any model takes, keep some padding.",
                ),
                CAREFUL,
            )


PADDING_RULES: tuple[Rule, ...] = (ragged,)
