"""One stage in full, from the hand-made pipeline whose 1280 images a parallel map decodes."""

from dataclasses import replace

import pyarrow as pa
import pytest

from pipeline_lab.analysis.input.pipeline_stages import join_stages
from pipeline_lab.analysis.sampling.kept_outputs import read_kept_outputs
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Table, Text
from pipeline_lab.report.subjects.run_report_tables import NO_TRACE, outputs, stage_blocks
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_tables import OUTPUTS
from tests.support import results


@pytest.mark.parametrize(
    ("values", "cell", "note"),
    [
        ([0.5], "0.5", ""),
        ([0.5, 1.5], "1: 1.5, 0: 0.5", ""),
        (
            [float(number) for number in range(1000)],
            "999: 999, 998: 998, 997: 997, 996: 996, 995: 995",
            "Outputs are the 5 largest of 1,000, each with its class.",
        ),
    ],
)
def test_the_largest_outputs_stand_behind_their_classes(values: list[float], cell: str, note: str) -> None:
    row = dict(zip(OUTPUTS.schema.names, ([12], [0], [0], [1], [values]), strict=True))
    table = outputs(read_kept_outputs(pa.table(row, schema=OUTPUTS.schema), [DataFile("a.tfrecord", 1, 1)]))
    assert (table.rows[0][-1], table.note) == (cell, note)


NONE = Unavailable("Nothing was measured; run it again.")
MAP, PREFETCH = 3, 1


def _facts(table) -> dict[str, str]:
    return dict(table.rows)


def test_a_map_tells_its_calls_its_queue_and_the_operations_inside_it() -> None:
    tf_data = results.tf_data()
    stage = join_stages(tf_data, NONE, results.written())[MAP]
    facts, waited, operations = stage_blocks(stage, tf_data.critical_path)
    told = _facts(facts)
    assert told["Place, the consumer first"] == "Root → Prefetch → BatchV2 → ParallelMapV2"
    assert told["Written as"] == "map(decode, 2)"
    assert told["Calls of its function"] == "1,280"
    assert told["From call to result, mean"] == "1.88 ms"  # 2400 ms over 1280 calls
    assert told["Of which on no thread"] == "16.7 %"  # 400 of 2400 ms
    assert told["Calls under way, mean"] == "1.2"  # 2400 ms over 40 steps of 50 ms
    assert told["Parallel calls allowed"] == "2"
    assert told["Thread time for one batch, inside the windows (trace)"] == "50 ms"  # 2001 ms over 40 batches
    assert told["Elements leave"] == "in order"
    assert waited.rows == (("DecodeJpeg", "900 ms", "75 %"), ("queueing", "200 ms", "16.7 %"))
    assert operations.rows == (("DecodeJpeg", "1,280", "1.5 s", "75 %"), ("Cast", "1,280", "300 ms", "15 %"))


def test_a_buffer_tells_what_lay_in_it_and_how_often_nothing_did() -> None:
    tf_data = results.tf_data()
    stage = join_stages(tf_data, NONE, results.written())[PREFETCH]
    told = _facts(stage_blocks(stage, NONE)[0])
    assert told["How it came to be"] == "put in by TensorFlow"
    assert told["Elements in its buffer, mean"] == "0.1 of 2"
    assert told["Calls that found it empty"] == "90 %"  # 36 of 40
    assert told["Parallelism or buffer chosen by"] == "TensorFlow"
    assert "Calls of its function" not in told


def test_model_and_trace_are_told_apart_where_they_differ() -> None:
    tf_data = results.tf_data()
    stage = replace(join_stages(tf_data, NONE, results.written())[MAP], work_ns=24e6)
    told = _facts(stage_blocks(stage, tf_data.critical_path)[0])
    assert told["Thread time for one batch, whole run (tf.data's own model)"] == "24 ms"
    assert told["Thread time for one batch, inside the windows (trace)"] == "50 ms"


def test_a_stage_without_a_trace_says_what_is_missing() -> None:
    stage = join_stages(NONE, results.live_model(), NONE)[2]
    facts, missing = stage_blocks(stage, NONE)
    assert isinstance(facts, Table)
    assert _facts(facts)["Thread time for one batch, whole run (tf.data's own model)"] == "24 ms"
    assert missing == Text(NO_TRACE, missing=True)
