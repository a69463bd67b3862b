"""Which file each example came from, beside what an even sample would be."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.file_reads import FileReads
from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.files import DataFile
from pipeline_lab.statistics.sampling import (
    ideal_total_variation,
    mean_batch_entropy,
    repeats_within_epochs,
    total_variation,
)

FILE_TABLE = pa.schema(
    [
        ("file", pa.string()),
        ("records", pa.int64()),  # in the file, null if not counted
        ("reads", pa.int64()),  # records its reader produced inside the windows, null if the trace does not say
        ("samples", pa.int64()),  # examples that reached the model, null without the sample probe
        ("expected_share", pa.float64()),  # its records over all records, 0 to 1, null if not counted
        ("observed_share", pa.float64()),  # of the samples (of the reads if there are no samples), 0 to 1
    ]
)
"""One row per file; where the files are unknown, one row per reader index."""

TIMELINE_TABLE = pa.schema(
    [("file", pa.string()), ("bin", pa.int32()), ("step", pa.float64()), ("samples", pa.int64())]
)
"""Samples per file over the course of the run: at most 60 bins; ``step`` is the bin's middle. No row, no samples."""

NO_SAMPLES = (
    "No file readers in this trace and no sample probe beside it; record while tf.data reads files (TFRecord, text or "
    "fixed-length records), or launch the job with the sample probe on."
)
MAX_BINS = 60
MIN_TENTH = 30
"""Samples that a tenth of the run must hold to be judged."""


@dataclass(frozen=True, eq=False)
class FileSampling:
    """The per-file sampling distribution.

    Attributes:
        basis: ``samples`` when the probe counted examples, else ``reads``.
        table: One row per file, :data:`FILE_TABLE`.
        timeline: Samples per file over the steps, :data:`TIMELINE_TABLE`; no rows without the probe.
        total_variation: Half the sum of absolute differences of observed and expected shares, 0 to 1; None if the
            expected shares are unknown.
        total_variation_ideal: The mean of the same number for an even sample of the same size (simulated).
        unopened: Number of files that gave no example; None if only readers are known, not the files there are.
        coverage_percent: Distinct records used over all records, percent; None without the probe.
        duplicates: Examples that were used again within their epoch's worth of samples; None without the probe.
        within_batch_entropy: Mean entropy of the files inside one batch, bits; None without the probe.
        worst_tenth, worst_tenth_ideal: Largest total variation of ten consecutive tenths of the samples, and the mean
            of an even sample of that size; None without the probe. They show a mix that is right only in the end.
    """

    basis: str
    table: pa.Table
    timeline: pa.Table
    total_variation: float | None
    total_variation_ideal: float | None
    unopened: int | None
    coverage_percent: float | None
    duplicates: int | None
    within_batch_entropy: float | None = None
    worst_tenth: float | None = None
    worst_tenth_ideal: float | None = None


def measure(files: Sequence[DataFile], samples: pa.Table, reads: FileReads) -> FileSampling:
    """Put files, samples and reads side by side.

    Args:
        files: The job's data files; none if they are not known.
        samples: What the probe noted, of schema ``runs.tables.SAMPLES``; no rows without the probe.
        reads: What the traces say, merged over all windows.

    Raises:
        TraceIncompleteError: There are neither samples nor reads.
    """
    if files and samples.num_rows:
        return _by_samples(files, samples, _reads_of(files, reads))
    if not reads.total:
        raise TraceIncompleteError(NO_SAMPLES)
    matched = _reads_of(files, reads)
    if files and matched is not None:
        return _by_reads([file.path for file in files], matched, _records(files))
    readers = sorted(reads.by_file | reads.by_reader)
    counts = np.array([reads.by_file.get(name, 0) + reads.by_reader.get(name, 0) for name in readers], np.int64)
    return _by_reads(readers, counts, None)


