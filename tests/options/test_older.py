"""Documents as earlier versions wrote them."""

import json
from typing import Any

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.race import read_race_options, read_recorded_race
from pipeline_lab.options.run import read_options

SPARSE, VARIED = "sparse", "changing-shapes"


def _sparse() -> dict[str, Any]:
    document = find_preset(SPARSE).options.model_dump(mode="json")
    document["workload"]["replicas"] = document["training"].pop("replicas")
    return document


def _varied() -> dict[str, Any]:
    document = find_preset(VARIED).options.model_dump(mode="json")
    for stage in document["pipeline"]["stages"]:
        if stage["stage"] == "batch":
            del stage["mode"]
    return document


def test_replicas_are_a_matter_of_training() -> None:
    options = find_preset(SPARSE).options
    assert options.training.replicas > 1
    assert read_options(_sparse()) == options
    assert read_options(json.dumps(_sparse())) == options
    race = {"arms": [_sparse(), _sparse()]}
    assert read_recorded_race(race).arms[1] == options
    with pytest.raises(OptionsError, match=r"set training\.replicas to 1"):
        read_race_options(race)


def test_examples_of_different_lengths_are_padded() -> None:
    options = find_preset(VARIED).options
    assert read_options(_varied()) == options
    assert read_race_options({"arms": [_varied(), _varied()]}).arms[1] == options


@pytest.mark.parametrize("workload", [None, 3, {}, {"kind": "sparse", "replicas": "many"}])
def test_what_was_never_right_is_refused_as_ever(workload: Any) -> None:
    with pytest.raises(OptionsError):
        read_options({"schema_version": 1, "workload": workload, "training": 7})
