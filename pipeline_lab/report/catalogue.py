"""Every report format, listed once; the command line, the app and the tests go by this list."""

from pipeline_lab.errors import OptionsError
from pipeline_lab.report.chart_files import PngCharts, SvgCharts
from pipeline_lab.report.data_files import CsvReport, ParquetReport
from pipeline_lab.report.format import ReportFormat
from pipeline_lab.report.html import HtmlReport
from pipeline_lab.report.json_document import JsonReport
from pipeline_lab.report.markdown import MarkdownReport

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
