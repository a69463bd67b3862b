"""A user's own TFRecord files: found by a glob, counted and checked before the job starts."""

from pipeline_lab.errors import DataError
from pipeline_lab.runs.files import DataFile
from pipeline_lab.runs.found_features import matching_files
from pipeline_lab.runs.tfrecord import count_records
from pipeline_lab.worker.stopping import StopRequest


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
