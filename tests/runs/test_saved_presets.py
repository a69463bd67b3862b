import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.runs.saved_presets import all_presets, find_any_preset, remove_preset, save_preset, saved_presets
from pipeline_lab.runs.store import RunStore
from tests.support.presets import BASELINE, OPTIMISED


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "profiles")


def test_a_kept_preset_stands_behind_the_bundled_ones_and_is_no_run(store):
    save_preset(store, "mine", OPTIMISED.options)
    assert [preset.name for preset in all_presets(store)][-1] == "mine"
    found = find_any_preset(store, "mine").options
    assert (found.name, found.pipeline) == ("mine", OPTIMISED.options.pipeline)
    assert store.runs() == []


def test_keeping_again_replaces_and_removing_forgets(store):
    save_preset(store, "mine", OPTIMISED.options)
    save_preset(store, "mine", BASELINE.options)
    assert find_any_preset(store, "mine").options.pipeline == BASELINE.options.pipeline
    remove_preset(store, "mine")
    assert saved_presets(store) == []
    with pytest.raises(OptionsError, match="no saved preset"):
        remove_preset(store, "mine")


@pytest.mark.parametrize("name", ["", "..", "a/b", "Upper", "-x", "x" * 65, "baseline"])
def test_a_name_that_cannot_be_kept_is_one_sentence(store, name):
    with pytest.raises(OptionsError):
        save_preset(store, name, OPTIMISED.options)
    assert not store.presets.exists() or not list(store.presets.iterdir())


def test_damaged_files_and_those_with_a_bundled_name_are_left_out(store):
    save_preset(store, "mine", OPTIMISED.options)
    (store.presets / "torn.json").write_text("{")
    (store.presets / "baseline.json").write_text(OPTIMISED.options.to_json())
    assert [preset.name for preset in saved_presets(store)] == ["mine"]
    assert find_any_preset(store, "baseline").options == BASELINE.options
