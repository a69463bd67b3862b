"""The pipeline as it was written, before TensorFlow rewrote it: the stages of ``written.json``."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class WrittenStage:
    """One dataset of the graph.

    Attributes:
        name: TensorFlow's own, such as ``ParallelMapDatasetV2:2``; traces give the same. Empty for a dataset that a
            function makes, such as the files of an interleave.
        op: Such as ``ParallelMapDatasetV2``.
        function: The user's function, such as ``map_parse``; None without one.
        arguments: Numbers and texts that it was given, by TensorFlow's names: ``buffer_size``, ``batch_size``, ….
        inputs: Indices of the stages it takes elements from, those that its function makes last.
    """

    name: str
    op: str
    function: str | None
    arguments: dict[str, float | str]
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class WrittenPipeline:
    """All stages, the one that the step asks first.

    Attributes:
        pool_threads: Threads that run user functions.
    """

    stages: tuple[WrittenStage, ...]
    pool_threads: int


def write_written(path: Path, written: WrittenPipeline) -> None:
    path.write_text(json.dumps({"schema_version": 1, **asdict(written)}, indent=1))


def read_written(path: Path) -> WrittenPipeline | None:
    """Return the pipeline as written; None if the run has no such document, or a damaged one."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        stages = [WrittenStage(**{**stage, "inputs": tuple(stage["inputs"])}) for stage in document["stages"]]
        return WrittenPipeline(tuple(stages), int(document["pool_threads"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
