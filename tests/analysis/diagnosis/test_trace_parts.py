"""What the analyses ask of nearly all events of a name is kept when a trace is read."""

from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.trace_parts import asked_of
from pipeline_lab.trace.sources import session_file
from pipeline_lab.trace.xplane import plane_wire

SMALL = Path(__file__).parents[2] / "data" / "small_pipeline.xplane.pb"
ASKED = {
    "train": "step_num",
    "Iterator::Root": "id",
    "InstantiatedCapturedFunction::RunAsync": "id",
    "ExecutorState::Process": "id",
    "ExecutorDoneCallback": "id",
    "PrefetchProduce": "element_id",
    "PrefetchConsume": "element_id",
}


def test_what_events_are_matched_by_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    host, looked_up = (file.host_plane for file in (session_file(SMALL).read(asked_of), session_file(SMALL).read()))
    assert host is not None
    assert looked_up is not None
    assert {name: asked_of(name) for name in host.names if asked_of(name)} == ASKED
    asked = [
        (line, other, line.rows_named(host.name_mask(name.__eq__)), stat)
        for name, stat in ASKED.items()
        for line, other in zip(host.lines, looked_up.lines, strict=True)
    ]
    expected = [other.stats.ints(rows, stat) for _, other, rows, stat in asked]
    assert sum(known.sum() for _, known in expected) > 100
    monkeypatch.setattr(plane_wire, "find_event_stats", None)  # nobody looks into the file
    for (line, _, rows, stat), (values, known) in zip(asked, expected, strict=True):
        kept, is_kept = line.stats.ints(rows, stat)
        assert (kept.tolist(), is_kept.tolist()) == (values.tolist(), known.tolist())
