"""Stages in the words of their author."""

import pytest

from pipeline_lab.analysis.tf_data.written_words import labels_of, stage_call
from pipeline_lab.runs.run_documents import WrittenPipeline, WrittenStage, read_written, write_written

MAP = WrittenStage("MapDataset:1", "MapDataset", "map_parse", {}, (2,))
BATCH = WrittenStage("BatchDatasetV2:2", "BatchDatasetV2", None, {"batch_size": 16, "drop_remainder": True}, (0,))


@pytest.mark.parametrize(
    ("op", "function", "arguments", "words"),
    [
        ("ParallelMapDatasetV2", "map_augment", {"num_parallel_calls": -1}, "map(augment, AUTOTUNE)"),
        ("ShuffleDatasetV3", None, {"buffer_size": 2048, "seed": 0}, "shuffle(2048)"),
        ("RepeatDataset", None, {"count": -1}, "repeat()"),
        ("CacheDatasetV2", None, {"filename": "/tmp/x"}, "cache(file)"),
        ("ParallelInterleaveDatasetV4", "interleave_classabc.ABCMeta", {"cycle_length": 4}, "interleave(4)"),
        ("TFRecordDataset", None, {"buffer_size": -1}, "TFRecord"),
    ],
)
def test_labels_are_short_calls(op: str, function: str | None, arguments: dict[str, float | str], words: str):
    assert stage_call(WrittenStage("", op, function, arguments, ())) == words


def test_a_fused_stage_was_several_and_an_injected_one_none():
    written = WrittenPipeline((BATCH, MAP), 2)
    assert labels_of(written, "fused(MapDataset:1,BatchDatasetV2:2)") == ("map(parse)", "batch(16)")
    assert labels_of(written, "inject/prefetch_RepeatDataset/_13") == ()


def test_it_is_kept_with_the_run(tmp_path):
    path, written = tmp_path / "written.json", WrittenPipeline((BATCH, MAP), 2)
    assert read_written(path) is None
    write_written(path, written)
    assert read_written(path) == written
    path.write_text(path.read_text()[:50])
    assert read_written(path) is None
