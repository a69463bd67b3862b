"""Presets about where stages stand and how large they are: caches, buffers, the order of the whole."""

from pipeline_lab.options.pipeline import (
    BatchStage,
    CacheStage,
    MapStage,
    ParseStage,
    PipelineOptions,
    PrefetchStage,
    ReadStage,
    RepeatStage,
    ShuffleStage,
)
from pipeline_lab.options.preset import Preset
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload


def cached() -> Preset:
    options = RunOptions(
        name="cached",
        workload=SyntheticWorkload(examples_per_file=(320,) * 2, map_ms=1.0, compute_ms=4.0),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                MapStage(),
                CacheStage(),
                RepeatStage(),
                BatchStage(size=16),
                PrefetchStage(buffer_size=2),
            ),
            tensorflow_rewrites=False,
        ),
        training=TrainingOptions(steps=160),
    )
    question = (
        "What does cache() bring, and when? Every batch takes 16 ms to prepare while the first epoch of 40 steps fills the "
        "cache, and next to nothing afterwards; move the stage, or set `pipeline.cache.where` to file."
    )
    return Preset(options.name, question, options)


def first_files() -> Preset:
    options = RunOptions(
        name="first-files",
        workload=SyntheticWorkload(examples_per_file=(400,) * 30, map_ms=0.05, compute_ms=5.0),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                ShuffleStage(buffer_size=1000),
                RepeatStage(),
                MapStage(),
                BatchStage(size=16),
                PrefetchStage(),
            )
        ),
        training=TrainingOptions(steps=100),
    )
    question = (
        "Why does training see only the first files? 30 files of 400, read one after the other into a shuffle buffer of 1,000: "
        "100 steps of 16 reach seven of them. Set `pipeline.read.mode` to interleave and `pipeline.read.shuffle_files` to true "
        "to reach more."
    )
    return Preset(options.name, question, options)


def small_data() -> Preset:
    options = RunOptions(
        name="small-data",
        workload=ImagesWorkload(image_size=32, examples_per_file=(200,)),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                ShuffleStage(buffer_size=1000),
                RepeatStage(),
                ParseStage(num_parallel_calls="autotune"),
                BatchStage(size=20),
                PrefetchStage(),
            )
        ),
        training=TrainingOptions(steps=60),
    )
    question = (
        "What does a shuffle buffer of 1,000 do with 200 images? It holds them all: the first batch waits until every one was "
        "read, and each epoch is shuffled perfectly."
    )
    return Preset(options.name, question, options)


def wrong_order() -> Preset:
    options = RunOptions(
        name="wrong-order",
        workload=ImagesWorkload(image_size=32, examples_per_file=(256,) * 4),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                RepeatStage(),
                ParseStage(),
                ShuffleStage(buffer_size=512),
                PrefetchStage(),
                BatchStage(size=32),
            ),
            tensorflow_rewrites=False,
        ),
        training=TrainingOptions(steps=60),
    )
    question = (
        "What is wrong with this order? Repeat before shuffle mixes the epochs, shuffle behind parse holds decoded images, "
        "and prefetch before batch leaves the batches themselves to the training step: open it in the form, which says so."
    )
    return Preset(options.name, question, options)


def micro_batches() -> Preset:
    options = RunOptions(
        name="micro-batches",
        workload=ImagesWorkload(image_size=32, examples_per_file=(512,) * 4),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(mode="interleave", shuffle_files=True, cycle_length=4, num_parallel_calls="autotune"),
                ShuffleStage(buffer_size=1024),
                RepeatStage(),
                ParseStage(num_parallel_calls="autotune"),
                BatchStage(size=128),
                PrefetchStage(),
            )
        ),
        training=TrainingOptions(steps=60, accumulate=4),
    )
    question = (
        "How much memory does a batch take? The gradients of four micro-batches of 32 add up to those of a batch of 128; set "
        "`training.accumulate` to 1 and compare the peak of the allocator."
    )
    return Preset(options.name, question, options)
