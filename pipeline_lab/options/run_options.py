"""The options of one run, as one validated document; those of earlier versions are brought to today's fields.

``SCHEMA_VERSION`` history: 1, the first one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from pipeline_lab.errors import OptionsError
from pipeline_lab.fields import Options
from pipeline_lab.options.explaining import explain_problems
from pipeline_lab.options.fitting import check_fit
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.setting import add_in, set_in
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage_values import Amount, Element
from pipeline_lab.workloads.registry import AnyWorkload


def renew(document: Any) -> Any:
    """Return a document with every field where it is now; unknown fields stay for the validator to refuse.

    - ``workload.replicas`` of the sparse workload is ``training.replicas``.
    - A synthetic workload's ``varied_lengths`` was batched by a ``batch`` stage without a mode; it is padded now.
    """
    if not isinstance(document, dict) or not isinstance(document.get("workload"), dict):
        return document
    workload = document["workload"]
    if workload.get("kind") == "sparse" and "replicas" in workload:
        return _move_replicas(document)
    if workload.get("kind") == "synthetic" and workload.get("varied_lengths") and "schema_version" in document:
        return _pad(document)
    return document


def _move_replicas(document: dict[str, Any]) -> dict[str, Any]:
    workload, training = dict(document["workload"]), document.get("training", {})
    if not isinstance(training, dict) or "replicas" in training:
        return document
    return {**document, "training": {**training, "replicas": workload.pop("replicas")}, "workload": workload}


def _pad(document: dict[str, Any]) -> dict[str, Any]:
    """Pad where a document that was written whole says nothing of a mode, as documents do since there are modes."""
    pipeline = document.get("pipeline")
    if not isinstance(pipeline, dict) or not isinstance(pipeline.get("stages"), list):
        return document
    return {**document, "pipeline": {**pipeline, "stages": [_padded(stage) for stage in pipeline["stages"]]}}


def _padded(stage: Any) -> Any:
    if not isinstance(stage, dict) or stage.get("stage") != "batch" or "mode" in stage:
        return stage
    return {**stage, "mode": "padded_batch", "num_parallel_calls": None, "deterministic": None}


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
        check_fit(self.workload, self.pipeline, self.training)
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
        return None if sizes is None else self.pipeline.amounts(sizes)

    @property
    def elements(self) -> tuple[Element, ...]:
        """What one element is after each stage."""
        return self.pipeline.elements(self.workload)

    def to_json(self) -> str:
        """Write the options as indented JSON that :func:`read_options` accepts."""
        return self.model_dump_json(indent=2) + "\n"


def read_options(document: str | bytes | dict[str, Any]) -> RunOptions:
    """Validate an options document.

    Raises:
        OptionsError: The document is not JSON, or holds something that is not allowed; the text names each place.
    """
    try:
        if isinstance(document, dict):
            return RunOptions.model_validate(document)
        return RunOptions.model_validate_json(document)
    except ValidationError as error:
        raise OptionsError(explain_problems(error, RunOptions)) from None


def read_options_file(path: Path) -> RunOptions:
    """Read options from a JSON file.

    Raises:
        OptionsError: The file cannot be read or its content is not valid.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise OptionsError(f"Cannot read the options file {path}: {error.strerror}.") from None
    if text.lstrip()[:1] not in (b"{", b"["):
        raise OptionsError(f"{path} is not a JSON file of options; `pipeline-lab options PRESET` prints one to edit.")
    return read_options(text)


def set_options(options: RunOptions, settings: Sequence[tuple[str, str]], added: Sequence[str] = ()) -> RunOptions:
    """Return options with values changed, as several ``--set PATH=VALUE`` do; only the whole has to be valid.

    Stages are ``added`` before, as ``--add STAGE[=VALUE]`` does.

    A stage is named by its number or by its name: ``pipeline.prefetch.buffer_size`` or
    ``pipeline.stages.3.buffer_size``.

    Raises:
        OptionsError: The path does not exist, or the value does not fit.
    """
    document = options.model_dump(mode="json")
    for word in added:
        add_in(document, word)
    for path, text in settings:
        set_in(document, path, text)
    return read_options(document)


def options_schema() -> dict[str, Any]:
    """Return the JSON schema of an options document."""
    return TypeAdapter(RunOptions).json_schema()


def _check_amount(options: RunOptions) -> None:
    """Refuse a pipeline that yields nothing, naming the stage that leaves nothing."""
    read, sizes, amounts = options.pipeline.first(ReadStage), options.file_sizes, options.amounts
    if sizes is None or amounts is None or read is None:
        return
    if read.num_shards > len(sizes):
        raise ValueError(f"{read.num_shards} shards of {len(sizes)} files leave some empty; lower read.num_shards")
    before = amounts[0]
    for stage, after in zip(options.pipeline.stages, amounts, strict=True):
        if not after.elements:
            if len(stage.batches) == 1:
                raise ValueError(
                    f"{before.examples:.0f} examples never fill a batch of {stage.batches[0]} with drop_remainder; "
                    "use a smaller batch, more data or a repeat stage"
                )
            raise ValueError(f"{stage.stage} leaves nothing of {before.elements:.0f} elements; let more through")
        before = after


def own_options(target: str, folder: str, preset: str | None = None) -> RunOptions:
    """Return options that run ``package.module:function``.

    Args:
        target: The function or class.
        folder: Where Python looks for the module first.
        preset: One of the module's own ``PRESETS``.

    Raises:
        OptionsError: The target names no code.
    """
    workload = {"kind": "module", "target": target, "folder": folder, "preset": preset}
    return read_options({"name": preset or target, "workload": workload})


def with_preset(options: RunOptions, preset: str) -> RunOptions:
    """Return the same workload with another of its presets, under that name."""
    document = options.model_dump(mode="json")
    document["workload"]["preset"] = preset
    return read_options({**document, "name": preset})
