import os
import sys
from pathlib import Path

import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.folders import runtime_folder
from pipeline_lab.runs.launch.runtime import PACKAGE_ROOT, child_environment, start_detached, worker_command
from tests.support.patience import until


def test_the_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_RUNTIME", str(tmp_path / "own"))
    assert runtime_folder().stat().st_mode & 0o777 == 0o700
    assert runtime_folder() == runtime_folder()


def test_a_folder_that_others_can_open_or_replace_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    (tmp_path / "private").mkdir(mode=0o700)
    for name in ("open", "link"):
        monkeypatch.setenv("PIPELINE_LAB_RUNTIME", str(tmp_path / name))
        with pytest.raises(StoreError, match=r"must be a folder that only you can open"):
            runtime_folder()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PIPELINE_LAB_RUNTIME", str(tmp_path / "file" / "below"))
    with pytest.raises(StoreError, match=r"Cannot create .* name another folder in PIPELINE_LAB_RUNTIME"):
        runtime_folder()


def test_a_detached_process_is_nobodys_child(tmp_path: Path) -> None:
    program = "import os, sys; open(sys.argv[1], 'w').write(f'{os.getppid()} {os.getsid(0)} done')"
    start_detached([sys.executable, "-c", program, str(tmp_path / "said")])
    until(lambda: (tmp_path / "said").is_file() and "done" in (tmp_path / "said").read_text(), "it ran")
    _, session, _ = (tmp_path / "said").read_text().split()
    assert int(session) != os.getsid(0)


def test_our_processes_find_the_package_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/a", str(PACKAGE_ROOT)]))
    assert child_environment()["PYTHONPATH"].split(os.pathsep) == [str(PACKAGE_ROOT), "/a"]


def test_a_wrapper_can_stand_before_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIPELINE_LAB_WORKER", raising=False)
    assert worker_command("/run") == [sys.executable, "-m", "pipeline_lab.worker", "/run"]
    monkeypatch.setenv("PIPELINE_LAB_WORKER", "nsys profile 'my python' -m pipeline_lab.worker")
    assert worker_command("/run") == ["nsys", "profile", "my python", "-m", "pipeline_lab.worker", "/run"]
