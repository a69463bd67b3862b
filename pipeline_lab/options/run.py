"""Everything that one run is told, as one validated document.

``SCHEMA_VERSION`` history: 1, the first one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.amount import Amount, amounts_behind
from pipeline_lab.options.base import Options
from pipeline_lab.options.explaining import explain
from pipeline_lab.options.image_size import image_sizes
from pipeline_lab.options.lengths import check_lengths
from pipeline_lab.options.module_workload import CODE_DECIDES
from pipeline_lab.options.older import renew
from pipeline_lab.options.pipeline import AugmentStage, BatchStage, PipelineOptions, ReadStage, RebatchStage, ViewsStage
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.setting import set_in
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.training_rules import check_training
from pipeline_lab.options.workload import (
    OWN_STAGES,
    AudioWorkload,
    FeaturesWorkload,
    GeneratorWorkload,
    ImagesWorkload,
    ModuleWorkload,
    RecordsWorkload,
    Workload,
    WorkloadModel,
)
from pipeline_lab.units import format_bytes

SCHEMA_VERSION = 1
LARGEST_PROTOBUF_BYTES = 2**31 - 1


class RunOptions(Options):
    """The whole job: workload, pipeline, training and profiling."""

    schema_version: Literal[1] = 1
    name: str = Field("", max_length=200)
    """What people call the run; the preset's name when it came from one."""
    workload: Workload
    pipeline: PipelineOptions = PipelineOptions()
    training: TrainingOptions = TrainingOptions()
    profiling: ProfilingOptions = ProfilingOptions()

    @model_validator(mode="before")
    @classmethod
    def _is_of_today(cls, document: Any) -> Any:
        return renew(document)

    @model_validator(mode="after")
    def _stages_fit_workload(self) -> "RunOptions":
        kinds: set[str] = {stage.stage for stage in self.pipeline.stages}
        _check_stages(self.workload, kinds)
        match self.workload:
            case ImagesWorkload() as images:
                _check_images(images, self.pipeline)
            case FeaturesWorkload() as features:
                _check_features(features, [stage.stage for stage in self.pipeline.stages])
            case RecordsWorkload() as records:
                records.check()
            case GeneratorWorkload() as generator:
                _check_generator(generator, self.pipeline)
            case ModuleWorkload() as module:
                _check_module(module, self.pipeline, self.training)
        check_lengths(self.workload, self.pipeline)
        check_training(self.training, self.workload, self.pipeline)
        if self.file_sizes == ():
            raise ValueError("training.held_out_files leaves no file to train on; hold out fewer")
        _check_amount(self)
        return self

    @property
    def label(self) -> str:
        """The name, or what is run where nobody named it."""
        return self.name or self.workload.kind

    @property
    def is_assembled(self) -> bool:
        """Say whether the pipeline is put together from stages; else a module of the user's makes it."""
        return bool(self.pipeline.stages)

    @property
    def records(self) -> int | None:
        """Records in all files, or None for the user's own data, which is counted when the job starts if at all."""
        sizes = self.file_sizes
        return None if sizes is None else sum(sizes)

    @property
    def file_sizes(self) -> tuple[int, ...] | None:
        """Examples in each file or generator that trains, or None for the user's own data."""
        sizes, held_out = self._all_file_sizes, self.training.held_out_files
        return sizes[:-held_out] if sizes and held_out else sizes

    @property
    def _all_file_sizes(self) -> tuple[int, ...] | None:
        workload = self.workload
        if isinstance(workload, GeneratorWorkload):
            return workload.examples_per_generator
        if isinstance(workload, AudioWorkload):
            return workload.clips_per_class if workload.data == "tones" else None
        if isinstance(workload, ModuleWorkload | RecordsWorkload) or (
            isinstance(workload, ImagesWorkload) and not workload.is_made
        ):
            return None
        return workload.examples_per_file

    @property
    def amounts(self) -> tuple[Amount, ...] | None:
        """What each stage hands on in one pass over the data, or None for the user's own data."""
        sizes = self.file_sizes
        return None if sizes is None else amounts_behind(self.pipeline, sizes)

    def to_json(self) -> str:
        """Write the options as indented JSON that :func:`read_options` accepts."""
        return self.model_dump_json(indent=2) + "\n"


def read_options(document: str | bytes | dict[str, Any]) -> RunOptions:
    """Validate an options document.

    Raises:
        OptionsError: The document is no JSON, or holds something that is not allowed; the text names each place.
    """
    try:
        if isinstance(document, dict):
            return RunOptions.model_validate(document)
        return RunOptions.model_validate_json(document)
    except ValidationError as error:
        raise OptionsError(explain(error, RunOptions)) from None


def read_options_file(path: Path) -> RunOptions:
    """Read options from a JSON file.

    Raises:
        OptionsError: The file cannot be read or its content is not valid.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise OptionsError(f"Cannot read the options file {path}: {error.strerror}.") from None
    return read_options(text)


def set_option(options: RunOptions, path: str, text: str) -> RunOptions:
    """Return options with one value changed; see :func:`set_options`."""
    return set_options(options, [(path, text)])


def set_options(options: RunOptions, settings: Sequence[tuple[str, str]]) -> RunOptions:
    """Return options with values changed, as several ``--set PATH=VALUE`` do; only the whole has to be valid.

    A stage is named by its number or by its name: ``pipeline.prefetch.buffer_size`` or
    ``pipeline.stages.3.buffer_size``.

    Raises:
        OptionsError: The path does not exist, or the value does not fit.
    """
    document = options.model_dump(mode="json")
    for path, text in settings:
        set_in(document, path, text)
    return read_options(document)


def options_schema() -> dict[str, Any]:
    """Return the JSON schema of an options document."""
    return TypeAdapter(RunOptions).json_schema()


def _check_stages(workload: WorkloadModel, kinds: set[str]) -> None:
    """Refuse stages that the workload has no function for, and require the one that decodes its records."""
    if not kinds and not isinstance(workload, ModuleWorkload):
        raise ValueError(f"the {workload.kind} workload needs a pipeline with stages, from read to batch")
    own = OWN_STAGES[workload.kind]
    wrong = sorted(kinds & {stage for stages in OWN_STAGES.values() for stage in stages if stage not in own})
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
    kinds = [stage.stage for stage in pipeline.stages]
    if "unbatch" in kinds:
        raise ValueError("unbatch does not go with generators that yield several examples at once; remove it")
    for kind in kinds[: kinds.index("batch")]:
        if kind in ("take", "skip", "shard", "random_shard", "filter"):
            raise ValueError(
                f"{kind} before batch would count what a generator yields at once, {workload.examples_at_once} examples; "
                "put it behind batch"
            )


def _check_amount(options: RunOptions) -> None:
    """Refuse a pipeline that yields nothing, naming the stage that leaves nothing."""
    read, sizes, amounts = options.pipeline.find("read"), options.file_sizes, options.amounts
    if sizes is None or amounts is None or not isinstance(read, ReadStage):
        return
    if read.num_shards > len(sizes):
        raise ValueError(f"{read.num_shards} shards of {len(sizes)} files leave some empty; lower read.num_shards")
    before = amounts[0]
    for stage, behind in zip(options.pipeline.stages, amounts, strict=True):
        if not behind.elements:
            if isinstance(stage, BatchStage | RebatchStage):
                raise ValueError(
                    f"{before.examples:.0f} examples never fill a batch of {stage.size} with drop_remainder; "
                    "use a smaller batch, more data or a repeat stage"
                )
            raise ValueError(f"{stage.stage} leaves nothing of {before.elements:.0f} elements; let more through")
        before = behind
