"""The subprocess of the app: once, or following a run until it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_lab.analysis import __main__ as command
from pipeline_lab.analysis import follow as follow_module
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
from pipeline_lab.analysis.follow import follow
from pipeline_lab.analysis.timeline.index import open_index
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.record import RunState
from tests.support.recorded_run import set_state, write_run, write_window


@pytest.fixture(autouse=True)
def _restless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_module, "REST", 0)


def steps_saved(saved: SavedDiagnosis) -> int:
    found = saved.load_latest()
    assert found is not None
    return 0 if isinstance(found.steps, Unavailable) else found.steps.count


def test_each_window_is_folded_when_it_lands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_run(tmp_path / "run", windows=1, state=RunState.RUNNING)
    saved = SavedDiagnosis(folder.path)
    read: list[str] = []
    analyze = follow_module.RunFold.add_new
    monkeypatch.setattr(
        follow_module.RunFold,
        "add_new",
        lambda fold, *args, **named: read.extend(fold.missing()) or analyze(fold, *args, **named),
    )
    seen: list[int] = []

    def between_looks(_: float) -> None:
        seen.append(steps_saved(saved))
        if len(seen) == 1:
            write_window(folder, 1)
        else:
            set_state(folder, RunState.DONE)

    follow(folder, saved, between_looks)
    assert seen == [3, 6]
    assert len(read) == 2  # no window is read twice
    assert saved.is_fresh
    assert saved.progress is None


def test_a_window_that_lands_while_the_one_before_is_read_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = write_run(tmp_path / "run", windows=1, state=RunState.RUNNING)
    saved = SavedDiagnosis(folder.path)
    analyze = follow_module.RunFold.add_new

    def slowly(fold: follow_module.RunFold, *args: object, **named: object) -> bool:
        has_new = analyze(fold, *args, **named)
        if fold.captures == 1:  # the job ends meanwhile
            write_window(folder, 1)
            set_state(folder, RunState.DONE)
        return has_new

    monkeypatch.setattr(follow_module.RunFold, "add_new", slowly)
    follow(folder, saved, lambda _: None)
    assert steps_saved(saved) == 6
    assert saved.is_fresh


def test_windows_that_land_while_it_rests_are_read_at_once_and_diagnosed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(follow_module, "REST", 1e9)
    folder = write_run(tmp_path / "run", windows=1, state=RunState.RUNNING)
    saved = SavedDiagnosis(folder.path)
    diagnosed: list[int] = []
    diagnose = follow_module.RunFold.diagnose
    monkeypatch.setattr(
        follow_module.RunFold, "diagnose", lambda fold: diagnosed.append(fold.captures) or diagnose(fold)
    )
    looks = 0

    def between_looks(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks < 3:
            write_window(folder, looks)
        else:
            set_state(folder, RunState.DONE)

    follow(folder, saved, between_looks)
    assert diagnosed == [1, 3]
    assert steps_saved(saved) == 9
    assert saved.is_fresh
    assert saved.progress is None


def test_a_working_run_has_a_timeline_that_is_made_anew_when_its_captures_have_doubled(tmp_path: Path):
    folder = write_run(tmp_path / "run", windows=1, state=RunState.RUNNING)
    saved = SavedDiagnosis(folder.path)
    seen: list[int] = []

    def between_looks(_: float) -> None:
        assert saved.latest_timeline is not None
        seen.append(open_index(saved.latest_timeline).facts["captures"])
        if len(seen) < 3:
            write_window(folder, len(seen))
        else:
            set_state(folder, RunState.DONE)

    follow(folder, saved, between_looks)
    assert seen == [1, 2, 2]


def test_a_run_that_is_over_is_diagnosed_once(tmp_path: Path):
    folder = write_run(tmp_path / "run")

    def never(_: float) -> None:
        raise AssertionError("waited for a run that is over")

    follow(folder, SavedDiagnosis(folder.path), never)
    assert steps_saved(SavedDiagnosis(folder.path)) == 6


def test_the_command_saves_and_does_nothing_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_run(tmp_path / "run")
    assert command.main([str(folder.path)]) == 0
    assert steps_saved(SavedDiagnosis(folder.path)) == 6
    monkeypatch.setattr(SavedDiagnosis, "save", lambda *_: pytest.fail("saved again"))
    assert command.main([str(folder.path)]) == 0


def test_the_command_makes_a_diagnosis_anew_whose_tables_are_gone(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    assert command.main([str(folder.path)]) == 0
    for table in folder.analysis.rglob("*.arrow"):
        table.unlink()
    assert command.main([str(folder.path)]) == 0
    assert steps_saved(SavedDiagnosis(folder.path)) == 6


def test_a_failure_leaves_its_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    missing = tmp_path / "none"
    assert command.main([str(missing)]) == 1
    assert SavedDiagnosis(missing).error == f"{missing} does not exist."
    assert capsys.readouterr().err == f"{missing} does not exist.\n"


def test_a_second_process_leaves_the_work_to_the_first(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    with SavedDiagnosis(folder.path).lock():
        assert command.main([str(folder.path)]) == 0
    assert SavedDiagnosis(folder.path).load_latest() is None


@pytest.mark.slow
def test_following_runs_at_the_lowest_priority(tmp_path: Path):
    """It only begins at that priority here: beside a busy machine's processes it would never come to an end."""
    folder = write_run(tmp_path / "run")
    script = (
        "import os, sys\n"
        "from pipeline_lab.analysis import follow\n"
        "from pipeline_lab.analysis.__main__ import main\n"
        "follow.follow = lambda *_: print(os.nice(0), os.sched_getscheduler(0) == os.SCHED_IDLE)\n"
        "print(main([sys.argv[1], '--follow']))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder.path)], capture_output=True, text=True, check=True)
    assert done.stdout == "19 True\n0\n"


def test_a_run_that_is_over_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_run(tmp_path / "run")
    monkeypatch.setattr(follow_module, "yield_to_training", lambda: None)
    assert command.main([str(folder.path), "--follow"]) == 0
    assert SavedDiagnosis(folder.path).is_fresh


@pytest.mark.slow
def test_a_whole_diagnosis_loads_neither_tensorflow_nor_pandas(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from pipeline_lab.analysis.diagnosis.saved import diagnose_saved\n"
        "json.dumps([diagnose_saved(Path(sys.argv[1])).to_json() for _ in range(2)])\n"
        "print({'tensorflow', 'pandas', 'streamlit'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder.path)], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
