"""Which file each example came from, beside what an even sample would be; and how many views of one image share a batch."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import PurePath
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob, only_derived
from pipeline_lab.analysis.sampling import sample_history
from pipeline_lab.analysis.sampling.file_reads import FileReads, name_readers
from pipeline_lab.analysis.sampling.sample_history import COVERAGE_TABLE, EPOCH_TABLE, TIMELINE_TABLE, LabelMix
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_tables import SAMPLES
from pipeline_lab.statistics.mixing import (
    Mixing,
    batch_numbers,
    expected_same_source,
    ideal_mixing,
    measure_mixing,
    same_source_examples,
)
from pipeline_lab.statistics.reading_order import ReadingOrder
from pipeline_lab.statistics.reading_steps import Epoch
from pipeline_lab.statistics.sampling import (
    chi_square_per_df,
    even_total_variations,
    first_uses,
    repeats_within_epochs,
    total_variation,
)


@dataclass(frozen=True)
class SameSource:
    """Examples that share their source with another example of their batch.

    Attributes:
        views: Examples that become of one source.
        batch_size: Examples of a batch, the median.
        per_batch: Mean number of them in a batch.
        expected: The same in a perfectly shuffled epoch.
        predicted: The same in the order that the options predict; None where that is not known.
    """

    views: int
    batch_size: int
    per_batch: float
    expected: float
    predicted: float | None = None

    @property
    def is_weak(self) -> bool:
        """Say whether the shuffle leaves far more of them together than chance does."""
        return self.per_batch > 2 * self.expected + 1


def measure_same_source(batch: IntArray, number: IntArray, total: int, views: int) -> SameSource | None:
    """Measure how far views are apart; None where each source gives one example.

    Args:
        batch: Batch of each example, shape (n,), n > 0.
        number: Its place in the data, the views of a source one after another, shape (n,).
        total: Examples in the data.
        views: Examples that become of one source.
    """
    if views == 1:
        return None
    batch_size = int(np.median(np.unique(batch, return_counts=True)[1]))
    return SameSource(
        views=views,
        batch_size=batch_size,
        per_batch=float(same_source_examples(batch, number // views).mean()),
        expected=expected_same_source(batch_size, total // views, views),
    )


FILE_TABLE = pa.schema(
    [
        ("file", pa.string()),
        ("records", pa.int64()),  # in the file, null if not counted
        ("size_bytes", pa.int64()),  # of the file, null if not known
        ("reads", pa.int64()),  # records its reader produced inside the windows, null if the trace does not say
        ("samples", pa.int64()),  # examples that reached the model, null without the sample probe
        ("expected_share", pa.float64()),  # its records over all records, 0 to 1, null if not counted
        ("expected_share_by_bytes", pa.float64()),  # its bytes over all bytes, 0 to 1, null if not known
        ("observed_share", pa.float64()),  # of the samples (of the reads if there are no samples), 0 to 1
        ("predicted_share", pa.float64()),  # of n samples in the order simulated from the options, null without
    ]
)
"""One row per file; where the files are unknown, one row per reader index."""

CONTRADICTION = (
    "files.json says that {path} holds {records:,} records, but the job used its record {number:,}; restore the file, or run the "
    "job again."
)

NO_SAMPLES = (
    "No file readers in this trace and no sample probe beside it; record while tf.data reads files (TFRecord, text or "
    "fixed-length records), launch the job with the sample probe on, or watch the script with --samples."
)


@dataclass(frozen=True, eq=False)
class FileSampling:
    """The per-file sampling distribution.

    Attributes:
        basis: ``samples`` when the probe counted examples, else ``reads``.
        table: One row per file, :data:`FILE_TABLE`.
        timeline: Samples per file over the steps, ``sample_history.TIMELINE_TABLE``; without the probe the reads of a
            log, by the step that ran meanwhile, else no rows.
        total_variation: Half the sum of absolute differences of observed and expected shares, 0 to 1; None if the
            expected shares are unknown.
        total_variation_ideal: The mean of the same number for an even sample of the same size (simulated).
        unopened: Number of files that gave no example; None if only readers are known, not the files there are.
        coverage_percent: Distinct records used over all records, percent; None without the probe.
        duplicates: Examples that were used again within their epoch's worth of samples; None without the probe, and where a
            random filter decides how long an epoch is.
        within_batch_entropy: Mean entropy of the files inside one batch, bits; None without the probe.
        total_variation_limit: What 95 of 100 even samples of the same size stay below; None as the ideal is.
        chi_square_per_df: Pearson's statistic over its degrees of freedom; None for one file, or as total_variation is.
        epochs_seen: Samples over records; None without the probe.
        mixing, mixing_ideal: How well the examples are mixed, and the same for a perfect shuffle; None without the
            probe.
        predicted: The mixing of the order that the options predict, without having read anything; None where the
            options are not known or the simulation would be too long.
        visible_percent: Records that the stages of the pipeline ever let through, as the options predict, percent; None
            where they leave out none permanently, or the options are not known.
        reachable_percent: Most of the data that a pipeline that is rebuilt again and again can reach, percent; None
            where it is built once, reaches all, or begins with other records each time.
        labels: Which labels the examples had; None where they have none.
        same_source: Views of one image inside a batch; None where each record gives one example.
        coverage: How much of the data was used over the steps, ``sample_history.COVERAGE_TABLE``.
        epochs: One row per epoch's worth of samples, ``sample_history.EPOCH_TABLE``.
        reads_by_epoch: Records that readers produced in each epoch, counted from 1; of a log, and only where its
            pipeline repeats.
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
    total_variation_limit: float | None = None
    chi_square_per_df: float | None = None
    epochs_seen: float | None = None
    mixing: Mixing | None = None
    mixing_ideal: Mixing | None = None
    predicted: Mixing | None = None
    visible_percent: float | None = None
    reachable_percent: float | None = None
    labels: LabelMix | None = None
    same_source: SameSource | None = None
    coverage: pa.Table = field(default_factory=lambda: tables.empty(COVERAGE_TABLE))
    epochs: pa.Table = field(default_factory=lambda: tables.empty(EPOCH_TABLE))
    reads_by_epoch: tuple[tuple[int, int], ...] = ()

    @property
    def worst_tenth(self) -> float | None:
        """Largest total variation of ten consecutive tenths: it shows a mix that is right only in the end."""
        return None if self.mixing is None else self.mixing.worst_tenth

    @property
    def worst_tenth_ideal(self) -> float | None:
        """The same for an even sample."""
        return None if self.mixing_ideal is None else self.mixing_ideal.worst_tenth


