import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import BASELINE, OPTIMISED, SYNTHETIC
from pipeline_lab.options.race import RaceOptions, read_race_options
from pipeline_lab.options.run import RunOptions, set_option

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
    finite = set_option(SYNTHETIC.options, "pipeline.repeat.count", "3")
    with pytest.raises(OptionsError, match="add a repeat stage without a count"):
        _race(SYNTHETIC.options, finite)


def test_all_arms_train_on_one_device() -> None:
    with pytest.raises(OptionsError, match="one device"):
        _race(SYNTHETIC.options, set_option(SYNTHETIC.options, "training.device", "cpu"))


def _race(*arms: RunOptions) -> RaceOptions:
    return read_race_options({"arms": [arm.model_dump(mode="json") for arm in arms]})


def test_fit_cannot_take_turns() -> None:
    with pytest.raises(OptionsError, match=r"synthetic trains by Model\.fit, which cannot take turns"):
        _race(SYNTHETIC.options, set_option(SYNTHETIC.options, "training.loop", "keras_fit"))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (("training.evaluate_every", "5"), "which a race has no place for"),
        (("training.page_cache", "cold"), "again and again"),
    ],
)
def test_a_race_neither_evaluates_nor_reads_cold(setting: tuple[str, str], sentence: str) -> None:
    with pytest.raises(OptionsError, match=sentence):
        _race(SYNTHETIC.options, set_option(SYNTHETIC.options, *setting))
