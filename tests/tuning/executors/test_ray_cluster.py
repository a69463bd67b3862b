import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from pipeline_lab.errors import DataError, OptionsError
from pipeline_lab.options.race_options import read_script_race
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import (
    MachinesDifferError,
    MachineSetup,
    ScriptFiles,
    check_machines,
    describe_machine,
)
from pipeline_lab.tuning.executors.ray_trial import create, look, pack, sweep, unpack
from tests.support.lab import Lab
from tests.support.patience import PATIENCE_S
from tests.support.run_folders import make_run
from tests.support.true_times import NAIVE

SUPPORT = Path(__file__).parents[2] / "support"
HERE = MachineSetup("here", "3.11", "0.1.0", "2.21.0", "")


def test_a_cluster_finds_the_winner_that_one_machine_finds_though_a_node_is_killed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {SUPPORT / 'planted_worker.py'}")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_register_timeout_seconds", str(PATIENCE_S))
    command = [sys.executable, "-m", "tests.support.ray_sweep", str(lab.store.root)]
    with tempfile.TemporaryDirectory(
        prefix="ray-", ignore_cleanup_errors=True
    ) as scratch:  # a killed node tidies nothing up
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": scratch}
        )
    assert ended.returncode == 0, ended.stderr[-2000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["machines"] == 2
    assert found["cluster"] == found["local"] != "start"
    assert found["sent"] > found["trials"]  # what was lost was sent again
    assert found["runs"] == ["done"] * found["trials"]
    assert found["spread"] == ["one", "two", "three"]


def test_a_run_crosses_from_one_store_to_another_whole(tmp_path: Path) -> None:
    folder = make_run(RunStore(tmp_path / "there"))
    folder.scratch.mkdir()
    (folder.scratch / "half a window").touch()
    arrived = unpack(pack(folder), RunStore(tmp_path / "here"), folder.id)
    assert read_record(arrived).status.state is RunState.DONE
    names = {path.relative_to(folder.path) for path in folder.path.rglob("*") if ".scratch" not in path.parts}
    assert {path.relative_to(arrived.path) for path in arrived.path.rglob("*")} == names


def test_folders_of_killed_tasks_are_swept_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stale, working, others = (tmp_path / name for name in ("pipeline-lab-trial-a", "pipeline-lab-trial-b", "else"))
    long_ago_s = time.time() - 2 * 24 * 3600
    for folder in (stale, working, others):
        (folder / "run").mkdir(parents=True)
        (folder / "run" / "events.jsonl").touch()
        for path in (folder / "run" / "events.jsonl", folder / "run", folder):
            os.utime(path, (long_ago_s, long_ago_s))
    os.utime(working / "run" / "events.jsonl")
    sweep()
    assert set(tmp_path.iterdir()) == {working, others}


def test_machines_with_other_code_are_refused() -> None:
    other = MachineSetup("there", "3.11", "0.1.0", "2.20.0", "")
    with pytest.raises(MachinesDifferError, match=r"there has .* TensorFlow 2\.20\.0, but here has .* 2\.21\.0"):
        check_machines(HERE, (HERE, other))
    check_machines(HERE, (HERE, HERE))


def test_machines_that_do_not_see_the_data_are_refused() -> None:
    blind = MachineSetup("there", "3.11", "0.1.0", "2.21.0", "/data/train-*")
    with pytest.raises(DataError, match=r"There is no '/data/train-\*' on there"):
        check_machines(HERE, (blind,))


def test_a_machine_says_what_it_has(tmp_path: Path) -> None:
    found = describe_machine(NAIVE)
    assert found.lab
    assert found.missing == ""
    files = NAIVE.model_dump(mode="json") | {
        "workload": {"kind": "images", "data": "files", "pattern": str(tmp_path / "*.tfrecord")},
        "pipeline": {"stages": [{"stage": "read"}, {"stage": "parse"}, {"stage": "batch", "size": 4}]},
    }
    assert describe_machine(type(NAIVE).model_validate(files)).missing == str(tmp_path / "*.tfrecord")


def test_a_machine_says_whether_it_has_the_folder_of_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "flowers"
    document = NAIVE.model_dump(mode="json") | {
        "workload": {"kind": "images", "data": "folder", "folder": str(folder)},
        "pipeline": {"stages": [{"stage": "read"}, {"stage": "parse"}, {"stage": "batch", "size": 4}]},
    }
    options = type(NAIVE).model_validate(document)
    assert describe_machine(options).missing == str(folder)
    folder.mkdir()
    assert describe_machine(options).missing == ""


def test_a_machine_says_whether_it_has_the_files_of_a_script(tmp_path: Path) -> None:
    script, helper = tmp_path / "train.py", tmp_path / "data.py"
    script.write_text("fit()")
    helper.write_text("ds = 1")
    files = ScriptFiles.here([str(script), str(helper), str(tmp_path / "gone.py")])
    assert list(files.digests) == [str(script), str(helper)]
    document = json.loads(json.dumps(asdict(files)))
    assert (look(document).missing, look(document).differs) == ("", "")
    helper.write_text("ds = 2")
    with pytest.raises(
        MachinesDifferError, match=r"'.*data\.py' holds something else on \S+ than on here; copy it there"
    ):
        check_machines(HERE, (look(document),))
    script.unlink()
    with pytest.raises(DataError, match=r"There is no '.*train\.py' on "):
        check_machines(HERE, (look(document),))


def test_a_machine_of_a_cluster_begins_a_race_inside_a_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("fit()")
    document = {"script": "train.py", "folder": str(tmp_path), "changes": ["prefetch"]}
    race = read_script_race(document).model_dump(mode="json")
    folder = create(RunStore(tmp_path / "store"), race)
    assert read_record(folder).options == race


@pytest.mark.slow
def test_no_cluster_at_an_address_is_one_sentence(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from pipeline_lab.runs.store import RunStore\n"
        "from pipeline_lab.tuning.executors.ray_cluster import RayExecutor\n"
        f"RayExecutor(RunStore(Path({str(tmp_path)!r})), 'nonsense')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "There is no Ray cluster at nonsense" in ended.stderr.splitlines()[-1]
    assert OptionsError.__name__ in ended.stderr.splitlines()[-1]
