"""What is worth knowing about where the examples came from.

A short run is judged by what it could have seen: distances count beyond what an even sample of the same size shows by
chance, and a run that did not see a whole epoch is not blamed for the files that it has not reached yet. Where the stages
of the pipeline leave data out permanently (take, skip, shards), that is said, and the rest is not held against the run.
"""

import numpy as np

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.verdict.verdict import Evidence, Finding
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.statistics.mixing import Mixing
from pipeline_lab.statistics.sampling import total_variation
from pipeline_lab.units import format_count, format_percent

SKEW_BEYOND_CHANCE = 0.05
"""Share of the samples that is more than their file's share, beyond what chance gives, that is worth a finding."""

NEIGHBORS_BEYOND_CHANCE = 0.1
STORED_ORDER = 0.5
"""Displacement of the examples, where a random order has 1 and the stored one 0."""

LOW_COVERAGE_PERCENT = 90.0
"""Of the records, after an epoch's worth of samples."""

REPEATED_PERCENT = 1.0

BUCKETS = ("GroupByWindowDataset", "GroupByWindowDatasetV2")
"""Datasets that put examples of about one length together."""

MUCH_PADDING_PERCENT = 40.0
"""Of the elements that the steps were sent."""


def sampling_skew(results: Results) -> Finding | None:
    """Say that files were not sampled by their size: over the run, or in a part of it."""
    distance = _distance(results.file_sampling)
    if distance is None:
        return None
    sampling = distance.sampling
    if not distance.is_uneven:
        return _skew_in_between(sampling)
    if _is_whole_epoch(sampling):
        return _skew("The files were not sampled by their size", distance.measured, distance.ideal)
    opened = _variation_of_opened(sampling)
    if not _is_steady(sampling) or opened < distance.ideal + SKEW_BEYOND_CHANCE:
        return None
    begin = f"{_saw(sampling)}, but the files that it read were not sampled by their size"
    return _skew(begin, opened, distance.ideal)


def weak_shuffle(results: Results) -> Finding | None:
    """Say that the examples come nearly in the order in which they are stored."""
    distance = _distance(results.file_sampling)
    if distance is None:
        return None
    sampling = distance.sampling
    mixing, ideal = sampling.mixing, sampling.mixing_ideal
    if mixing is None or ideal is None or mixing.worst_tenth is None:
        return None
    if distance.is_uneven and not _is_whole_epoch(sampling) and not _is_steady(sampling):
        opened = int((tables.ints(sampling.table, "samples") > 0).sum())
        drift = "" if mixing.drift is None else _DRIFT.format(share=format_percent(100 * mixing.drift))
        return Finding(
            "weak-shuffle",
            f"{_saw(sampling)}, and its files came one after another: {opened} of {sampling.table.num_rows} have given "
            f"an example so far{drift}; interleave the files, or use a larger shuffle buffer.",
            _order_evidence(mixing, ideal),
        )
    worst = _uneven_tenths(mixing, ideal)
    if worst is not None and _follow_each_other(mixing, ideal):
        tenth, even = (format_percent(100 * share) for share in worst)
        return Finding(
            "weak-shuffle",
            "Files come one after another, so that their shares are right only over the whole run: in its worst 10 %, "
            f"sampling skew (total variation distance) is {tenth}, where an even sample would have {even}; interleave "
            "the files, or use a larger shuffle buffer.",
            _order_evidence(mixing, ideal),
        )
    if mixing.displacement < STORED_ORDER and worst is None:
        return Finding(
            "weak-shuffle",
            "The examples come nearly in the order in which they are stored: their displacement is only "
            f"{format_percent(100 * mixing.displacement)} of that of a random order; use a larger shuffle "
            "buffer.",
            _order_evidence(mixing, ideal),
        )
    return None


def same_source(results: Results) -> Finding | None:
    """Say that the views of an image come in one batch."""
    sampling = results.file_sampling
    found = None if isinstance(sampling, Unavailable) else sampling.same_source
    if found is None or not found.is_weak:
        return None
    return Finding(
        "same-source",
        f"In a batch of {found.batch_size}, {found.per_batch:.3g} examples share their image with another one, where a "
        f"perfect shuffle would have {found.expected:.3g}; put a shuffle after views, with a larger buffer.",
        (Evidence("share their image", f"{found.per_batch:.3g}"), Evidence("perfect shuffle", f"{found.expected:.3g}")),
    )


