"""Import a run's ``pipeline.py``: a real module from a real file, as autograph needs it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from pipeline_lab.runs.store import RunFolder


def import_pipeline(path: Path) -> ModuleType:
    """Import a file under a name that no other module has."""
    name = f"_pipeline_of_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def source_to_run(folder: RunFolder) -> Path:
    """Return the source that the job executes: the one with the sample probe written in, where the run has one."""
    return folder.probed_source if folder.probed_source.is_file() else folder.source
