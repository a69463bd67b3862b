import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pipeline_lab.worker.job_process import _delete_generated_code


def test_what_autograph_wrote_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    generated, own = (tmp_path / f"{name}.py" for name in ("__autograph_generated_fileab12", "own"))
    for path in (generated, own):
        path.write_text("x = 1\n")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[path.stem] = module
    try:
        _delete_generated_code()
        _delete_generated_code()  # what is gone already does not matter
    finally:
        for path in (generated, own):
            del sys.modules[path.stem]
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name in left if name.startswith("__autograph")} == set()
    assert "own.py" in left


def test_generated_code_that_cannot_be_deleted_does_not_keep_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, last = tmp_path / "folder", tmp_path / "last.py"
    folder.mkdir()
    last.write_text("")
    for number, file in enumerate((None, folder, last)):
        module = ModuleType(f"__autograph_generated_file{number}")
        if file is not None:
            module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    _delete_generated_code()
    assert list(tmp_path.iterdir()) == [folder]


FAILING_END = """
from pipeline_lab.worker import job_process

def fail():
    raise ValueError

job_process._delete_generated_code = fail
job_process.leave_process(3)
"""


def test_the_process_ends_with_its_code_whatever_fails_before() -> None:
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", FAILING_END], cwd=root, check=False).returncode == 3
