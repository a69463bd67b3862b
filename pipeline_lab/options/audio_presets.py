"""Presets about clips of different lengths: the same ones in each, put together in three ways."""

from pipeline_lab.options.pipeline import (
    BatchStage,
    BucketStage,
    ParseStage,
    PipelineOptions,
    PrefetchStage,
    ReadStage,
    RepeatStage,
    ShuffleStage,
)
from pipeline_lab.options.preset import Preset
from pipeline_lab.options.run import RunOptions
from pipeline_lab.workloads.audio import AudioWorkload


def _preset(name: str, question: str, batching: BatchStage | BucketStage) -> Preset:
    stages = (
        ReadStage(mode="interleave", cycle_length=8),
        ShuffleStage(buffer_size=320),
        RepeatStage(),
        ParseStage(num_parallel_calls="autotune"),
        batching,
        PrefetchStage(),
    )
    pipeline = PipelineOptions(stages=stages)
    return Preset(name, question, RunOptions(name=name, workload=AudioWorkload(), pipeline=pipeline))


AUDIO_PADDED = _preset(
    "audio-padded",
    "What do clips of 5 to 180 s cost in batches? 320 WAV files, 32 clips to a batch, each padded to the longest of its "
    "batch: most of what the step computes is padding.",
    BatchStage(size=32, mode="padded_batch"),
)

AUDIO_BUCKETED = _preset(
    "audio-bucketed",
    "How much padding does sorting by length save? The clips of `audio-padded`, each batch made of clips from one of five "
    "buckets.",
    BucketStage(),
)

AUDIO_RAGGED = _preset(
    "audio-ragged",
    "What do ragged batches save? The clips of `audio-padded`, each kept at its own length: no padding, and a step that "
    "can do without.",
    BatchStage(size=32, mode="ragged_batch"),
)

AUDIO_PRESETS = (AUDIO_PADDED, AUDIO_BUCKETED, AUDIO_RAGGED)
"""All of them, in the order in which lists show them."""
