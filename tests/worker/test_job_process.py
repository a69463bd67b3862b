import subprocess
import sys
from pathlib import Path

import pytest

FAILING_END = """
from pipeline_lab.worker import job_process

def fail():
    raise ValueError

job_process.multiprocessing.active_children = fail
job_process.leave_process(3)
"""


@pytest.mark.slow
def test_the_process_ends_with_its_code_whatever_fails_before() -> None:
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", FAILING_END], cwd=root, check=False).returncode == 3
