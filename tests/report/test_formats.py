import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lab.comparison.recorded_runs import compare_runs
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.report.content import Subject
from pipeline_lab.report.formats import FORMATS, find_format, write_report
from pipeline_lab.report.renderers import chart_images, markdown
from pipeline_lab.report.renderers.format import ReportFormat
from pipeline_lab.report.subjects.comparison_report import ComparisonReport
from tests.report.subjects import comparison_report, hostile_report, hostile_run, race_report, rendered, run_report
from tests.support.images import draw_letters


@pytest.fixture(autouse=True)
def no_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_images, "draw_images", draw_letters)


every_format = pytest.mark.parametrize("report_format", FORMATS, ids=lambda each: each.name)

ELSEWHERE = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from pipeline_lab.report.formats import FORMATS
from tests.report.subjects import comparison_report, race_report, run_report
for subject in (run_report(), comparison_report(), race_report()):
    for each in FORMATS:
        if each.name in ("png", "svg"):  # Chromium draws these
            continue
        print(hashlib.sha256(each.render(subject)).hexdigest())
"""


def test_the_formats_are_those_of_the_command_line() -> None:
    assert [each.name for each in FORMATS] == ["html", "markdown", "json", "csv", "parquet", "png", "svg"]


@every_format
def test_a_format_is_found_by_its_name(report_format: ReportFormat) -> None:
    assert find_format(report_format.name) is report_format


def test_an_unknown_format_is_one_sentence() -> None:
    with pytest.raises(OptionsError, match="no report format 'pdf'; there are html, markdown"):
        find_format("pdf")


@every_format
@pytest.mark.parametrize("make", [run_report, comparison_report, race_report], ids=["run", "comparison", "race"])
@pytest.mark.slow
def test_every_format_writes_every_subject(report_format: ReportFormat, make: Callable[[], Subject]) -> None:
    assert len(rendered(report_format.name, make)) > 200
    assert report_format.file_name(make()).endswith(report_format.suffix)


@every_format
@pytest.mark.slow
def test_every_format_survives_hostile_names(report_format: ReportFormat) -> None:
    assert rendered(report_format.name, hostile_report)
    assert report_format.file_name(hostile_report()).isascii()
    comparison = ComparisonReport(compare_runs(hostile_run(), hostile_run(3)))
    assert report_format.render(comparison)
    assert report_format.file_name(comparison).isascii()


@pytest.mark.slow
def test_bytes_depend_on_neither_place_nor_time_zone_nor_hash_seed(tmp_path: Path) -> None:
    here = [
        hashlib.sha256(rendered(each.name, make)).hexdigest()
        for make in (run_report, comparison_report, race_report)
        for each in FORMATS
        if each.name not in ("png", "svg")
    ]
    environment = {**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "7", "PYTHONUTF8": "0"}
    root = str(Path(__file__).parents[2])
    ended = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, root],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == here


def test_the_json_of_a_run_is_the_document_of_analyze() -> None:
    report = run_report()
    assert json.loads(find_format("json").render(report)) == report.run.diagnosis.to_json()


REPORT = run_report()


@pytest.mark.slow
def test_one_file_is_written_with_the_bytes_of_the_format(tmp_path: Path) -> None:
    output = tmp_path / "new" / "report.html"
    assert write_report(REPORT, find_format("html"), output) == output
    assert output.read_bytes() == rendered("html", run_report)
    assert [entry.name for entry in output.parent.iterdir()] == ["report.html"]


def test_tables_become_a_zip_or_a_folder_as_the_output_is_named(tmp_path: Path) -> None:
    write_report(REPORT, find_format("csv"), tmp_path / "tables.zip")
    assert (tmp_path / "tables.zip").read_bytes() == find_format("csv").render(REPORT)
    write_report(REPORT, find_format("csv"), tmp_path / "tables")
    assert (tmp_path / "tables" / "steps.csv").is_file()


@pytest.mark.slow
def test_images_go_beside_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "image_support", lambda: None)
    monkeypatch.setattr(markdown, "draw_images", draw_letters)
    write_report(REPORT, find_format("markdown"), tmp_path / "pr.md")
    images = list(tmp_path.glob("*-images/*.png"))
    assert images
    text = (tmp_path / "pr.md").read_text(encoding="utf-8")
    assert all(image.relative_to(tmp_path).as_posix() in text for image in images)


def test_an_older_report_is_replaced(tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    output.write_text("old")
    write_report(REPORT, find_format("json"), output)
    assert output.read_bytes() == find_format("json").render(REPORT)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"Cannot write the report to .*file/report.json: "):
        write_report(REPORT, find_format("json"), tmp_path / "file" / "report.json")
