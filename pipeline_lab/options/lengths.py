"""Examples that differ in length, and which ways of batching suit them."""

import math

from pipeline_lab.stages.batches import BatchStage, BucketStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.workload import Workload


def boundaries_in_frames(stage: BucketStage, workload: AudioWorkload) -> tuple[int, ...]:
    """Return the boundaries of the buckets in frames, rounded up."""
    return tuple(math.ceil(each * workload.sample_rate_hz / workload.frame_samples) for each in stage.boundaries_s)


def check_lengths(workload: Workload, pipeline: PipelineOptions) -> None:
    """Refuse ways of batching that do not suit the lengths of the examples.

    Raises:
        ValueError: One of them is used.
    """
    if workload.has_varied_lengths or (
        isinstance(workload, RecordsWorkload) and workload.has_varied_features and not pipeline.is_vectorised("parse")
    ):
        _check_varied(workload, pipeline)
    else:
        for mode in _modes(pipeline):
            if mode != "batch":
                raise ValueError(
                    f"{mode} is for examples of different lengths, and those of the {workload.kind} workload are alike; "
                    "set mode = batch"
                )
    bucket = pipeline.find("bucket_by_sequence_length")
    if isinstance(bucket, BucketStage):
        _check_bucket(bucket, workload)


def _modes(pipeline: PipelineOptions) -> list[str]:
    return [stage.mode for stage in pipeline.stages if isinstance(stage, BatchStage)]


def _check_varied(workload: Workload, pipeline: PipelineOptions) -> None:
    for stage, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True):
        if stage.stage in ("parse", "map") and size is not None:
            raise ValueError(f"records of different lengths are taken apart one by one; put {stage.stage} before batch")
        if stage.stage == "rebatch":
            raise ValueError(
                "batches of different lengths cannot be cut and joined; use unbatch and batch, not rebatch"
            )
    if "ragged_batch" in _modes(pipeline) and pipeline.find("unbatch") is not None:
        raise ValueError("tf.data cannot batch again what it takes out of ragged batches; remove unbatch")
    if "batch" in _modes(pipeline):
        raise ValueError(
            f"batch stacks examples of one length, and those of the {workload.kind} workload differ; "
            "set mode = padded_batch or ragged_batch"
        )


def _check_bucket(stage: BucketStage, workload: Workload) -> None:
    if not isinstance(workload, AudioWorkload):
        raise ValueError(
            f"bucket_by_sequence_length sorts clips by their seconds, and the {workload.kind} workload has none; use batch"
        )
    frames = boundaries_in_frames(stage, workload)
    for number in range(1, len(frames)):
        if frames[number] == frames[number - 1]:
            raise ValueError(
                f"the boundaries {stage.boundaries_s[number - 1]:g} and {stage.boundaries_s[number]:g} s lie in one frame "
                f"({workload.frame_samples} samples); put them further apart, or make frames shorter"
            )
