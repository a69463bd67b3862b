"""A script that asks for a batch that never comes."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pipeline_lab.capture import watch_script as standstill_module
from pipeline_lab.capture.script.job_threads import MARK
from pipeline_lab.capture.watch_script import Standstill
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore

REPORT = """
import atexit, json, pickle, sys

class Settings:
    pass

atexit.register(lambda: print(type(pickle.loads(pickle.dumps(Settings())))))
print(json.dumps([__name__, sys.argv, sys.path[0], __file__]))
"""


def _watch(tmp_path: Path, *arguments: str, script: str | None = None) -> "subprocess.CompletedProcess[str]":
    if script is not None:
        (tmp_path / "train.py").write_text(script)
    command = [
        sys.executable,
        "-m",
        "pipeline_lab.capture.watch_script",
        "--store",
        str(tmp_path / "store"),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)


def _record(tmp_path: Path) -> Any:
    store = RunStore(tmp_path / "store")
    (run,) = store.runs()
    return store.read(run.id)


@pytest.mark.slow
@pytest.mark.parametrize("safe_path", ["", "1"])
def test_a_script_runs_as_python_would_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe_path: str) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", safe_path)
    watched = _watch(tmp_path, "train.py", "--store", "mine", "-m", script=REPORT)
    plain = subprocess.run(
        [sys.executable, "train.py", "--store", "mine", "-m"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert watched.stdout == plain.stdout
    assert watched.stdout.endswith("<class '__main__.Settings'>\n")
    assert _record(tmp_path).status.state is RunState.DONE
    assert _record(tmp_path).environment["command"] == "train.py --store mine -m"


@pytest.mark.slow
def test_a_module_runs_as_python_would_run_it(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    (tmp_path / "jobs" / "train.py").write_text(REPORT)
    watched = _watch(tmp_path, "-m", "jobs.train", "a")
    plain = subprocess.run(
        [sys.executable, "-m", "jobs.train", "a"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert watched.stdout == plain.stdout
    assert watched.stdout.endswith("<class '__main__.Settings'>\n")


ENDINGS = {
    "import nothing_of_that_name": (1, "train.py, line 2 with ModuleNotFoundError"),
    "def step(): raise ValueError('at step 37')\nstep()": (1, "train.py, line 2 with ValueError: at step 37"),
    "x = (": (1, "train.py, line 2 with SyntaxError: '(' was never closed."),
    "import sys; sys.exit(5)": (5, "ended with exit code 5"),
    "import sys; sys.exit('no data')": (1, "ended with exit code 1 after “no data”"),
    "import os; os._exit(6)": (6, "os._exit(6) at train.py, line 2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("code", ENDINGS, ids=range(len(ENDINGS)))
def test_every_end_keeps_its_exit_code_and_names_its_line(tmp_path: Path, code: str) -> None:
    exit_code, said = ENDINGS[code]
    watched = _watch(tmp_path, "train.py", script=f"\n{code}\n")
    record = _record(tmp_path)
    assert watched.returncode == exit_code
    assert (record.status.state, record.status.exit_code) == (RunState.FAILED, exit_code)
    assert said in record.status.reason
    assert "pipeline_lab" not in watched.stderr.replace("pipeline-lab", "")


@pytest.mark.slow
def test_the_runner_loads_nothing_that_a_script_may_want_to_load_first(tmp_path: Path) -> None:
    heavy = "{'numpy', 'pyarrow', 'pandas', 'tensorflow', 'pydantic'}"
    watched = _watch(tmp_path, "train.py", script=f"import sys; print(sorted({heavy} & set(sys.modules)))")
    assert watched.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("keras", ["0", "1"], ids=["keras-3", "keras-2"])
def test_keras_is_watched_from_its_first_call_on(tmp_path: Path, keras: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow imports Keras 2 itself, while it is being imported."""
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", keras)
    script = f"import tensorflow as tf\nprint(hasattr(tf.keras.Model.fit, {MARK!r}))\n"
    assert "True" in _watch(tmp_path, "--no-calibrate", "train.py", script=script).stdout.splitlines()


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_was_not_recorded_is_said(tmp_path: Path) -> None:
    _watch(tmp_path, "train.py", script="pass")
    (folder,) = (tmp_path / "store").glob("*-train-py-*")
    assert "ended without TensorFlow" in (folder / "events.jsonl").read_text()


