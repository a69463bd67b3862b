from pathlib import Path

import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.run_documents import DataFile, read_data_tables, read_files, write_files


def test_files_come_back_in_order(tmp_path: Path) -> None:
    files = [DataFile("/data/b", 10, 100), DataFile("/data/ä", None, 0)]
    write_files(tmp_path / "files.json", files)
    assert read_files(tmp_path / "files.json") == files


def test_tables_are_kept_beside_the_files(tmp_path: Path) -> None:
    table = DataFile("/data/vectors.npy", 200, 3_276_928)
    write_files(tmp_path / "files.json", [DataFile("/data/a", 10, 100)], [table])
    assert read_data_tables(tmp_path / "files.json") == [table]
    assert [file.path for file in read_files(tmp_path / "files.json")] == ["/data/a"]


def test_a_run_of_an_older_version_has_no_tables(tmp_path: Path) -> None:
    (tmp_path / "files.json").write_text('{"schema_version": 1, "files": []}')
    assert read_data_tables(tmp_path / "files.json") == []


def test_a_run_that_got_nowhere_has_none(tmp_path: Path) -> None:
    assert read_files(tmp_path / "files.json") == []


@pytest.mark.parametrize("text", ["", "{}", '{"files": [{"path": 1}]}', "[]"])
def test_a_damaged_document_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "files.json").write_text(text)
    with pytest.raises(StoreError, match=r"files\.json of the run is damaged"):
        read_files(tmp_path / "files.json")
