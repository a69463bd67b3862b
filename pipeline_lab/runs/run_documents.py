"""Two small documents of a run: its data files (``files.json``) and its pipeline as written (``written.json``)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.pipeline.recipe import DatasetCall, PythonPart, Recipe, SourcePlace


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
class WrittenCall:
    """A stage in the words of its author.

    Attributes:
        text: The call: ``map(parse, AUTOTUNE)``, or as it stands in the user's file, ``.map(load)``.
        place: In the user's file; None where that is not known.
        python: Python that it runs, where that is known.
    """

    text: str
    place: SourcePlace | None = None
    python: tuple[PythonPart, ...] = ()

    def __str__(self) -> str:
        return self.text if self.place is None else f"{self.place} {self.text}"

    def to_json(self) -> dict[str, Any]:
        """Write it with the functions of Python that it runs; its place is None where that is not known."""
        python = [
            {"kind": part.kind, "function": part.function.name, "file": part.function.file, "line": part.function.line}
            for part in self.python
        ]
        return {"text": self.text, "place": self.place and asdict(self.place), "python": python}


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
        call: Where a script was watched, the call that made it.
    """

    name: str
    op: str
    function: str | None
    arguments: dict[str, float | str]
    inputs: tuple[int, ...]
    call: WrittenCall | None = None


@dataclass(frozen=True)
class WrittenPipeline:
    """All stages, the outermost first.

    Attributes:
        pool_threads: Threads that run user functions.
    """

    stages: tuple[WrittenStage, ...]
    pool_threads: int


def write_written(path: Path, written: WrittenPipeline) -> None:
    document = asdict(written)
    for stage in document["stages"]:
        del stage["call"]  # it is in the recipe
    path.write_text(json.dumps({"schema_version": 1, **document}, indent=1))


def read_written(path: Path) -> WrittenPipeline | None:
    """Return the pipeline as written; None if the document is missing or damaged."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        stages = [WrittenStage(**{**stage, "inputs": tuple(stage["inputs"])}) for stage in document["stages"]]
        return WrittenPipeline(tuple(stages), int(document["pool_threads"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def written_by_recipe(recipe: Recipe, cores: int) -> WrittenPipeline:
    """Return the pipelines of a script, the one that was trained on first.

    Args:
        recipe: Of the script.
        cores: That it may use: tf.data runs functions on as many threads where the script does not say.
    """
    trained = recipe.trained
    uses = [*([] if trained is None else [trained]), *recipe.uses]
    calls = {call.number: call for use in uses for call in recipe.upstream(use.call)}
    first: dict[int, int] = {}
    count = 0
    for number, call in calls.items():
        first[number] = count
        count += max(1, len(call.nodes))
    stages: list[WrittenStage] = []
    for number, call in calls.items():
        below = tuple(first[each] for each in (*call.inputs, *(() if call.inner is None else (call.inner,))))
        words = WrittenCall(call.words, call.place, call.python)
        names = call.nodes[::-1] or ("",)  # the last one that a call made is the outermost
        for index, name in enumerate(names):
            inputs = below if index == len(names) - 1 else (first[number] + index + 1,)
            stages.append(WrittenStage(name, call.method, _function_of(call), _plain(call), inputs, words))
    return WrittenPipeline(tuple(stages), (trained and trained.pool_threads) or cores)


def _function_of(call: DatasetCall) -> str | None:
    given = [value["function"] for value in call.arguments.values() if isinstance(value, dict) and "function" in value]
    return str(given[0]) if given else None


def _plain(call: DatasetCall) -> dict[str, float | str]:
    return {name: value for name, value in call.arguments.items() if isinstance(value, (int, float, str))}


def add_places(written: WrittenPipeline, recipe: Recipe) -> WrittenPipeline:
    """Return a pipeline that TensorFlow wrote as a graph with the places of the calls that made it."""
    calls = {node: call for call in recipe.calls for node in call.nodes}
    stages = [
        stage
        if (call := calls.get(stage.name)) is None
        else replace(stage, call=WrittenCall(call.words, call.place, call.python))
        for stage in written.stages
    ]
    return replace(written, stages=tuple(stages))
