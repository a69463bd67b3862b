"""The tables of a comparison: what their numbers are of, and how large differences are written."""

from dataclasses import replace

import pytest

from pipeline_lab.comparison.step_time_ratio import StepTimeRatio
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Table
from pipeline_lab.report.subjects.comparison_report import ComparisonReport
from pipeline_lab.report.subjects.comparison_tables import signed_percent
from tests.report.subjects import comparison_report


def ratio_table(found: ComparisonReport) -> Table:
    blocks = (block for section in found.content().sections for block in section.blocks)
    return next(block for block in blocks if isinstance(block, Table) and block.title.startswith("Time per"))


@pytest.mark.parametrize("per", ["step", "example"])
def test_the_table_is_titled_by_what_was_compared(per: str) -> None:
    found = comparison_report()
    (ratio,) = found.comparison.step_time
    assert isinstance(ratio, StepTimeRatio)
    changed = replace(found.comparison, step_time=(replace(ratio, per=per),))
    assert ratio_table(replace(found, comparison=changed)).title == f"Time per {per} against baseline"
    nothing = replace(found.comparison, step_time=(Unavailable("Too few steps."),))
    assert ratio_table(replace(found, comparison=nothing)).title == "Time per step against baseline"


def test_what_takes_several_times_as_long_is_a_factor() -> None:
    written = [signed_percent(percent) for percent in (-96.4, 0.0, 12.0, 99.9, 100.0, 2254.0)]
    assert written == ["−96.4 %", "±0 %", "+12 %", "+99.9 %", "2×", "23.5×"]
