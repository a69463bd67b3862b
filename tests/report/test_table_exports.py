import io
import zipfile

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from pipeline_lab.report.renderers.table_exports import CsvReport, ParquetReport
from tests.report.subjects import bare_report, comparison_report, run_report


class Tables:
    """A subject that is nothing but one table."""

    slug = "tables"

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def tables(self) -> dict[str, pa.Table]:
        return {"one": self._table}


def test_parquet_holds_every_table_whole() -> None:
    report = run_report()
    files = ParquetReport().files(report)
    assert set(files) == {f"{name}.parquet" for name in report.tables()}
    for name, table in report.tables().items():
        assert pa.parquet.read_table(io.BytesIO(files[f"{name}.parquet"])).equals(table)


def test_csv_holds_every_row() -> None:
    report = run_report()
    for name, content in CsvReport().files(report).items():
        table = pa.csv.read_csv(io.BytesIO(content))
        assert table.num_rows == report.tables()[name.removesuffix(".csv")].num_rows
        assert table.column_names == report.tables()[name.removesuffix(".csv")].column_names


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx"])
def test_a_spreadsheet_runs_no_text_of_a_csv_file(text: str) -> None:
    table = pa.table({"file": [text, "plain", None], "count": [-1, 2, 3]})
    (content,) = CsvReport().files(Tables(table)).values()
    lines = content.decode().splitlines()
    assert lines[1] == f'"\'{text}",-1'
    assert lines[2] == '"plain",2'


def test_parquet_keeps_texts_as_they_are() -> None:
    table = pa.table({"file": ["=1+1"]})
    (content,) = ParquetReport().files(Tables(table)).values()
    assert pa.parquet.read_table(io.BytesIO(content)).to_pydict() == {"file": ["=1+1"]}


def test_a_comparison_has_its_own_tables() -> None:
    tables = comparison_report(2).tables()
    assert set(tables) == {"measures", "step_time", "stages", "differing_options", "differing_environment"}
    assert tables["step_time"].column("outcome").to_pylist() == ["faster", "faster"]
    measures = tables["measures"].to_pylist()
    median = [row["difference"] for row in measures if row["measure"] == "median_step_ms"]
    assert median == pytest.approx([0, -20, -17.5], rel=0.01)


def test_what_was_not_measured_has_no_table() -> None:
    assert CsvReport().files(bare_report()) == {}


def test_as_one_file_the_tables_are_a_zip() -> None:
    with zipfile.ZipFile(io.BytesIO(CsvReport().render(run_report()))) as archive:
        assert "steps.csv" in archive.namelist()
        assert archive.testzip() is None
