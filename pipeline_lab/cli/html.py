"""What ``--html`` does, in every command that has it."""

from pathlib import Path

from pipeline_lab.cli.output import say


def write_html(result: object, path: Path) -> None:
    """Write the HTML report of a diagnosis, a comparison or a race, and say where it is."""
    from pipeline_lab.report.formats import find_format, write_report
    from pipeline_lab.report.report_on import report_result

    say("Report: {}", str(write_report(report_result(result), find_format("html"), path)))
