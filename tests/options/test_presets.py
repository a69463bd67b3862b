import re

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.figures.theme import THEMES
from pipeline_lab.options.presets import PRESET_GROUPS, PRESETS, Preset, find_preset
from pipeline_lab.options.run_options import read_options
from tests.support.presets import BASELINE, OPTIMISED


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_found_by_name_and_survives_json(preset: Preset) -> None:
    assert find_preset(preset.name) is preset
    assert preset.options.name == preset.name
    assert preset.question.endswith(".")
    assert read_options(preset.options.to_json()) == preset.options


def test_names_are_unique() -> None:
    assert len({preset.name for preset in PRESETS}) == len(PRESETS)


def test_the_classic_pair_differs_in_the_pipeline_only() -> None:
    one, other = BASELINE.options, OPTIMISED.options
    assert (one.workload, one.training, one.profiling) == (other.workload, other.training, other.profiling)
    assert one.pipeline.batch_size == other.pipeline.batch_size == 128
    assert one.pipeline.find("augment").model_dump(exclude={"num_parallel_calls"}) == other.pipeline.find(
        "augment"
    ).model_dump(exclude={"num_parallel_calls"})


def test_every_preset_has_a_question_of_one_line() -> None:
    assert all(len(preset.headline) <= 120 and preset.headline.endswith("?") for preset in PRESETS)


@pytest.mark.parametrize(("name", "meant"), [("basline", " Did you mean baseline?"), ("zzz", "")])
def test_an_unknown_preset_is_answered_with_the_closest_one(name: str, meant: str) -> None:
    sentence = f"'{name}' is not a preset; `pipeline-lab presets` lists them.{meant}"
    with pytest.raises(OptionsError, match=f"^{re.escape(sentence)}$"):
        find_preset(name)


def test_each_group_has_a_picture_in_the_colors_of_charts() -> None:
    for group in PRESET_GROUPS:
        assert group.picture
        for row in group.picture:
            assert sum(percent for _, percent in row) <= 100
            assert {kind for kind, _ in row} <= set(THEMES["light"].categories)
