"""The loop that a run's options ask for."""

from pipeline_lab.worker.course import Course
from pipeline_lab.worker.graph_steps import RECORDED, GraphSteps, StepNotes
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.keras_fit import FitLoop
from pipeline_lab.worker.loop import Loop, OwnLoop
from pipeline_lab.worker.steps import PythonSteps, Steps
from pipeline_lab.worker.trainer import Trainer


def make_steps(job: Job, trainer: Trainer) -> Steps:
    """Return how steps are called where no ``fit`` calls them: in races and for the calibration too."""
    training = job.options.training
    if training.loop == "in_graph" or training.steps_per_call > 1:
        return GraphSteps(trainer, job.clock, training.steps_per_call, _make_notes(job, trainer))
    return PythonSteps(trainer, job.clock)


def make_loop(job: Job, trainer: Trainer, steps: Steps, course: Course) -> Loop:
    """Return the job's loop."""
    training = job.options.training
    if training.loop == "keras_fit":
        notes = _make_notes(job, trainer)
        return FitLoop(course, notes, job.clock, training.steps_per_call, is_mirrored=training.replicas > 1)
    return OwnLoop(course, steps)


def _make_notes(job: Job, trainer: Trainer) -> StepNotes:
    """Return what keeps notes of steps in a graph; entries of batches of the user's own making mean something else."""
    training, recorded = job.options.training, RECORDED if job.options.is_assembled else {}
    keeps_outputs = training.keep_outputs_of_step is not None
    return StepNotes(trainer, job.clock, training.steps_per_call, recorded, keeps_outputs=keeps_outputs)
