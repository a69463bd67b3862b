"""Compiled code outlives the process that compiled it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from pipeline_lab.trace.compiled import compiled

SMALL = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"
SCRIPT = """
import sys
from pathlib import Path
from pipeline_lab.trace.compiled import is_compiled
from pipeline_lab.trace.xplane.xspace import read_xplane
before = is_compiled()
print(read_xplane(Path(sys.argv[1])).event_count, before, is_compiled())
"""


def read_with_cache(folder: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(SMALL)], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_a_second_process_finds_the_code_of_the_first(tmp_path: Path) -> None:
    assert read_with_cache(tmp_path) == "708 False True"
    assert read_with_cache(tmp_path) == "708 True True"
    assert not list(Path(__file__).parents[2].glob("pipeline_lab/trace/__pycache__/*.nbi"))


def test_where_nothing_can_be_written_functions_compile_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def without_a_cache(*functions: Any, **settings: Any) -> Any:
        if settings.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*functions, **settings)

    monkeypatch.setattr(numba, "njit", without_a_cache)

    @compiled
    def double(value: int) -> int:
        return 2 * value

    assert double(21) == 42