def low_coverage(results: Results) -> Finding | None:
    """Say that files or records that should have been reached were not."""
    sampling = results.file_sampling
    if isinstance(sampling, Unavailable) or sampling.coverage_percent is None:
        return None
    samples, records = tables.ints(sampling.table, "samples"), tables.ints(sampling.table, "records")
    evidence = (
        Evidence("records used", format_percent(sampling.coverage_percent)),
        Evidence("samples", format_count(samples.sum())),
        Evidence("records", format_count(records.sum())),
    )
    if sampling.reachable_percent is not None:
        return Finding(
            "low-coverage",
            "The pipeline is rebuilt after every evaluation and begins with the same examples each time: at most "
            f"{format_percent(sampling.reachable_percent)} of the data can be seen, however long the job trains; it used "
            f"{format_percent(sampling.coverage_percent)}. Keep the pipeline, or visit the files in a new order each time.",
            evidence,
        )
    if sampling.visible_percent is not None:
        return Finding(
            "low-coverage",
            f"This run could see only {format_percent(sampling.visible_percent)} of the data, because stages of its "
            f"pipeline (take, skip, shards) leave out the rest; it used {format_percent(sampling.coverage_percent)}.",
            evidence,
        )
    missed = np.power(1.0 - records / records.sum(), samples.sum())[records > 0].sum()
    if (unopened := int(((samples == 0) & (records > 0)).sum())) and missed < 0.5:
        begin = "" if _is_whole_epoch(sampling) else f"{_saw(sampling)}, and "
        return Finding(
            "low-coverage",
            f"{begin}{unopened} of {len(samples)} files gave no example, although as many samples spread evenly would "
            "have reached every file; shuffle the file names, or read more files at a time.",
            evidence,
        )
    if samples.sum() >= records.sum() and sampling.coverage_percent < LOW_COVERAGE_PERCENT:
        return Finding(
            "low-coverage",
            f"After an epoch's worth of samples only {format_percent(sampling.coverage_percent)} of the records had "
            "been used; the others never reached the model.",
            evidence,
        )
    return None


def duplicates(results: Results) -> Finding | None:
    """Say that records were used again before their epoch was over."""
    sampling = results.file_sampling
    if isinstance(sampling, Unavailable) or not sampling.duplicates or _sees_a_part(sampling):
        return None
    if _goes_by_length(results.written):
        return None
    percent = 100.0 * sampling.duplicates / tables.ints(sampling.table, "samples").sum()
    if percent < REPEATED_PERCENT:
        return None
    return Finding(
        "duplicates",
        f"{format_percent(percent)} of the examples were used again before their epoch was over, while others had to "
        "wait; put repeat after the shuffle, not inside an interleave.",
        (Evidence("repeated examples", format_count(sampling.duplicates)),),
    )


def _goes_by_length(written: WrittenPipeline | Unavailable) -> bool:
    """Say whether examples wait in a bucket for others of their length, which lets one epoch run into the next."""
    return not isinstance(written, Unavailable) and any(stage.op in BUCKETS for stage in written.stages)


def padding_waste(results: Results) -> Finding | None:
    """Say that much of what the steps were sent was padding."""
    padding = results.padding
    if isinstance(padding, Unavailable) or padding.percent < MUCH_PADDING_PERCENT:
        return None
    return Finding(
        "padding-waste",
        f"{format_percent(padding.percent)} of what the steps were sent was padding, copied and computed for nothing; put "
        "examples of about one length together (bucket_by_sequence_length, with more buckets), or use ragged batches.",
        (
            Evidence(
                "padding", f"{format_count(padding.padding_elements)} of {format_count(padding.elements)} elements"
            ),
            Evidence("examples per step", f"{padding.examples_per_step:.3g}"),
        ),
    )


_DRIFT = ", and {share} of the second half of the run is made up differently from the first"


@dataclass(frozen=True)
class _Distance:
    """How far a run's samples are from their files' shares, and what chance alone gives: one says nothing without the other.

    Attributes:
        sampling: The samples.
        measured, ideal: Total variation of the run and of an even sample.
        limit: What an even sample hardly ever exceeds; None if it was not simulated.
    """

    sampling: FileSampling
    measured: float
    ideal: float
    limit: float | None

    @property
    def is_uneven(self) -> bool:
        beyond_chance = self.measured >= self.ideal + SKEW_BEYOND_CHANCE
        return beyond_chance and (self.limit is None or self.measured >= self.limit)


