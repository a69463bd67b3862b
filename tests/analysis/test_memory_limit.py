import os
import subprocess
import sys
from pathlib import Path

from tests.support.recorded_run import write_run

HUNGRY = """
import sys
from types import SimpleNamespace
import psutil

psutil.virtual_memory = lambda: SimpleNamespace(available=1_000_000_000)
from pipeline_lab.analysis import __main__ as analysis

analysis._diagnose_once = lambda path, saved: bytearray(2_000_000_000)
sys.exit(analysis.main(sys.argv[1:]))
"""


def test_an_analysis_that_asks_for_more_than_there_is_ends_with_a_sentence(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    program = [sys.executable, "-c", HUNGRY, str(run.path)]
    ended = subprocess.run(program, env=os.environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.strip() == "The analysis ran out of memory; analyze fewer or shorter windows."
