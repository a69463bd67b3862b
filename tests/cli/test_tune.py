import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pipeline_lab.cli.commands.tune import parse_budget_s
from pipeline_lab.errors import OptionsError
from pipeline_lab.report.renderers.terminal import render_terminal
from pipeline_lab.report.subjects.tune_report import TuneReport
from pipeline_lab.runs.record import RunState
from pipeline_lab.tuning.search_result import read_tuning
from tests.cli.support import call
from tests.support.lab import Lab
from tests.support.true_times import NAIVE
from tests.support.worlds import make_search

PLANTED = Path(__file__).parents[1] / "support" / "planted_worker.py"


@pytest.fixture
def options(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {PLANTED}")
    path = lab.store.root.parent / "naive.json"
    path.write_text(NAIVE.to_json())
    return path


def test_a_search_tells_its_steps_and_prints_what_it_found(lab: Lab, options: Path) -> None:
    common = ("--explore", "--configurations", "2", "--budget", "5m", "--store", lab.store.root)
    ended = call("tune", "--options", options, *common)
    assert ended.exit_code == 0
    assert "proposed by Optuna" in ended.stderr
    assert "What was tried: time per step against start" in ended.stdout
    assert "How it went" in ended.stdout
    (record,) = [lab.store.read(run.id) for run in lab.store.runs() if run.kind == "tune"]
    assert record.options is not None
    assert record.options["budget_s"] == 300
    assert f"pipeline-lab code {record.id}" in ended.stderr
    document = read_tuning(lab.store.folder(record.id)).to_json()
    assert document["state"] == "done"
    assert document["history"][-1]["step"] == "ended"
    assert json.dumps(document, allow_nan=False)
    source = call("code", record.id, "--store", lab.store.root)
    assert source.stdout.strip() == document["winner_source"].strip()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["tune", "fix"])
def test_a_script_that_cannot_run_gets_one_sentence(lab: Lab, command: str, tmp_path: Path) -> None:
    missing = call(command, tmp_path / "train.py", "--store", lab.store.root)
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert " ".join(missing.stderr.split()).startswith("Error: There is no script"), "of what is not there nothing runs"
    (tmp_path / "train.py").write_text("x = (\n")
    damaged = call(command, tmp_path / "train.py", "--store", lab.store.root)
    assert (damaged.exit_code, damaged.stdout) == (1, ""), "there is no report of a search that did not begin"
    assert (
        "failed. The script stopped at train.py, line 1 with SyntaxError: '(' was never closed. Fix that first."
        in " ".join(damaged.stderr.split())
    )


@pytest.mark.parametrize(
    "given",
    [
        ["--preset", "baseline"],
        ["--set", "pipeline.deterministic=false"],
        ["--try", "prefetch=2"],
        ["--budget", "5m"],
        ["--configurations", "3"],
        ["--max-memory", "100"],
        ["--max-threads", "2"],
        ["--may-reorder"],
        ["--explore"],
        ["--ray", "auto"],
        ["--gpus-per-trial", "1"],
        ["--name", "again"],
    ],
    ids=lambda given: given[0],
)
def test_resume_takes_nothing_else(lab: Lab, given: list[str]) -> None:
    ended = call("tune", "--resume", "some-run", *given, "--store", lab.store.root)
    assert ended.exit_code == 2
    assert f"leave {given[0]} out" in " ".join(ended.stderr.split())


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_times_have_units(text: str, seconds: float) -> None:
    assert parse_budget_s(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "soon", "5d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(OptionsError, match="is not a duration; use 90s, 15m or 2h"):
        parse_budget_s(text)


@pytest.mark.parametrize("text", ["0", "-5m", "nans"])
def test_a_budget_without_any_time_is_refused_by_the_name_it_was_given(text: str) -> None:
    with pytest.raises(OptionsError, match=rf"^A budget of '{text}' leaves no time; use 90s"):
        parse_budget_s(text)


def test_a_choice_of_the_model_that_was_not_raced_is_printed_with_the_race_to_paste(lab: Lab) -> None:
    found = read_tuning(make_search(lab.store, RunState.CANCELLED, stops_after=1))
    printed = io.StringIO()
    Console(file=printed, width=60, color_system=None).print(render_terminal(TuneReport(found).content()), crop=False)
    assert "is only the model's choice: it did not race" in " ".join(printed.getvalue().split())
    assert f"  {found.race_command}" in printed.getvalue().splitlines()
