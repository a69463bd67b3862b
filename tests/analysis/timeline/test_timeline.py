"""The index of a hand-made run: its lanes, what a view shows, what single events and stretches of time are."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.analysis.timeline.arrangement import arrange_lanes
from pipeline_lab.analysis.timeline.build import build_index
from pipeline_lab.analysis.timeline.index import Group, open_index
from pipeline_lab.analysis.timeline.lanes import CLASSES, LaneKind
from pipeline_lab.analysis.timeline.look import at, neighbor, next_named, pick, rank_operations, search
from pipeline_lab.analysis.timeline.view import LEVELS, MAX_BYTES, MAX_PIXELS, MAX_ROWS, View, cut, profile_windows
from tests.support.recorded_run import write_run
from tests.support.timelines import MS, READER, make_timeline, write_trace
from tests.support.xspace import XSpace


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_timeline(tmp_path_factory.mktemp("timeline"))[0]


def lane_of(index, kind: LaneKind, label: str = "") -> int:
    return next(n for n in index.lanes_of(kind) if index.lanes[n].label.startswith(label))


def cells(row) -> list[tuple[str, int]]:
    """Return class and level of each pixel of a row."""
    found = base64.b64decode(row["cells"])
    return [(CLASSES[cell // (LEVELS + 1)], cell % (LEVELS + 1)) if cell else ("", 0) for cell in found]


def test_lanes_stand_in_a_readable_order(index):
    arranged = arrange_lanes(index)
    assert [lane["kind"] for lane in arranged] == ["windows", "steps", "waits", "device", "thread", "thread"]
    assert all(lane["shown"] for lane in arranged)
    named = {lane["title"]: lane["layers"] for lane in arranged[-2:]}
    assert named == {"python (training thread)": 2, "tf_data_private_threadpool (mostly Map)": 2}
    assert index.lanes[arranged[-1]["lane"]].label == READER


def test_threads_of_one_name_are_told_apart_the_busiest_first(tmp_path):
    space = XSpace()
    host = space.plane("/host:CPU")
    host.line("python", line_id=1).event("train", 0, 100, step_num=0, _r=1)
    for number, (op, length) in enumerate((("Cast", 10), ("DecodeJpeg", 60), ("Pad", 30))):
        host.line(f"tf_data_private_threadpool/{number}", line_id=2 + number).event(f"map/a:{op}", 5, length)
    path = space.write(tmp_path / "host.xplane.pb")
    (tmp_path / "index").mkdir()
    build_index(path, diagnose(path), tmp_path / "index")
    titles = [lane["title"] for lane in arrange_lanes(open_index(tmp_path / "index")) if lane["kind"] == "thread"]
    assert titles[1:] == [
        "tf_data_private_threadpool 1 of 3 (mostly DecodeJpeg)",
        "tf_data_private_threadpool 2 of 3 (mostly Pad)",
        "tf_data_private_threadpool 3 of 3 (mostly Cast)",
    ]


def test_streams_and_devices_are_named_by_their_device_in_its_order(index):
    lanes = tuple(
        replace(index.lanes[0], kind=kind, host="a", label=label, group=group)
        for kind, label, group in (
            (LaneKind.DEVICE, "/device:GPU:10", ""),
            (LaneKind.DEVICE, "/device:GPU:2", ""),
            (LaneKind.STREAM, "Stream #7(Compute)", "/device:GPU:10"),
            (LaneKind.STREAM, "Stream #7(Compute)", "/device:GPU:2"),
        )
    )
    assert [lane["title"] for lane in arrange_lanes(replace(index, lanes=lanes))] == [
        "GPU:2: busy and idle by cause",
        "GPU:10: busy and idle by cause",
        "GPU:2 Stream #7(Compute)",
        "GPU:10 Stream #7(Compute)",
    ]


def test_few_events_are_shown_one_by_one(index):
    python = lane_of(index, LaneKind.THREAD, "python")
    row = cut(index, View(0, 200 * MS, 100, ((python, 1),)))["rows"][0]
    events = sorted(zip(*(row["events"][column::4] for column in range(4)), strict=True))
    assert [(start // MS, length // MS, CLASSES[kind]) for start, length, _, kind in events] == [
        (0, 40, "input_wait"),
        (50, 40, "host_operation"),
        (100, 40, "input_wait"),
        (150, 40, "host_operation"),
    ]


def test_many_events_are_shown_by_what_fills_each_pixel(index, monkeypatch):
    monkeypatch.setattr("pipeline_lab.analysis.timeline.view.SINGLE_EVENTS", 0)
    python = lane_of(index, LaneKind.THREAD, "python")
    row = cut(index, View(0, 200 * MS, 10, ((python, 1),)))["rows"][0]
    wait, op, none = ("input_wait", 7), ("host_operation", 7), ("", 0)
    first = [wait, wait, ("host_operation", 4), op, ("host_operation", 4)]
    assert cells(row) == [wait, wait, *first[2:], wait, wait, *first[2:]]
    assert none not in cells(row)


def test_a_half_filled_pixel_is_told_from_a_full_one(index, monkeypatch):
    monkeypatch.setattr("pipeline_lab.analysis.timeline.view.SINGLE_EVENTS", 0)
    reader = lane_of(index, LaneKind.THREAD, "tf_data")
    row = cut(index, View(0, 100 * MS, 2, ((reader, 0),)))["rows"][0]
    assert cells(row) == [("tf_data", 5), ("", 0)], "35 of 50 ms are 4.9 of 7 steps"


def test_marked_events_are_found_in_a_view(index):
    reader = lane_of(index, LaneKind.THREAD, "tf_data")
    names = tuple(search(index, "decode jpeg"))
    row = cut(index, View(0, 200 * MS, 200, ((reader, 1),), names))["rows"][0]
    bits = np.unpackbits(np.frombuffer(base64.b64decode(row["marks"]), np.uint8))
    assert np.flatnonzero(bits).tolist() == [5, 105]


def test_an_unknown_row_shows_nothing(index):
    row = cut(index, View(0, 100, 10, ((99, 7),)))["rows"][0]
    assert row["events"] == []


def test_the_event_under_the_mouse_is_found(index):
    reader = lane_of(index, LaneKind.THREAD, "tf_data")
    found = at(index, (reader, 1), 110 * MS, 0)
    assert (found.start_ns, found.duration_ns) == (105 * MS, 20 * MS)
    assert index.names[found.name] == "map/decode:DecodeJpeg"
    assert at(index, (reader, 1), 30 * MS, 0) is None
    assert at(index, (reader, 1), 30 * MS, 6 * MS).start_ns == 5 * MS


def test_links_name_events_by_kind_or_place(index):
    assert pick(index, f"wait@{100 * MS}").duration_ns == 40 * MS
    assert pick(index, "step@0").duration_ns == 100 * MS
    assert pick(index, f"gap@{90 * MS}").duration_ns == 60 * MS, "from one op to the next, the wait within"
    python = lane_of(index, LaneKind.THREAD, "python")
    assert pick(index, f"{python}.0@{150 * MS}").start_ns == 100 * MS
    for nonsense in ("", "gap", "gap@x", "lane@5", "wait@7", "99.0@5", "1.1", f"gap@{'9' * 5000}"):
        assert pick(index, nonsense) is None


def test_names_are_found_by_all_their_words_and_events_one_after_another(index):
    names = search(index, "JPEG decode")
    assert [index.names[name] for name in names] == ["map/decode:DecodeJpeg"]
    assert search(index, "") == search(index, "nothing like it") == []
    first = next_named(index, names, 0)
    assert (first.start_ns, next_named(index, names, first.start_ns).start_ns) == (5 * MS, 105 * MS)
    assert next_named(index, names, 105 * MS) is None
    assert next_named(index, names, 105 * MS, backwards=True).start_ns == 5 * MS


def test_long_names_that_begin_alike_stay_two(tmp_path):
    space = XSpace()
    python = space.plane("/host:CPU").line("python", line_id=1)
    above = "Iterator::Root" + "::ForeverRepeat[0]" * 30
    for number, kind in enumerate(("Map", "BatchV2")):
        python.event(f"{above}::{kind}", 100 * number, 50, display=f"Iterator::{kind}")
    path = space.write(tmp_path / "host.xplane.pb")
    (tmp_path / "index").mkdir()
    build_index(path, diagnose(path), tmp_path / "index")
    assert {"Iterator::Map", "Iterator::BatchV2"} <= set(open_index(tmp_path / "index").labels)


def test_a_row_is_walked_event_by_event(index):
    place = (lane_of(index, LaneKind.THREAD, "python"), 1)
    starts, time = [], -1
    while (found := neighbor(index, place, time)) is not None:
        time = found.start_ns
        starts.append(time // MS)
    assert starts == [0, 50, 100, 150]
    assert neighbor(index, place, 100 * MS, backwards=True).start_ns == 50 * MS


def test_a_stretch_is_divided_by_what_each_operation_took_for_itself(index):
    host = index.lanes[lane_of(index, LaneKind.STEPS)].host
    ranked = rank_operations(index, host, (0, 100 * MS), ("tf.data",))
    assert [(index.names[one.name], one.self_ns // MS, one.calls) for one in ranked] == [
        ("map/decode:DecodeJpeg", 20, 1),
        ("Iterator::Map", 15, 1),
    ]
    clipped = rank_operations(index, host, (20 * MS, 30 * MS), ("tf.data",))
    assert {index.names[one.name]: one.self_ns // MS for one in clipped} == {
        "map/decode:DecodeJpeg": 5,
        "Iterator::Map": 5,
    }
    assert rank_operations(index, "elsewhere", (0, MS), ("tf.data",)) == []


def test_too_many_events_are_not_ranked(index, monkeypatch):
    monkeypatch.setattr("pipeline_lab.analysis.timeline.look.MAX_EVENTS", 1)
    host = index.lanes[lane_of(index, LaneKind.STEPS)].host
    assert rank_operations(index, host, (0, 100 * MS), ("tf.data",)) is None


def test_windows_lie_one_after_another_as_in_the_diagnosis(tmp_path):
    for window in ("2026_01_01", "2026_01_02"):
        session = tmp_path / "logs/plugins/profile" / window
        session.mkdir(parents=True)
        write_trace(session / "host.xplane.pb")
    diagnosis = diagnose(tmp_path / "logs")
    (tmp_path / "index").mkdir()
    build_index(tmp_path / "logs", diagnosis, tmp_path / "index")
    index = open_index(tmp_path / "index")
    python = lane_of(index, LaneKind.THREAD, "python")
    starts = np.concatenate([group.start_ns for group in index.at(python, 0)])
    assert starts.tolist() == diagnosis.steps.table.column("start_ns").to_pylist()
    assert len(index.lanes_of(LaneKind.THREAD)) == 2, "a thread is one lane over all windows"
    assert index.lanes[lane_of(index, LaneKind.WINDOWS)].events == 2
    assert index.end_ns == starts[-1] + 100 * MS
    first, second = profile_windows(index)
    assert first == (0, 200 * MS)
    assert second[1] - second[0] == 200 * MS


def test_a_view_is_never_large_whatever_it_shows(index):
    rows, each = MAX_ROWS, 100
    start = np.arange(each, dtype=np.int64) * 1_000_000_007
    groups = {
        (row, 0): (
            Group(row, 0, 0, start, np.arange(each + 1) * 123_456_789, np.arange(each, dtype=np.uint32) + row * each),
        )
        for row in range(rows)
    }
    long = tuple("\u30c6\u30f3\u30bd\u30eb" * 30 + str(number) for number in range(rows * each))
    large = replace(index, groups={**groups, **index.groups}, names=long, labels=long)
    view = View(0, int(start[-1]), MAX_PIXELS, tuple(groups), tuple(range(100)))
    assert len(json.dumps(cut(large, view), ensure_ascii=False, separators=(",", ":")).encode()) <= MAX_BYTES


def test_the_host_of_a_window_is_the_diagnosis_host_where_the_trace_has_none(tmp_path):
    folder = write_run(tmp_path / "run", windows=1)
    capture = folder.window("window-0001") / "trainer.xplane.pb"
    space = XSpace()
    space.plane("/host:CPU").line("python").event("train", 0, 10_000, step_num=0, _r=1)
    space.write(capture, host="")
    diagnosis = diagnose(folder.path)
    (tmp_path / "index").mkdir()
    build_index(folder.path, diagnosis, tmp_path / "index")
    index = open_index(tmp_path / "index")
    threads, steps = (index.lanes_of(kind) for kind in (LaneKind.THREAD, LaneKind.STEPS))
    assert [index.lanes[number].host for number in (*threads, *steps)] == ["trainer", "trainer"]


def test_an_index_is_kept_until_its_inputs_change(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))
    path = write_trace(tmp_path / "host.xplane.pb")
    saved, diagnosis = SavedDiagnosis(path), diagnose(path)
    assert saved.timeline is None
    saved.save_timeline(lambda folder: build_index(path, diagnosis, folder), fingerprint_inputs(path))
    kept = saved.timeline
    assert open_index(kept).lanes
    path.write_bytes(path.read_bytes() + b"\x0a\x02\x12\x00")
    assert saved.timeline is None
    saved.save_timeline(lambda folder: build_index(path, diagnosis, folder), fingerprint_inputs(path))
    assert not kept.exists(), "one index at a time"


def test_a_failed_index_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))
    path = write_trace(tmp_path / "host.xplane.pb")

    def fail(folder):
        (folder / "start.bin").write_bytes(b"half")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        SavedDiagnosis(path).save_timeline(fail, fingerprint_inputs(path))
    assert not list((tmp_path / "cache").rglob("*.bin"))


@pytest.mark.slow
def test_a_trace_that_cannot_be_read_leaves_what_the_diagnosis_knows(tmp_path):
    path = write_trace(tmp_path / "host.xplane.pb")
    diagnosis = diagnose(path)
    (tmp_path / "index").mkdir()
    broken = tmp_path / "broken.xplane.pb"
    broken.write_bytes(b"\x0a\xff\xff\xff\xff\x0fnothing")
    build_index(broken, diagnosis, tmp_path / "index")
    found = open_index(tmp_path / "index")
    assert not found.lanes_of(LaneKind.THREAD)
    assert found.lanes_of(LaneKind.STEPS)
