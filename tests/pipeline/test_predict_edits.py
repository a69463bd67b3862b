"""Calls of ``predict`` written as ``predict_on_batch``: nothing else changes, and what means something is not left out."""

import ast

import pytest

from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, splice
from pipeline_lab.pipeline.predict_edits import edit_predict
from pipeline_lab.pipeline.recipe import SourcePlace

PATH = "/home/me/train.py"


def rewritten(text: str) -> str:
    """Return a text with its outermost call in the other form."""
    source = ParsedSource(PATH, text)
    call = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    assert call.end_lineno is not None
    place = SourcePlace(PATH, call.lineno, call.end_lineno, call.col_offset, call.end_col_offset, call.lineno)
    return splice(source.raw, edit_predict(source, place), 0, len(source.raw)).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = q.predict(s)", "y = q.predict_on_batch(s)"),
        ("y = q.predict(s, verbose=0)  # act", "y = q.predict_on_batch(s)  # act"),
        ("y = q.predict(s[None], 32, 0)[0]", "y = q.predict_on_batch(s[None])[0]"),
        ("y = self.nets[0].predict(verbose=0, x=f(s))", "y = self.nets[0].predict_on_batch(x=f(s))"),
        ("y = q.predict(\n    [a, b],\n    verbose=0,\n)", "y = q.predict_on_batch(\n    [a, b],\n)"),
        ("é = q.predict(é, batch_size=n)", "é = q.predict_on_batch(é)"),
    ],
)
def test_the_name_changes_and_what_means_nothing_for_one_batch_goes(before: str, after: str) -> None:
    assert rewritten(before) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("predict(s)", "not written as model.predict"),
        ("q.predict_all(s)", "not written as model.predict"),
        ("q.predict(s, callbacks=[c])", "takes callbacks"),
        ("q.predict(s, 32, 0, 7)", "takes more arguments"),
        ("q.predict(s, **options)", r"takes arguments with \*\*"),
        ("q.predict(*given)", r"takes arguments with \*"),
        ("q.predict(verbose=0)", "does not say what it predicts"),
        ("q.predict(s, batch_size=len(s))", "brackets"),
        ("q.predict(\n    s,  # states\n    verbose=0)", "a comment"),
    ],
)
def test_what_cannot_be_exchanged_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        rewritten(text)
