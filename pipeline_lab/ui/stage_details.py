"""One stage of the pipeline in full, under the chart of them all: chosen from a list, or by its row. The link names it."""

import streamlit as st

from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages, stage_labels
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.run_tables import stage_blocks
from pipeline_lab.ui import contents, state
from pipeline_lab.ui.timeline import jump

CHART = "pipeline-stages"
"""The chart whose rows are the stages."""


def show(diagnosis: Diagnosis) -> None:
    """Show the list and the chosen stage; nothing where no stage is known."""
    stages = join_stages(diagnosis.tf_data, diagnosis.live_model, diagnosis.written)
    if isinstance(stages, Unavailable):
        return
    labels = stage_labels(stages)
    names = [f"{number}. {labels[stage.path]}" for number, stage in enumerate(stages, 1)]
    asked = jump.asked_stage(len(stages))
    state.choose(jump.STAGE, _costliest(stages) if asked is None else asked)  # the list may still hold another run's
    chosen = st.selectbox(
        "One stage in full: choose it here, or by its row above",
        range(len(stages)),
        format_func=names.__getitem__,
        key=jump.STAGE,
        on_change=_choose_listed,
        help="At first it is the one that the device waited for most.",
        width=460,
    )
    path = diagnosis.tf_data if isinstance(diagnosis.tf_data, Unavailable) else diagnosis.tf_data.critical_path
    for number, block in enumerate(stage_blocks(stages[chosen], path)):
        contents.show_block(block, f"stage-{number}")


def _choose_listed() -> None:
    jump.to_stage(state.widget_value(jump.STAGE))


def _costliest(stages: tuple[PipelineStage, ...]) -> int:
    """Return the number of the stage that caused most of the wait; that took most time where no wait is told."""
    return max(range(len(stages)), key=lambda number: (stages[number].exposed_ns or 0, stages[number].work_ns))
