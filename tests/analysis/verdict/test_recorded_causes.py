"""Causes in real captures: sparse features of a MirroredStrategy, and two workers of which one waits for its input."""

from pathlib import Path

import pytest

from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.stragglers import Hosts

RECORDED = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def two_hosts() -> Diagnosis:
    return diagnose(RECORDED / "two_hosts")


@pytest.mark.slow
def test_deserialize_sparse_is_named_in_the_gaps_between_the_steps():
    found = diagnose(RECORDED / "sparse_mirrored.xplane.pb.gz").idle_gaps
    assert isinstance(found, IdleGaps)
    gaps = sorted(found.gaps.to_pylist(), key=lambda gap: -gap["duration_ns"])[:3]
    ranked = [found.operations_of(gap["host"], gap["device"], gap["start_ns"]) for gap in gaps]
    assert [rows[0]["operation"] for rows in ranked] == ["DeserializeSparse"] * 3
    assert found.by_operation[0].operation == "DeserializeSparse"
    assert found.by_operation[0].cause in (GapCause.HOST_OPERATION, GapCause.DISPATCH)


def test_the_worker_that_waits_for_input_holds_the_other_back(two_hosts: Diagnosis):
    hosts = two_hosts.hosts
    assert isinstance(hosts, Hosts)
    fast, slow = hosts.table.to_pylist()
    assert (hosts.straggler, slow["cause"], hosts.common_steps) == ("worker-1", "input_wait", 6)
    assert slow["input_wait_ns"] >= 30_000_000 > fast["input_wait_ns"]
    assert fast["collective_ns"] > slow["collective_ns"]
    assert "stragglers" in [finding.kind for finding in two_hosts.findings]


def test_the_verdict_on_two_workers_is_about_the_one_that_comes_last(two_hosts: Diagnosis):
    verdict = two_hosts.verdict
    assert verdict.verdict_class is VerdictClass.INPUT_BOUND
    assert verdict.sentence.endswith("; worker-1 is the straggler, and the other hosts wait for it.")


def test_the_parts_of_recorded_steps_add_up(two_hosts: Diagnosis):
    breakdown = two_hosts.step_breakdown
    assert isinstance(breakdown, StepBreakdown)
    spans = tables.intervals(breakdown.table)
    assert breakdown.total_ns == (spans[:, 1] - spans[:, 0]).sum()