def _by_samples(files: Sequence[DataFile], samples: pa.Table, reads: IntArray | None) -> FileSampling:
    file, record = tables.ints(samples, "file"), tables.ints(samples, "record")
    counts = np.bincount(file, minlength=len(files)).astype(np.int64)
    records = _records(files)
    distance, ideal = _distances(counts, records)
    coverage = duplicates = worst = worst_ideal = None
    if records is not None:
        worst, worst_ideal = _worst_tenth(file, records)
        ids = file * (int(record.max()) + 1) + record
        coverage = 100.0 * len(np.unique(ids)) / int(records.sum())
        duplicates = repeats_within_epochs(ids, int(records.sum()))
    return FileSampling(
        basis="samples",
        table=_file_table([file.path for file in files], records, reads, counts, counts),
        timeline=_timeline(files, tables.ints(samples, "step"), file),
        total_variation=distance,
        total_variation_ideal=ideal,
        unopened=int((counts == 0).sum()),
        coverage_percent=coverage,
        duplicates=duplicates,
        worst_tenth=worst,
        worst_tenth_ideal=worst_ideal,
        within_batch_entropy=mean_batch_entropy(tables.ints(samples, "step"), file),
    )


def _by_reads(names: Sequence[str], counts: IntArray, records: IntArray | None) -> FileSampling:
    distance, ideal = _distances(counts, records)
    return FileSampling(
        basis="reads",
        table=_file_table(names, records, counts, None, counts),
        timeline=tables.empty(TIMELINE_TABLE),
        total_variation=distance,
        total_variation_ideal=ideal,
        unopened=None if records is None else int((counts == 0).sum()),
        coverage_percent=None,
        duplicates=None,
    )


def _records(files: Sequence[DataFile]) -> IntArray | None:
    """Return the records of each file, or None if one is not counted (or all are empty)."""
    records = [file.records for file in files]
    if not records or None in records or not any(records):
        return None
    return np.array(records, np.int64)


def _distances(counts: IntArray, records: IntArray | None) -> tuple[float | None, float | None]:
    if records is None or not counts.any():
        return None, None
    return total_variation(counts, records / records.sum()), ideal_total_variation(records, int(counts.sum()))


def _worst_tenth(file: IntArray, records: IntArray) -> tuple[float | None, float | None]:
    if len(file) < 10 * MIN_TENTH:
        return None, None
    tenths = np.array_split(file, 10)
    counts = [np.bincount(tenth, minlength=len(records)).astype(np.int64) for tenth in tenths]
    worst = max(total_variation(count, records / records.sum()) for count in counts)
    return worst, ideal_total_variation(records, len(tenths[0]))


def _reads_of(files: Sequence[DataFile], reads: FileReads) -> IntArray | None:
    """Return the reads of each file, or None if some readers' files are not known."""
    if reads.by_reader or not reads.by_file:
        return None
    by_name: dict[str, list[int]] = {}
    for index, file in enumerate(files):
        by_name.setdefault(PurePath(file.path).name, []).append(index)
    counts = np.zeros(len(files), np.int64)
    for path, count in reads.by_file.items():
        found = by_name.get(PurePath(path).name, [])
        exact = [index for index in found if files[index].path == path] or found
        if len(exact) != 1:
            return None
        counts[exact[0]] += count
    return counts


def _file_table(
    names: Sequence[str], records: IntArray | None, reads: IntArray | None, samples: IntArray | None, basis: IntArray
) -> pa.Table:
    return tables.build(
        FILE_TABLE,
        len(names),
        file=list(names),
        records=records,
        reads=reads,
        samples=samples,
        expected_share=None if records is None else records / records.sum(),
        observed_share=basis / max(1, int(basis.sum())),
    )


def _timeline(files: Sequence[DataFile], step: IntArray, file: IntArray) -> pa.Table:
    first, after = int(step.min()), int(step.max()) + 1
    bins = min(MAX_BINS, after - first)
    edges = np.linspace(first, after, bins + 1)
    index = np.searchsorted(edges, step, side="right") - 1
    keys, counts = np.unique(index * len(files) + file, return_counts=True)
    number, which = np.divmod(keys, len(files))
    return tables.build(
        TIMELINE_TABLE,
        len(keys),
        file=[files[row].path for row in which],
        bin=number,
        step=(edges[number] + edges[number + 1] - 1) / 2,
        samples=counts,
    )
