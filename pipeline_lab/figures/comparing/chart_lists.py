"""Every chart of a comparison, a race and a search, listed once."""

from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.figures.chart_list import Chart
from pipeline_lab.figures.comparing.compared_pipelines import stage_difference, stages_by_run
from pipeline_lab.figures.comparing.comparison_charts import (
    idle_by_run,
    idle_difference,
    memory_by_run,
    sampling_by_run,
    stalls_by_run,
    step_time_difference,
)
from pipeline_lab.figures.comparing.overlaid_runs import (
    accuracy_by_run,
    anatomy_by_run,
    loss_by_run,
    memory_over_time_by_run,
    step_time_by_run,
    wait_by_run,
)
from pipeline_lab.figures.comparing.race_charts import race_intervals, race_steps
from pipeline_lab.figures.comparing.tune_charts import search_frontier, search_history, search_importance, search_places
from pipeline_lab.tuning.search_result import RecordedSearch

COMPARED_STEPS = "step-parts-by-run"
"""The chart of a comparison that belongs to its answer."""

RACED_STEPS = "race-steps"
"""The chart of a race that belongs to its answer."""

RACE_CHARTS: tuple[Chart[Race], ...] = (
    Chart(
        "race-intervals",
        None,
        "How much longer or shorter each candidate takes than the baseline, with its interval.",
        race_intervals,
    ),
    Chart(
        RACED_STEPS,
        None,
        "The mean step of each arm, divided into waiting for the batch and training on it.",
        race_steps,
    ),
)
"""Every chart of a race."""


SEARCH_HISTORY = "search-history"
"""The chart of a search that belongs to its answer."""

TUNE_CHARTS: tuple[Chart[RecordedSearch], ...] = (
    Chart(
        "search-places",
        None,
        "Every configuration that raced: its time over the start's (the first leader's until one met the start), with "
        "its interval, beside what was predicted.",
        search_places,
        wide=True,
    ),
    Chart(
        SEARCH_HISTORY,
        None,
        "Every configuration in the order in which it first raced, with a line for the best so far.",
        search_history,
    ),
    Chart(
        "search-importance",
        None,
        "How much of the differences between the configurations each option explains by itself.",
        search_importance,
    ),
    Chart(
        "search-frontier",
        None,
        "Time per step against the memory that each configuration holds; a line joins those that nothing beats in both.",
        search_frontier,
    ),
)
"""Every chart of a search."""


COMPARISON_CHARTS: tuple[Chart[Comparison], ...] = (
    Chart(
        COMPARED_STEPS,
        Topic.STEPS,
        "What a profiled step of each run consists of, one strip per run above the next, all at one scale; below them, at one "
        "scale too, when the device worked and waited in the same length of time of each run.",
        anatomy_by_run,
        wide=True,
    ),
    Chart(
        "step-time-difference",
        Topic.STEPS,
        "How much longer or shorter each candidate's step takes than the baseline's, with its interval.",
        step_time_difference,
    ),
    Chart(
        "step-time-by-run",
        Topic.STEPS,
        "Step time of every run over its steps, all on one axis.",
        step_time_by_run,
        wide=True,
    ),
    Chart(
        "stalls-by-run",
        Topic.STALLS,
        "For each run the wait per step that left the device idle, and the wait hidden behind device work.",
        stalls_by_run,
    ),
    Chart(
        "wait-by-run",
        Topic.STALLS,
        "How long every run's steps waited for their next batch, over its steps, all on one axis.",
        wait_by_run,
        wide=True,
    ),
    Chart(
        "stages-by-run",
        Topic.PIPELINE,
        "The pipelines in the order of the code, the source on top, and for each run the thread time of one batch by stage; stages that "
        "TensorFlow fused in one run stand together.",
        stages_by_run,
    ),
    Chart(
        "stage-difference",
        Topic.PIPELINE,
        "For each candidate how much more or less thread time each stage takes for one batch than in the baseline.",
        stage_difference,
    ),
    Chart("idle-by-run", Topic.GAPS, "For each run how long the device idled per step, divided by cause.", idle_by_run),
    Chart(
        "idle-difference",
        Topic.GAPS,
        "For each candidate how much more or less the device idled than in the baseline, by cause.",
        idle_difference,
    ),
    Chart(
        "sampling-by-run",
        Topic.SAMPLING,
        "For each run the sampling skew (total variation distance) of its files, with that of an even sample of this size.",
        sampling_by_run,
    ),
    Chart("memory-by-run", Topic.MEMORY, "Peak resident memory of each run's job.", memory_by_run),
    Chart(
        "memory-over-time-by-run",
        Topic.MEMORY,
        "Resident memory of every run's job over its time, all on one axis.",
        memory_over_time_by_run,
        wide=True,
    ),
    Chart(
        "loss-by-run",
        Topic.STEPS,
        "Loss of every run over its steps, all on one axis.",
        loss_by_run,
        wide=True,
    ),
    Chart(
        "accuracy-by-run",
        Topic.STEPS,
        "Accuracy of every run over its steps, all on one axis.",
        accuracy_by_run,
        wide=True,
    ),
)
"""Every chart of a comparison, in the order in which pages and reports show them."""
