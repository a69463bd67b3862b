import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore

REPORT = """
import json, sys
json.dump([__name__, sys.argv, sys.path[0], __file__], sys.stdout)
"""


def _watch(tmp_path: Path, *arguments: str, script: str | None = None) -> "subprocess.CompletedProcess[str]":
    if script is not None:
        (tmp_path / "train.py").write_text(script)
    command = [sys.executable, "-m", "pipeline_lab.capture.watch", "--store", str(tmp_path / "store"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)


def _record(tmp_path: Path) -> Any:
    (record,) = RunStore(tmp_path / "store").runs()
    return record


def test_a_script_runs_as_python_would_run_it(tmp_path: Path) -> None:
    watched = _watch(tmp_path, "train.py", "--store", "mine", "-m", script=REPORT)
    plain = subprocess.run(
        [sys.executable, "train.py", "--store", "mine", "-m"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert json.loads(watched.stdout) == json.loads(plain.stdout)
    assert _record(tmp_path).status.state is RunState.DONE
    assert _record(tmp_path).environment["command"] == "train.py --store mine -m"


def test_a_module_runs_as_python_would_run_it(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    (tmp_path / "jobs" / "train.py").write_text(REPORT)
    watched = _watch(tmp_path, "-m", "jobs.train", "a")
    plain = subprocess.run(
        [sys.executable, "-m", "jobs.train", "a"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert json.loads(watched.stdout) == json.loads(plain.stdout)


ENDINGS = {
    "import nothing_of_that_name": (1, "train.py, line 2 with ModuleNotFoundError"),
    "def step(): raise ValueError('at step 37')\nstep()": (1, "train.py, line 2 with ValueError: at step 37"),
    "x = (": (1, "train.py, line 2 with SyntaxError"),
    "import sys; sys.exit(5)": (5, "ended with exit code 5"),
    "import os; os._exit(6)": (6, "os._exit(6) at train.py, line 2"),
}


@pytest.mark.parametrize("code", ENDINGS, ids=range(len(ENDINGS)))
def test_every_end_keeps_its_exit_code_and_names_its_line(tmp_path: Path, code: str) -> None:
    exit_code, said = ENDINGS[code]
    watched = _watch(tmp_path, "train.py", script=f"\n{code}\n")
    record = _record(tmp_path)
    assert watched.returncode == exit_code
    assert (record.status.state, record.status.exit_code) == (RunState.FAILED, exit_code)
    assert said in record.status.reason
    assert "pipeline_lab" not in watched.stderr.replace("pipeline-lab", "")


def test_the_runner_loads_nothing_that_a_script_may_want_to_load_first(tmp_path: Path) -> None:
    heavy = "{'numpy', 'pyarrow', 'pandas', 'tensorflow', 'pydantic'}"
    watched = _watch(tmp_path, "train.py", script=f"import sys; print(sorted({heavy} & set(sys.modules)))")
    assert watched.stdout.strip() == "[]"


def test_children_of_the_script_are_not_recorded(tmp_path: Path) -> None:
    script = """
import multiprocessing, os, sys

def double(value):
    return 2 * value

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(pool.map(double, [1, 2, 3]))
"""
    watched = _watch(tmp_path, "train.py", script=script)
    assert watched.stdout.split("\n")[:2] == ["[2, 4, 6]", "[2, 4, 6]"]
    assert watched.returncode == 0
    assert _record(tmp_path).status.state is RunState.DONE


def test_what_was_not_recorded_is_said(tmp_path: Path) -> None:
    _watch(tmp_path, "train.py", script="pass")
    (folder,) = (tmp_path / "store").glob("*-train-py-*")
    assert "ended without TensorFlow" in (folder / "events.jsonl").read_text()
