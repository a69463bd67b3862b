from typing import Any

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.race_options import (
    AS_WRITTEN,
    RaceOptions,
    ScriptRaceOptions,
    read_recorded_race,
    read_script_race,
)
from tests.support.presets import BASELINE


def document(**changes: Any) -> dict[str, Any]:
    return {"script": "train.py", "folder": "/work", "changes": ["prefetch"], **changes}


def test_a_script_races_as_written_against_each_change() -> None:
    options = read_script_race(document(arguments=["--epochs", "3"], changes=["prefetch", "train.py:4 cache"]))
    assert options.arm_names == (AS_WRITTEN, "prefetch", "train.py:4 cache")
    assert (options.arm_count, options.per) == (3, "step")
    assert options.label == "race train.py --epochs 3"
    assert read_script_race(document(is_module=True, script="jobs.train")).command == "-m jobs.train"


def test_what_was_recorded_is_read_as_what_it_was() -> None:
    script = read_script_race(document())
    presets = RaceOptions(arms=(BASELINE.options, BASELINE.options))
    assert isinstance(read_recorded_race(script.model_dump(mode="json")), ScriptRaceOptions)
    assert isinstance(read_recorded_race(presets.model_dump(mode="json")), RaceOptions)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"changes": ["prefetch", "prefetch"]}, "the change 'prefetch' is there twice"),
        ({"changes": []}, "changes"),
        ({"predicted_ratios": [0.5, 0.6]}, "2 predicted_ratios for 1 candidates"),
    ],
)
def test_what_cannot_race_is_refused_in_a_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionsError, match=words):
        read_script_race(document(**changes))
