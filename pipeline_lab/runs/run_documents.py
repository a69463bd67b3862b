"""Two small documents of a run: its data files (``files.json``) and its pipeline as written (``written.json``)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline_lab.errors import StoreError


@dataclass(frozen=True)
class DataFile:
    """One file that the job reads.

    Attributes:
        path: Its path.
        records: Its records, times the views that the pipeline makes of each; None if not counted.
        size_bytes: Its length; 0 for a generator.
    """

    path: str
    records: int | None
    size_bytes: int


def write_files(path: Path, files: Sequence[DataFile], tables: Sequence[DataFile] = ()) -> None:
    """Write the record files and the tables that the job reads."""
    lists = {"files": [asdict(file) for file in files], "tables": [asdict(table) for table in tables]}
    path.write_text(json.dumps({"schema_version": 1, **lists}, indent=1))


def read_files(path: Path) -> list[DataFile]:
    """Return the data files of a run; none if the run did not get this far.

    Raises:
        StoreError: The document is damaged.
    """
    document = _read(path)
    return [] if document is None else _listed(path, document, "files")


def read_data_tables(path: Path) -> list[DataFile]:
    """Return the tables that a run reads beside its data files.

    Raises:
        StoreError: The document is damaged.
    """
    document = _read(path)
    return [] if document is None or "tables" not in document else _listed(path, document, "tables")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _damaged(path, error) from None
    return document


def _listed(path: Path, document: dict[str, Any], kind: str) -> list[DataFile]:
    try:
        return [DataFile(**file) for file in document[kind]]
    except (KeyError, TypeError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(f"{path.name} of the run is damaged: {error}.")


@dataclass(frozen=True)
class WrittenStage:
    """One dataset of the graph.

    Attributes:
        name: As in traces, such as ``ParallelMapDatasetV2:2``; empty for a dataset made by a function, such as the files
            of an interleave.
        op: Such as ``ParallelMapDatasetV2``.
        function: The user's function, such as ``map_parse``; None without one.
        arguments: Constant arguments by TensorFlow's names: ``buffer_size``, ``batch_size``, ….
        inputs: Indices of its input stages, those made by its function last.
    """

    name: str
    op: str
    function: str | None
    arguments: dict[str, float | str]
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class WrittenPipeline:
    """All stages, the outermost first.

    Attributes:
        pool_threads: Threads that run user functions.
    """

    stages: tuple[WrittenStage, ...]
    pool_threads: int


def write_written(path: Path, written: WrittenPipeline) -> None:
    path.write_text(json.dumps({"schema_version": 1, **asdict(written)}, indent=1))


def read_written(path: Path) -> WrittenPipeline | None:
    """Return the pipeline as written; None if the document is missing or damaged."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        stages = [WrittenStage(**{**stage, "inputs": tuple(stage["inputs"])}) for stage in document["stages"]]
        return WrittenPipeline(tuple(stages), int(document["pool_threads"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
