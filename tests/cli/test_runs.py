import json
import re
from functools import partial

import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
from pipeline_lab.cli.commands import runs
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.launch.launcher import cancel, wait
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import end_run
from tests.cli.support import call
from tests.support import results
from tests.support.lab import Lab


def test_runs_are_listed_with_whole_ids_and_state(lab: Lab) -> None:
    done, failed = lab.launch("done"), lab.launch("fail")
    wait(done)
    wait(failed)
    ended = call("runs", "list", "--store", lab.store.root)
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines][:3] == ["Run", failed.id, done.id]  # the bundled samples come last
    assert "failed" in lines[1]


def test_a_long_list_is_not_fitted_to_the_terminal(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lab.launch("done")
    wait(folder)
    fitted = call("runs", "list", "--store", lab.store.root).stdout.split()
    monkeypatch.setattr(runs, "MOST_IN_A_TABLE", 0)
    assert call("runs", "list", "--store", lab.store.root).stdout.split() == fitted


def test_a_list_as_json(lab: Lab) -> None:
    folder = lab.launch("done")
    wait(folder)
    document, *_samples = json.loads(call("runs", "list", "--json", "--store", lab.store.root).stdout)
    assert (document["id"], document["state"], document["windows"]) == (folder.id, "done", 0)


def test_an_empty_store_says_how_to_fill_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lab.runs.store.samples_folder", lambda: None)
    ended = call("runs", "list", "--store", lab.store.root)
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert "No runs in" in ended.stderr
    assert json.loads(call("runs", "list", "--json", "--store", lab.store.root).stdout) == []


def test_a_run_is_shown_with_its_options(lab: Lab) -> None:
    folder = lab.launch("fail")
    wait(folder)
    text = call("runs", "show", folder.id, "--store", lab.store.root).stdout
    assert "failed. The file /data/a.tfrecord is damaged at record 7." in text
    assert "read → repeat → map → batch → prefetch" in text
    document = json.loads(call("runs", "show", folder.id, "--json", "--store", lab.store.root).stdout)
    assert document["options"]["name"] == "fail"
    assert document["environment"] == {"host": "fake"}


def test_steps_that_nobody_counted_are_not_0(lab: Lab) -> None:
    folder = own_job_runs.begin(lab.store, "train.py", tags=("watched",))
    end_run(folder, RunState.DONE)
    shown = partial(call, "runs", "show", folder.id, "--store", lab.store.root)
    assert re.search(r"Steps +not counted", shown().stdout)
    assert json.loads(shown("--json").stdout)["steps"] is None
    SavedDiagnosis(folder.path).save(results.diagnosis(), "")
    assert re.search(r"Steps +40 in windows", shown().stdout)


def test_tags_are_set_and_cleared(lab: Lab) -> None:
    folder = lab.launch("done")
    wait(folder)
    assert call("runs", "tag", folder.id, "one", "two", "--store", lab.store.root).exit_code == 0
    assert lab.store.read(folder.id).tags == ("one", "two")
    call("runs", "tag", folder.id, "--store", lab.store.root)
    assert lab.store.read(folder.id).tags == ()


def test_a_run_is_renamed_and_markup_in_a_name_is_text(lab: Lab) -> None:
    folder = lab.launch("done")
    wait(folder)
    ended = call("runs", "rename", folder.id, "[red]x[/]", "--store", lab.store.root)
    assert "is now called [red]x[/]." in ended.stderr
    assert "[red]x[/]" in call("runs", "list", "--store", lab.store.root).stdout


def test_runs_are_deleted(lab: Lab) -> None:
    folders = [lab.launch("done"), lab.launch("done")]
    for folder in folders:
        wait(folder)
    assert call("runs", "rm", *[folder.id for folder in folders], "--store", lab.store.root).exit_code == 0
    assert lab.store.runs() == []


def test_a_live_run_is_not_deleted(lab: Lab) -> None:
    folder = lab.launch("patient")
    lab.wait_until_working(folder)
    ended = call("runs", "rm", folder.id, "--store", lab.store.root)
    assert ended.exit_code == 1
    assert "still running; cancel it first" in ended.stderr
    assert lab.store.read(folder.id).status.state is RunState.RUNNING
    cancel(folder)
    wait(folder)


@pytest.mark.parametrize("command", [["show"], ["tag"], ["rm"], ["rename"]])
def test_an_unknown_run_is_one_sentence(lab: Lab, command: list[str]) -> None:
    more = ["name"] if command == ["rename"] else []
    ended = call("runs", *command, "gone", *more, "--store", lab.store.root)
    assert ended.exit_code == 1
    assert ended.stderr.startswith("Error: There is no run 'gone'")


def test_a_run_is_canceled_and_keeps_what_it_recorded(lab: Lab) -> None:
    folder = lab.launch("patient")
    lab.wait_until_working(folder)
    assert "stops after the current step" in call("runs", "cancel", folder.id, "--store", lab.store.root).stderr
    assert wait(folder).status.state is RunState.CANCELLED
    assert "is already over (canceled)" in call("runs", "cancel", folder.id, "--store", lab.store.root).stderr


def test_a_run_that_cannot_be_read_is_named_beside_the_others(lab: Lab) -> None:
    folder = lab.launch("done")
    wait(folder)
    (lab.store.root / "torn").mkdir()
    (lab.store.root / "torn" / "run.json").write_text("{")
    ended = call("runs", "list", "--store", lab.store.root)
    assert folder.id in ended.stdout
    assert "1 run cannot be read: torn." in ended.stderr
