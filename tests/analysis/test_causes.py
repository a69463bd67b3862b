"""Every cause declares all its parts, and the pages that list causes know each of them."""

from pathlib import Path

import pytest

from pipeline_lab.analysis.causes import GapCause, InputCause, StepPart, VerdictClass
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.verdict.input_causes import CAUSE_RULES
from pipeline_lab.figures.theme import THEMES

DOCS = Path(__file__).parents[2] / "docs"
WORKS = (GapCause.CAPTURE_GAP, GapCause.INPUT_WAIT)
"""What no verdict is about: nothing was recorded, or the input causes tell more."""
FILLED = dict.fromkeys(("device", "framework", "where", "lost", "step", "share", "why", "beside"), "X")


@pytest.mark.parametrize("cause", GapCause)
def test_a_cause_of_idle_time_declares_all_its_parts(cause: GapCause) -> None:
    assert cause.label
    assert cause.activity
    assert (cause.sentence == "") == (cause in WORKS)
    assert (cause.recommendation is None) == (cause in WORKS)
    assert "X" in cause.sentence.format(**FILLED) or cause in WORKS
    assert (cause.light, cause.dark) == tuple(THEMES[mode].categories[cause] for mode in ("light", "dark"))


def test_the_page_about_gaps_explains_every_cause_in_order() -> None:
    page = (DOCS / "read-a-gap.md").read_text(encoding="utf-8")
    places = [page.index(f"| `{cause}` | {cause.meaning} |") for cause in GapCause]
    assert places == sorted(places)


def test_labels_of_causes_are_distinct() -> None:
    assert len({cause.label for cause in GapCause}) == len(GapCause)


def test_parts_of_a_step_are_the_fields_of_their_sum() -> None:
    assert all(hasattr(StepBreakdown(), part.column) for part in StepPart)
    assert all(part.category in THEMES["light"].categories and part.label for part in StepPart)
    assert {part.cause for part in StepPart if part.cause} == set(GapCause) - {GapCause.CAPTURE_GAP}


@pytest.mark.parametrize("cause", InputCause)
def test_an_input_cause_declares_all_its_parts_and_has_a_rule(cause: InputCause) -> None:
    assert cause.clause.startswith(", because ")
    assert cause.recommendation.change.endswith(".")
    assert "X" in cause.recommendation.why.format(stage="X", python="") or "{" not in cause.recommendation.why
    is_of_pipeline = cause not in (InputCause.OWN_BATCHES, InputCause.LOOP_START)
    assert bool([rule for named, rule in CAUSE_RULES if named is cause]) is is_of_pipeline
    assert f"`{cause}`" in (DOCS / "read-a-stall.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", VerdictClass)
def test_a_class_of_the_verdict_declares_all_its_parts(kind: VerdictClass) -> None:
    assert kind.tone in ("good", "bad", "neutral")
    assert kind.badge in ("blue", "green", "orange", "gray")
    assert kind.loss
    assert "X" in kind.sentence.format(**FILLED)
    assert (kind.recommendation is None) == (kind is VerdictClass.UNKNOWN)
    assert f"`{kind}`" in (DOCS / "numbers.md").read_text(encoding="utf-8")
