"""The loop that a run's options ask for: from Python, inside a graph, or by Keras' ``fit``."""

import tensorflow as tf

from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.train.course import Course, Loop, PlainLoop
from pipeline_lab.worker.train.graph_steps import RECORDED, GraphSteps, StepNotes
from pipeline_lab.worker.train.keras_fit import FitLoop
from pipeline_lab.worker.train.training_steps import PythonSteps, StepCalls, Trainer


def make_steps(job: Job, trainer: Trainer, *, is_asynchronous: bool = False) -> StepCalls:
    """Return how steps are called, except by ``fit``; also for races and calibration.

    Args:
        job: The job.
        trainer: The step.
        is_asynchronous: The device works beside the host.
    """
    training = job.options.training
    if training.loop == "in_graph" or training.steps_per_call > 1:
        notes, is_ahead = _make_notes(job, trainer), is_asynchronous and training.replicas == 1
        return GraphSteps(trainer, job.clock, training.steps_per_call, notes, is_asynchronous=is_ahead)
    return PythonSteps(trainer, job.clock, reads=training.read_every_step)


def make_loop(job: Job, trainer: Trainer, steps: StepCalls, course: Course) -> Loop:
    """Return the job's loop."""
    training = job.options.training
    if training.loop == "keras_fit":
        notes = _make_notes(job, trainer)
        per_call, is_mirrored = training.steps_per_call, training.replicas > 1
        is_whole = per_call == 1 and not is_mirrored and training.keep_outputs_of_step is None
        is_ahead = is_whole and bool(tf.config.list_logical_devices("GPU"))
        return FitLoop(course, notes, job.clock, per_call, is_mirrored=is_mirrored, is_ahead=is_ahead)
    return PlainLoop(course, steps)


def _make_notes(job: Job, trainer: Trainer) -> StepNotes:
    """Return the notes of steps in a graph; entries in batches of a user's module mean something else."""
    training, recorded = job.options.training, RECORDED if job.options.is_assembled else {}
    keeps_outputs = training.keep_outputs_of_step is not None
    return StepNotes(trainer, job.clock, training.steps_per_call, recorded, keeps_outputs=keeps_outputs)
