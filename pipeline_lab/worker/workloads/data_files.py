"""Data files of a job: made once and kept by what determines them, or found among the user's own and counted.

Made files are written into a folder of their own and renamed into place together, so two jobs that make the same data
at the same time do not disturb each other; the second one throws its copy away. Where examples are files of their
own, a subfolder for each class takes the place of a data file, and each file in it that of a record, in the order of
their names.
"""

import contextlib
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError
from pipeline_lab.folders import cache_folder
from pipeline_lab.runs.data_files.found_features import matching_files
from pipeline_lab.runs.data_files.tfrecord import FRAME_BYTES, count_records
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_events import DataProgressEvent
from pipeline_lab.units import format_bytes
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog

FILE_SHIFT = 40
RECORD_MASK = (1 << FILE_SHIFT) - 1


def record_id(file_index: int, record: int) -> int:
    return file_index << FILE_SHIFT | record


FORMAT_VERSION = 1
ROOM_BYTES = 64_000_000
STALE_S = 86_400
PROGRESS_PERIOD_S = 0.2


@dataclass(frozen=True)
class DataRecipe:
    """How to make a set of data files.

    Attributes:
        name: Readable part of the folder's name.
        description: Everything that determines the records' content.
        examples_per_file: Records in each file.
        record_bytes: Length of one record, roughly.
        write_file: Called with path, file index and record count, writes one file, or a folder of files.
        write_tables: Called with the folder, writes what else belongs to the data; None if there is nothing.
        tables_bytes: Size of that, roughly.
        ending: Of the files' names.
    """

    name: str
    description: dict[str, Any]
    examples_per_file: tuple[int, ...]
    record_bytes: int
    write_file: Callable[[Path, int, int], None]
    write_tables: Callable[[Path, StopRequest], None] | None = None
    tables_bytes: int = 0
    ending: str = ".tfrecord"

    @property
    def folder_name(self) -> str:
        content = {"version": FORMAT_VERSION, "sizes": self.examples_per_file, **self.description}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return f"{self.name}-{digest[:16]}"


def data_folder() -> Path:
    """Return the folder of generated data."""
    return cache_folder() / "data"


def cached_files(recipe: DataRecipe, log: EventLog, stop: StopRequest) -> list[DataFile]:
    """Return the files of a recipe, made now if they are not there yet.

    Raises:
        DataError: There is no room for them.
        StopRequestedError: The job was stopped meanwhile.
    """
    root = data_folder()
    folder = root / recipe.folder_name
    if not folder.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(root)
        _check_room(root, recipe)
        with _folder_in_the_making(root, recipe.folder_name) as unfinished:
            if recipe.write_tables is not None:
                recipe.write_tables(unfinished, stop)
            _write_files(unfinished, recipe, log, stop)
            _publish(unfinished, folder)
    paths = [folder / _file_name(index, recipe) for index in range(len(recipe.examples_per_file))]
    return [
        DataFile(str(path), count, _size_bytes(path))
        for path, count in zip(paths, recipe.examples_per_file, strict=True)
    ]


def _size_bytes(path: Path) -> int:
    return sum(each.stat().st_size for each in path.iterdir()) if path.is_dir() else path.stat().st_size


def _write_files(folder: Path, recipe: DataRecipe, log: EventLog, stop: StopRequest) -> None:
    total, reported_s = len(recipe.examples_per_file), 0.0
    for index, count in enumerate(recipe.examples_per_file):
        stop.check()
        recipe.write_file(folder / _file_name(index, recipe), index, count)
        if index + 1 == total or time.monotonic() - reported_s >= PROGRESS_PERIOD_S:
            reported_s = time.monotonic()
            log.write(DataProgressEvent(index + 1, total))


def _file_name(index: int, recipe: DataRecipe) -> str:
    return f"part-{index:05d}-of-{len(recipe.examples_per_file):05d}{recipe.ending}"


@contextlib.contextmanager
def _folder_in_the_making(root: Path, name: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=root, prefix=f".making-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(unfinished: Path, folder: Path) -> None:
    unfinished.chmod(0o755)
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _check_room(root: Path, recipe: DataRecipe) -> None:
    needed_bytes = sum(recipe.examples_per_file) * (recipe.record_bytes + FRAME_BYTES) + recipe.tables_bytes
    free_bytes = shutil.disk_usage(root).free
    if needed_bytes + ROOM_BYTES > free_bytes:
        raise DataError(
            f"The data would take {format_bytes(needed_bytes)}, but {root} has only {format_bytes(free_bytes)} left; "
            "use fewer or smaller examples, or name a larger disk in PIPELINE_LAB_CACHE."
        )


def _remove_leftovers(root: Path) -> None:
    for entry in root.glob(".making-*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - entry.stat().st_mtime > STALE_S:
                shutil.rmtree(entry, ignore_errors=True)


def find_class_folders(folder: str, endings: Sequence[str], classes: int, stop: StopRequest) -> list[DataFile]:
    """Return the subfolders of a folder in the order of their names, their files counted.

    Args:
        folder: Where they lie.
        endings: Of the names of the files that count, such as ``.wav``.
        classes: How many classes the network distinguishes.
        stop: Looked at between subfolders.

    Raises:
        DataError: There is no such folder, it has no subfolder or more than classes, or one holds none of the files.
        StopRequestedError: The job was stopped meanwhile.
    """
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise DataError(f"There is no folder {path}; give the one with a subfolder for each class.")
    subfolders = sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))
    if not subfolders:
        raise DataError(f"{path} has no subfolder; put the files of each class into one of its own.")
    if len(subfolders) > classes:
        raise DataError(
            f"{path} has {len(subfolders)} subfolders, one for each class, but workload.classes is {classes}; raise it."
        )
    found = []
    for subfolder in subfolders:
        stop.check()
        sizes = [each.stat().st_size for each in files_in(subfolder, endings)]
        if not sizes:
            raise DataError(f"{subfolder} holds no file ending in {', '.join(endings)}; fill it, or remove it.")
        found.append(DataFile(str(subfolder), len(sizes), sum(sizes)))
    return found


def files_in(folder: Path, endings: Sequence[str]) -> list[Path]:
    """Return a class's files in the order in which the pipeline numbers them."""
    return sorted(each for each in folder.iterdir() if each.name.endswith(tuple(endings)) and each.is_file())


def find_user_files(pattern: str, stop: StopRequest) -> list[DataFile]:
    """Return the files that a pattern names, in the order of their names, with their records counted.

    Raises:
        DataError: No file matches, one is damaged, or none holds a record.
        StopRequestedError: The job was stopped meanwhile.
    """
    paths = matching_files(pattern)
    files = []
    for path in paths:
        stop.check()
        files.append(DataFile(str(path), count_records(path), path.stat().st_size))
    if not any(file.records for file in files):
        raise DataError(f"None of the {len(files)} files that match {pattern!r} holds a record.")
    return files
