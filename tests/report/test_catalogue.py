import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_lab.comparison.recorded import compare_runs
from pipeline_lab.errors import OptionsError
from pipeline_lab.report import chart_files
from pipeline_lab.report.catalogue import FORMATS, find_format
from pipeline_lab.report.comparison_report import ComparisonReport
from pipeline_lab.report.format import ReportFormat
from pipeline_lab.report.run_report import RunReport
from tests.report.subjects import comparison_report, hostile_run, race_report, run_report
from tests.support.images import draw_letters


@pytest.fixture(autouse=True)
def no_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_files, "draw_images", draw_letters)


every_format = pytest.mark.parametrize("report_format", FORMATS, ids=lambda each: each.name)

ELSEWHERE = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from pipeline_lab.report.catalogue import FORMATS
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
@pytest.mark.parametrize(
    "subject", [run_report(), comparison_report(), race_report()], ids=["run", "comparison", "race"]
)
def test_every_format_writes_every_subject(report_format: ReportFormat, subject) -> None:
    assert len(report_format.render(subject)) > 200
    assert report_format.file_name(subject).endswith(report_format.suffix)


@every_format
def test_every_format_survives_hostile_names(report_format: ReportFormat) -> None:
    for subject in (RunReport(hostile_run()), ComparisonReport(compare_runs(hostile_run(), hostile_run(3)))):
        assert report_format.render(subject)
        assert report_format.file_name(subject).isascii()


def test_bytes_depend_on_neither_place_nor_time_zone_nor_hash_seed(tmp_path: Path) -> None:
    here = [
        hashlib.sha256(each.render(subject)).hexdigest()
        for subject in (run_report(), comparison_report(), race_report())
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
