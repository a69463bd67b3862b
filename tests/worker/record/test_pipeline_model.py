"""When the model of a pipeline is sampled, and what a look at a real one writes."""

from pathlib import Path

import pytest

from pipeline_lab.runs.run_documents import read_written
from pipeline_lab.runs.run_tables import MODEL, read_table


def test_a_young_pipeline_is_looked_at_often_and_an_old_or_large_one_seldom(ask_tensorflow):
    ages = [[0.0, 10], [10.0, 10], [100.0, 10], [36_000.0, 10], [100.0, 2560]]
    assert ask_tensorflow("model_periods", ages=ages) == [0.1, 0.5, 1.0, 36.0, 10.0]


@pytest.mark.tensorflow
def test_a_real_pipeline_leaves_its_nodes_and_its_stages(ask_tensorflow, tmp_path: Path):
    threads = ask_tensorflow("sample_a_pipeline", folder=str(tmp_path))
    table = read_table(tmp_path / "model.arrows", MODEL)
    last = [row for row in table.to_pylist() if row["time_ns"] == table["time_ns"][-1].as_py()]
    names = [row["name"] for row in last]
    assert names[:2] == ["Root", "Prefetch"]
    assert "ParallelMapV2" in names
    assert last[0]["elements"] == 20
    mapped = next(row for row in last if row["name"] == "ParallelMapV2")
    assert (mapped["parallelism"], mapped["parallelism_tuned"]) == (2.0, False)
    assert next(row for row in last if row["name"] == "Prefetch")["buffer_limit"] == 3.0
    written = read_written(tmp_path / "written.json")
    assert written is not None
    assert [stage.op for stage in written.stages] == [
        "PrefetchDataset",
        "BatchDatasetV2",
        "ParallelMapDatasetV2",
        "RangeDataset",
    ]
    assert written.stages[2].function == "map_double"
    assert threads == written.pool_threads == 5


@pytest.mark.tensorflow
def test_a_pipeline_without_a_model_leaves_an_empty_table(ask_tensorflow, tmp_path: Path):
    assert ask_tensorflow("sample_without_autotune", folder=str(tmp_path)) == 0
    assert read_table(tmp_path / "model.arrows", MODEL).num_rows == 0


@pytest.mark.tensorflow
def test_of_several_pipelines_the_one_at_work_is_looked_at(ask_tensorflow, tmp_path: Path):
    nodes = ask_tensorflow("tests.capture.recording_tasks:sample_the_busiest", path=str(tmp_path / "model.arrows"))
    assert nodes[1::2] == [0, 0], "nothing is noted while nobody asks for batches"
    table = read_table(tmp_path / "model.arrows", MODEL)
    assert len(set(table["node"].to_pylist())) == nodes[0] + nodes[2] > nodes[0] > 0, (
        "the nodes of two iterators have numbers of their own"
    )
    roots = [row["elements"] for row in table.to_pylist() if row["parent"] == -1]
    assert roots == [3, 5]
