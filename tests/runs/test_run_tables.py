import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring import growing
from pipeline_lab.analysis.diagnosis.saved import fingerprint_inputs
from pipeline_lab.runs import run_tables
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import (
    RESOURCES,
    RUN_TABLES,
    SAMPLES,
    STEPS,
    RunTable,
    TableReader,
    TableWriter,
    read_table,
)
from pipeline_lab.ui.serving.routes import FILES

ABOUT = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text(encoding="utf-8")


def test_every_table_that_is_declared_is_listed() -> None:
    assert {table for table in vars(run_tables).values() if isinstance(table, RunTable)} == set(RUN_TABLES)


@pytest.mark.parametrize("table", RUN_TABLES, ids=lambda table: table.name)
def test_every_table_has_a_place_a_link_and_a_line_in_the_docs(table: RunTable, tmp_path: Path) -> None:
    assert (
        getattr(RunFolder(tmp_path), table.name)
        == tmp_path / table.file_name
        == FILES[table.file_name](RunFolder(tmp_path))
    )
    assert f"| `{table.file_name}` | {table.rows} |" in ABOUT
    assert table.later <= {name for name, _ in table.columns}


@pytest.mark.parametrize("table", RUN_TABLES, ids=lambda table: table.name)
def test_a_diagnosis_is_made_again_when_a_table_of_it_changes(table: RunTable, tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    before = fingerprint_inputs(tmp_path)
    TableWriter(table.path(RunFolder(tmp_path)), table).close()
    assert (fingerprint_inputs(tmp_path) != before) == table.is_diagnosed


def rows(path: Path) -> list[tuple[int, int, int]]:
    return [tuple(row.values()) for row in read_table(path, SAMPLES).to_pylist()]


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path / "samples", SAMPLES)
    writer.append(0, 1, 10)
    writer.extend([0, 1], [2, 3], [20, 30])
    writer.close()
    writer.close()
    assert rows(tmp_path / "samples") == [(0, 1, 10), (0, 2, 20), (1, 3, 30)]


def test_a_table_can_be_read_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    writer = TableWriter(path, SAMPLES, seconds_per_batch=1e9, rows_per_batch=2)
    assert rows(path) == []
    writer.append(0, 0, 0)
    assert rows(path) == []  # one row is not a batch yet
    writer.append(1, 0, 1)
    assert rows(path) == [(0, 0, 0), (1, 0, 1)]
    writer.append(2, 0, 2)
    writer.flush()
    assert len(rows(path)) == 3
    writer.close()


@pytest.mark.parametrize("append", [None, growing.append], ids=["copied", "growing"])
def test_of_a_table_that_grows_only_what_is_new_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, append: Callable[[pa.Table, pa.Table], pa.Table] | None
) -> None:
    path, read = tmp_path / "samples", []
    complete = run_tables._read_what_is_complete
    monkeypatch.setattr(
        run_tables, "_read_what_is_complete", lambda new, table: read.append(new.size) or complete(new, table)
    )
    reader = TableReader(path, SAMPLES, append)
    assert reader.read().num_rows == 0
    writer = TableWriter(path, SAMPLES, rows_per_batch=1)
    for row in range(5):
        writer.append(row, 0, row)
        assert reader.read() == read_table(path, SAMPLES)
    assert read[2:9:2] == [read[2]] * 4, "each time the schema and one batch"
    before = len(read)
    assert reader.read().num_rows == 5
    assert len(read) == before, "nothing is new"
    whole = path.read_bytes()
    path.write_bytes(whole + b"half a batch")
    assert reader.read().num_rows == 5
    path.write_bytes(whole)
    writer.append(5, 0, 5)
    assert reader.read().column("file").to_pylist() == read_table(path, SAMPLES).column("file").to_pylist()
    writer.close()
    assert reader.read() == read_table(path, SAMPLES)
    path.unlink()
    TableWriter(path, SAMPLES).close()
    assert reader.read().num_rows == 0, "it is another file"


