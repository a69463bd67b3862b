"""Every chart of a run, listed once; pages, reports and tests go by this list. ``comparing/chart_lists.py`` has those of several runs."""

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import plotly.graph_objects as go

from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.verdict.recording_effects import why_no_device
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.anatomy_chart import step_anatomy
from pipeline_lab.figures.idle_charts import hosts_side_by_side, idle_by_cause, step_parts_over_time
from pipeline_lab.figures.job_charts import learning, memory_by_allocator, memory_over_time, phases, step_time
from pipeline_lab.figures.pipeline_charts import buffers_over_time, critical_path, parallelism_over_time
from pipeline_lab.figures.pipeline_flow import pipeline_stages
from pipeline_lab.figures.sampling_charts import (
    coverage_over_time,
    evaluated_files,
    evaluation_results,
    file_shares,
    labels_over_time,
    padding_over_time,
    sampling_over_time,
)
from pipeline_lab.figures.stall_charts import stall_over_time, stall_over_windows, stall_per_step, wait_distribution
from pipeline_lab.figures.theme import Mode, add_note
from pipeline_lab.figures.timeline_chart import device_timeline
from pipeline_lab.runs.record import EMULATED_NOTE
from pipeline_lab.tuning.search_result import Tuning

Drawing: TypeAlias = go.Figure | Unavailable
Charted = TypeVar("Charted")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Chart(Generic[Charted]):
    """One chart of a diagnosis, a comparison or a race.

    Attributes:
        name: Used in links, file names and keys.
        section: Where it stands; None in a race, which has one section.
        description: What one sees, for people who cannot see it and as its explanation.
        drawing: From the subject to a figure, or to the reason why there is none.
        wide: Needs the whole width of a page.
    """

    name: str
    section: Topic | None
    description: str
    drawing: Callable[[Charted, Mode], Drawing]
    wide: bool = False

    def draw(self, subject: Charted, mode: Mode = "light") -> Drawing:
        """Draw it; a chart of times says where the accelerator was emulated."""
        figure = self.drawing(subject, mode)
        if self.section in _OF_TIMES and not isinstance(figure, Unavailable) and _is_emulated(subject):
            add_note(figure, EMULATED_NOTE)
        return figure


_OF_TIMES = (None, Topic.STEPS, Topic.STALLS, Topic.GAPS)
"""Sections whose charts show what the device did; None stands for races and searches."""


def _is_emulated(subject: object) -> bool:
    match subject:
        case Diagnosis():
            return subject.source.is_emulated
        case Comparison():
            return any(run.diagnosis.source.is_emulated for run in subject.runs)
        case Race():
            return subject.options.is_emulated
        case Tuning():
            return subject.options.start.training.is_emulated
        case _:
            return False


def _of(
    part: Callable[[Diagnosis], Part | Unavailable], draw: Callable[[Part, Mode], Drawing]
) -> Callable[[Diagnosis, Mode], Drawing]:
    """Return what draws one part of a diagnosis, or says why the part is not there."""

    def drawn(diagnosis: Diagnosis, mode: Mode) -> Drawing:
        found = part(diagnosis)
        return found if isinstance(found, Unavailable) else draw(found, mode)

    return drawn


