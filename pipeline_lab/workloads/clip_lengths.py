"""How long the clips of the audio workload are, and what its batches will hold of them, before anything runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline_lab.stages.batches import BatchStage, BucketStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.statistics.streams import IntArray

if TYPE_CHECKING:
    from pipeline_lab.workloads.audio import AudioWorkload


DRAWN = 20_000
"""Clips that a prediction draws."""


def clip_lengths_s(workload: "AudioWorkload", generator: np.random.Generator, count: int) -> list[float]:
    """Draw the lengths of clips, s; those of a class are the first that a generator draws whose seed is its number."""
    logarithms = generator.uniform(np.log(workload.shortest_s), np.log(workload.longest_s), count)
    lengths: list[float] = np.exp(logarithms).tolist()
    return lengths


def buckets_of(workload: "AudioWorkload", stage: BucketStage, sizes: Sequence[int]) -> IntArray:
    """Return the bucket that each clip falls into, class by class, shape (clips,).

    Args:
        workload: Where the clips come from.
        stage: What sorts them.
        sizes: Clips of each class.
    """
    seconds = [clip_lengths_s(workload, np.random.default_rng(label), count) for label, count in enumerate(sizes)]
    samples = np.round(np.concatenate(seconds) * workload.sample_rate_hz)
    frames = np.ceil(samples / workload.frame_samples).astype(np.int64)
    return _sort_in(frames, stage, workload)


def predict_padding(stage: Stage, workload: "AudioWorkload") -> float | None:
    """Return the share of padding in the elements that a stage's batches will hold, 0 to 1.

    Args:
        stage: What puts shuffled clips into batches; any other has no padding.
        workload: Where they come from; None is returned for a user's own, whose lengths are not known.
    """
    if workload.data != "tones":
        return None
    if not isinstance(stage, BatchStage | BucketStage) or getattr(stage, "mode", "") == "ragged_batch":
        return 0.0
    generator = np.random.default_rng(0)
    seconds = np.array(clip_lengths_s(workload, generator, DRAWN))
    frames = np.ceil(seconds * workload.sample_rate_hz / workload.frame_samples).astype(np.int64)
    if isinstance(stage, BatchStage):
        return padding_share([_batches(frames, stage.size)])
    bucket = _sort_in(frames, stage, workload)
    return padding_share([_batches(frames[bucket == number], size) for number, size in enumerate(stage.batch_sizes)])


def padding_share(batches: list[IntArray]) -> float:
    """Return the share of padding where each batch is filled up to its longest.

    Args:
        batches: Lengths, arrays of shape (batches, examples).
    """
    sent = sum(int(each.max(axis=1).sum()) * each.shape[1] for each in batches if each.size)
    return 1 - sum(int(each.sum()) for each in batches) / sent if sent else 0.0


def _sort_in(frames: IntArray, stage: BucketStage, workload: "AudioWorkload") -> IntArray:
    """Return the bucket of each length."""
    return np.searchsorted(workload.boundaries_in_frames(stage), frames, side="right").astype(np.int64)


def _batches(lengths: IntArray, size: int) -> IntArray:
    """Return whole batches; a single short one where there are too few for that."""
    whole = len(lengths) // size * size
    return lengths[:whole].reshape(-1, size) if whole else lengths.reshape(1, -1)