def test_rows_are_written_when_time_has_passed(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path / "samples", SAMPLES, seconds_per_batch=0.0, rows_per_batch=10**9)
    writer.append(0, 0, 0)
    assert len(rows(tmp_path / "samples")) == 1
    writer.close()


@pytest.mark.slow
def test_a_torn_end_costs_at_most_the_last_batch(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    writer = TableWriter(path, SAMPLES, rows_per_batch=1)
    sizes = []
    for step in range(3):
        writer.append(step, 0, step)
        sizes.append(path.stat().st_size)
    writer.close()
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        kept = rows(path)
        assert kept == [(0, 0, 0), (1, 0, 1), (2, 0, 2)][: len(kept)]
        assert len(kept) >= sum(size <= length for size in sizes)


def test_a_column_whose_name_is_no_text_is_damage(tmp_path: Path) -> None:
    writer = TableWriter(path := tmp_path / "steps.arrows", STEPS)
    writer.close()
    sound = path.read_bytes()
    assert b"away_ns" in sound
    path.write_bytes(sound.replace(b"away_ns", b"away_\x82s"))
    assert TableReader(path, STEPS).read().num_rows == 0
    assert "nothing in it can be read" in run_tables.find_damage(path, STEPS)


@pytest.mark.parametrize("wanted", RUN_TABLES, ids=lambda table: table.name)
def test_a_missing_or_foreign_file_has_all_columns_and_no_rows(tmp_path: Path, wanted: RunTable) -> None:
    (tmp_path / "other").write_text("not Arrow")
    writer = TableWriter(tmp_path / "older", RunTable("older", "", (("step", "bool"),)))
    writer.append(True)
    writer.close()
    for name in ("missing", "other", "older"):
        table = read_table(tmp_path / name, wanted)
        assert table.schema.equals(wanted.schema)
        assert table.num_rows == 0


def test_a_table_from_before_a_column_existed_is_read_with_nulls(tmp_path: Path) -> None:
    older = replace(STEPS, columns=tuple(column for column in STEPS.columns if column[0] not in STEPS.later))
    writer = TableWriter(tmp_path / "steps", older)
    writer.append(7, False, 1, 2, 3, 0.5, 0.5, -1, 4)
    writer.close()
    table = read_table(tmp_path / "steps", STEPS)
    assert table.schema.equals(STEPS.schema)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (7, False, 1, 2, 3, 0.5, 0.5, -1, 4, *[None] * len(STEPS.later))
    ]


def test_a_damaged_table_with_a_column_twice_has_no_rows(tmp_path: Path) -> None:
    twice = pa.schema(
        [*RESOURCES.schema, next(field for field in RESOURCES.schema if field.name == "gpu_memory_bytes")]
    )
    with pa.ipc.new_stream(tmp_path / "t", twice) as stream:
        stream.write_batch(pa.RecordBatch.from_pylist([{}], schema=twice))
    assert read_table(tmp_path / "t", RESOURCES).num_rows == 0


def test_missing_gpu_numbers_stay_missing(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path / "resources", RESOURCES)
    writer.append(1, 2, 3.0, 4.0, None, None, False, None, None, None)
    writer.close()
    table = read_table(tmp_path / "resources", RESOURCES)
    assert table.column("gpu_memory_bytes").to_pylist() == [None]
    assert table.column("rss_bytes").to_pylist() == [2]


@pytest.mark.slow
def test_a_flipped_bit_anywhere_costs_rows_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "model"
    writer = TableWriter(path, RunTable("names", "", (("step", "int32"), ("name", "string"))))
    writer.extend(list(range(20)), [f"stage {step}" for step in range(20)])
    writer.close()
    whole = path.read_bytes()
    with path.open(
        "r+b", buffering=0
    ) as file:  # in place: the system sends a file that is written anew to the disk at once
        for bit in range(8 * len(whole)):
            at = bit // 8
            os.pwrite(file.fileno(), bytes([whole[at] ^ 1 << bit % 8]), at)
            table = read_table(path, RunTable("names", "", (("step", "int32"), ("name", "string"))))
            assert len(table.to_pylist()) <= 20
            os.pwrite(file.fileno(), whole[at : at + 1], at)
