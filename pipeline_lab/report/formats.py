"""Every report format, listed once, and how a report is written to where the user wants it."""

import os
import tempfile
from pathlib import Path

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.report.content import Subject
from pipeline_lab.report.renderers.chart_images import PngCharts, SvgCharts
from pipeline_lab.report.renderers.format import ReportFormat, pack
from pipeline_lab.report.renderers.html import HtmlReport
from pipeline_lab.report.renderers.json_document import JsonReport
from pipeline_lab.report.renderers.markdown import MarkdownReport
from pipeline_lab.report.renderers.table_exports import CsvReport, ParquetReport

FORMATS: tuple[ReportFormat, ...] = (
    HtmlReport(),
    MarkdownReport(),
    JsonReport(),
    CsvReport(),
    ParquetReport(),
    PngCharts(),
    SvgCharts(),
)


def format_of_file(name: str) -> ReportFormat:
    """Return the format that a file's ending names; a page where it names none."""
    return next((each for each in FORMATS if name.lower().endswith(each.suffix)), FORMATS[0])


def find_format(name: str) -> ReportFormat:
    """Return the format of that name.

    Raises:
        OptionsError: There is none; the text lists those that exist.
    """
    for each in FORMATS:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in FORMATS)
    raise OptionsError(f"There is no report format {name!r}; there are {known}.")


def write_report(subject: Subject, report_format: ReportFormat, output: Path) -> Path:
    """Write a report and return where it is.

    A format of several files becomes a zip where the output ends in ``.zip``, else a folder. A format of one file
    becomes that file; what belongs to it, such as the images of a Markdown text, goes beside it.

    Raises:
        StoreError: The output cannot be written.
    """
    files = report_format.files(subject)
    try:
        if report_format.is_archive and output.suffix != ".zip":
            for name, content in files.items():
                _write(output / name, content)
            return output
        if report_format.is_archive:
            _write(output, pack(files))
            return output
        (_, text), *beside = files.items()
        _write(output, text)
        for name, content in beside:
            _write(output.parent / name, content)
        return output
    except OSError as error:
        raise StoreError(f"Cannot write the report to {output}: {error.strerror}.") from None


def _write(path: Path, content: bytes) -> None:
    """Write by rename, so that a reader sees a whole report or none; a pipe or device is written to as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".report-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
