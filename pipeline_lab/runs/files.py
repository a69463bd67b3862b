"""The data files of a run, as kept in ``files.json``."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline_lab.errors import StoreError


@dataclass(frozen=True)
class DataFile:
    """One file that the job reads.

    Attributes:
        path: Where it lies.
        records: Records in it, or None if they were not counted.
        size_bytes: Its length.
    """

    path: str
    records: int | None
    size_bytes: int


def write_files(path: Path, files: list[DataFile]) -> None:
    path.write_text(json.dumps({"schema_version": 1, "files": [asdict(file) for file in files]}, indent=1))


def read_files(path: Path) -> list[DataFile]:
    """Return the data files of a run; none when the run did not get as far.

    Raises:
        StoreError: The document is damaged.
    """
    try:
        return [DataFile(**file) for file in json.loads(path.read_text())["files"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path.name} of the run is damaged: {error}.") from None
