"""Which files of a folder count, on a tree that is made by hand."""

from pathlib import Path

import pytest

from pipeline_lab import folders
from pipeline_lab.errors import StoreError, TraceReadError
from pipeline_lab.folders import files_below


def names(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in files_below(root, StoreError)]


def test_files_come_in_the_order_of_their_names_without_what_is_hidden_or_behind_a_linked_folder(tmp_path: Path):
    for name in ("b/2", "b/1", "a/3", ".git/head", "c/.DS_Store", "c/._host.xplane.pb"):
        path = tmp_path / "log" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "log/link").symlink_to(tmp_path / "log/a")
    (tmp_path / "log/0").symlink_to(tmp_path / "log/a/3")  # a linked file is one
    (tmp_path / "log/gone").symlink_to(tmp_path / "nowhere")
    assert names(tmp_path / "log") == ["0", "a/3", "b/1", "b/2"]


def test_a_folder_with_far_more_than_a_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folders, "MAX_ENTRIES", 2)
    for name in "ab":
        (tmp_path / name).touch()
    assert names(tmp_path) == ["a", "b"]
    (tmp_path / "c").touch()
    with pytest.raises(TraceReadError, match="holds more than 2 files; name the log directory itself"):
        list(files_below(tmp_path, TraceReadError))
