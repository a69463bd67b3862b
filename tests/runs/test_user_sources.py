"""The user's source around a call."""

from pathlib import Path

from pipeline_lab.pipeline.recipe import DatasetCall, PythonPart, Recipe, SourcePlace, UserFunction
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.user_sources import excerpts, kept_files

LINES = [f"line {number}" for number in range(1, 13)]
PLACE = SourcePlace("/home/user/train.py", 6, 8, 0, 9, 7)
PYTHON = PythonPart("py_function", UserFunction("decode", "__main__", "/home/user/train.py", 12, 12))


def run_with_source(path: Path) -> RunFolder:
    folder = RunFolder(path)
    folder.sources.mkdir()
    (folder.sources / "0-train.py").write_text("\n".join(LINES))
    folder.recipe.write_text(Recipe((DatasetCall(1, "map"),), (), {"/home/user/train.py": "0-train.py"}).to_json())
    return folder


def test_the_lines_of_a_call_and_of_its_python_are_marked(tmp_path: Path):
    call, python = excerpts(run_with_source(tmp_path), (WrittenCall(".map(load)", PLACE, (PYTHON,)),))
    assert call.title == "train.py, line 7: .map(load)"
    assert call.text.splitlines() == [
        *(f"  {number:2}  line {number}" for number in range(2, 7)),
        "▶  7  line 7",
        "▶  8  line 8",
        *(f"  {number:2}  line {number}" for number in range(9, 13)),
    ]
    assert python.title == "train.py, line 12: decode, run by py_function"
    assert python.text.endswith("▶ 12  line 12")


def test_kept_files_are_found_by_their_paths(tmp_path: Path):
    assert kept_files(RunFolder(tmp_path)) == {}
    assert kept_files(run_with_source(tmp_path)) == {"/home/user/train.py": "\n".join(LINES)}


def test_without_a_copy_nothing_is_shown(tmp_path: Path):
    assert excerpts(RunFolder(tmp_path), (WrittenCall(".map(load)", PLACE),)) == ()
    folder = run_with_source(tmp_path)
    (folder.sources / "0-train.py").unlink()
    assert excerpts(folder, (WrittenCall(".map(load)", PLACE), WrittenCall("map(load)"))) == ()
    folder.recipe.write_text("{")
    assert excerpts(folder, (WrittenCall(".map(load)", PLACE),)) == ()
