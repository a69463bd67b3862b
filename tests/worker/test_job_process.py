import importlib.util
import sys
from pathlib import Path

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
