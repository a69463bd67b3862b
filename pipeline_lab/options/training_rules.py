"""What of the training a workload's step and data cannot do."""

from collections.abc import Iterator
from itertools import chain

from pipeline_lab.options.pipeline import BatchStage, PipelineOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import ModuleWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

_SINGLE_PRECISION = (SparseWorkload, FeaturesWorkload, GeneratorWorkload, SyntheticWorkload)
"""Workloads whose steps know float32 alone, or compute nothing; what a module of the user's computes is up to it."""


def check_training(training: TrainingOptions, workload: Workload, pipeline: PipelineOptions) -> None:
    """Refuse training that does not fit.

    Raises:
        ValueError: The first thing that does not.
    """
    troubles = chain(
        _of_the_step(training, workload),
        _of_outputs(training, workload),
        _of_micro_batches(training, pipeline),
        _of_replicas(training, workload, pipeline),
        _of_the_data(training, workload),
    )
    for trouble in troubles:
        raise ValueError(trouble)


def _of_the_step(training: TrainingOptions, workload: Workload) -> Iterator[str]:
    if training.precision != "float32" and isinstance(workload, _SINGLE_PRECISION):
        yield "training.precision is for the steps of the images, audio and records workloads; leave it at float32"
    if isinstance(workload, ImagesWorkload):
        return
    for name, is_asked in (("xla", training.xla), ("accumulate", training.accumulate > 1)):
        if is_asked:
            yield f"training.{name} is for the step of the images workload; leave it out"


def _of_outputs(training: TrainingOptions, workload: Workload) -> Iterator[str]:
    if training.keep_outputs_of_step is None:
        return
    if isinstance(workload, GeneratorWorkload | SyntheticWorkload):
        yield (
            f"the step of the {workload.kind} workload takes time and computes nothing, so training.keep_outputs_of_step has "
            "nothing to keep; leave it out"
        )
    if isinstance(workload, RecordsWorkload) and workload.label is None:
        yield "training.keep_outputs_of_step holds outputs against labels; set workload.label, or leave it out"


def _of_micro_batches(training: TrainingOptions, pipeline: PipelineOptions) -> Iterator[str]:
    part = pipeline.batch_size // training.replicas if training.accumulate > 1 else None
    if part is not None and part < training.accumulate:
        yield (
            f"training.accumulate cuts a replica's {part} examples into {training.accumulate} micro-batches, some of them "
            "empty; make it smaller, or the batch larger"
        )


def _of_replicas(training: TrainingOptions, workload: Workload, pipeline: PipelineOptions) -> Iterator[str]:
    if training.replicas == 1:
        return
    if not isinstance(workload, ImagesWorkload | SparseWorkload):
        yield "replicas share the batches of the images and the sparse workload; set training.replicas to 1"
    if any(isinstance(stage, BatchStage) and not stage.drop_remainder for stage in pipeline.stages):
        yield "a last batch that is smaller may leave a replica without examples; set drop_remainder of batch"
    if training.xla:
        yield "training.xla compiles the step of one device; set training.replicas to 1"
    if pipeline.find("prefetch_to_device"):
        yield "each batch is divided among the replicas, which prefetch_to_device does not know; use prefetch"


def _of_the_data(training: TrainingOptions, workload: Workload) -> Iterator[str]:
    if training.page_cache == "cold" and isinstance(workload, GeneratorWorkload):
        yield "generators read no file that could be cold; set training.page_cache to warm"
    if training.held_out_files and isinstance(workload, GeneratorWorkload | ModuleWorkload):
        yield f"the {workload.kind} workload has no files that training.held_out_files could hold out"
