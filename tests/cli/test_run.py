import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from tests.cli.support import call
from tests.support.lab import Lab, notes, options_for
from tests.support.patience import until
from tests.support.presets import SYNTHETIC


def run(lab: Lab, behavior: str, *more: str) -> list[str]:
    return ["run", "--preset", "synthetic", "--set", f"name={behavior}", "--store", str(lab.store.root), *more]


def test_the_id_alone_is_printed(lab: Lab) -> None:
    ended = call(*run(lab, "done"))
    assert ended.exit_code == 0
    assert lab.store.read(ended.stdout.strip()).status.state is RunState.DONE
    assert "training" in ended.stderr
    assert "pipeline-lab analyze" in ended.stderr


def test_json_is_one_object(lab: Lab) -> None:
    ended = call(*run(lab, "done", "--json"))
    document = json.loads(ended.stdout)
    assert (document["state"], document["steps"], document["exit_code"]) == ("done", 30, 0)
    assert Path(document["path"]) == lab.store.root / document["id"]


def test_a_failed_run_is_one_sentence_and_exit_code_1(lab: Lab) -> None:
    ended = call(*run(lab, "fail"))
    assert ended.exit_code == 1
    assert lab.store.read(ended.stdout.strip()).status.state is RunState.FAILED
    assert "failed: The file /data/a.tfrecord is damaged at record 7." in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout


def test_a_failed_run_with_json_still_prints_its_object(lab: Lab) -> None:
    ended = call(*run(lab, "fail", "--json"))
    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["reason"] == "The file /data/a.tfrecord is damaged at record 7."


def test_settings_steps_and_a_file_make_the_options(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text(options_for("done").to_json())
    ended = call("run", "--options", file, "--set", "training.seed=9", "--steps", "7", "--store", lab.store.root)
    options = lab.store.read(ended.stdout.strip()).options
    assert options is not None
    assert (options["training"]["seed"], options["training"]["steps"], options["name"]) == (9, 7, "done")


def test_a_run_can_be_repeated_with_changes(lab: Lab) -> None:
    first = call(*run(lab, "done", "--steps", "7")).stdout.strip()
    arguments = ("--set", "workload.map_ms=0.5", "--store", lab.store.root)
    second = call("run", "--options", first, *arguments).stdout.strip()
    found = [lab.store.read(each).options or {} for each in (first, second)]
    assert [(each["training"]["steps"], each["workload"]["map_ms"]) for each in found] == [(7, 1.0), (7, 0.5)]


def test_seconds_take_the_place_of_steps(lab: Lab) -> None:
    ended = call(*run(lab, "done", "--seconds", "2.5"))
    options = lab.store.read(ended.stdout.strip()).options
    assert options is not None
    assert (options["training"]["seconds"], options["training"]["steps"]) == (2.5, None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Specify what to run: --preset NAME (`pipeline-lab presets` lists them)"),
        (["--preset", "optimized"], "Did you mean optimised?"),
        (["--preset", "synthetic", "--options", "x.json"], "--preset and --options exclude each other"),
        (["--options", "missing.json"], "Cannot read the options file missing.json: No such file or directory."),
        (["--preset", "synthetic", "--set", "training.steps"], "'training.steps' has no '='"),
        (["--preset", "synthetic", "--set", "training.stepz=3"], "There is no option 'training.stepz'"),
        (["--preset", "synthetic", "--steps", "0"], "training.steps should be a whole number from 1 to"),
        (["--preset", "synthetic", "--steps", "3", "--seconds", "3"], "give either steps or seconds"),
        (["--nonsense"], "No such option"),
        (["--steps", "many"], "'many' is not a valid int"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_starts_nothing(lab: Lab, arguments: list[str], sentence: str) -> None:
    ended = call("run", *arguments, "--store", lab.store.root)
    assert ended.exit_code == 2
    assert sentence in ended.stderr.replace("\n", " ")
    assert ended.stdout == ""
    assert not list(lab.store.root.iterdir())


def test_a_store_that_cannot_be_written_is_exit_code_1(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = call("run", "--preset", "synthetic", "--store", tmp_path / "file" / "store")
    assert ended.exit_code == 1
    assert "Cannot write to the run store" in ended.stderr
    assert not lab.processes()


@pytest.fixture
def command(lab: Lab) -> Iterator["subprocess.Popen[str]"]:
    """A real process that runs a patient job."""
    arguments = [sys.executable, "-m", "pipeline_lab", *run(lab, "patient")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def only_run(lab: Lab) -> RunFolder:
    until(lambda: lab.store.runs(), "the run was made")
    folder = lab.store.folder(lab.store.runs()[0].id)
    lab.wait_until_working(folder)
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_the_run_and_keeps_it(lab: Lab, command: "subprocess.Popen[str]", number: int) -> None:
    folder = only_run(lab)
    command.send_signal(number)
    printed, messages = command.communicate()

    assert command.returncode == 1
    assert printed.strip() == folder.id
    assert "was canceled: Canceled after 7 steps; what was recorded is kept." in messages
    assert "Traceback" not in messages
    assert notes(folder)[-1] == "flushed"


def test_a_killed_command_line_leaves_the_run_going(lab: Lab, command: "subprocess.Popen[str]") -> None:
    folder = only_run(lab)
    command.kill()
    command.wait()
    assert lab.store.read(folder.id).status.state is RunState.RUNNING
    folder.cancel_flag.touch()
    assert lab.wait_for(folder, RunState.CANCELLED)


def test_a_second_interrupt_leaves_at_once_and_the_run_still_ends(lab: Lab) -> None:
    arguments = [sys.executable, "-m", "pipeline_lab", *run(lab, "stubborn")]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        folder = only_run(lab)
        process.send_signal(signal.SIGINT)
        until(folder.cancel_flag.exists, "the run was told")
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate()
    assert process.returncode != 0
    assert "Traceback" not in messages
    until(lambda: "refused" in notes(folder), "the worker was asked to stop")
    os.kill(int((folder.path / "worker.pid").read_text()), signal.SIGKILL)  # it would hold out for the whole grace
    lab.wait_for(folder, RunState.CANCELLED)


def test_the_run_stores_what_the_preset_says(lab: Lab) -> None:
    ended = call(*run(lab, "done"))
    expected = SYNTHETIC.options.model_copy(update={"name": "done"})
    assert lab.store.read(ended.stdout.strip()).options == expected.model_dump(mode="json")
