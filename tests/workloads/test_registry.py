"""A workload is whole: options with a sentence and defaults, stages that there are, data and step in the worker."""

import importlib.util

import pytest

from pipeline_lab.options.presets import PRESETS
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.workloads.registry import FUNCTION_STAGES, WORKLOADS
from pipeline_lab.workloads.workload import Workload

USERS_OWN = {"records", "module"}
"""Workloads that no preset can show: they need files or code of the user's."""


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_declares_options_that_explain_themselves(kind: str) -> None:
    model = WORKLOADS[kind]
    assert (model.__doc__ or "").strip()
    assert model().kind == kind
    assert model.__module__ == f"pipeline_lab.workloads.{kind}"


@pytest.mark.parametrize("kind", WORKLOADS)
def test_the_own_stages_of_a_workload_are_stages(kind: str) -> None:
    model = WORKLOADS[kind]
    assert set(model.own_stages) <= set(STAGE_TYPES)
    assert model.optional_stages <= set(model.own_stages)
    assert not (model.is_code and model.own_stages)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_has_data_and_step_in_the_worker(kind: str) -> None:
    module = importlib.util.find_spec(f"pipeline_lab.worker.workloads.{kind}")
    assert module is not None
    assert module.loader is not None
    assert "\nDATA_AND_STEP = " in (module.loader.get_source(module.name) or "")


@pytest.mark.parametrize("kind", [kind for kind in WORKLOADS if kind not in USERS_OWN])
def test_a_preset_shows_each_workload(kind: str) -> None:
    assert any(preset.options.workload.kind == kind for preset in PRESETS)


def test_function_stages_are_those_of_all_workloads() -> None:
    assert {"parse", "augment", "lookup", "map"} <= FUNCTION_STAGES
    assert not FUNCTION_STAGES & set(Workload.own_stages)
