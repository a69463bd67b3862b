import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.race_options import RaceOptions, read_race_options
from pipeline_lab.options.run_options import RunOptions, set_options
from tests.support.presets import AUDIO_BUCKETED, AUDIO_PADDED, BASELINE, OPTIMISED, SYNTHETIC

ARMS = (BASELINE.options, OPTIMISED.options)


def test_options_survive_json() -> None:
    options = RaceOptions(arms=ARMS, pairs=40)
    document = options.model_dump(mode="json")
    assert read_race_options(document) == options


def test_arms_of_one_name_are_told_apart() -> None:
    assert RaceOptions(arms=ARMS).arm_names == ("baseline", "optimised")
    assert RaceOptions(arms=(ARMS[0], ARMS[0])).arm_names == ("baseline (A)", "baseline (B)")
    unnamed = ARMS[0].model_copy(update={"name": ""})
    assert RaceOptions(arms=(unnamed, unnamed)).arm_names == ("arm A", "arm B")


def test_a_race_is_labelled_by_its_name_or_its_arms() -> None:
    assert RaceOptions(arms=ARMS).label == "baseline against optimised"
    assert RaceOptions(arms=ARMS, name="prefetch").label == "prefetch"


def test_one_arm_is_no_race() -> None:
    with pytest.raises(OptionsError, match="arms"):
        read_race_options({"arms": [BASELINE.options.model_dump(mode="json")]})


def test_data_that_end_cannot_race() -> None:
    finite = set_options(SYNTHETIC.options, [("pipeline.repeat.count", "3")])
    with pytest.raises(OptionsError, match="add a repeat stage without a count"):
        _race(SYNTHETIC.options, finite)


def test_all_arms_train_on_one_device() -> None:
    with pytest.raises(OptionsError, match="one device"):
        _race(SYNTHETIC.options, set_options(SYNTHETIC.options, [("training.device", "cpu")]))


def test_arms_on_the_emulated_accelerator_take_steps_of_the_same_times() -> None:
    emulated = set_options(SYNTHETIC.options, [("training.device", "emulated")])
    assert _race(emulated, set_options(emulated, [("training.seed", "1")])), "times that do not vary need no seed"
    varied = set_options(emulated, [("training.step_variation_percent", "10")])
    for other in (set_options(emulated, [("training.step_ms", "21")]), varied):
        with pytest.raises(OptionsError, match="one emulated accelerator"):
            _race(emulated, other)
    with pytest.raises(OptionsError, match="one emulated accelerator"):
        _race(varied, set_options(varied, [("training.seed", "1")]))


def _race(*arms: RunOptions) -> RaceOptions:
    return read_race_options({"arms": [arm.model_dump(mode="json") for arm in arms]})


def test_fit_cannot_take_turns() -> None:
    with pytest.raises(OptionsError, match=r"synthetic trains by Model\.fit, which cannot take turns"):
        _race(SYNTHETIC.options, set_options(SYNTHETIC.options, [("training.loop", "keras_fit")]))


def test_replicas_cannot_race() -> None:
    with pytest.raises(OptionsError, match="optimised divides its batches among 2 replicas"):
        _race(ARMS[0], set_options(ARMS[1], [("training.replicas", "2")]))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (("training.evaluate_every", "5"), "which a race has no place for"),
        (("training.page_cache", "cold"), "again and again"),
    ],
)
def test_a_race_neither_evaluates_nor_reads_cold(setting: tuple[str, str], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence):
        _race(SYNTHETIC.options, set_options(SYNTHETIC.options, [setting]))


def test_batches_of_different_sizes_are_compared_per_example() -> None:
    twice = set_options(ARMS[1], [("pipeline.batch.size", "256")])
    assert (_race(*ARMS).per, _race(*ARMS).examples_per_step) == ("step", None)
    assert (_race(ARMS[0], twice).per, _race(ARMS[0], twice).examples_per_step) == ("example", (128, 256))


def test_buckets_of_several_sizes_race_only_among_themselves() -> None:
    uneven = set_options(AUDIO_BUCKETED.options, [("pipeline.bucket_by_sequence_length.batch_sizes", "64,32,16,8,8")])
    assert _race(AUDIO_PADDED.options, AUDIO_BUCKETED.options).per == "step"
    assert _race(uneven, uneven).per == "step"
    with pytest.raises(OptionsError, match="the batches of audio-bucketed hold 8 to 64 examples"):
        _race(AUDIO_PADDED.options, uneven)
