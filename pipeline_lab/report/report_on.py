"""From opened runs and races to the report that suits them."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline_lab.advice.advising import advise
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.opening import open_any
from pipeline_lab.comparison.race import Race
from pipeline_lab.comparison.recorded import Comparison, ComparisonError, compare_runs
from pipeline_lab.comparison.recorded_run import RecordedRun
from pipeline_lab.report.comparison_report import ComparisonReport
from pipeline_lab.report.race_report import RaceReport
from pipeline_lab.report.run_report import RunReport
from pipeline_lab.runs.run import Run


def report_on(opened: Sequence[RecordedRun | Race], notes: str = "") -> RunReport | ComparisonReport | RaceReport:
    """Return the report of one run, of a baseline and its candidates, or of a race.

    Args:
        opened: One run, one race, or runs with the baseline first.
        notes: The author's words.

    Raises:
        ComparisonError: There are more than twenty runs, or a race among several.
    """
    if len(opened) == 1:
        (one,) = opened
        if isinstance(one, Race):
            return RaceReport(one, notes)
        return RunReport(replace(one, diagnosis=advise(one.diagnosis)), notes)
    runs = [each for each in opened if not isinstance(each, Race)]
    if len(runs) < len(opened):
        raise ComparisonError("A race holds its own comparison; report it by itself.")
    return ComparisonReport(compare_runs(runs[0], *runs[1:]), notes)


def report_result(result: object) -> RunReport | ComparisonReport | RaceReport:
    """Return the report of a result that was computed before.

    Raises:
        TypeError: The result is of a kind that has no report.
    """
    if isinstance(result, Diagnosis | Race):
        return report_on([open_any(result)])
    if isinstance(result, Run):
        return report_on([open_any(result.path)])
    if isinstance(result, Comparison):
        return ComparisonReport(result)
    raise TypeError(f"There is no report of a {type(result).__name__}.")