@pytest.mark.slow
def test_a_process_that_the_script_forks_ends_nothing_but_itself(tmp_path: Path) -> None:
    script = """
import os, sys
if os.fork() == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    watched = _watch(tmp_path, "train.py", script=script)
    assert watched.stdout == "3\n"
    assert watched.returncode == 0
    assert (_record(tmp_path).status.state, _record(tmp_path).status.exit_code) == (RunState.DONE, 0)


@pytest.mark.slow
def test_pools_that_nobody_closes_do_not_hold_the_end(tmp_path: Path) -> None:
    script = """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
pools = [ProcessPoolExecutor(1), ThreadPoolExecutor(1)]
for pool in pools:
    print(pool.submit(abs, -1).result())
"""
    watched = _watch(tmp_path, "train.py", script=script)
    assert watched.stdout == "1\n1\n"
    assert _record(tmp_path).status.state is RunState.DONE


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "sys.exit()"])
def test_the_run_goes_on_as_long_as_the_threads_of_the_script(tmp_path: Path, end: str) -> None:
    script = f"""
import json, pathlib, sys, threading, time

def train():
    time.sleep(1)  # by then the script itself is over
    (record,) = pathlib.Path("store").glob("*/run.json")
    print(json.loads(record.read_text())["status"]["state"])

threading.Thread(target=train).start()
{end}
"""
    watched = _watch(tmp_path, "train.py", script=script)
    assert watched.stdout == "running\n"
    assert watched.returncode == 0
    assert _record(tmp_path).status.state is RunState.DONE


@pytest.mark.slow
def test_ctrl_c_ends_a_script_as_it_would_without_us(tmp_path: Path) -> None:
    takes_it = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # what was started in the background does not
    (tmp_path / "train.py").write_text(
        f"import signal, time\n{takes_it}\nprint('trains', flush=True)\ntime.sleep(600)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pipeline_lab.capture.watch_script",
        "--store",
        str(tmp_path / "store"),
        "train.py",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path) as watched:
        assert watched.stdout is not None
        assert watched.stdout.readline() == "trains\n"
        watched.send_signal(signal.SIGINT)
        try:
            _, errors = watched.communicate()
        finally:
            watched.kill()
    assert watched.returncode == -signal.SIGINT
    assert errors.endswith("\nKeyboardInterrupt\n")
    assert "pipeline_lab" not in errors
    assert _record(tmp_path).status.state is RunState.CANCELLED


LOOKS = 100


def test_one_call_that_does_not_return_is_told_once_with_its_line() -> None:
    said: list[str] = []

    def place_of_main() -> tuple[int, int]:
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        return id(frame), frame.f_lasti

    def look() -> None:
        place = None
        while place != (place := place_of_main()):  # until the main thread stands still for all looks
            said.clear()
            standstill = Standstill(Path(__file__).parent, said.append)
            for now_s in range(LOOKS):
                standstill.look(float(now_s))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()  # where the main thread stands meanwhile
    (sentence,) = said
    assert sentence.startswith("Python has been at test_watch_script.py, line ")
    assert "for 65 s, in one call" in sentence


def test_call_after_call_is_no_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> FrameType:  # the same instruction of the same function, another call each time
        return sys._getframe()

    said: list[str] = []
    standstill = Standstill(Path(__file__).parent, said.append)
    monkeypatch.setattr(sys, "_current_frames", lambda: {threading.main_thread().ident: ask()})
    monkeypatch.setattr(standstill_module, "id", lambda _: 7, raising=False)  # all at one address
    for now_s in range(LOOKS):
        standstill.look(float(now_s))
    assert not said
