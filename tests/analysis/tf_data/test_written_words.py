"""Stages in the words of their author."""

from dataclasses import dataclass

import pytest

from pipeline_lab.analysis.tf_data.written_words import calls_of_stages, name_stage, say_calls, stage_call
from pipeline_lab.pipeline.recipe import (
    LOOP,
    TRAINING,
    DatasetCall,
    DatasetUse,
    PythonPart,
    Recipe,
    SourcePlace,
    UserFunction,
)
from pipeline_lab.runs.run_documents import (
    WrittenCall,
    WrittenPipeline,
    WrittenStage,
    add_places,
    read_written,
    write_written,
    written_by_recipe,
)

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


@dataclass(frozen=True)
class Ran:
    path: str
    parent: int | None = None
    node: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("::")[2]


def words(written: WrittenPipeline, *ran: Ran) -> dict[str, str]:
    return {path.rpartition("::")[2]: say_calls(calls) for path, calls in calls_of_stages(written, ran).items()}


def test_a_fused_stage_was_several_and_an_injected_one_none():
    written = WrittenPipeline((BATCH, MAP), 2)
    assert words(
        written,
        Ran("Root", None, "inject/prefetch_RepeatDataset/_13"),
        Ran("Root::Prefetch", 0, "inject/prefetch_RepeatDataset/_13"),
        Ran("Root::Prefetch::MapAndBatch", 1, "fused(MapDataset:1,BatchDatasetV2:2)"),
    ) == {"Root": "", "Prefetch": "", "MapAndBatch": "map(parse) + batch(16)"}


def call(number: int, method: str, line: int, *inputs: int, **others: object) -> DatasetCall:
    place = SourcePlace("/home/train.py", line, line, 0, 9, line)
    values: dict[str, object] = {"inputs": inputs, "place": place, "text": f".{method}()"} | others
    return DatasetCall(number, method, **values)


PYTHON = PythonPart("py_function", UserFunction("decode", "__main__", "/home/train.py", 7, 9))
FILES = call(1, "from_tensor_slices", 1, nodes=("TensorSliceDataset:1000000",))
RECORDS = call(2, "TFRecordDataset", 3)
READ = call(3, "interleave", 4, 1, inner=2, nodes=("ParallelInterleaveDataset:1000001",))
DECODED = call(4, "map", 5, 3, nodes=("MapDataset:1000002",), python=(PYTHON,))
BATCHED = call(5, "batch", 6, 4, nodes=("BatchDataset:1000003",))
RECIPE = Recipe((FILES, RECORDS, READ, DECODED, BATCHED), (DatasetUse(TRAINING, 5, None, "", 1, 6),))
SCRIPT = written_by_recipe(RECIPE, 4)


def test_what_ran_is_put_back_to_the_lines_of_the_script_by_the_names_of_its_datasets():
    assert words(
        SCRIPT,
        Ran("Root", None, "inject/prefetch_BatchDataset/_17"),
        Ran("Root::Prefetch", 0, "inject/prefetch_BatchDataset/_17"),
        Ran("Root::Prefetch::MapAndBatch", 1, "fused(MapDataset:1000002,BatchDataset:1000003)"),
        Ran("Root::Prefetch::MapAndBatch::ParallelInterleaveV4", 2, "ParallelInterleaveDataset:1000001"),
        Ran("Root::Prefetch::MapAndBatch::ParallelInterleaveV4::TensorSlice", 3, "TensorSliceDataset:1000000"),
        Ran("Root::Prefetch::MapAndBatch::ParallelInterleaveV4::FlatMap", 3, "FlatMapDataset"),
        Ran("Root::Prefetch::MapAndBatch::ParallelInterleaveV4::FlatMap::TFRecord", 5, "TFRecordDataset"),
    ) == {
        "Root": "",
        "Prefetch": "",
        "MapAndBatch": "train.py:5 .map() + :6 .batch()",
        "ParallelInterleaveV4": "train.py:4 .interleave()",
        "TensorSlice": "train.py:1 .from_tensor_slices()",
        "FlatMap": "train.py:3 .TFRecordDataset()",
        "TFRecord": "train.py:3 .TFRecordDataset()",
    }


