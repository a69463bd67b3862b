"""The data files of a run, as kept in ``files.json``."""

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
        path: Where it lies.
        records: Records in it, each view counted where the pipeline makes several of one; None if they were not counted.
        size_bytes: Its length; 0 for a generator, of which nothing lies on disk.
    """

    path: str
    records: int | None
    size_bytes: int


def write_files(path: Path, files: Sequence[DataFile], tables: Sequence[DataFile] = ()) -> None:
    """Write which files of records the job reads, and which tables beside them."""
    lists = {"files": [asdict(file) for file in files], "tables": [asdict(table) for table in tables]}
    path.write_text(json.dumps({"schema_version": 1, **lists}, indent=1))


def read_files(path: Path) -> list[DataFile]:
    """Return the data files of a run; none when the run did not get as far.

    Raises:
        StoreError: The document is damaged.
    """
    document = _read(path)
    return [] if document is None else _listed(path, document, "files")


def read_tables(path: Path) -> list[DataFile]:
    """Return the tables that lie beside the data files of a run.

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