def _distance(sampling: FileSampling | Unavailable) -> _Distance | None:
    """Return the distance of samples; None where it was not measured, or a part of the data is left out permanently."""
    if isinstance(sampling, Unavailable) or sampling.basis != "samples" or _sees_a_part(sampling):
        return None
    measured, ideal = sampling.total_variation, sampling.total_variation_ideal
    if measured is None or ideal is None:
        return None
    return _Distance(sampling, measured, ideal, sampling.total_variation_limit)


def _sees_a_part(sampling: FileSampling) -> bool:
    """Say whether the pipeline leaves out a part of the data permanently: it is that which is worth saying, not what follows."""
    return sampling.visible_percent is not None or sampling.reachable_percent is not None


def _is_whole_epoch(sampling: FileSampling) -> bool:
    return sampling.epochs_seen is None or sampling.epochs_seen >= 1


def _is_steady(sampling: FileSampling) -> bool:
    """Say whether both halves of the run are made up alike, so that more of the epoch would look the same."""
    mixing, ideal = sampling.mixing, sampling.mixing_ideal
    if mixing is None or ideal is None or mixing.drift is None or ideal.drift is None:
        return False
    return mixing.drift < ideal.drift + 2 * SKEW_BEYOND_CHANCE


def _variation_of_opened(sampling: FileSampling) -> float:
    """Return the distance from the shares of the files that gave an example at all."""
    samples, records = tables.ints(sampling.table, "samples"), tables.ints(sampling.table, "records")
    opened = samples > 0
    return total_variation(samples[opened], records[opened] / records[opened].sum())


def _uneven_tenths(mixing: Mixing, ideal: Mixing) -> tuple[float, float] | None:
    """Return the distance of the worst 10 % of the run and that of an even sample where it is more than chance, else None."""
    worst, even = mixing.worst_tenth, ideal.worst_tenth
    if worst is None or even is None or worst < even + 2 * SKEW_BEYOND_CHANCE:
        return None
    return worst, even


def _follow_each_other(mixing: Mixing, ideal: Mixing) -> bool:
    if mixing.same_file_neighbours is None or ideal.same_file_neighbours is None:
        return False
    return mixing.same_file_neighbours >= ideal.same_file_neighbours + NEIGHBORS_BEYOND_CHANCE


def _skew_in_between(sampling: FileSampling) -> Finding | None:
    mixing, ideal = sampling.mixing, sampling.mixing_ideal
    tenths = None if mixing is None or ideal is None else _uneven_tenths(mixing, ideal)
    if mixing is None or ideal is None or tenths is None or _follow_each_other(mixing, ideal):
        return None
    worst, even = tenths
    return Finding(
        "sampling-skew",
        f"The files' shares are right only over the whole run: in its worst 10 %, sampling skew "
        f"(total variation distance) is {format_percent(100 * worst)}, where an even sample would have {format_percent(100 * even)}.",
        (
            Evidence("total variation, worst 10 % of the run", f"{worst:.3f}"),
            Evidence("of an even sample", f"{even:.3f}"),
        ),
    )


def _skew(begin: str, distance: float, ideal: float) -> Finding:
    return Finding(
        "sampling-skew",
        f"{begin}: {format_percent(100 * distance)} of the examples were more than their file's share, where "
        f"an even sample would have {format_percent(100 * ideal)}.",
        (Evidence("total variation", f"{distance:.3f}"), Evidence("of an even sample", f"{ideal:.3f}")),
    )


def _saw(sampling: FileSampling) -> str:
    part = "a part" if sampling.epochs_seen is None else format_percent(100 * sampling.epochs_seen)
    return f"This run saw only {part} of an epoch"


def _order_evidence(mixing: Mixing, ideal: Mixing) -> tuple[Evidence, ...]:
    return (
        Evidence("file entropy of a batch", f"{mixing.batch_entropy:.2f} of {ideal.batch_entropy:.2f} bits"),
        Evidence("displacement", f"{format_percent(100 * mixing.displacement)} of a random order's"),
    )
