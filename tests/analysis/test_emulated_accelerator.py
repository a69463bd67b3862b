"""What analyses, verdicts and charts say of a trace with an emulated accelerator: that it is one."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import CHARTS, find_chart
from pipeline_lab.figures.theme import notes_of
from pipeline_lab.runs.record import EMULATED_ACCELERATOR, EMULATED_NOTE, EMULATED_PLANE
from tests.support.xspace import XSpace

STEPS, STEP_US, WAIT_US = 12, 20_000, 10_000


@pytest.fixture
def diagnosis(tmp_path: Path) -> Diagnosis:
    """Twelve steps of 20 ms, each after a wait of 10 ms; the loop reads every result."""
    space = XSpace()
    thread = space.plane("/host:CPU").line("python", timestamp_ns=0)
    stream = space.plane(EMULATED_PLANE).line("Stream #0(Compute)", timestamp_ns=0)
    for step in range(STEPS):
        begin_us = step * (STEP_US + WAIT_US)
        launch_us = begin_us + WAIT_US
        thread.event("train", start_us=begin_us, duration_us=WAIT_US + STEP_US, step_num=step, _r=1)
        thread.event("IteratorGetNextOp::DoCompute", start_us=begin_us, duration_us=WAIT_US)
        thread.event("emulated launch", start_us=launch_us, duration_us=5, correlation_id=step)
        stream.event("emulated step", start_us=launch_us, duration_us=STEP_US, correlation_id=step)
    space.write(tmp_path / "h.xplane.pb")
    return diagnose(tmp_path / "h.xplane.pb")


def test_it_is_a_device_like_any_other(diagnosis: Diagnosis) -> None:
    gaps, stalls, parts = diagnosis.idle_gaps, diagnosis.input_stalls, diagnosis.step_breakdown
    assert not isinstance(gaps, Unavailable)
    assert not isinstance(stalls, Unavailable)
    assert not isinstance(parts, Unavailable)
    assert gaps.device == EMULATED_ACCELERATOR
    assert gaps.busy_ns == STEPS * STEP_US * 1000
    assert stalls.exposed_percent == pytest.approx(100 * WAIT_US / (WAIT_US + STEP_US))
    assert parts.device_compute_ns == STEPS * STEP_US * 1000
    assert parts.host_compute_ns == 0


def test_the_verdict_and_the_document_say_that_it_is_emulated(diagnosis: Diagnosis) -> None:
    assert diagnosis.verdict.sentence.endswith(EMULATED_NOTE)
    assert "emulated accelerator busy" in {one.name for one in diagnosis.verdict.evidence}
    document = diagnosis.to_json()
    assert document["source"]["emulated"] is True
    assert document["idle_gaps"]["device"] == EMULATED_ACCELERATOR


@pytest.mark.slow
def test_charts_of_what_the_device_did_say_so(diagnosis: Diagnosis) -> None:
    told = {}
    for chart in CHARTS:
        figure = chart.draw(diagnosis, "light")
        if not isinstance(figure, Unavailable):
            told[chart.name] = EMULATED_NOTE in notes_of(figure)
    assert told["device-timeline"]
    assert told["idle-by-cause"]
    assert told["stall-per-step"]
    real = replace(diagnosis, source=replace(diagnosis.source, is_emulated=False))
    figure = find_chart("device-timeline").draw(real, "light")
    assert not isinstance(figure, Unavailable)
    assert EMULATED_NOTE not in notes_of(figure)
