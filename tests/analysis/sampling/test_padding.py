import pyarrow as pa
import pytest

from pipeline_lab.analysis.sampling import padding
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_tables import PADDING
from tests.support import results


def batches(*rows: tuple[int, int, int]) -> pa.Table:
    """Return batches given as (examples, elements, padding)."""
    numbered = [(step, *row) for step, row in enumerate(rows)]
    columns = list(zip(*numbered, strict=True)) or [()] * len(PADDING.schema.names)
    return pa.table(dict(zip(PADDING.schema.names, columns, strict=True)), schema=PADDING.schema)


def test_large_batches_weigh_more_than_small_ones():
    found = padding.measure_padding(batches((2, 100, 50), (4, 300, 0)))
    assert found.percent == 12.5  # 50 of 400
    assert (found.elements, found.padding_elements, found.examples_per_step) == (400, 50, 3.0)
    assert found.batch_percent[1] == 25.0  # of the two batches, one half and nothing


def test_what_was_not_noted_is_not_zero():
    with pytest.raises(TraceIncompleteError, match="was not noted"):
        padding.measure_padding(batches())


@pytest.mark.parametrize(("padded", "kinds"), [(39, []), (41, ["padding-waste"])])
def test_much_padding_is_worth_a_finding(padded, kinds):
    found = find_all_findings(results.diagnosis(padding=padding.measure_padding(batches((2, 100, padded)))))
    assert [each.kind for each in found if each.kind == "padding-waste"] == kinds
