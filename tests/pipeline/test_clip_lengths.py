import numpy as np
import pytest

from pipeline_lab.options.run_options import RunOptions, read_options, set_options
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.pipeline.predicted_order import predict_order, predict_run
from pipeline_lab.stages.stage_values import Remark, Weight
from pipeline_lab.workloads.clip_lengths import padding_share
from tests.support.presets import AUDIO_BUCKETED, AUDIO_PADDED, AUDIO_PRESETS


def findings(options: RunOptions, kind: str) -> list[Remark]:
    return [found for found in lint_pipeline(options) if found.kind == kind]


def test_each_batch_is_filled_up_to_its_longest() -> None:
    assert padding_share([np.array([[1, 3], [2, 2]])]) == pytest.approx(1 - 8 / 10)
    assert padding_share([np.array([[1, 3]]), np.array([[5]])]) == pytest.approx(1 - 9 / 11)
    assert padding_share([]) == 0


def test_the_form_says_how_much_will_be_padding() -> None:
    (padded,), (bucketed,), (ragged,) = (findings(each.options, "padding") for each in AUDIO_PRESETS)
    assert (padded.weight, bucketed.weight, ragged.weight) == (Weight.ADVICE, Weight.FACT, Weight.FACT)
    assert "About 69.9 % of what the steps are sent will be padding" in padded.sentence
    assert "About 28.6 %" in bucketed.sentence
    assert "no padding" in ragged.sentence


def test_clips_of_one_length_need_no_padding() -> None:
    same = set_options(AUDIO_PADDED.options, [("workload.shortest_s", "60"), ("workload.longest_s", "60")])
    (found,) = findings(same, "padding")
    assert "no padding" in found.sentence


def test_padding_makes_batches_larger() -> None:
    sizes = [each.options.elements[-1].size_bytes or 0 for each in AUDIO_PRESETS]
    assert sizes[0] / sizes[2] == pytest.approx(1 / (1 - 0.699), rel=0.01)
    assert sizes[0] > 2 * sizes[1] > 2 * sizes[2]


def test_remainders_of_buckets_are_the_rare_lengths() -> None:
    dropping = set_options(AUDIO_BUCKETED.options, [("pipeline.bucket_by_sequence_length.drop_remainder", "true")])
    assert not findings(dropping, "dropped-lengths")  # an endless repeat stands before it
    once = set_options(dropping, [("pipeline.repeat.count", "2")])
    (found,) = findings(once, "dropped-lengths")
    assert "up to 31 clips of each bucket" in found.sentence


def test_an_order_that_goes_by_lengths_is_predicted_where_they_are_known() -> None:
    clips, options = np.full(8, 40), AUDIO_BUCKETED.options
    assert predict_order(AUDIO_PADDED.options.pipeline, clips, 10, cores=2) is not None
    assert predict_order(options.pipeline, clips, 10, cores=2) is None
    order, buckets = (
        predict_run(options, clips, 30, cores=2),
        options.workload.buckets(options.pipeline, options.file_sizes),
    )
    assert order is not None
    assert buckets is not None
    of_batch = buckets[order.number].reshape(30, 32)
    assert (of_batch == of_batch[:, :1]).all(), "a batch holds clips of one bucket"
    assert set(of_batch[:, 0]) == set(range(5))


def test_clips_of_ones_own_have_no_known_bucket() -> None:
    own = set_options(AUDIO_BUCKETED.options, [("workload.data", "folder"), ("workload.folder", "/clips")])
    assert own.workload.buckets(own.pipeline, own.file_sizes) is None
    assert AUDIO_PADDED.options.workload.buckets(AUDIO_PADDED.options.pipeline, AUDIO_PADDED.options.file_sizes) is None


def test_what_is_kept_behind_the_batch_is_mostly_padding() -> None:
    document = AUDIO_PADDED.options.model_dump(mode="json")
    stages = document["pipeline"]["stages"]
    document["pipeline"]["stages"] = [stages[0], stages[3], stages[4], {"stage": "cache"}, stages[2]]
    (found,) = findings(read_options(document), "kept-padding")
    assert (found.stage, found.weight) == (3, Weight.ADVICE)
    assert "about 69.9 % of what it keeps is padding" in found.sentence
    document["pipeline"]["stages"] = [stages[0], stages[3], {"stage": "cache"}, stages[4], stages[2]]
    assert not findings(read_options(document), "kept-padding")
