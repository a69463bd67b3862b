"""Everything that one run is told, as one validated document.

``SCHEMA_VERSION`` history: 1, the first one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from pipeline_lab.errors import OptionsError
from pipeline_lab.fields import Options
from pipeline_lab.options.amount import Amount, amounts_behind
from pipeline_lab.options.explaining import explain
from pipeline_lab.options.lengths import check_lengths
from pipeline_lab.options.older import renew
from pipeline_lab.options.pipeline import BatchStage, PipelineOptions, ReadStage, RebatchStage
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.setting import set_in
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.training_rules import check_training
from pipeline_lab.options.workload_rules import check_workload
from pipeline_lab.workloads.registry import AnyWorkload

SCHEMA_VERSION = 1


class RunOptions(Options):
    """The whole job: workload, pipeline, training and profiling."""

    schema_version: Literal[1] = 1
    name: str = Field("", max_length=200)
    """What people call the run; the preset's name when it came from one."""
    workload: AnyWorkload
    pipeline: PipelineOptions = PipelineOptions()
    training: TrainingOptions = TrainingOptions()
    profiling: ProfilingOptions = ProfilingOptions()

    @model_validator(mode="before")
    @classmethod
    def _is_of_today(cls, document: Any) -> Any:
        return renew(document)

    @model_validator(mode="after")
    def _stages_fit_workload(self) -> "RunOptions":
        check_workload(self.workload, self.pipeline, self.training)
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
        sizes, held_out = self.workload.file_sizes, self.training.held_out_files
        return sizes[:-held_out] if sizes and held_out else sizes

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
