import pyarrow as pa
import pytest

from pipeline_lab.analysis.sampling import kept_outputs
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_tables import OUTPUTS

FILES = [DataFile("/data/a", 10, 100), DataFile("/data/b", 10, 100)]


def kept(*rows: tuple[int | None, int | None, int, list[float]]) -> kept_outputs.KeptOutputs:
    """Read the outputs of step 7, given as (file, record, label, outputs)."""
    columns = zip(*((7, *row) for row in rows), strict=True)
    return kept_outputs.read_kept_outputs(
        pa.table(dict(zip(OUTPUTS.schema.names, columns, strict=True)), schema=OUTPUTS.schema), FILES
    )


def test_the_largest_logit_is_the_prediction():
    found = kept((1, 4, 2, [0.5, -1.0, 3.25]), (0, 9, 0, [0.0, 2.0, 1.0]))
    assert (found.step, found.right) == (7, 1)
    assert found.table.to_pylist() == [
        {"file": "/data/b", "record": 4, "label": 2, "prediction": 2, "right": True, "outputs": "0.5 -1 3.25"},
        {"file": "/data/a", "record": 9, "label": 0, "prediction": 1, "right": False, "outputs": "0 2 1"},
    ]


def test_a_single_score_says_yes_above_zero():
    found = kept((None, None, 1, [0.25]), (None, None, 1, [-0.25]))
    assert found.table.column("prediction").to_pylist() == [1, 0]
    assert found.table.column("file").to_pylist() == [None, None]


def test_a_job_that_kept_none_says_how_to():
    with pytest.raises(TraceIncompleteError, match="keep_outputs_of_step"):
        kept_outputs.read_kept_outputs(OUTPUTS.schema.empty_table(), FILES)
