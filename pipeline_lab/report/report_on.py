"""From opened runs to the report that suits them."""

from collections.abc import Sequence

from pipeline_lab.comparison.recorded import compare_runs
from pipeline_lab.comparison.recorded_run import RecordedRun
from pipeline_lab.report.comparison_report import ComparisonReport
from pipeline_lab.report.run_report import RunReport


def report_on(runs: Sequence[RecordedRun], notes: str = "") -> RunReport | ComparisonReport:
    """Return the report of one run, or of a baseline and its candidates.

    Args:
        runs: One run, or the baseline first.
        notes: The author's words.

    Raises:
        ComparisonError: There are more than twenty runs.
    """
    if len(runs) == 1:
        return RunReport(runs[0], notes)
    return ComparisonReport(compare_runs(runs[0], *runs[1:]), notes)
