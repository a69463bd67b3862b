"""Say a stage of the written pipeline as its author wrote it: ``map(parse, AUTOTUNE)``, ``shuffle(2048)``."""

import re

from pipeline_lab.analysis.declaration import Analysis, JobView, PerJob
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import WrittenPipeline, WrittenStage

NOT_WRITTEN = "A log tells what ran, not what was written; the options of a run of Pipeline Lab do."
WRITTEN_NOT_KEPT = (
    "The run does not keep its pipeline as written: it was recorded before Pipeline Lab kept it, or TensorFlow could not "
    "write it as a graph; record it again."
)
AUTOTUNE, AUTOTUNE_WORD = -1, "AUTOTUNE"
_METHODS = {
    "Batch": "batch",
    "PaddedBatch": "padded_batch",
    "Cache": "cache",
    "Concatenate": "concatenate",
    "DirectedInterleave": "sample_from_datasets",
    "Filter": "filter",
    "FlatMap": "flat_map",
    "Interleave": "interleave",
    "LegacyParallelInterleave": "parallel reads",
    "Map": "map",
    "Prefetch": "prefetch",
    "Repeat": "repeat",
    "Load": "load",
    "Rebatch": "rebatch",
    "Shard": "shard",
    "Shuffle": "shuffle",
    "Skip": "skip",
    "Snapshot": "snapshot",
    "Take": "take",
    "TensorSlice": "from_tensor_slices",
    "Unbatch": "unbatch",
    "Zip": "zip",
}
_NUMBERS = ("batch_size", "buffer_size", "cycle_length", "count", "num_parallel_calls")
"""Arguments that a label names, by TensorFlow's names."""


def stage_call(stage: WrittenStage) -> str:
    """Return a stage as a short call."""
    method = method_of(stage.op)
    if method is None:
        return kind_of(stage.op)
    function = (stage.function or "").removeprefix(f"{method}_")
    arguments = [function] if function.isidentifier() and function not in (method, "read_one_file") else []
    for name in _NUMBERS:
        value = stage.arguments.get(name)
        if value is None or isinstance(value, str) or (value == AUTOTUNE and name == "count"):
            continue
        arguments.append(AUTOTUNE_WORD if value == AUTOTUNE else f"{value:g}")
    if stage.arguments.get("filename"):
        arguments.append("file")
    return f"{method}({', '.join(arguments)})"


def labels_of(written: WrittenPipeline, node: str) -> tuple[str, ...]:
    """Return the written stages behind a dataset that ran, several for a fused one, none for an injected one.

    Args:
        written: The pipeline as written.
        node: As traces name it: ``MapDataset:2`` or ``fused(ParallelMapDatasetV2:27,BatchDatasetV2:28)``.
    """
    names = re.findall(r"\w+:\d+", node)
    found = {stage.name: stage_call(stage) for stage in written.stages if stage.name}
    return tuple(found[name] for name in names if name in found)


def kind_of(op: str) -> str:
    """Return an op or iterator without its version: ``ParallelMap`` for ``ParallelMapDatasetV2``."""
    return re.sub(r"(V\d+)?$", "", re.sub(r"Dataset(V\d+)?$", "", op))


def method_of(op: str) -> str | None:
    """Return the call that one writes for an op or iterator, such as ``map``; None for a source of elements."""
    kind = kind_of(op)
    return _METHODS.get(kind) or _METHODS.get(kind.removeprefix("Parallel"))


def _read(job: JobView) -> WrittenPipeline:
    if job.tables.written is None:
        raise TraceIncompleteError(WRITTEN_NOT_KEPT)
    return job.tables.written


WRITTEN = Analysis(WrittenPipeline, per_job=PerJob(_read, NOT_WRITTEN), json_inside="tf_data")