@dataclass(frozen=True)
class _Distances:
    """Whole-run distances from the expected shares; all None where these are unknown."""

    total_variation: float | None = None
    total_variation_ideal: float | None = None
    total_variation_limit: float | None = None
    chi_square_per_df: float | None = None


Predict: TypeAlias = Callable[[IntArray, int], ReadingOrder | None]
"""From the records of each file and a number of batches to the order that a pipeline's options give them."""


def measure_sampling(
    files: Sequence[DataFile],
    samples: pa.Table,
    reads: FileReads,
    predict: Predict | None = None,
    labels: LabelMix | None = None,
    views: int = 1,
    epoch: Epoch | None = None,
) -> FileSampling:
    """Put files, samples and reads side by side.

    Args:
        files: The job's data files; none if they are not known.
        samples: What the probe noted, of schema ``runs.run_tables.SAMPLES``; no rows without the probe.
        reads: What the traces say, merged over all windows.
        labels: Which labels the examples had, where they have any.
        views: Examples that become of one record; the records of the files are counted in them.
        predict: Simulates the order from the options of the job, where they are known.
        epoch: What the steps are sent of one pass over the files; None for all of their records.

    Raises:
        TraceIncompleteError: There are neither samples nor reads, or the samples contradict the files.
    """
    if files and samples.num_rows:
        sampling = replace(_by_samples(files, samples, _reads_of(files, reads), views, epoch), labels=labels)
        records = _records(files)
        if predict is None or records is None:
            return sampling
        batches = len(np.unique(tables.ints(samples, "step")))
        return _beside(sampling, predict(records, batches), records)
    if not reads.total:
        raise TraceIncompleteError(NO_SAMPLES)
    matched = _reads_of(files, reads)
    if files and matched is not None:
        return _by_reads(_file_table(files, matched, None), matched, _records(files))
    names = {name: name for name in reads.by_file} | name_readers(list(reads.by_reader))
    readers = sorted(names, key=names.__getitem__)
    counts = np.array([reads.by_file.get(name, 0) + reads.by_reader.get(name, 0) for name in readers], np.int64)
    table = _file_table([DataFile(names[name], None, 0) for name in readers], counts, None)
    return replace(
        _by_reads(table, counts, None),
        timeline=_reads_over_steps(reads, names),
        reads_by_epoch=tuple((epoch + 1, count) for epoch, count in sorted(reads.by_epoch.items())),
    )


