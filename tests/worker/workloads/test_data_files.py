import os
from pathlib import Path

import pytest

from pipeline_lab import folders
from pipeline_lab.errors import DataError
from pipeline_lab.runs.run_events import DataProgressEvent, read_events
from pipeline_lab.worker.job_context import StopRequest, StopRequestedError
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.workloads.data_files import DataRecipe, cached_files, data_folder, find_user_files
from tests.runs.data_files.test_tfrecord import write_records


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "events.jsonl")


class Writer:
    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []

    def __call__(self, path: Path, file_index: int, count: int) -> None:
        self.calls.append((path.name, file_index, count))
        path.write_bytes(b"x" * count)


def _recipe(writer: object, record_bytes: int = 10, **description: object) -> DataRecipe:
    return DataRecipe("digits", dict(description), (3, 5), record_bytes, writer)


def test_files_are_made_once(log: EventLog, tmp_path: Path) -> None:
    writer = Writer()
    first = cached_files(_recipe(writer), log, StopRequest())
    assert cached_files(_recipe(writer), log, StopRequest()) == first
    assert writer.calls == [("part-00000-of-00002.tfrecord", 0, 3), ("part-00001-of-00002.tfrecord", 1, 5)]
    assert [(file.records, file.size_bytes) for file in first] == [(3, 3), (5, 5)]
    last = read_events(tmp_path / "events.jsonl")[-1]
    assert isinstance(last, DataProgressEvent)
    assert (last.files, last.total_files) == (2, 2)


def test_another_description_is_another_folder(log: EventLog) -> None:
    small = cached_files(_recipe(Writer(), size=32), log, StopRequest())
    large = cached_files(_recipe(Writer(), size=64), log, StopRequest())
    assert Path(small[0].path).parent != Path(large[0].path).parent


def test_a_writer_that_fails_leaves_nothing(log: EventLog) -> None:
    def write_half(path: Path, file_index: int, _count: int) -> None:
        path.write_bytes(b"x")
        if file_index == 1:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        cached_files(_recipe(write_half), log, StopRequest())
    assert list(data_folder().iterdir()) == []


def test_of_two_writers_at_once_the_second_uses_the_files_of_the_first(log: EventLog) -> None:
    def write_while_another_does(path: Path, file_index: int, count: int) -> None:
        if file_index == 1:
            cached_files(_recipe(Writer()), log, StopRequest())
        path.write_bytes(b"late" * count)

    files = cached_files(_recipe(write_while_another_does), log, StopRequest())
    assert [Path(file.path).read_bytes() for file in files] == [b"xxx", b"xxxxx"]
    assert len(list(data_folder().iterdir())) == 1


def test_too_little_room_is_said_before_anything_is_written(log: EventLog) -> None:
    writer = Writer()
    with pytest.raises(DataError, match="has only"):
        cached_files(_recipe(writer, record_bytes=10**17), log, StopRequest())
    assert writer.calls == []


def test_what_a_killed_job_left_behind_is_removed_a_day_later(log: EventLog) -> None:
    old, young = data_folder() / ".making-old", data_folder() / ".making-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    cached_files(_recipe(Writer()), log, StopRequest())
    assert (old.exists(), young.exists()) == (False, True)


def test_the_users_cache_is_used_where_none_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PIPELINE_LAB_CACHE")
    monkeypatch.setattr(folders.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    assert data_folder() == tmp_path / "pipeline-lab" / "data"


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
