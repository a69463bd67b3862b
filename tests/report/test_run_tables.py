import pyarrow as pa
import pytest

from pipeline_lab.analysis.kept_outputs import measure
from pipeline_lab.report.run_tables import outputs
from pipeline_lab.runs.files import DataFile
from pipeline_lab.runs.tables import OUTPUTS


@pytest.mark.parametrize(
    ("values", "cell", "note"),
    [
        ([0.5], "0.5", ""),
        ([0.5, 1.5], "1: 1.5, 0: 0.5", ""),
        (
            [float(number) for number in range(1000)],
            "999: 999, 998: 998, 997: 997, 996: 996, 995: 995",
            "Outputs are the 5 largest of 1,000, each behind its class.",
        ),
    ],
)
def test_the_largest_outputs_stand_behind_their_classes(values: list[float], cell: str, note: str) -> None:
    row = dict(zip(OUTPUTS.names, ([12], [0], [0], [1], [values]), strict=True))
    table = outputs(measure(pa.table(row, schema=OUTPUTS), [DataFile("a.tfrecord", 1, 1)]))
    assert (table.rows[0][-1], table.note) == (cell, note)
