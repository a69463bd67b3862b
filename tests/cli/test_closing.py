from dataclasses import replace

from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.cli import closing
from pipeline_lab.runs.run_folder import update_record
from pipeline_lab.runs.store import RunStore
from tests.support.run_folders import make_run

GENERAL = Suggestion("Let one iterator serve all epochs.", "")
EDIT = Suggestion("Add prefetch.", "", before=".batch(8)", after=".batch(8).prefetch(2)")


def test_a_watched_script_ends_with_the_command_that_changes_it(tmp_path, monkeypatch):
    folder = make_run(RunStore(tmp_path))
    update_record(folder, lambda record: replace(record, environment={"command": "train.py --epochs 2"}))
    found = f"train.py --run {folder.id} -- --epochs 2"
    assert closing._following([GENERAL, EDIT], folder) == f"pipeline-lab fix --store {tmp_path} {found}"
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path))
    assert closing._following([EDIT], folder) == f"pipeline-lab fix {found}"
    assert closing._following([GENERAL], folder) == "", "nothing that can be written"


def test_a_change_that_is_written_on_request_only_is_asked_for_where_there_is_no_other(tmp_path, monkeypatch):
    folder = make_run(RunStore(tmp_path))
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path))
    update_record(folder, lambda record: replace(record, environment={"command": "train.py --epochs 2"}))
    asked = replace(EDIT, request="steps-per-execution")
    ends = f"pipeline-lab fix train.py --run {folder.id} --change steps-per-execution -- --epochs 2"
    assert closing._following([GENERAL, asked], folder) == ends
    assert "--change" not in closing._following([asked, EDIT], folder)


def test_a_suggestion_with_a_command_of_its_own_ends_with_it(tmp_path):
    folder = make_run(RunStore(tmp_path))
    assert closing._following([EDIT], folder) == ""
    assert closing._following([replace(EDIT, command="pipeline-lab what-if x")], folder) == "pipeline-lab what-if x"


def test_a_run_of_the_usual_store_is_named_by_its_id(tmp_path, monkeypatch, capsys):
    folder = make_run(RunStore(tmp_path))
    monkeypatch.setenv("PIPELINE_LAB_STORE", str(tmp_path))
    closing.tell_next(folder)
    assert f"pipeline-lab analyze {folder.id}\n" in capsys.readouterr().err
