"""A user's own TFRecord files: found by a glob, counted and checked before the job starts."""

import glob
from pathlib import Path

from pipeline_lab.errors import DataError
from pipeline_lab.runs.files import DataFile
from pipeline_lab.worker.data.tfrecord import count_records
from pipeline_lab.worker.stopping import StopRequest


def find_user_files(pattern: str, stop: StopRequest) -> list[DataFile]:
    """Return the files that a pattern names, in the order of their names, with their records counted.

    Raises:
        DataError: No file matches, one is damaged, or none holds a record.
        StopRequestedError: The job was stopped meanwhile.
    """
    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207, Path.glob takes no absolute pattern
    paths = [path for name in names if (path := Path(name).absolute()).is_file()]
    if not paths:
        raise DataError(
            f"No file matches {pattern!r}; give the full path of your TFRecord files, such as /data/train-*.tfrecord."
        )
    files = []
    for path in paths:
        stop.check()
        files.append(DataFile(str(path), count_records(path), path.stat().st_size))
    if not any(file.records for file in files):
        raise DataError(f"None of the {len(files)} files that match {pattern!r} holds a record.")
    return files
