"""Tables that grow from result to result come back whole, and of what was written before only links are made."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.diagnosis.table_files import FEW_ROWS, LAST_ROWS, TableFiles, read_table


def table_of(values: list[int]) -> pa.Table:
    return pa.table({"number": pa.array(values, pa.int64()), "text": [str(value) for value in values]})


def made(folder: Path, name: str) -> Path:
    (made := folder / name).mkdir()
    return made


def written_bytes(folder: Path) -> int:
    """Return the bytes of the files that no other folder has."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.stat().st_nlink == 1)


def test_what_a_growing_table_adds_is_all_that_is_written(tmp_path: Path) -> None:
    files, grown = TableFiles(), table_of(list(range(100_000)))
    assert files.write(grown, made(tmp_path, "0"), "steps") == ["steps.arrow"]
    for number in range(1, 41):
        grown = pa.concat_tables([grown, table_of(list(range(10)))])
        names = files.write(grown, made(tmp_path, str(number)), "steps")
        assert read_table(tmp_path / str(number), names).equals(grown)
        assert len(names) < 10
        assert written_bytes(tmp_path / str(number)) < 20_000, "100,010 rows take 3 MB"


def test_a_table_that_stays_the_same_is_not_written_again(tmp_path: Path) -> None:
    files = TableFiles()
    for rows in (0, 3, 5000):
        for number in range(2):
            folder = made(tmp_path, f"{rows}-{number}")
            names = files.write(table_of(list(range(rows))), folder, f"steps-{rows}")
            assert read_table(folder, names).num_rows == rows
        assert written_bytes(folder) == 0


def test_the_last_rows_may_change_with_what_comes_next(tmp_path: Path) -> None:
    files, values = TableFiles(), list(range(50_000))
    for number in range(10):
        values = [*values[:-1], -number, *range(20)]
        names = files.write(table_of(values), made(tmp_path, str(number)), "steps")
        assert read_table(tmp_path / str(number), names).equals(table_of(values))
    assert written_bytes(tmp_path / "9") < 40_000


def test_a_reader_keeps_what_it_mapped_and_a_folder_that_is_gone_costs_nothing_but_time(tmp_path: Path) -> None:
    files, values = TableFiles(), list(range(5000))
    mapped = read_table(folder := made(tmp_path, "0"), files.write(table_of(values), folder, "steps"))
    names = files.write(table_of([*values, 1]), made(tmp_path, "1"), "steps")
    assert (tmp_path / "0" / "steps.arrow").samefile(tmp_path / "1" / names[0])
    for file in (tmp_path / "1").iterdir():
        file.unlink()
    again = files.write(table_of([*values, 1, 2]), made(tmp_path, "2"), "steps")
    assert read_table(tmp_path / "2", again).num_rows == 5002
    assert mapped.equals(table_of(values))


def test_a_file_system_without_links_gets_whole_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    files = TableFiles()
    for rows in (5000, 5001):
        names = files.write(table_of(list(range(rows))), folder := made(tmp_path, str(rows)), "steps")
        assert read_table(folder, names).num_rows == rows


def test_a_part_that_is_missing_or_damaged_is_no_shorter_table(tmp_path: Path) -> None:
    files, values = TableFiles(), list(range(5000))
    files.write(table_of(values), made(tmp_path, "0"), "steps")
    names = files.write(table_of([*values, 1]), folder := made(tmp_path, "1"), "steps")
    assert len(names) > 1
    (folder / names[-1]).write_bytes(b"ARROW1")
    with pytest.raises(ValueError, match="damaged"):
        read_table(folder, names)
    (folder / names[-1]).unlink()
    with pytest.raises(FileNotFoundError):
        read_table(folder, names)


def test_texts_behind_the_same_numbers_are_looked_at(tmp_path: Path) -> None:
    files, numbers = TableFiles(), pa.array([0, 1] * 2000, pa.int32())
    for number, words in enumerate((["a", "b"], ["c", "d"])):
        table = pa.table({"word": pa.DictionaryArray.from_arrays(numbers, words), "row": range(4000)})
        names = files.write(table, folder := made(tmp_path, str(number)), "steps")
        assert read_table(folder, names).equals(table)


@given(
    st.lists(
        st.tuples(st.integers(0, 2 * FEW_ROWS), st.integers(0, 2 * LAST_ROWS), st.booleans()), min_size=1, max_size=6
    )
)
def test_whatever_a_table_becomes_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int, bool]]
) -> None:
    """It loses some of its last rows, gets others, and may be another one altogether."""
    top, files, values = tmp_path_factory.mktemp("tables"), TableFiles(), np.arange(3)
    for number, (more, fewer, is_other) in enumerate(changes):
        values = np.append(values[: max(0, len(values) - fewer)] + is_other, np.arange(more))
        table, folder = table_of(values.tolist()), made(top, str(number))
        assert read_table(folder, files.write(table, folder, "t")).equals(table)
