import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.runs.run_events import (
    TAIL_BYTES,
    CalibrationEvent,
    DataProgressEvent,
    EagerStepEvent,
    Event,
    EventReader,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    WindowEvent,
    find_damaged_events,
    format_event,
    last_steps,
    parse_event,
    read_events,
)

EVENTS: tuple[Event, ...] = (
    PhaseEvent("training", time_ns=1),
    ProgressEvent(3, 200, 1.5, None, time_ns=2),
    DataProgressEvent(1, 8, time_ns=3),
    EagerStepEvent("Gan.critic_step", "/home/gan.py", 10, time_ns=8),
    CalibrationEvent(1e6, 20, None, 0, 5e7, time_ns=4),
    WindowEvent("w0", 5, 14, 1, 2, 3, 4, 5, 6, 7, 8, False, time_ns=5),
    NoteEvent("über\nzwei Zeilen", time_ns=6),
    FailureEvent("broken", "Traceback …", time_ns=7),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_is_one_line_and_comes_back_equal(event: Event) -> None:
    line = format_event(event)
    assert line.count("\n") == 1
    assert parse_event(line) == event


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "3", '{"kind": "new"}', '{"phase": "x"}', '{"kind": "phase"}', '{"kind": []}', b"\xff\xfe"]
)
def test_a_torn_or_unknown_line_is_skipped(line: str | bytes) -> None:
    assert parse_event(line) is None


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "note", "sentence": 3, "time_ns": 1}',
        '{"kind": "note", "sentence": "s", "time_ns": 1.5}',
        '{"kind": "note", "sentence": "s", "time_ns": true}',
        '{"kind": "note", "sentence": "s", "time_ns": 4611686018427387904}',
        '{"kind": "note", "sentence": "s", "time_ns": null}',
        '{"kind": "progress", "steps": 1, "total_steps": null, "elapsed_s": "1", "total_s": null}',
        '{"kind": "progress", "steps": 1, "total_steps": null, "elapsed_s": 1e19, "total_s": null}',
        '{"kind": "progress", "steps": 1, "total_steps": null, "elapsed_s": NaN, "total_s": null}',
        '{"kind": "data_progress", "files": 1, "total_files": ' + "[" * 2000 + "]" * 2000 + "}",
        "[" * 100_000,
    ],
)
def test_a_value_that_its_field_cannot_have_is_damage(line: str, tmp_path: Path) -> None:
    assert parse_event(line) is None
    events = tmp_path / "events.jsonl"
    events.write_text(f"{line}\n{format_event(PhaseEvent('finishing'))}", encoding="utf-8")
    assert "1 of its lines cannot be read" in find_damaged_events(events)
    events.write_text(f'{{"kind": "of tomorrow"}}\n{format_event(PhaseEvent("finishing"))}', encoding="utf-8")
    assert not find_damaged_events(events)


def test_what_a_newer_worker_adds_is_ignored() -> None:
    assert parse_event('{"kind": "note", "sentence": "s", "time_ns": 1, "color": "red"}') == NoteEvent("s", time_ns=1)


def test_a_reader_returns_each_event_once_and_waits_for_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    reader = EventReader(path)
    assert reader.read() == []
    first, second = format_event(EVENTS[0]), format_event(EVENTS[1])
    path.write_text(first + second[:7])
    assert reader.read() == [EVENTS[0]]
    assert reader.read() == []
    path.write_text(first + second)
    assert reader.read() == [EVENTS[1]]
    assert reader.read() == []


@pytest.mark.slow
@given(st.data())
def test_however_the_file_grows_the_reader_sees_all_events_in_order(data: st.DataObject) -> None:
    raw = "".join(map(format_event, EVENTS)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        reader, seen = EventReader(path), []
        for cut in [*cuts, len(raw)]:
            path.write_bytes(raw[:cut])
            seen += reader.read()
    assert seen == list(EVENTS)


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(format_event(EVENTS[0]).encode() + b"\x00\x00garbage\n" + format_event(EVENTS[2]).encode())
    assert read_events(path) == [EVENTS[0], EVENTS[2]]


def test_the_last_count_of_steps_is_found_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert last_steps(path) is None
    path.write_text(format_event(PhaseEvent("training")))
    assert last_steps(path) is None
    counts = [format_event(ProgressEvent(steps, None, 1.0, None)) for steps in (7, 9)]
    path.write_text("".join(counts) + counts[0][:-10])
    assert last_steps(path) == 9
    with path.open("a") as file:
        file.write("\n" + format_event(NoteEvent("x" * 100)) * (2 * TAIL_BYTES // 100))
    assert last_steps(path) == 9
