from pathlib import Path

import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.worker.data.user_files import find_user_files
from pipeline_lab.worker.stopping import StopRequest, StopRequestedError
from tests.runs.test_tfrecord import write_records


def test_files_come_in_the_order_of_their_names_with_their_records(tmp_path: Path) -> None:
    for name, count in (("b", 2), ("a", 1), ("c", 0)):
        write_records(tmp_path / f"{name}.tfrecord", [b"x"] * count)
    (tmp_path / "d.tfrecord").mkdir()
    files = find_user_files(str(tmp_path / "*.tfrecord"), StopRequest())
    assert [(Path(file.path).name, file.records, file.size_bytes) for file in files] == [
        ("a.tfrecord", 1, 17),
        ("b.tfrecord", 2, 34),
        ("c.tfrecord", 0, 0),
    ]


def test_a_pattern_that_matches_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No file matches"):
        find_user_files(str(tmp_path / "*.tfrecord"), StopRequest())


def test_files_without_a_record_say_so(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [])
    with pytest.raises(DataError, match="None of the 1 files"):
        find_user_files(str(tmp_path / "*"), StopRequest())


def test_counting_ends_when_the_job_shall(tmp_path: Path) -> None:
    write_records(tmp_path / "a", [b"x"])
    stop = StopRequest()
    stop.is_set = True
    with pytest.raises(StopRequestedError):
        find_user_files(str(tmp_path / "*"), stop)
