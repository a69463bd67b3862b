"""Examples that are files of their own, in a subfolder for each class.

A subfolder takes the place of a data file, and each file in it that of a record, in the order of their names.
"""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lab.errors import DataError
from pipeline_lab.runs.files import DataFile
from pipeline_lab.worker.stopping import StopRequest


def find_class_folders(folder: str, endings: Sequence[str], classes: int, stop: StopRequest) -> list[DataFile]:
    """Return the subfolders of a folder in the order of their names, their files counted.

    Args:
        folder: Where they lie.
        endings: Of the names of the files that count, such as ``.wav``.
        classes: How many classes the network tells apart.
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
