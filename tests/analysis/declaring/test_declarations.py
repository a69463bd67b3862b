"""Every analysis is declared completely, and what is derived from the declarations holds all of them."""

from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from pipeline_lab.analysis.declaring.declaration import Analysis
from pipeline_lab.analysis.diagnosis.storage import find_kinds
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Results, analyses
from pipeline_lab.errors import Unavailable

NOT_ANALYSES = {"source", "origin_epoch_ns", "other_cpu_percent"}
each = pytest.mark.parametrize("analysis", analyses().values(), ids=list(analyses()))


def test_every_field_of_the_results_is_a_declared_analysis() -> None:
    assert {field.name for field in fields(Results)} - NOT_ANALYSES == set(analyses())


def test_no_analysis_is_declared_twice() -> None:
    kinds = [analysis.result for analysis in analyses().values()]
    assert len(set(kinds)) == len(kinds)


def test_every_field_has_the_type_that_its_analysis_declares() -> None:
    hints = get_type_hints(Results)
    for name, analysis in analyses().items():
        assert get_args(hints[name]) == (analysis.result, Unavailable)


@each
def test_the_result_comes_from_somewhere(analysis: Analysis[Any]) -> None:
    assert analysis.per_trace or analysis.per_job or analysis.of_results
    assert not (analysis.per_trace and analysis.per_job), "a field is filled once"


@each
def test_it_is_said_why_the_result_may_be_missing(analysis: Analysis[Any]) -> None:
    reasons = [] if analysis.per_job is None else [analysis.per_job.missing]
    if analysis.per_trace is not None and isinstance(analysis.per_trace.stored, Unavailable):
        reasons.append(analysis.per_trace.stored.reason)
    for reason in reasons:
        assert reason.endswith(".")
        assert len(reason) > 20


@each
def test_the_result_is_a_part_of_the_document(analysis: Analysis[Any]) -> None:
    ways = [analysis.to_json is not None, analysis.to_json_with is not None, bool(analysis.json_inside)]
    assert ways.count(True) == 1
    names = {one.json_name or key for key, one in analyses().items() if not one.json_inside}
    assert not analysis.json_inside or analysis.json_inside in names


def test_the_later_epochs_hold_every_analysis_that_measures_them() -> None:
    measured = {name for name, one in analyses().items() if one.per_job is not None and one.per_job.later is not None}
    hints = get_type_hints(LaterEpochs)
    assert {name for name in hints if name in analyses()} == measured
    for name in measured:
        assert hints[name] == get_type_hints(Results)[name]


def test_every_result_can_be_stored() -> None:
    kinds = find_kinds(Diagnosis)
    assert {analysis.result for analysis in analyses().values()} <= set(kinds.values())
