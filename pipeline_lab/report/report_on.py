"""From opened runs, races and searches to the report that suits them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pipeline_lab.advice.advising import advise
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.comparison.recorded_runs import Comparison, RecordedRun, compare_runs
from pipeline_lab.errors import ComparisonError
from pipeline_lab.report.subjects.comparison_report import ComparisonReport
from pipeline_lab.report.subjects.fix_report import FixReport
from pipeline_lab.report.subjects.race_report import RaceReport
from pipeline_lab.report.subjects.run_report import RunReport
from pipeline_lab.report.subjects.tune_report import TuneReport
from pipeline_lab.runs.record import Run
from pipeline_lab.tuning.opened_search import AnyTuning, open_with_searches
from pipeline_lab.tuning.script.script_result import ScriptTuning
from pipeline_lab.tuning.search_result import Tuning

Report: TypeAlias = RunReport | ComparisonReport | RaceReport | TuneReport | FixReport


def report_on(opened: Sequence[RecordedRun | Race | AnyTuning], notes: str = "") -> Report:
    """Return the report of one run, of a baseline and its candidates, of a race, or of a search.

    Args:
        opened: One run, race or search, or runs with the baseline first.
        notes: The author's words.

    Raises:
        ComparisonError: There are more than twenty runs, or a race or search among several.
    """
    if len(opened) == 1:
        (one,) = opened
        if isinstance(one, Race):
            return RaceReport(one, notes)
        if isinstance(one, ScriptTuning):
            return FixReport(one, notes)
        if isinstance(one, Tuning):
            return TuneReport(one, notes)
        return RunReport(replace(one, diagnosis=advise(one.diagnosis)), notes)
    runs = [each for each in opened if isinstance(each, RecordedRun)]
    if len(runs) < len(opened):
        raise ComparisonError("A race or a search holds its own comparison; report it by itself.")
    return ComparisonReport(compare_runs(runs[0], *runs[1:]), notes)


def report_result(result: object) -> Report:
    """Return the report of a result that was computed before.

    Raises:
        TypeError: The result is of a kind that has no report.
    """
    if isinstance(result, Diagnosis | Race | Tuning | ScriptTuning):
        return report_on([open_with_searches(result)])
    if isinstance(result, Run):
        return report_on([open_with_searches(result.path)])
    if isinstance(result, Comparison):
        return ComparisonReport(result)
    raise TypeError(f"There is no report of a {type(result).__name__}.")
