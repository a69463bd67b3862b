"""Presets about how a job trains, rather than what its pipeline does."""

from pipeline_lab.options.pipeline import BatchStage, MapStage, PipelineOptions, PrefetchStage, ReadStage, RepeatStage
from pipeline_lab.options.preset import Preset
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.workload import SyntheticWorkload


def training_presets(optimised: RunOptions) -> tuple[Preset, ...]:
    """Return these presets; those that train on images do so behind the ``optimised`` pipeline."""
    return (_in_graph_loop(), _keras_fit(optimised))


def _in_graph_loop() -> Preset:
    options = RunOptions(
        name="in-graph-loop",
        workload=SyntheticWorkload(map_ms=0.0, compute_ms=1.0, tiny_ops=100),
        pipeline=PipelineOptions(
            stages=(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=16), PrefetchStage(buffer_size=16))
        ),
        training=TrainingOptions(steps=640, loop="in_graph", steps_per_call=16),
    )
    question = (
        "What does a loop inside the graph save? Steps of 1 ms with 100 tiny operations, 16 of them in one call; set "
        "`training.loop` to custom and `training.steps_per_call` to 1 to have Python call each operation of each step."
    )
    return Preset(options.name, question, options)


def _keras_fit(optimised: RunOptions) -> Preset:
    training = TrainingOptions(steps=192, warmup_steps=16, loop="keras_fit", steps_per_call=16)
    question = (
        "What does `Model.fit` do, and what does `steps_per_execution` bring? The job of `optimised` trained by Keras, 16 "
        "steps per execution; set `training.steps_per_call` to 1 to let its callbacks run after every step."
    )
    return Preset("keras-fit", question, optimised.model_copy(update={"name": "keras-fit", "training": training}))
