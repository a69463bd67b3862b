"""Presets about how a job trains, rather than what its pipeline does."""

from typing import Literal

from pipeline_lab.options.pipeline import (
    BatchStage,
    MapStage,
    ParseStage,
    PipelineOptions,
    PrefetchStage,
    RandomShardStage,
    ReadStage,
    RepeatStage,
    ShuffleStage,
)
from pipeline_lab.options.preset import Preset
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload


def in_graph_loop() -> Preset:
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


def changing_shapes() -> Preset:
    options = RunOptions(
        name="changing-shapes",
        workload=SyntheticWorkload(varied_lengths=True, map_ms=0.0, compute_ms=5.0),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                RepeatStage(),
                MapStage(),
                BatchStage(size=16, mode="padded_batch"),
                PrefetchStage(buffer_size=4),
            )
        ),
    )
    question = (
        "What if every batch has another shape? Records of varied length are padded to the longest of their batch, and "
        "TensorFlow traces the step again for each shape; with `training.loop` in_graph it is traced once, for any length."
    )
    return Preset(options.name, question, options)


def keras_fit(optimised: RunOptions) -> Preset:
    training = TrainingOptions(steps=192, warmup_steps=16, loop="keras_fit", steps_per_call=16)
    question = (
        "What does `Model.fit` do, and what does `steps_per_execution` bring? The job of `optimised` trained by Keras, 16 "
        "steps per execution; set `training.steps_per_call` to 1 to let its callbacks run after every step."
    )
    return Preset("keras-fit", question, optimised.model_copy(update={"name": "keras-fit", "training": training}))


def evaluation_rebuilt() -> Preset:
    return _evaluation(
        "evaluation-rebuilt",
        "Does the pipeline start over when training and evaluation alternate? Built anew after every 25 steps of 32 examples, "
        "it never gets beyond the first 1,056 of 1,792; see `evaluation-kept` and `random-shards`. One file is held out for "
        "the evaluations.",
    )


def evaluation_kept() -> Preset:
    return _evaluation(
        "evaluation-kept",
        "What does the job of `evaluation-rebuilt` see if its pipeline goes on after each evaluation? All of the data, epoch "
        "by epoch.",
        evaluation="keep",
    )


def random_shards() -> Preset:
    return _evaluation(
        "random-shards",
        "What if the pipeline of `evaluation-rebuilt` begins elsewhere each time? It visits 14 stretches of 128 examples in a "
        "new random order, so that all of the data come in the end; whatever lies before a stretch is read in vain.",
        RandomShardStage(num_shards=14, shard_size=128),
    )


def _evaluation(
    name: str, question: str, *behind_read: RandomShardStage, evaluation: Literal["rebuild", "keep"] = "rebuild"
) -> Preset:
    stages = (
        ReadStage(mode="sequential"),
        *behind_read,
        ShuffleStage(buffer_size=256),
        RepeatStage(),
        ParseStage(),
        BatchStage(size=32),
        PrefetchStage(buffer_size=2),
    )
    options = RunOptions(
        name=name,
        workload=ImagesWorkload(data="digits", image_size=16, examples_per_file=(256,) * 8),
        pipeline=PipelineOptions(stages=stages),
        training=TrainingOptions(
            steps=195, evaluate_every=25, evaluate_steps=8, evaluation=evaluation, held_out_files=1
        ),
    )
    return Preset(name, question, options)
