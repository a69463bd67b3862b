"""Tables that are whole, with numbers that no job writes."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.impossible_rows import RowChecker
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, RunTable, TableWriter
from pipeline_lab.runs.store import samples_folder

MS = 1_000_000
BEGIN = 1_700_000_000 * 10**9


def rows(table: RunTable, *given: dict[str, object]) -> dict[str, pa.Table]:
    return {table.name: pa.Table.from_pylist(list(given), schema=table.schema)}


def step(number: int, **changed: int | None) -> dict[str, object]:
    """Return a step of 10 ms, of which the last is between it and the next."""
    start = BEGIN + 10 * MS * number
    usual = {"step": number, "start_ns": start, "wait_ns": 4 * MS, "end_ns": start + 9 * MS, "away_ns": 0}
    return usual | {"ready_ns": None} | changed


def example(file: int, record: int) -> dict[str, object]:
    return {"step": 0, "file": file, "record": record}


SOUND = [step(number) for number in range(5)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"start_ns": 77}, "begins in another century"),
        ({"start_ns": BEGIN - 2**45}, "begins before the one above it"),
        ({"start_ns": BEGIN + 2**53}, "a month later"),
        ({"away_ns": 2**49}, "more time is noted between two steps"),
        ({"away_ns": -(2**33)}, "more time is noted between two steps"),
        ({"wait_ns": -(2**31)}, "the wait is negative"),
        ({"end_ns": BEGIN - 2**40}, "the step ends before it begins"),
        ({"ready_ns": BEGIN + 2**52}, "the step ends before it begins, or a month later"),
    ],
)
def test_impossible_steps_are_named_with_their_row(changed: dict[str, int], said: str) -> None:
    found = RowChecker().find(rows(STEPS, *SOUND, step(5, **changed)), 0)
    assert found.keys() == {"steps"}
    assert "steps.arrows of this run is damaged: row 6 is impossible" in found["steps"]
    assert said in found["steps"]


def test_what_clocks_and_missing_values_make_is_possible() -> None:
    before = step(5, start_ns=BEGIN + 49 * MS, wait_ns=None, away_ns=None)
    day = BEGIN + 86_400 * 10**9
    evaluated = step(6, start_ns=day, away_ns=86_399 * 10**9, end_ns=day + MS, ready_ns=day + 2 * MS)
    assert RowChecker().find(rows(STEPS, *SOUND, before, evaluated), 0) == {}
    assert RowChecker().find(rows(STEPS), 0) == {}


@pytest.mark.parametrize(("file", "record", "files"), [(2, 0, 2), (-1, 0, 0), (0, -5, 2)])
def test_examples_of_no_file_and_no_record_are_named(file: int, record: int, files: int) -> None:
    found = RowChecker().find(rows(SAMPLES, example(1, 9), example(file, record)), files)
    assert "row 2 is impossible" in found["samples"]


def test_without_a_list_of_files_any_file_is_possible() -> None:
    assert RowChecker().find(rows(SAMPLES, example(7, 9)), 0) == {}


def test_of_a_table_that_grows_new_rows_are_looked_at_and_compared_with_the_last_one() -> None:
    checker = RowChecker()
    assert checker.find(rows(STEPS, *SOUND[:2]), 0) == {}
    assert checker.find(rows(STEPS, *SOUND[:3]), 0) == {}
    backwards = step(3, start_ns=BEGIN - 2**40)
    found = checker.find(rows(STEPS, *SOUND[:3], backwards), 0)
    assert "row 4 is impossible" in found["steps"]
    assert checker.find(rows(STEPS, *SOUND[:3], backwards, SOUND[4]), 0) == found
    assert checker.find(rows(STEPS, *SOUND[:2]), 0) == {}, "another file"


@pytest.mark.slow
def test_nothing_is_computed_from_impossible_rows(tmp_path: Path) -> None:
    samples = samples_folder()
    assert samples is not None
    run = RunFolder(tmp_path / "run")
    shutil.copytree(samples / "sample-baseline", run.path, ignore=shutil.ignore_patterns("analysis", "plugins"))
    with_bad_file = [example(0, 1), example(2**28, 1)]
    writer = TableWriter(run.samples, SAMPLES)
    for row in with_bad_file:
        writer.append(*row.values())
    writer.close()
    found = diagnose(run.path)
    assert isinstance(found.file_sampling, Unavailable)
    assert "the run lists no such file" in found.file_sampling.reason
    assert found.source.damaged_tables == (found.file_sampling.reason,)