def _stall_over_time(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    if not isinstance(diagnosis.job_steps, Unavailable):
        return stall_over_time(diagnosis.job_steps, mode)
    found = _steps_with_waits(diagnosis)
    return found if isinstance(found, Unavailable) else stall_over_windows(found, mode)


def _steps_with_waits(diagnosis: Diagnosis) -> Steps | Unavailable:
    """Return the recorded steps; unavailable where nothing tells of waits, whose columns hold 0 then."""
    has_steps = not isinstance(diagnosis.steps, Unavailable)
    return diagnosis.input_stalls if has_steps and isinstance(diagnosis.input_stalls, Unavailable) else diagnosis.steps


def _pipeline_stages(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    return pipeline_stages(diagnosis.tf_data, diagnosis.live_model, diagnosis.written, mode)


def _critical_path(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    found = diagnosis.tf_data
    return found if isinstance(found, Unavailable) else critical_path(found, diagnosis.written, mode)


def _buffers_over_time(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    return buffers_over_time(diagnosis.tf_data, diagnosis.live_model, diagnosis.written, mode)


def _parallelism_over_time(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    return parallelism_over_time(diagnosis.tf_data, diagnosis.live_model, diagnosis.written, mode)


def _device_timeline(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    gaps = diagnosis.idle_gaps
    return gaps if isinstance(gaps, Unavailable) else device_timeline(gaps, diagnosis.steps, mode)


def _if_recorded(draw: Callable[[Diagnosis, Mode], Drawing]) -> Callable[[Diagnosis, Mode], Drawing]:
    """Return what draws what devices did, or says that it was not recorded."""

    def drawn(diagnosis: Diagnosis, mode: Mode) -> Drawing:
        source = diagnosis.source
        return Unavailable(why_no_device(source)) if source.unseen_device else draw(diagnosis, mode)

    return drawn


def _step_parts_over_time(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    parts = diagnosis.step_breakdown
    return parts if isinstance(parts, Unavailable) else step_parts_over_time(parts, diagnosis.outlier_steps, mode)


def _sampling_over_time(sampling: FileSampling, mode: Mode) -> Drawing:
    if not sampling.timeline.num_rows:
        return Unavailable(
            "The job did not note its samples, and no steps were recorded over which its reads could be shown; switch "
            "`sample_probe` on, or mark the steps of the job."
        )
    return sampling_over_time(sampling, mode)


def _coverage_over_time(sampling: FileSampling, mode: Mode) -> Drawing:
    if not sampling.coverage.num_rows:
        return Unavailable(
            "How much of the data was used is only known with the sample probe and with files whose records were "
            "counted; switch `sample_probe` on and launch the job again."
        )
    return coverage_over_time(sampling, mode)


def _labels_over_time(sampling: FileSampling, mode: Mode) -> Drawing:
    if sampling.labels is None:
        return Unavailable(
            "The labels of the examples are not known: the workload has none, or the sample probe was off; switch "
            "`sample_probe` on and launch a workload with labels, such as `images`."
        )
    return labels_over_time(sampling.labels, mode)


def _memory_over_time(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    memory = diagnosis.memory
    return memory if isinstance(memory, Unavailable) else memory_over_time(memory, diagnosis.profiler_cost, mode)


def _evaluation_results(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    found = diagnosis.evaluation
    return found if isinstance(found, Unavailable) else evaluation_results(found, diagnosis.job_steps, mode)


def _evaluated_files(evaluation: Evaluation, mode: Mode) -> Drawing:
    found = evaluation.sampling
    return found if isinstance(found, Unavailable) else evaluated_files(found, evaluation.count, mode)


def _step_time(diagnosis: Diagnosis, mode: Mode) -> Drawing:
    job = diagnosis.job_steps
    return job if isinstance(job, Unavailable) else step_time(job, mode, diagnosis.outlier_steps)


CHARTS: tuple[Chart[Diagnosis], ...] = (
    Chart(
        "stall-over-time",
        Topic.STALLS,
        "How long each step of the run waited for its next batch, over the time of the run.",
        _stall_over_time,
    ),
    Chart(
        "stall-per-step",
        Topic.STALLS,
        "For each profiled step, the wait that left the device idle and the wait hidden behind device work.",
        _of(_steps_with_waits, stall_per_step),
    ),
    Chart(
        "wait-distribution",
        Topic.STALLS,
        "How many waits were how long; lines mark the median and the 95th percentile.",
        _of(lambda diagnosis: diagnosis.input_stalls, wait_distribution),
    ),
    Chart(
        "pipeline-stages",
        Topic.PIPELINE,
        "The stages as boxes in the order of the code, with arrows to the training step that are as thick as the wait that they "
        "carry; beside each its thread time for one batch, and how full its buffer is. The stage to blame is marked.",
        _pipeline_stages,
        wide=True,
    ),
    Chart(
        "critical-path",
        Topic.PIPELINE,
        "What was being done, by which stage, while the device idled for input; every moment counts once.",
        _critical_path,
    ),
    Chart(
        "buffers-over-time",
        Topic.PIPELINE,
        "One panel per stage that keeps elements ready: how many there were, and how many there may be.",
        _buffers_over_time,
    ),
    Chart(
        "parallelism-over-time",
        Topic.PIPELINE,
        "One panel per parallel stage: how many calls it was allowed to make at a time.",
        _parallelism_over_time,
    ),
    Chart(
        "device-timeline",
        Topic.GAPS,
        "One row per profile window: when the device worked, and the cause of each idle gap by color.",
        _device_timeline,
        wide=True,
    ),
    Chart(
        "idle-by-cause",
        Topic.GAPS,
        "How long the device idled for each cause, longest on top, over the whole profile windows, the time between the "
        "steps included; pointing at a bar names the host operations that ran meanwhile.",
        _of(lambda diagnosis: diagnosis.idle_gaps, idle_by_cause),
    ),
    Chart(
        "step-parts",
        Topic.GAPS,
        "A profiled step to scale: its parts add up to it, and a moment counts as device work before anything that the "
        "host does. Below it, where a change is predicted to help, what the change would leave.",
        _if_recorded(step_anatomy),
    ),
    Chart(
        "step-parts-over-time",
        Topic.GAPS,
        "Each profiled step as a stack of its parts, in the order of time; steps far longer than their neighbors are "
        "marked with what they hold more of.",
        _if_recorded(_step_parts_over_time),
    ),
    Chart(
        "hosts",
        Topic.GAPS,
        "The median step of each host: its wait for input, other time of its own, and collectives, in which it waits "
        "for the slowest host.",
        _of(lambda diagnosis: diagnosis.hosts, hosts_side_by_side),
    ),
    Chart(
        "file-shares",
        Topic.SAMPLING,
        "Each file's share of the samples as a bar, the share that its size would give it as a mark with the range of even "
        "samples, and the share that the options predict as a ring.",
        _of(lambda diagnosis: diagnosis.file_sampling, file_shares),
    ),
    Chart(
        "sampling-over-time",
        Topic.SAMPLING,
        "A heat map of how many examples came from each file in the course of the run.",
        _of(lambda diagnosis: diagnosis.file_sampling, _sampling_over_time),
        wide=True,
    ),
    Chart(
        "coverage-over-time",
        Topic.SAMPLING,
        "How much of the data the run had used by each step, beside shuffled epochs and what the options predict.",
        _of(lambda diagnosis: diagnosis.file_sampling, _coverage_over_time),
    ),
    Chart(
        "labels-over-time",
        Topic.SAMPLING,
        "A heat map of how many examples of each label came in the course of the run.",
        _of(lambda diagnosis: diagnosis.file_sampling, _labels_over_time),
    ),
    Chart(
        "evaluated-files",
        Topic.SAMPLING,
        "A heat map of how many examples of each file the evaluations looked at, apart from those that trained.",
        _of(lambda diagnosis: diagnosis.evaluation, _evaluated_files),
        wide=True,
    ),
    Chart(
        "padding-over-time",
        Topic.SAMPLING,
        "How much of each batch was padding, where examples differ in length.",
        _of(lambda diagnosis: diagnosis.padding, padding_over_time),
    ),
    Chart(
        "memory-over-time",
        Topic.MEMORY,
        "Resident memory of the job over time, with the profile windows and the moments they were on disk.",
        _memory_over_time,
    ),
    Chart(
        "memory-by-allocator",
        Topic.MEMORY,
        "One panel per allocator of TensorFlow: what it had handed out in the profile windows, and its peak.",
        _of(lambda diagnosis: diagnosis.allocators, memory_by_allocator),
    ),
    Chart("step-time", Topic.STEPS, "Time of every step, with the warm-up and the profiled steps marked.", _step_time),
    Chart(
        "step-phases",
        Topic.STEPS,
        "The mean step of the warm-up, the first epoch (which fills caches) and later epochs, with its wait for input.",
        _of(lambda diagnosis: diagnosis.step_phases, phases),
    ),
    Chart(
        "learning",
        Topic.STEPS,
        "Loss of every step, and accuracy where the workload has one.",
        _of(lambda diagnosis: diagnosis.job_steps, learning),
    ),
    Chart(
        "evaluations",
        Topic.STEPS,
        "Loss and accuracy of each evaluation between the training steps, beside those of training.",
        _evaluation_results,
    ),
)
"""Every chart, in the order in which pages and reports show them."""


def find_chart(name: str) -> Chart[Diagnosis]:
    """Return a run's chart by its name; an unknown one is a programming error."""
    return next(chart for chart in CHARTS if chart.name == name)


def charts_of(section: Topic) -> list[Chart[Diagnosis]]:
    """Return the charts of one section."""
    return [chart for chart in CHARTS if chart.section is section]
