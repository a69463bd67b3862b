"""Data files that are made once: a folder per description, complete as soon as it has its name.

Files are written into a folder of their own and renamed into place together, so two jobs that make the same data at
the same time do not disturb each other; the second one throws its copy away.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from pipeline_lab.errors import DataError
from pipeline_lab.runs.events import DataProgressEvent
from pipeline_lab.runs.files import DataFile
from pipeline_lab.runs.tfrecord import FRAME_BYTES
from pipeline_lab.units import format_bytes
from pipeline_lab.worker.event_log import EventLog
from pipeline_lab.worker.stopping import StopRequest

FORMAT_VERSION = 1
ROOM_BYTES = 64_000_000
STALE_S = 86_400
PROGRESS_PERIOD_S = 0.2


@dataclass(frozen=True)
class Recipe:
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
    """Return where made data lies: ``PIPELINE_LAB_CACHE``, or the user's cache folder."""
    named = os.environ.get("PIPELINE_LAB_CACHE")
    return (Path(named) if named else platformdirs.user_cache_path("pipeline-lab")) / "data"


def cached_files(recipe: Recipe, log: EventLog, stop: StopRequest) -> list[DataFile]:
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


def _write_files(folder: Path, recipe: Recipe, log: EventLog, stop: StopRequest) -> None:
    total, reported_s = len(recipe.examples_per_file), 0.0
    for index, count in enumerate(recipe.examples_per_file):
        stop.check()
        recipe.write_file(folder / _file_name(index, recipe), index, count)
        if index + 1 == total or time.monotonic() - reported_s >= PROGRESS_PERIOD_S:
            reported_s = time.monotonic()
            log.write(DataProgressEvent(index + 1, total))


def _file_name(index: int, recipe: Recipe) -> str:
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


def _check_room(root: Path, recipe: Recipe) -> None:
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
