import os
from pathlib import Path

import pytest

import pipeline_lab
from pipeline_lab.comparison.opening import open_recorded
from pipeline_lab.report.formats import FORMATS
from pipeline_lab.report.renderers import chart_images
from pipeline_lab.report.report_on import report_on
from pipeline_lab.report.subjects.comparison_report import ComparisonReport
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call
from tests.support.images import draw_letters
from tests.support.run_folders import make_run


@pytest.fixture(autouse=True)
def no_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_images, "draw_images", draw_letters)


every_format = pytest.mark.parametrize("report_format", FORMATS, ids=lambda each: each.name)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return RunStore(tmp_path_factory.mktemp("lab") / "profiles")


@pytest.fixture(scope="module")
def run(store: RunStore) -> RunFolder:
    return make_run(store)


def written(report_format, output: Path, *arguments: object) -> bytes:
    path = output.with_suffix(".zip") if report_format.is_archive else output
    ended = call("report", *arguments, "--format", report_format.name, "--output", path)
    assert (ended.exit_code, ended.stdout) == (0, "")
    return path.read_bytes()


@every_format
@pytest.mark.slow
def test_the_command_line_writes_the_bytes_that_python_gets(report_format, tmp_path, store, run) -> None:
    expected = report_format.render(report_on([open_recorded(run.path)]))
    assert written(report_format, tmp_path / "out", run.id, "--store", store.root) == expected


@every_format
@pytest.mark.slow
def test_several_runs_become_a_comparison_with_the_same_bytes(report_format, tmp_path, run) -> None:
    expected = report_format.render(ComparisonReport(pipeline_lab.compare(run.path, run.path)))
    assert written(report_format, tmp_path / "out", run.path, run.path) == expected


@pytest.mark.slow
def test_analyze_and_compare_write_the_same_page(tmp_path: Path, run: RunFolder) -> None:
    call("analyze", run.path, "--html", tmp_path / "a.html")
    call("report", run.path, "--output", tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    call("compare", run.path, run.path, "--html", tmp_path / "c.html")
    call("report", run.path, run.path, "--output", tmp_path / "d.html")
    assert (tmp_path / "c.html").read_bytes() == (tmp_path / "d.html").read_bytes()


@pytest.mark.slow
def test_a_path_may_be_spelt_in_any_way(tmp_path: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.path.parent)
    call("report", run.path, "--format", "json", "--output", tmp_path / "a.json")
    call("report", os.path.join(".", run.id), "--format", "json", "--output", tmp_path / "b.json")  # noqa: PTH118
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_json_is_what_analyze_prints(tmp_path: Path, run: RunFolder) -> None:
    call("report", run.path, "--format", "json", "--output", tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == call("analyze", run.path, "--json").stdout


@pytest.mark.slow
def test_the_author_s_words_are_kept(tmp_path: Path, run: RunFolder) -> None:
    call("report", run.path, "--notes", "Looks <b>fine</b>.", "--output", tmp_path / "a.html")
    assert "Looks &lt;b&gt;fine&lt;/b&gt;." in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_an_unknown_format_is_wrong_usage(tmp_path: Path, run: RunFolder) -> None:
    ended = call("report", run.path, "--format", "pdf", "--output", tmp_path / "a.pdf")
    assert ended.exit_code == 2
    assert "no report format 'pdf'" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_ending_of_the_file_names_the_format(tmp_path: Path, run: RunFolder) -> None:
    for name, begin in (("a.md", "# "), ("a.json", "{"), ("a.html", "<!doctype html>"), ("a", "<!doctype html>")):
        assert call("report", run.path, "--output", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_text(encoding="utf-8").lower().startswith(begin)