def within_reach(sampling: FileSampling, reachable: int | None) -> FileSampling:
    """Note how many examples the pipeline can reach at most, where that is known and not all of them."""
    total = tables.floats(sampling.table, "records").sum()
    if reachable is None or not reachable < total:  # NaN where the records were not counted
        return sampling
    return replace(sampling, reachable_percent=100.0 * reachable / float(total))


def _reads_over_steps(reads: FileReads, names: dict[str, str]) -> pa.Table:
    """Lay what was read over the steps that ran meanwhile; no rows without steps."""
    if not reads.by_step:
        return tables.empty(TIMELINE_TABLE)
    place = {name: number for number, name in enumerate(names)}
    step, count = np.concatenate(list(reads.by_step.values())).T
    reader = np.repeat([place[name] for name in reads.by_step], list(map(len, reads.by_step.values())))
    return sample_history.over_steps(list(names.values()), step, reader, count)


def _by_samples(
    files: Sequence[DataFile], samples: pa.Table, reads: IntArray | None, views: int, epoch: Epoch | None
) -> FileSampling:
    step, file, record = (tables.ints(samples, name) for name in ("step", "file", "record"))
    counts = np.bincount(file, minlength=len(files)).astype(np.int64)
    names = [each.path for each in files]
    records = _records(files)
    if records is not None and (beyond := np.flatnonzero(record >= records[file])).size:
        row = int(beyond[0])
        where = files[int(file[row])]
        raise TraceIncompleteError(
            CONTRADICTION.format(path=where.path, records=where.records, number=int(record[row]) + 1)
        )
    sampling = FileSampling(
        basis="samples",
        table=_file_table(files, reads, counts),
        timeline=sample_history.over_steps(names, step, file),
        unopened=int((counts == 0).sum()),
        coverage_percent=None,
        duplicates=None,
        within_batch_entropy=float(batch_numbers(step, file, np.full(len(files), 1 / len(files)))[0].mean()),
        **vars(_distances(counts, records)),
    )
    if records is None:
        return sampling
    total = int(records.sum())
    epoch = epoch or Epoch(total)
    ids = file * (int(record.max()) + 1) + record
    batch_size = int(np.median(np.unique(step, return_counts=True)[1]))
    number = (np.cumsum(records) - records)[file] + record
    return replace(
        sampling,
        coverage_percent=100.0 * len(np.unique(ids)) / total,
        duplicates=None if epoch.is_drawn else repeats_within_epochs(ids, epoch.examples),
        epochs_seen=len(file) / epoch.examples,
        mixing=measure_mixing(step, file, record, records),
        mixing_ideal=ideal_mixing(batch_size, len(file), records),
        same_source=measure_same_source(step, number, total, views),
        coverage=sample_history.coverage(step, file, ids, total),
        epochs=sample_history.epochs(file, ids, records, epoch.examples),
    )


def _beside(sampling: FileSampling, order: ReadingOrder | None, records: IntArray) -> FileSampling:
    """Put what was predicted beside what came."""
    if order is None or not len(order.file):
        return sampling
    shares = np.bincount(order.file, minlength=len(records)) / len(order.file)
    covered = (
        np.searchsorted(first_uses(order.number), tables.ints(sampling.coverage, "samples"))
        * 100.0
        / int(records.sum())
    )
    found = sampling.same_source
    alike = None if found is None else measure_same_source(order.batch, order.number, int(records.sum()), found.views)
    return replace(
        sampling,
        same_source=None if found is None or alike is None else replace(found, predicted=alike.per_batch),
        predicted=measure_mixing(order.batch, order.file, order.record, records),
        visible_percent=None if order.visible is None else 100.0 * order.visible / int(records.sum()),
        table=tables.replace_column(sampling.table, "predicted_share", shares),
        coverage=tables.replace_column(sampling.coverage, "predicted_percent", covered),
    )


