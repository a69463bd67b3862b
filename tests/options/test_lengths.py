from typing import Any

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import read_options
from pipeline_lab.stages.batches import BucketStage
from pipeline_lab.workloads.audio import AudioWorkload

READ, PARSE = {"stage": "read"}, {"stage": "parse"}
PADDED = {"stage": "batch", "mode": "padded_batch", "size": 4}
BUCKETS = {"stage": "bucket_by_sequence_length"}


def audio(*stages: dict[str, Any], **workload: Any) -> dict[str, Any]:
    return {"workload": {"kind": "audio", **workload}, "pipeline": {"stages": list(stages)}}


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (
            audio(READ, PARSE, {**BUCKETS, "boundaries_s": "10,40,20,80"}),
            "boundaries_s must rise, but 20 comes after 40",
        ),
        (
            audio(READ, PARSE, {**BUCKETS, "boundaries_s": "10,10,20,80"}),
            "boundaries_s must rise, but 10 comes after 10",
        ),
        (audio(READ, PARSE, {**BUCKETS, "batch_sizes": "32,16"}), "4 boundaries make 5 buckets, but batch_sizes has 2"),
        (
            audio(READ, PARSE, {**BUCKETS, "boundaries_s": "ten"}),
            "'ten' is not a list of numbers; write them like 10,20,40",
        ),
        (
            audio(READ, PARSE, {**BUCKETS, "boundaries_s": "10,10.01,20,40"}),
            r"the boundaries 10 and 10.01 s lie in one frame \(128 samples\)",
        ),
        (
            audio(READ, PARSE, {**PADDED, "mode": "ragged_batch"}, {"stage": "unbatch"}, PADDED),
            "tf.data cannot batch again what it takes out of ragged batches; remove unbatch",
        ),
        (audio(READ, PADDED, PARSE), "put parse before batch"),
        (audio(READ, PARSE, BUCKETS, PADDED), "batch takes examples, and batches come"),
        (audio(READ, PARSE, {"stage": "batch"}), "set mode = padded_batch or ragged_batch"),
        (audio(READ, PARSE, PADDED, data="folder"), "data = folder needs a folder with a subfolder for each class"),
        (audio(READ, PARSE, PADDED, folder="/clips"), "a folder only applies to data = folder, not to data = tones"),
        (audio(READ, PARSE, PADDED, data="folder", folder="/clips/*"), r"name a folder without them"),
        (audio(READ, PARSE, PADDED, longest_s=2), r"the longest clips \(2 s\) are shorter than the shortest"),
        (
            {"workload": {"kind": "synthetic"}, "pipeline": {"stages": [READ, BUCKETS]}},
            "the synthetic workload has none",
        ),
    ],
)
def test_batches_that_do_not_suit_the_lengths_are_refused_in_one_sentence(document: Any, sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence) as caught:
        read_options(document)
    assert str(caught.value).endswith(".")


def test_boundaries_are_frames_of_the_clips() -> None:
    workload = AudioWorkload(sample_rate_hz=1000, frame_samples=100)
    stage = BucketStage(boundaries_s=(1, 2.05), batch_sizes=(8, 4, 2))
    assert workload.boundaries_in_frames(stage) == (10, 21)
    assert stage.size == 5  # of 8, 4 and 2, the mean


def test_half_of_the_clips_are_shorter_than_the_geometric_mean() -> None:
    workload = AudioWorkload(shortest_s=1, longest_s=1)
    assert workload.mean_clip_s == 1
    assert AudioWorkload(shortest_s=5, longest_s=180).mean_clip_s == pytest.approx(48.8, abs=0.1)


def test_clips_of_a_folder_are_counted_when_the_job_starts() -> None:
    assert read_options(audio(READ, PARSE, PADDED)).records == 320
    assert read_options(audio(READ, PARSE, PADDED, data="folder", folder="/clips")).records is None
