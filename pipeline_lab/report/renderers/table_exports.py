"""The tables of a report as files for other tools: CSV and Parquet."""

import io
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pipeline_lab.report.content import Subject
from pipeline_lab.report.renderers.format import ReportFormat

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class CsvReport(ReportFormat):
    """One CSV file per table.

    A text that a spreadsheet would run as a formula gets an apostrophe in front; Parquet keeps texts as they are.
    """

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "CSV tables"
    suffix: ClassVar[str] = ".csv.zip"
    media_type: ClassVar[str] = "application/zip"
    is_archive: ClassVar[bool] = True

    def files(self, subject: Subject) -> dict[str, bytes]:
        return {f"{name}.csv": _csv(table) for name, table in subject.tables().items()}


class ParquetReport(ReportFormat):
    """One Parquet file per table."""

    name: ClassVar[str] = "parquet"
    title: ClassVar[str] = "Parquet tables"
    suffix: ClassVar[str] = ".parquet.zip"
    media_type: ClassVar[str] = "application/zip"
    is_archive: ClassVar[bool] = True

    def files(self, subject: Subject) -> dict[str, bytes]:
        return {f"{name}.parquet": _parquet(table) for name, table in subject.tables().items()}


def _csv(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pa.csv.write_csv(_without_formulas(table), buffer)
    return buffer.getvalue()


def _without_formulas(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        column = table.column(index)
        risky = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), pa.array(FORMULA_STARTS, field.type))
        quoted = pc.binary_join_element_wise(pa.scalar("'", field.type), column, pa.scalar("", field.type))
        table = table.set_column(index, field, pc.if_else(risky, quoted, column))
    return table


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pa.parquet.write_table(table.replace_schema_metadata(None), buffer, compression="zstd")
    return buffer.getvalue()
