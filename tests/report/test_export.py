from pathlib import Path

import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.report import markdown
from pipeline_lab.report.catalogue import find_format
from pipeline_lab.report.export import write_report
from tests.report.subjects import run_report
from tests.support.images import draw_letters

REPORT = run_report()


def test_one_file_is_written_with_the_bytes_of_the_format(tmp_path: Path) -> None:
    output = tmp_path / "new" / "report.html"
    assert write_report(REPORT, find_format("html"), output) == output
    assert output.read_bytes() == find_format("html").render(REPORT)
    assert [entry.name for entry in output.parent.iterdir()] == ["report.html"]


def test_tables_become_a_zip_or_a_folder_as_the_output_is_named(tmp_path: Path) -> None:
    write_report(REPORT, find_format("csv"), tmp_path / "tables.zip")
    assert (tmp_path / "tables.zip").read_bytes() == find_format("csv").render(REPORT)
    write_report(REPORT, find_format("csv"), tmp_path / "tables")
    assert (tmp_path / "tables" / "steps.csv").is_file()


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
    with pytest.raises(StoreError, match=r"Cannot write the report to .*file/report.html: "):
        write_report(REPORT, find_format("html"), tmp_path / "file" / "report.html")
