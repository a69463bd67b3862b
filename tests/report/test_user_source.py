"""The user's own lines as blocks of a report."""

from pathlib import Path

from pipeline_lab.pipeline.recipe import LOOP, TRAINING, VALIDATION, DatasetCall, DatasetUse, Recipe, SourcePlace
from pipeline_lab.report.user_source import datasets_read
from pipeline_lab.runs.run_folder import RunFolder


def place(line: int) -> SourcePlace:
    return SourcePlace("/home/train.py", line, line, 0, 9, line)


CALLS = (
    DatasetCall(1, "range", place=place(3), text="Dataset.range(8)"),
    DatasetCall(2, "map", {}, (1,), place=place(4), text=".map(load)"),
    DatasetCall(3, "from_tensors", place=place(9), text="model.fit(x)", is_direct=False),
    DatasetCall(4, "OddDataset", {}, (3,), place=place(9), text="model.fit(x)", is_direct=False, is_understood=False),
)
USES = (DatasetUse(TRAINING, 2, place(9), "model.fit(dataset)", 2), DatasetUse(VALIDATION, 4, None, "", 1))


def test_each_dataset_is_told_with_its_use_and_the_calls_that_made_it(tmp_path: Path):
    folder = RunFolder(tmp_path)
    assert datasets_read(str(tmp_path)) == ()
    folder.recipe.write_text(Recipe(CALLS, USES).to_json())
    (table,) = datasets_read(str(tmp_path))
    assert table.rows == (
        ("training", "train.py:9 model.fit(dataset)", "train.py:3 Dataset.range(8), train.py:4 .map(load)", "2"),
        ("validation", "–", "train.py:9 model.fit(x), train.py:9 model.fit(x) ?", "1"),
    )
    assert table.note
    loops = (DatasetUse(LOOP, 2, place(5), "dataset", 1, trained_steps=8), DatasetUse(LOOP, 2, place(7), "dataset", 9))
    folder.recipe.write_text(Recipe(CALLS, loops).to_json())
    assert [row[0] for row in datasets_read(str(tmp_path))[0].rows] == ["training loop", "loop"]
    folder.recipe.write_text("{")
    assert datasets_read(str(tmp_path)) == ()
