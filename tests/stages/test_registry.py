"""Every stage says all that is asked of it, and none is passed over where it is not known."""

import inspect
import re
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import ValidationError

from pipeline_lab.advice.stage_costs import attribute_costs
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.stages.code import Code
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.registry import STAGE_TYPES, iterators_of
from pipeline_lab.stages.stage import OneForOne, Stage
from pipeline_lab.stages.stage_values import Host, Reading, Running, Writing
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from tests.advice.test_stage_costs import chain
from tests.support import option_strategies

STAGES = [kind.model_validate({}) for kind in STAGE_TYPES.values()]
NAMES = list(STAGE_TYPES)
HOST = Host(4, 8.0, 1, True, None, None, SyntheticWorkload())


@pytest.mark.parametrize("kind", STAGE_TYPES.values(), ids=NAMES)
def test_a_stage_declares_every_part(kind: type[Stage]) -> None:
    assert not inspect.isabstract(kind), "an abstract part of Stage is left out"
    for part in ("methods", "iterators"):
        assert hasattr(kind, part), f"declare {part}, empty where there is none"
    assert kind.__doc__, "the docstring is the help of the form"
    assert "stage" in kind.__annotations__, "the name that documents use"


@pytest.mark.parametrize("stage", STAGES, ids=NAMES)
def test_a_stage_answers_every_question(stage: Stage) -> None:
    lines = tuple(stage.lines(Writing(1, "work", False, ("    dataset = of_the_workload()",))))
    assert lines or stage.closing_lines(), "a stage that writes nothing is not in the pipeline"
    assert isinstance(stage.code(), Code)
    assert isinstance(stage.running(HOST), Running)
    assert stage.asks_for(10, 1, 1000) > 0
    assert stage.taken_for_each(None, None) > 0
    assert stage.order(Reading(2, 4, 1)) is None or all(stage.order(Reading(2, 4, 1)) or [True])
    assert set(stage.shown_with) | set(stage.sliders) <= set(type(stage).model_fields)
    assert stage.placed_after is None or stage.placed_after in STAGE_TYPES


def test_every_method_that_a_stage_writes_stands_for_one() -> None:
    known = {"apply"}.union(*(kind.methods for kind in STAGE_TYPES.values()))  # apply takes what is no method
    for stage in STAGES:
        for line in stage.lines(Writing(1, "work", False, ())):
            assert set(re.findall(r"dataset = dataset\.(\w+)\(", line)) <= known


def test_the_iterators_of_a_method_are_those_of_its_stages() -> None:
    assert iterators_of("shuffle") == {"Shuffle", "ShuffleAndRepeat"}
    assert iterators_of("unknown") == frozenset()


class ForgottenStage(OneForOne):
    """A stage that leaves out its lines."""

    stage: str = "forgotten"


class UnknownStage(ForgottenStage):
    """A stage that says what is asked of it, with an iterator of its own."""

    stage: str = "unknown"
    methods = frozenset()
    iterators = frozenset({"Unknown"})

    def lines(self, writing: Writing) -> list[str]:
        return [f"    dataset = unknown(dataset)  # {writing.index}"]


def test_a_stage_without_lines_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="lines"):
        ForgottenStage()


def _with(stage: Stage) -> RunOptions:
    pipeline = PipelineOptions.model_validate(
        {"stages": [{"stage": "read"}, {"stage": "map"}, {"stage": "batch", "size": 10}]}
    )
    first, *others = pipeline.stages
    changed = pipeline.model_copy(update={"stages": (first, stage, *others)})
    return RunOptions(workload=SyntheticWorkload(), pipeline=pipeline).model_copy(update={"pipeline": changed})


def test_a_new_stage_is_written_and_costs_what_its_iterator_took() -> None:
    options = _with(UnknownStage())
    assert "dataset = unknown(dataset)  # 1" in render_source(options)
    costs = attribute_costs(
        chain(("BatchV2", 1, 1.0), ("Map", 10, 2.0), ("Unknown", 10, 3.0), ("TFRecord", 10, 4.0)), options
    )
    assert [cost.ns_per_example / 1e6 for cost in costs] == [4.0, 3.0, 2.0, 0.1]


class NestedStage(UnknownStage):
    """A stage that runs as two iterators, one inside the other."""

    stage: str = "nested"
    inner_iterators: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"Inner"}),)


def test_a_stage_of_nested_iterators_leaves_its_neighbors_their_time() -> None:
    options = _with(NestedStage())
    iterators = (("Unknown", 10, 3.0), ("Inner", 10, 1.0), ("Shuffle", 10, 0.5), ("TFRecord", 10, 4.0))
    stages = list(options.pipeline.stages)
    stages.insert(1, STAGE_TYPES["shuffle"].model_validate({}))
    changed = options.pipeline.model_copy(update={"stages": tuple(stages)})
    costs = attribute_costs(
        chain(("BatchV2", 1, 1.0), ("Map", 10, 2.0), *iterators),
        options.model_copy(update={"pipeline": changed}),
    )
    assert [(cost.stage, cost.ns_per_example / 1e6) for cost in costs] == [
        ("read", 4.0),
        ("shuffle", 0.5),
        ("nested", 4.0),
        ("map", 2.0),
        ("batch", 0.1),
    ]


def test_a_stage_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="does not match any of the expected tags"):
        PipelineOptions.model_validate({"stages": [{"stage": "read"}, {"stage": "unheard"}, {"stage": "batch"}]})


def test_the_laws_about_pipelines_draw_every_stage():
    drawn = Path(option_strategies.__file__).read_text(encoding="utf-8")
    never = {"unbatch"}  # its place is right behind a batching stage; golden sources have it
    assert {name for name in NAMES if f'"{name}"' not in drawn} == never
