"""What the analyses ask of nearly all events of a name is kept when a trace is read, and a large trace is read ahead once."""

import shutil
import threading
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis import reading
from pipeline_lab.analysis.diagnosis.reading import asked_of, begun_ahead, read
from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.schema import ChooseStat, Trace
from pipeline_lab.trace.sources import TraceFile, look_at_file, session_file
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


@pytest.fixture
def times_read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Take every file for large, and every machine for one with several cores; say what was read."""
    found: list[Path] = []

    def note(file: TraceFile, keep: ChooseStat) -> Trace:
        found.append(file.path)
        return really_read(file, keep)

    really_read = TraceFile.read
    monkeypatch.setattr(TraceFile, "read", note)
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    monkeypatch.setattr(reading, "has_other_core", lambda: True)
    return found


def test_a_large_trace_is_read_once_though_it_was_begun_ahead(times_read: list[Path]) -> None:
    with begun_ahead(SMALL):
        trace = read(*look_at_file(SMALL).files)
        assert trace.event_count == 708
        assert times_read == [SMALL]
        assert read(*look_at_file(SMALL).files).event_count == trace.event_count
    assert times_read == [SMALL, SMALL]


@pytest.mark.usefixtures("times_read")
def test_what_was_begun_and_not_asked_for_is_forgotten() -> None:
    with begun_ahead(SMALL):
        pass
    assert not reading._begun
    assert read(*look_at_file(SMALL).files).event_count == 708


@pytest.mark.usefixtures("times_read")
def test_a_file_that_grew_since_is_read_again(tmp_path: Path) -> None:
    grown = Path(shutil.copy(SMALL, tmp_path / "host.xplane.pb"))
    with begun_ahead(grown):
        with grown.open("ab") as file:
            file.write(SMALL.read_bytes())
        assert read(*look_at_file(grown).files).size_bytes == 2 * SMALL.stat().st_size
        assert not reading._begun


@pytest.mark.usefixtures("times_read")
def test_an_interrupt_does_not_wait_for_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(TraceFile, "read", lambda *_: goes_on.wait())
    with pytest.raises(KeyboardInterrupt), begun_ahead(SMALL):
        raise KeyboardInterrupt
    assert not goes_on.is_set()
    goes_on.set()


def test_an_error_is_told_to_who_asks(times_read: list[Path], tmp_path: Path) -> None:
    damaged = tmp_path / "host.xplane.pb"
    damaged.write_bytes(b"no trace at all")
    with begun_ahead(damaged), pytest.raises(TraceReadError, match=r"host\.xplane\.pb"):
        read(*look_at_file(damaged).files)
    assert times_read == [damaged]


@pytest.mark.parametrize("kind", ["missing", "folder", "small", "no other core"])
def test_nothing_else_is_begun(
    kind: str, times_read: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "small":
        monkeypatch.setattr(reading, "LARGE_BYTES", SMALL.stat().st_size + 1)
    if kind == "no other core":
        monkeypatch.setattr(reading, "has_other_core", lambda: False)
    with begun_ahead({"missing": tmp_path / "none.xplane.pb", "folder": tmp_path}.get(kind, SMALL)):
        pass
    assert not times_read
