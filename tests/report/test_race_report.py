import pytest

from pipeline_lab.errors import ComparisonError
from pipeline_lab.report.content import Picture, Table
from pipeline_lab.report.report_on import report_on
from tests.report.subjects import race_report, run_report
from tests.support.recorded import recorded

REPORT = race_report()
CONTENT = REPORT.content()


def table(title: str) -> Table:
    blocks = [block for section in CONTENT.sections for block in section.blocks]
    return next(block for block in blocks if isinstance(block, Table) and block.title == title)


def test_the_answer_comes_with_the_gain() -> None:
    assert (CONTENT.answer.label, CONTENT.answer.tone) == ("faster", "good")
    assert CONTENT.answer.sentences[0].startswith("optimised is faster than baseline: its step takes ")


def test_a_faster_arm_that_learns_worse_is_flagged() -> None:
    assert CONTENT.warnings[0].startswith("optimised learns worse: after as many steps its loss is 1.5")


def test_every_arm_has_its_numbers() -> None:
    assert [row[0] for row in table("Arms").rows] == ["baseline", "optimised"]
    assert REPORT.tables()["arms"].column("step_ns").to_pylist() == pytest.approx([20e6, 10e6], rel=0.05)


def test_the_interval_is_told_with_what_would_have_shown() -> None:
    (row,) = table("Candidates").rows
    assert row[1] == "faster"
    assert float(row[2]) == pytest.approx(0.5, abs=0.03)
    (candidate,) = REPORT.tables()["candidates"].to_pylist()
    assert candidate["low"] < 0.5 < candidate["high"]


def test_the_arms_differ_by_their_options_and_sources() -> None:
    assert ("pipeline.read.mode", "sequential", "interleave") in table("Options that differ").rows
    titles = [section.title for section in CONTENT.sections]
    assert titles[2:4] == ["What ran: baseline", "What ran: optimised"]


def test_the_charts_are_those_of_the_catalogue() -> None:
    pictures = [block for block in CONTENT.sections[0].blocks if isinstance(block, Picture)]
    assert [picture.name for picture in pictures] == ["race-intervals", "race-steps"]


def test_a_race_is_reported_by_itself() -> None:
    assert report_on([REPORT.race]).race is REPORT.race
    with pytest.raises(ComparisonError, match="report it by itself"):
        report_on([recorded(), REPORT.race])


def test_the_same_word_reports_runs() -> None:
    assert report_on([recorded()]).slug == run_report().slug


def test_a_race_shows_itself_in_a_notebook() -> None:
    assert "optimised is faster than baseline" in REPORT.race._repr_html_()
