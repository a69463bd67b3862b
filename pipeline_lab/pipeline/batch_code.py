"""Lines of ``make_dataset`` that put examples into batches and take them out again."""

from typing import TypeAlias

from pipeline_lab.options.bucket_stage import BucketStage
from pipeline_lab.options.stages import BatchStage, RebatchStage, UnbatchStage
from pipeline_lab.pipeline.audio_code import bucket_line
from pipeline_lab.pipeline.code import assign_call, parallel_arguments
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.workload import Workload

BatchingStage: TypeAlias = BatchStage | BucketStage | UnbatchStage | RebatchStage

_NOTES = {"padded_batch": "padded to the longest of the batch"}


def batching_line(stage: BatchingStage, workload: Workload) -> str:
    """Write one such stage."""
    if isinstance(stage, UnbatchStage):
        return assign_call("dataset.unbatch", [])
    if isinstance(stage, BucketStage):
        assert isinstance(workload, AudioWorkload)
        return bucket_line(stage, workload)
    arguments = [str(stage.size), *(["drop_remainder=True"] if stage.drop_remainder else [])]
    if isinstance(stage, RebatchStage):
        return assign_call("dataset.rebatch", arguments)
    if isinstance(workload, GeneratorWorkload) and workload.examples_at_once > 1:
        return assign_call("dataset.rebatch", arguments)  # what comes are batches already, made in Python
    parallel = parallel_arguments(stage.num_parallel_calls, stage.deterministic)
    return assign_call(f"dataset.{stage.mode}", [*arguments, *parallel], _NOTES.get(stage.mode, ""))
