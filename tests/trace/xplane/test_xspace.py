"""The reader against protobuf, and against traces written by hand."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.xplane import stats, xspace
from pipeline_lab.trace.xplane.xspace import read_xplane
from tests.support.xspace import XSpace, chunk, number
from tests.trace.checks import spans
from tests.trace.mutations import mutate
from tests.trace.oracle import assert_same

SMALL = Path(__file__).parents[2] / "data" / "small_pipeline.xplane.pb"
REFERENCES = {
    "P1-gpu-multiworker-8gpu/plugins/profile/run/34.83.195.179_6003.xplane.pb": 23_128,
    "P6-jax-rocm-8gpu-nosteps/plugins/profile/run/tw003.xplane.pb": 3_650,
    "P7-tpu-inference/plugins/profile/run/tpu_inference_2.xplane.pb": 26_723,
}


def test_a_recorded_capture_reads_like_protobuf_reads_it() -> None:
    trace = read_xplane(SMALL, window="w")
    assert_same(trace, SMALL.read_bytes())
    assert trace.window == "w"
    assert trace.start_ns == 0
    assert trace.stop_ns is not None
    assert trace.host_plane is not None
    assert all(line.end_ns.max() <= trace.stop_ns for line in trace.host_plane.lines)


@pytest.mark.reference_traces
@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.slow
def test_reference_captures_read_like_protobuf_reads_them(reference_traces: Path, name: str) -> None:
    path = reference_traces / name
    trace = read_xplane(path)
    assert trace.event_count == REFERENCES[name]
    assert_same(trace, path.read_bytes())


def test_processes_of_one_machine_are_hosts_of_their_own(tmp_path: Path) -> None:
    hosts = []
    for name in ("vm", "vm.rank0", "vm.rank1"):
        space = XSpace()
        space.plane("/host:CPU").line("python").event("e", 0, 1)
        hosts.append(read_xplane(space.write(tmp_path / f"{name}.xplane.pb", host="vm")).host)
    assert hosts == ["vm", "vm.rank0", "vm.rank1"]


def test_columns_are_nanoseconds_since_the_session_began(tmp_path: Path) -> None:
    space = XSpace()
    line = space.plane("/host:CPU").line("python", line_id=7, timestamp_ns=1_000)
    line.event("a", start_us=2, duration_us=3).event("b", start_us=5, duration_us=0, display="short")
    [plane] = read_xplane(space.write(tmp_path / "h.xplane.pb")).planes
    [read] = plane.lines
    assert (read.id, read.name) == (7, "python")
    assert read.start_ns.tolist() == [3_000, 6_000]
    assert read.end_ns.tolist() == [6_000, 6_000]
    assert [plane.names[k] for k in read.name_index] == ["a", "b"]
    assert [plane.display_names[k] for k in read.name_index] == ["a", "short"]


def test_events_that_touch_in_picoseconds_touch_in_nanoseconds(tmp_path: Path) -> None:
    space = XSpace()
    line = space.plane("/host:CPU").line("python")
    line.event("a", start_us=0.0006, duration_us=0.0007).event("b", start_us=0.0013, duration_us=0.0009)
    line = read_xplane(space.write(tmp_path / "h.xplane.pb")).planes[0].lines[0]
    assert line.end_ns[0] == line.start_ns[1] == 1
    assert line.end_ns[1] == 2


def test_stats_of_every_kind_are_decoded_for_the_rows_asked_for(tmp_path: Path) -> None:
    space = XSpace()
    line = space.plane("/host:CPU").line("python")
    for k in range(40):
        line.event(
            "e", start_us=k, duration_us=1, step_num=k, share=k / 2, label=f"n{k}", **({"odd": k} if k % 2 else {})
        )
    stats = read_xplane(space.write(tmp_path / "h.xplane.pb")).planes[0].lines[0].stats
    rows = np.array([39, 3, 17, 16])
    assert stats.ints(rows, "step_num")[0].tolist() == [39, 3, 17, 16]
    assert stats.ints(rows, "odd")[1].tolist() == [True, True, True, False]
    assert stats.floats(rows, "share").tolist() == [19.5, 1.5, 8.5, 8.0]
    assert np.isnan(stats.floats(rows, "absent")).all()
    assert stats.texts(rows, "label") == ["n39", "n3", "n17", "n16"]
    assert stats.texts(rows, "odd") == ["39", "3", "17", None]
    with pytest.raises(IndexError):
        stats.ints(np.array([40]), "step_num")


def test_unsigned_ids_wrap_and_negative_ids_stay(tmp_path: Path) -> None:
    space = XSpace()
    space.plane("/host:CPU").line("python", line_id=-5).event("e", 0, 1, id=-2)
    line = read_xplane(space.write(tmp_path / "h.xplane.pb")).planes[0].lines[0]
    assert line.id == -5
    assert line.stats.ints(np.array([0]), "id")[0].tolist() == [-2]


def test_names_may_repeat_under_different_ids_and_come_before_the_lines(tmp_path: Path) -> None:
    def metadata(key: int, name: str) -> bytes:
        return chunk(4, number(1, key) + chunk(2, number(1, key) + chunk(2, name.encode())))

    events = b"".join(chunk(4, number(1, key) + number(2, key * 10**6)) for key in (1, 2**40, -3, 99))
    names = metadata(1, "x") + metadata(2**40, "x") + metadata(-3, "y")
    plane = chunk(2, b"/host:CPU") + names + chunk(3, number(1, 1) + chunk(2, b"python") + events)
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(chunk(1, plane))
    [read] = read_xplane(path).planes
    assert [read.names[k] for k in read.lines[0].name_index] == ["x", "x", "y", ""]


def test_counters_without_a_place_in_time_are_left_out(tmp_path: Path) -> None:
    def placed(key: int) -> bytes:
        return chunk(
            4, number(1, key) + number(2, key * 10**6) + number(3, 0) + chunk(4, number(1, 1) + number(4, key))
        )

    counter = chunk(4, number(1, 9) + number(5, 1_000) + number(3, 10**12))
    line = chunk(2, b"python") + placed(1) + counter + placed(2)
    stat_name = chunk(5, number(1, 1) + chunk(2, number(1, 1) + chunk(2, b"k")))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(chunk(1, chunk(2, b"/host:CPU") + chunk(3, line) + stat_name))
    [read] = read_xplane(path).planes[0].lines
    assert read.start_ns.tolist() == [1_000, 2_000]
    assert read.stats.ints(np.array([0, 1]), "k")[0].tolist() == [1, 2]


def test_what_all_events_of_an_operation_share_is_found_in_its_metadata(tmp_path: Path) -> None:
    shared = chunk(5, number(1, 1) + number(4, 77))
    metadata = chunk(4, number(1, 3) + chunk(2, number(1, 3) + chunk(2, b"fusion") + shared))
    stat_name = chunk(5, number(1, 1) + chunk(2, number(1, 1) + chunk(2, b"flops")))
    line = chunk(3, chunk(2, b"XLA Ops") + chunk(4, number(1, 3)) + chunk(4, number(1, 8)))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(chunk(1, chunk(2, b"/device:TPU:0") + line + metadata + stat_name))
    [read] = read_xplane(path).planes[0].lines
    values, known = read.stats.ints(np.array([1, 0]), "flops")
    assert known.tolist() == [False, True]
    assert values[1] == 77


def session(start_epoch_ns: int, start_us: float) -> XSpace:
    space = XSpace()
    space.plane("/host:CPU").line("python").event(f"at {start_us}", start_us=start_us, duration_us=1, k=int(start_us))
    return space.environment(start_epoch_ns, start_epoch_ns + 10**9)


def test_the_environment_says_when_the_profiler_was_on(tmp_path: Path) -> None:
    epoch = 1_700_000_000 * 10**9
    trace = read_xplane(session(epoch, 5).write(tmp_path / "h.xplane.pb"))
    assert (trace.origin_epoch_ns, trace.start_ns, trace.stop_ns) == (epoch, 0, 10**9)
    assert trace.planes[0].lines[0].start_ns.tolist() == [5_000]


def test_names_of_a_later_session_without_events_leave_room_for_an_unknown_one(tmp_path: Path) -> None:
    first, second = XSpace(), XSpace()
    plane, later = first.plane("/host:CPU"), second.plane("/host:CPU")
    plane.line("python").event("unknown", start_us=0, duration_us=1)
    for count, each in ((30_000, plane), (5_000, later)):
        for order in range(count):
            each.event_metadata(f"name {order}", "")
    plane._events.pop(("unknown", ""))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(first.encode() + second.encode())
    (read,) = read_xplane(path).planes
    assert read.lines[0].name_index.tolist() == [35_000]
    assert read.names[35_000] == ""


def test_concatenated_spaces_merge_by_plane_name_on_one_axis(tmp_path: Path) -> None:
    epoch = 1_700_000_000 * 10**9
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(session(epoch, 5).encode() + session(epoch + 3 * 10**9, 7).encode())
    trace = read_xplane(path)
    assert [plane.name for plane in trace.planes] == ["/host:CPU", "Task Environment"]
    host = trace.planes[0]
    assert [line.start_ns.tolist() for line in host.lines] == [[5_000], [3 * 10**9 + 7_000]]
    assert [host.names[line.name_index[0]] for line in host.lines] == ["at 5", "at 7"]
    assert [line.stats.texts(np.array([0]), "k") for line in host.lines] == [["5"], ["7"]]
    assert (trace.start_ns, trace.stop_ns) == (0, 4 * 10**9)


def test_times_since_the_epoch_are_made_relative(tmp_path: Path) -> None:
    epoch = 1_700_000_000 * 10**9
    space = XSpace()
    space.plane("/host:CPU").line("python", timestamp_ns=epoch + 50).event("a", 0, 1)
    space.plane("/device:GPU:0").line("Stream #1", timestamp_ns=epoch).event("b", 0.002, 1)
    trace = read_xplane(space.write(tmp_path / "h.xplane.pb"))
    assert trace.origin_epoch_ns == epoch
    assert [plane.lines[0].start_ns.tolist() for plane in trace.planes] == [[50], [2]]


def test_lines_keep_their_own_bases_and_idle_devices_their_planes(tmp_path: Path) -> None:
    space = XSpace()
    space.plane("/device:GPU:0")
    host = space.plane("/host:CPU")
    host.line("a", timestamp_ns=100).event("x", 0, 0)
    host.line("b", timestamp_ns=300).event("x", 0, 0)
    trace = read_xplane(space.write(tmp_path / "h.xplane.pb", host="10.0.0.1:6003"))
    assert trace.host == "10.0.0.1:6003"
    assert [line.start_ns[0] for line in trace.planes[1].lines] == [100, 300]
    assert trace.device_planes[0].lines == ()
    assert trace.origin_epoch_ns is None
    assert trace.start_ns is None


@pytest.mark.parametrize(("content", "sentence"), [(b"", "0 bytes"), (chunk(4, b"host"), "no profiler planes")])
def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(content)
    with pytest.raises(TraceReadError, match=sentence):
        read_xplane(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match=r"gone\.xplane\.pb cannot be read"):
        read_xplane(tmp_path / "gone.xplane.pb")


@pytest.mark.parametrize("field", [1, 3])
def test_a_file_of_empty_messages_is_refused_before_memory_is_taken(tmp_path: Path, field: int) -> None:
    empty = chunk(field, b"") * 400_000
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(empty if field == 1 else chunk(1, chunk(2, b"/host:CPU") + empty))
    with pytest.raises(TraceReadError, match="damaged or not a trace"):
        read_xplane(path)


def test_what_the_profiler_could_not_record_is_kept_in_its_own_words(tmp_path: Path) -> None:
    space = XSpace().complain(error="no privilege").complain(error="no privilege").complain(warning="x" * 5000)
    space.plane("/host:CPU").line("python").event("train", 0, 10)
    trace = read_xplane(space.write(tmp_path / "h.xplane.pb"))
    assert trace.errors == ("no privilege",)
    assert trace.warnings == ("x" * 1000,)
    many = XSpace()
    many.plane("/host:CPU").line("python").event("train", 0, 10)
    for number_of in range(50):
        many.complain(warning=f"dropped {number_of}")
    assert len(read_xplane(many.write(tmp_path / "m.xplane.pb")).warnings) == 20


def test_a_file_is_read_in_pieces_as_it_is_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_xplane(SMALL)
    monkeypatch.setattr(xspace, "PIECE", 16)
    monkeypatch.setattr(stats, "EVENTS", 5)
    pieces = read_xplane(SMALL)
    assert spans(pieces) == spans(whole)
    for one, other in zip(pieces.planes[0].lines, whole.planes[0].lines, strict=True):
        for stat in ("id", "step_num", "element_id"):
            rows = np.arange(one.count)
            for ours, theirs in zip(one.stats.ints(rows, stat), other.stats.ints(rows, stat), strict=True):
                assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_found_in_every_piece(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(mutate(SMALL.read_bytes(), seed))

    def what_is_read() -> object:
        try:
            trace = read_xplane(path)
        except TraceReadError as error:
            return str(error)
        return trace.salvage, spans(trace)

    whole = what_is_read()
    monkeypatch.setattr(xspace, "PIECE", 16)
    assert what_is_read() == whole
