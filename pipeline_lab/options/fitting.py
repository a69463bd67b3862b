"""What of the pipeline and the training a workload has no use for, or cannot do without."""

from collections.abc import Iterator
from itertools import chain

from pipeline_lab.options.image_size import image_sizes
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import AugmentStage, ViewsStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.units import format_bytes
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import CODE_DECIDES, ModuleWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.registry import FUNCTION_STAGES
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

LARGEST_PROTOBUF_BYTES = 2**31 - 1


def check_workload(workload: Workload, pipeline: PipelineOptions, training: TrainingOptions) -> None:
    """Refuse what does not fit the workload.

    Raises:
        ValueError: The first thing that does not.
    """
    kinds: list[str] = [stage.stage for stage in pipeline.stages]
    _check_stages(workload, set(kinds))
    match workload:
        case ImagesWorkload():
            _check_images(workload, pipeline)
        case FeaturesWorkload():
            _check_features(workload, kinds)
        case RecordsWorkload():
            workload.check()
        case GeneratorWorkload():
            _check_generator(workload, pipeline)
        case ModuleWorkload():
            _check_module(workload, pipeline, training)


def _check_stages(workload: Workload, kinds: set[str]) -> None:
    """Refuse stages that the workload has no function for, and require the one that decodes its records."""
    if not kinds and not workload.is_code:
        raise ValueError(f"the {workload.kind} workload needs a pipeline with stages, from read to batch")
    own = workload.own_stages
    wrong = sorted(kinds & FUNCTION_STAGES.difference(own))
    if wrong:
        has = f"its own are {' and '.join(own)}" if own else "it has none of its own"
        raise ValueError(f"{' and '.join(wrong)} does not fit the {workload.kind} workload: {has}; remove it")
    if "parse" in own and "parse" not in kinds:
        raise ValueError(f"the {workload.kind} workload needs a parse stage that decodes the records")


def _check_images(workload: ImagesWorkload, pipeline: PipelineOptions) -> None:
    size = workload.image_size
    for stage, behind in zip(pipeline.stages, image_sizes(workload, pipeline), strict=True):
        if isinstance(stage, ViewsStage) and stage.size > size:
            raise ValueError(f"views of {stage.size} pixels do not fit into images of {size} pixels")
        if isinstance(stage, AugmentStage):
            padded = size + 2 * stage.pad
            if stage.crop is not None and stage.crop > padded:
                raise ValueError(f"a crop of {stage.crop} does not fit into padded images of {padded} pixels")
            if stage.cutout > (stage.crop or size):
                raise ValueError(f"a cutout of {stage.cutout} is larger than the image; make it smaller")
        size = behind


def _check_module(workload: ModuleWorkload, pipeline: PipelineOptions, training: TrainingOptions) -> None:
    """Ask for the code, and refuse what it decides by itself."""
    if not workload.target:
        raise ValueError("workload.target is missing; write package.module:function")
    if pipeline.stages:
        raise ValueError("the stages of a module workload are those of its own dataset; remove pipeline.stages")
    for name in CODE_DECIDES:
        if getattr(training, name) != TrainingOptions.model_fields[name].default:
            raise ValueError(f"training.{name} is up to the module's own code; leave it")


def _check_features(workload: FeaturesWorkload, kinds: list[str]) -> None:
    if workload.layout == "replicated" and "lookup" in kinds:
        raise ValueError("records of the replicated layout hold their vectors; remove the lookup stage")
    if workload.layout in ("lookup", "constant") and "lookup" not in kinds:
        raise ValueError(
            f"the {workload.layout} layout needs a lookup stage, which reads the table; only variables can be read by the "
            "training step"
        )
    if "lookup" in kinds and kinds.index("lookup") < kinds.index("parse"):
        raise ValueError("lookup needs the number of the image, which parse reads; put parse before it")
    if workload.layout == "constant" and workload.table_bytes > LARGEST_PROTOBUF_BYTES:
        raise ValueError(
            f"a table of {format_bytes(workload.table_bytes)} cannot be a constant: TensorFlow writes constants into its "
            "graph, a protobuf message, and those end at 2 GB; choose the layout lookup, variable or sharded"
        )


def _check_generator(workload: GeneratorWorkload, pipeline: PipelineOptions) -> None:
    read = pipeline.find("read")
    if isinstance(read, ReadStage) and read.mode == "sample":
        raise ValueError("mode = sample weighs files by their size, which generators do not have; use interleave")
    if isinstance(read, ReadStage) and read.mode == "map":
        raise ValueError("mode = map makes datasets of files, which generators do not have; use flat_map")
    if workload.ids == "strings" and pipeline.find("prefetch_to_device"):
        raise ValueError("strings cannot be copied to a device; use prefetch, or ids = numbers")
    if workload.examples_at_once == 1:
        return
    kinds: list[str] = [stage.stage for stage in pipeline.stages]
    if "unbatch" in kinds:
        raise ValueError("unbatch does not go with generators that yield several examples at once; remove it")
    for kind in kinds[: kinds.index("batch")]:
        if kind in ("take", "skip", "shard", "random_shard", "filter"):
            raise ValueError(
                f"{kind} before batch would count what a generator yields at once, {workload.examples_at_once} examples; "
                "put it behind batch"
            )


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
