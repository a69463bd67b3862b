import os
from pathlib import Path

import pytest

from pipeline_lab.options.presets import SYNTHETIC
from pipeline_lab.options.run_options import set_option
from pipeline_lab.runs.events import NoteEvent, read_events
from pipeline_lab.worker import page_cache
from pipeline_lab.worker.page_cache import Dropping, cool, count_cached, drop
from tests.worker.fakes import make_job

SIZE = 1_000_003
COLD = set_option(SYNTHETIC.options, "training.page_cache", "cold")


def cached(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = count_cached(descriptor, path.stat().st_size)
        assert found is not None
        return found
    finally:
        os.close(descriptor)


def test_what_was_just_written_lies_in_the_page_cache_until_it_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    files = [tmp_path / "a", tmp_path / "folder" / "b", tmp_path / "empty"]
    for file in files:
        file.write_bytes(b"" if file.name == "empty" else os.urandom(SIZE))
    assert [cached(file) for file in files] == [SIZE, SIZE, 0]
    dropped = drop([str(tmp_path / "a"), str(tmp_path / "folder"), str(tmp_path / "empty"), str(tmp_path / "missing")])
    assert dropped.size_bytes == 2 * SIZE
    assert dropped.kept_bytes is not None
    if not dropped.is_cold:
        pytest.skip("the file system of temporary files keeps them in memory")
    assert [cached(file) for file in files] == [0, 0, 0]


def test_a_job_that_does_not_ask_drops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "drop", lambda _: pytest.fail("nobody asked"))
    assert cool(make_job(tmp_path, SYNTHETIC.options), ["a"]) == "warm"


@pytest.mark.parametrize(
    ("dropping", "state", "sentence"),
    [
        (Dropping(10**9, 10**6), "cold", None),
        (Dropping(10**9, 6 * 10**8), None, "the system kept 600 MB of 1 GB of the data files"),
        (Dropping(10**9, None), None, "the system does not tell whether the data files have left"),
        (Dropping(0, 0), None, "the system found no data file that could be dropped"),
    ],
)
def test_a_system_that_does_not_comply_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropping: Dropping, state: str | None, sentence: str | None
) -> None:
    monkeypatch.setattr(page_cache, "drop", lambda _: dropping)
    job = make_job(tmp_path, COLD)
    assert cool(job, ["a"]) == state
    notes = [event.sentence for event in read_events(job.folder.events) if isinstance(event, NoteEvent)]
    assert [sentence in note for note in notes] == [True] if sentence else not notes
