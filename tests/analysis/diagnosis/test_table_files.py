"""Tables that grow from result to result come back whole, and what was written before is kept."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.diagnosis.table_files import FEW_ROWS, LAST_ROWS, TableFiles, read_table


def table_of(values: list[int]) -> pa.Table:
    return pa.table({"number": pa.array(values, pa.int64()), "text": [str(value) for value in values]})


def write(files: TableFiles, table: pa.Table) -> tuple[list[str], int]:
    """Write a result of one table; return the names of its files, and how many bytes were added to the folder."""
    before = {file.name for file in files.folder.iterdir()}
    names = files.write(table, "steps")
    files.end_result()
    new = [files.folder / name for name in names if name not in before]
    return names, sum(file.stat().st_size for file in new)


def test_what_a_growing_table_adds_is_all_that_is_written(tmp_path: Path) -> None:
    files, grown = TableFiles(tmp_path), table_of(list(range(100_000)))
    assert write(files, grown)[0] == ["steps.0.arrow"]
    for _ in range(40):
        grown = pa.concat_tables([grown, table_of(list(range(10)))])
        names, added_bytes = write(files, grown)
        assert read_table(tmp_path, names).equals(grown)
        assert len(names) < 10
        assert added_bytes < 20_000, "100,010 rows take 3 MB"


def test_a_table_that_stays_the_same_is_not_written_again(tmp_path: Path) -> None:
    for rows in (0, 3, 5000):
        (folder := tmp_path / str(rows)).mkdir()
        files = TableFiles(folder)
        written = [write(files, table_of(list(range(rows)))) for _ in range(3)]
        assert read_table(folder, written[-1][0]).num_rows == rows
        assert [added_bytes > 0 for _, added_bytes in written] == [True, False, False]


def test_the_last_rows_may_change_with_what_comes_next(tmp_path: Path) -> None:
    files, values = TableFiles(tmp_path), list(range(50_000))
    for number in range(10):
        values = [*values[:-1], -number, *range(20)]
        names, added_bytes = write(files, table_of(values))
        assert read_table(tmp_path, names).equals(table_of(values))
    assert added_bytes < 40_000


def test_files_are_deleted_two_results_later(tmp_path: Path) -> None:
    files, values = TableFiles(tmp_path), list(range(5000))
    mapped = read_table(tmp_path, names := write(files, table_of(values))[0])
    changed = table_of([-1, *values])
    of_the_next = write(files, changed)[0]
    assert read_table(tmp_path, names).equals(mapped), "for a reader that holds the document before"
    assert read_table(tmp_path, write(files, changed)[0]).equals(changed)
    assert {file.name for file in tmp_path.iterdir()} == set(of_the_next)
    assert mapped.equals(table_of(values)), "who mapped a file keeps it"


def test_a_table_that_a_result_lacks_is_written_again(tmp_path: Path) -> None:
    files, table = TableFiles(tmp_path), table_of(list(range(5000)))
    write(files, table)
    for _ in range(2):
        files.write(table_of([1]), "other")
        files.end_result()
    assert [file.name for file in tmp_path.iterdir()] == files.write(table_of([1]), "other")
    assert read_table(tmp_path, write(files, table)[0]).equals(table)


def test_a_file_that_somebody_deleted_is_written_again(tmp_path: Path) -> None:
    files, values = TableFiles(tmp_path), list(range(5000))
    write(files, table_of(values))
    first, *_ = write(files, table_of([*values, 1]))[0]
    (tmp_path / first).unlink()
    assert read_table(tmp_path, write(files, table_of([*values, 1, 2]))[0]).num_rows == 5002


def test_what_a_full_disk_kept_from_being_written_is_no_part_of_the_next_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, table = TableFiles(tmp_path), table_of(list(range(5000)))
    write(files, table)
    with monkeypatch.context() as full:
        full.setattr(pa.ipc, "new_file", Mock(side_effect=OSError("no space left")))
        with pytest.raises(OSError, match="no space"):
            files.write(table_of([1, 2]), "steps")
    names, _ = write(files, table)
    assert {file.name for file in tmp_path.iterdir()} == set(names)
    assert read_table(tmp_path, names).equals(table)


def test_a_part_that_is_missing_or_damaged_is_no_shorter_table(tmp_path: Path) -> None:
    files, values = TableFiles(tmp_path), list(range(5000))
    write(files, table_of(values))
    names, _ = write(files, table_of([*values, 1]))
    assert len(names) > 1
    (tmp_path / names[-1]).write_bytes(b"ARROW1")
    with pytest.raises(ValueError, match="damaged"):
        read_table(tmp_path, names)
    (tmp_path / names[-1]).unlink()
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path, names)


def test_texts_behind_the_same_numbers_are_looked_at(tmp_path: Path) -> None:
    files, numbers = TableFiles(tmp_path), pa.array([0, 1] * 2000, pa.int32())
    for words in (["a", "b"], ["c", "d"]):
        table = pa.table({"word": pa.DictionaryArray.from_arrays(numbers, words), "row": range(4000)})
        assert read_table(tmp_path, write(files, table)[0]).equals(table)


@given(
    st.lists(
        st.tuples(st.integers(0, 2 * FEW_ROWS), st.integers(0, 2 * LAST_ROWS), st.booleans()), min_size=1, max_size=6
    )
)
def test_whatever_a_table_becomes_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int, bool]]
) -> None:
    """It loses some of its last rows, gets others, and may be another one altogether."""
    files, values = TableFiles(tmp_path_factory.mktemp("tables")), np.arange(3)
    for more, fewer, is_other in changes:
        values = np.append(values[: max(0, len(values) - fewer)] + is_other, np.arange(more))
        table = table_of(values.tolist())
        assert read_table(files.folder, write(files, table)[0]).equals(table)
