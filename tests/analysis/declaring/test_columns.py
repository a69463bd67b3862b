"""Columns as buffers."""

import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring.columns import is_repeated


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["host"], True),
        (["é", "é", "é"], True),
        (["", ""], True),
        ([], False),
        (["ab", "ba"], False),
        (["a", "aa"], False),
        (["a", None], False),
        ([None, None], False),
    ],
)
def test_one_text_in_every_row_is_seen(texts: list[str | None], expected: bool) -> None:
    assert is_repeated(pa.array(texts, pa.string())) is expected
    assert is_repeated(pa.array(["other", *texts], pa.string()).slice(1)) is expected
