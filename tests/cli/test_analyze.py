import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.xprof import cross_check
from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck, XprofDifference
from pipeline_lab.report.overview import overview
from pipeline_lab.report.renderers.terminal import render_terminal
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call
from tests.support import results
from tests.support.run_folders import make_run

TRACE = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"


def printed(diagnosis: Diagnosis) -> str:
    console = Console(file=io.StringIO(), width=300, color_system=None)
    console.print(render_terminal(overview(diagnosis)))
    return console.file.getvalue()


def test_the_verdict_comes_first() -> None:
    diagnosis = results.diagnosis()
    lines = printed(diagnosis).splitlines()
    assert lines[0] == diagnosis.verdict.sentence
    assert all(f"{evidence.name}: {evidence.value}" in "\n".join(lines) for evidence in diagnosis.verdict.evidence)


def test_numbers_have_their_units() -> None:
    text = printed(results.diagnosis())
    assert re.search(
        r"Compute-only step +16 ms\s+Input-only time per batch +31 ms\s+End-to-end step +50 ms\s+Utilization +32 %",
        text,
    )
    assert "! Files are not sampled by size." in text


def test_epochs_kept_outputs_and_allocators_have_their_lines() -> None:
    text = printed(results.diagnosis())
    assert "first epoch" in text
    assert re.search(r"Allocators, peak +\S+ [\d.]+ [MG]B", text)
    assert "48 of 60 examples right in step 12" in text


def test_what_was_not_measured_is_a_sentence_never_a_0() -> None:
    text = printed(results.bare_diagnosis())
    assert text.count("The run ended before the first step; run it again with more steps.") == 7
    assert " 0 " not in text.split("Numbers")[1]


def test_a_trace_file_is_analyzed() -> None:
    ended = call("analyze", TRACE)
    assert ended.exit_code == 0
    assert "Recorded steps" in ended.stdout
    assert not any(line.endswith(" ") for line in ended.stdout.splitlines()), (
        "a file needs no blanks at the end of lines"
    )


def test_json_is_one_document() -> None:
    document = json.loads(call("analyze", TRACE, "--json").stdout)
    assert document["schema_version"] == 1
    assert {"source", "steps", "input_stalls", "idle_gaps", "file_sampling", "verdict"} <= set(document)


def test_a_saved_diagnosis_needs_no_cluster() -> None:
    call("analyze", TRACE)
    ended = call("analyze", TRACE, "--ray", "nonsense")
    assert ended.exit_code == 0
    assert "Recorded steps" in ended.stdout


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    ended = call("analyze", "gone", "--store", tmp_path)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "There is no file or folder 'gone', and no run of that id" in ended.stderr


def test_a_misspelt_run_is_answered_with_the_one_that_was_meant(tmp_path: Path) -> None:
    run = make_run(RunStore(tmp_path)).path.name
    ended = call("analyze", run[:-1], "--store", tmp_path)
    assert f"Did you mean {run}?" in ended.stderr


def test_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    ended = call("analyze", tmp_path)
    assert ended.exit_code == 1
    assert ended.stderr.startswith("Error: ")
    assert "Traceback" not in ended.stderr


def test_xprofs_answer_stands_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = CrossCheck("2.24.2", 1.5, 80_000_000, (XprofDifference("steps", "2", "none", ("A [loop] runs inside.",)),))
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(cross_check, "cross_check", lambda *_: check)
    shown = call("analyze", TRACE, "--xprof").stdout
    assert "XProf 2.24.2" in shown
    assert "A [loop] runs inside." in shown
    document = json.loads(call("analyze", TRACE, "--xprof", "--json").stdout)["xprof"]
    assert (document["version"], document["differences"][0]["reasons"]) == ("2.24.2", ["A [loop] runs inside."])
    assert "xprof" not in json.loads(call("analyze", TRACE, "--json").stdout)


def test_a_name_too_long_for_any_file_is_one_sentence() -> None:
    ended = call("analyze", "x" * 300)
    assert ended.exit_code == 1
    assert "There is no file or folder" in " ".join(ended.stderr.split())