def test_without_a_trace_the_order_of_the_iterators_tells():
    found = words(
        SCRIPT,
        Ran("Root"),
        Ran("Root::MapAndBatch", 0),
        Ran("Root::MapAndBatch::ParallelInterleaveV4", 1),
        Ran("Root::MapAndBatch::ParallelInterleaveV4::TFRecord", 2),
    )
    assert found["MapAndBatch"] == "train.py:6 .batch() + :5 .map()"
    assert (found["ParallelInterleaveV4"], found["TFRecord"]) == (
        "train.py:4 .interleave()",
        "train.py:3 .TFRecordDataset()",
    )


def test_of_several_datasets_that_one_call_made_each_is_found_though_another_run_of_it_was_recorded():
    """A function that makes the pipeline was called again, which gave its datasets other numbers than the windows have."""
    made = call(1, "from_generator", 1, nodes=("TensorDataset:1000010", "FlatMapDataset:1000011"), python=(PYTHON,))
    shuffled = call(2, "shuffle", 2, 1, nodes=("ShuffleDataset:1000012",))
    again = written_by_recipe(Recipe((made, shuffled), (DatasetUse(TRAINING, 2, None, "", 1, 6),)), 4)
    assert words(
        again,
        Ran("Root"),
        Ran("Root::Shuffle", 0, "ShuffleDataset:1000002"),
        Ran("Root::Shuffle::FlatMap", 1, "FlatMapDataset:1000001"),
        Ran("Root::Shuffle::FlatMap::FromTensor", 2, "TensorDataset:1000000"),
        Ran("Root::Shuffle::FlatMap::Generator", 2, "GeneratorDataset"),
    ) == {
        "Root": "",
        "Shuffle": "train.py:2 .shuffle()",
        "FlatMap": "train.py:1 .from_generator()",
        "FromTensor": "train.py:1 .from_generator()",
        "Generator": "train.py:1 .from_generator()",
    }


def test_a_call_of_which_several_parts_are_one_stage_is_named_once():
    place = SourcePlace("train.py", 9, 9, 0, 4, 9)
    parts = [WrittenCall(f"read(…) → {part}", place) for part in ("map", "batch")]
    assert say_calls([*parts, WrittenCall(".prefetch(2)", SourcePlace("train.py", 12, 12, 0, 4, 12))]) == (
        "train.py:9 read(…) → map + batch + :12 .prefetch(2)"
    )
    assert say_calls([parts[0], WrittenCall("read(…) → map", SourcePlace("train.py", 20, 20, 0, 4, 20))]) == (
        "train.py:9 read(…) → map + :20 read(…) → map"
    )


def test_the_line_that_runs_python_names_a_fused_stage():
    fused = Ran("MapAndBatch", None, "fused(MapDataset:1000002,BatchDataset:1000003)")
    assert name_stage(calls_of_stages(SCRIPT, [fused])["MapAndBatch"], "MapAndBatch") == "train.py:5 .map()"
    assert name_stage((), "MapAndBatch") == "MapAndBatch"


def test_the_dataset_that_was_trained_on_comes_first_and_its_pool_counts():
    looked_at = DatasetUse(LOOP, 1, None, "", 9)
    both = Recipe(RECIPE.calls, (looked_at, *RECIPE.uses))
    assert written_by_recipe(both, 4) == SCRIPT
    assert SCRIPT.pool_threads == 6
    assert written_by_recipe(Recipe(RECIPE.calls, (looked_at,)), 4).pool_threads == 4


def test_a_graph_gets_the_places_of_the_calls_that_made_it():
    graph = WrittenPipeline((WrittenStage("MapDataset:1000002", "MapDataset", "map_f", {}, ()), BATCH), 2)
    placed = add_places(graph, RECIPE)
    assert [stage_call(stage) for stage in placed.stages] == [".map()", "batch(16)"]


def test_it_is_kept_with_the_run(tmp_path):
    path, written = tmp_path / "written.json", WrittenPipeline((BATCH, MAP), 2)
    assert read_written(path) is None
    write_written(path, written)
    assert read_written(path) == written
    path.write_text(path.read_text()[:50])
    assert read_written(path) is None