def _by_reads(table: pa.Table, counts: IntArray, records: IntArray | None) -> FileSampling:
    return FileSampling(
        basis="reads",
        table=table,
        timeline=tables.empty(TIMELINE_TABLE),
        unopened=None if records is None else int((counts == 0).sum()),
        coverage_percent=None,
        duplicates=None,
        **vars(_distances(counts, records)),
    )


def _records(files: Sequence[DataFile]) -> IntArray | None:
    """Return the records of each file, or None if one is not counted (or all are empty)."""
    records = [file.records for file in files]
    if not records or None in records or not any(records):
        return None
    return np.array(records, np.int64)


def _distances(counts: IntArray, records: IntArray | None) -> _Distances:
    if records is None or not counts.any():
        return _Distances()
    shares = records / records.sum()
    even = even_total_variations(records, int(counts.sum()))
    return _Distances(
        total_variation(counts, shares),
        float(even.mean()),
        float(np.percentile(even, 95)),
        chi_square_per_df(counts, shares),
    )


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


def _file_table(files: Sequence[DataFile], reads: IntArray | None, samples: IntArray | None) -> pa.Table:
    records, sizes = _records(files), np.array([file.size_bytes for file in files], np.int64)
    basis = reads if samples is None else samples
    assert basis is not None
    return tables.build(
        FILE_TABLE,
        len(files),
        file=[file.path for file in files],
        records=records,
        size_bytes=sizes if sizes.any() else None,
        reads=reads,
        samples=samples,
        expected_share=None if records is None else records / records.sum(),
        expected_share_by_bytes=sizes / sizes.sum() if sizes.any() else None,
        observed_share=basis / max(1, int(basis.sum())),
        predicted_share=None,
    )


def _measure(job: JobView) -> FileSampling:
    found = job.tables
    reads = job.reads.without(found.held_out_files)
    labels = sample_history.measure_labels(found.labels)
    sampling = measure_sampling(
        found.trained_files, found.samples, reads, found.predict, labels, found.views, found.epoch
    )
    return within_reach(sampling, found.reachable)


def _of_log(reads: FileReads | None) -> FileSampling:
    if reads is None:
        raise TraceIncompleteError(only_derived("which files were read is").reason)
    return measure_sampling([], tables.empty(SAMPLES.schema), reads)


def sampling_to_json(sampling: FileSampling) -> Document:
    return {
        "basis": sampling.basis,
        "files": [_shares_to_percent(row) for row in sampling.table.to_pylist()],
        "total_variation": sampling.total_variation,
        "total_variation_ideal": sampling.total_variation_ideal,
        "unopened": sampling.unopened,
        "reachable_percent": sampling.reachable_percent,
        "coverage_percent": sampling.coverage_percent,
        "duplicates": sampling.duplicates,
        "within_batch_entropy": sampling.within_batch_entropy,
        "worst_tenth": sampling.worst_tenth,
        "worst_tenth_ideal": sampling.worst_tenth_ideal,
        "total_variation_limit": sampling.total_variation_limit,
        "chi_square_per_df": sampling.chi_square_per_df,
        "epochs_seen": sampling.epochs_seen,
        "mixing": None if sampling.mixing is None else vars(sampling.mixing),
        "mixing_ideal": None if sampling.mixing_ideal is None else vars(sampling.mixing_ideal),
        "visible_percent": sampling.visible_percent,
        "predicted": None if sampling.predicted is None else vars(sampling.predicted),
        "same_source": None if sampling.same_source is None else vars(sampling.same_source),
        "labels": None if sampling.labels is None else _labels_to_json(sampling.labels),
        "coverage": sampling.coverage.to_pylist(),
        "epochs": sampling.epochs.to_pylist(),
        "reads_by_epoch": [{"epoch": epoch, "reads": reads} for epoch, reads in sampling.reads_by_epoch],
    }


def _labels_to_json(mix: LabelMix) -> Document:
    return {
        "labels": mix.labels,
        "batch_total_variation": mix.batch_total_variation,
        "batch_total_variation_ideal": mix.batch_total_variation_ideal,
    }


def _shares_to_percent(row: Document) -> Document:
    return {name: 100.0 * value if "_share" in name and value is not None else value for name, value in row.items()}


FILE_SAMPLING = Analysis(
    FileSampling,
    per_job=PerJob(_measure, NO_SAMPLES, of_log=_of_log),
    to_json=sampling_to_json,
)
