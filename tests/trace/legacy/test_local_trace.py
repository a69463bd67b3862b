from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.legacy.local_trace import read_legacy_bytes
from pipeline_lab.trace.schema import Line, Trace
from pipeline_lab.trace.sources import read_trace
from tests.support.xspace import chunk, number

PS_PER_US = 1_000_000
HOST = 0


def entry(key: int, value: bytes) -> bytes:
    return number(1, key) + chunk(2, value)


def device(key: int, name: str, **resources: int) -> bytes:
    """Encode one entry of `Trace.devices`; resources as name=id."""
    names = b"".join(
        chunk(3, entry(key, chunk(1, resource.encode()) + number(2, key))) for resource, key in resources.items()
    )
    return chunk(1, entry(key, chunk(1, name.encode()) + number(2, key) + names))


def event(name: str, start_us: int, duration_us: int, *, on: tuple[int, int] = (HOST, 1), **args: str) -> bytes:
    """Encode one `TraceEvent`; ``on`` is device and resource, ``long_name`` stands for ``long name``."""
    body = number(1, on[0]) + number(2, on[1]) + chunk(3, name.encode())
    body += number(9, start_us * PS_PER_US) + number(10, duration_us * PS_PER_US)
    pairs = ((key.replace("_", " "), value) for key, value in args.items())
    return chunk(4, body + b"".join(chunk(11, chunk(1, k.encode()) + chunk(2, v.encode())) for k, v in pairs))


def read(content: bytes, name: str = "local.trace") -> Trace:
    return read_legacy_bytes(np.frombuffer(content, np.uint8), Path(name))


def only_line(trace: Trace, plane: str) -> Line:
    found = trace.plane(plane)
    assert found is not None
    (line,) = found.lines
    return line


def names_of(trace: Trace, plane: str) -> list[str]:
    found = trace.plane(plane)
    assert found is not None
    return [found.names[index] for line in found.lines for index in line.name_index]


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.mark.slow
def test_a_wait_on_the_python_thread() -> None:
    trace = read(device(HOST, "/host:CPU", python=1) + event("IteratorGetNextSync", 100, 40) + event("MatMul", 140, 5))
    line = only_line(trace, "/host:CPU")
    assert (line.id, line.name) == (1, "python")
    assert line.start_ns.tolist() == [100_000, 140_000]
    assert line.duration_ns.tolist() == [40_000, 5_000]
    assert names_of(trace, "/host:CPU") == ["IteratorGetNextSync", "MatMul"]
    assert (trace.host, trace.origin_epoch_ns, trace.salvage) == ("", None, None)
    assert trace.host_plane is not None


def test_the_long_name_is_the_name_and_the_short_one_is_shown() -> None:
    trace = read(event("TensorSlice", 0, 1, long_name="Iterator::Model::Map::TensorSlice"))
    (plane,) = trace.planes
    assert plane.names == ("Iterator::Model::Map::TensorSlice",)
    assert plane.display_names == ("TensorSlice",)


def test_arguments_and_what_the_label_holds_are_stats() -> None:
    line = only_line(
        read(
            event("train", 0, 9, label="step_num=7,_r=1,name=first")
            + event("train", 9, 9, label="step_num=x")
            + event("op", 18, 1, note="0.5")
        ),
        "/host:CPU",
    )
    values, known = line.stats.ints(rows(0, 1, 2), "step_num")
    assert (values.tolist(), known.tolist()) == ([7, 0, 0], [True, False, False])
    assert line.stats.texts(rows(0, 2), "name") == ["first", None]
    assert line.stats.texts(rows(1), "label") == ["step_num=x"]
    floats = line.stats.floats(rows(2, 0), "note")
    assert floats[0] == 0.5
    assert np.isnan(floats[1])


def test_a_row_that_is_none_is_refused() -> None:
    line = only_line(read(event("a", 0, 1)), "/host:CPU")
    with pytest.raises(IndexError):
        line.stats.texts(rows(1), "label")


def test_streams_become_the_lines_of_one_gpu() -> None:
    label = "volta_sgemm_64x64_nn regs:120 shm:8192 grid:1,1,1 block:64,1,1"
    content = (
        device(1, "/device:GPU:0/stream:13")
        + device(2, "/device:GPU:0/stream:14<MemcpyH2D>")
        + device(3, "/device:GPU:0/stream:all")
        + device(4, "/device:GPU:1/stream:13")
        + event("MatMul", 10, 5, on=(1, 0), label=label, annotation="dense/MatMul:MatMul")
        + event("MatMul", 10, 5, on=(3, 0), label=label)
        + event("edge_5", 3, 2, on=(2, 0), label="edge_5 bytes:4096 aync")
        + event("Relu", 20, 5, on=(4, 1), label="relu_kernel regs:8 shm:0")
    )
    trace = read(content)
    assert [plane.name for plane in trace.device_planes] == ["/device:GPU:0", "/device:GPU:1"]
    first = trace.device_planes[0]
    assert [line.name for line in first.lines] == ["Stream #13", "Stream #14(MemcpyH2D)", "all streams"]
    assert names_of(trace, "/device:GPU:0") == ["volta_sgemm_64x64_nn", "MemcpyH2D", "MatMul"]
    assert first.display_names == ("MatMul", "edge_5", "MatMul")
    assert names_of(trace, "/device:GPU:1") == ["relu_kernel"]


@pytest.mark.parametrize(
    ("name", "label", "kernel"),
    [
        ("edge_7:MEMCPYHtoD", "MEMCPYHtoD 4096 bytes (Pageable to Device)", "MemcpyHtoD"),
        ("Conv2D", "void conv<float, 3>(int) regs:32 shm:0 grid:1,1,1 block:1,1,1", "void conv<float, 3>(int)"),
        ("Conv2D", "", "Conv2D"),
    ],
)
def test_work_on_a_stream_is_named_after_its_kernel_or_copy(name: str, label: str, kernel: str) -> None:
    trace = read(device(1, "/device:GPU:0/stream:7") + event(name, 0, 1, on=(1, 0), label=label))
    assert names_of(trace, "/device:GPU:0") == [kernel]


def test_what_an_executor_notes_about_a_gpu_is_host_time() -> None:
    job = "/job:localhost/replica:0/task:0/device:GPU:0"
    trace = read(device(HOST, "/host:CPU", python=1) + device(1, job) + event("MatMul", 0, 3, on=(1, 0)))
    assert trace.device_planes == ()
    assert only_line(trace, "/host:CPU").name == job


def test_devices_may_come_after_their_events() -> None:
    trace = read(event("a", 0, 1, on=(5, 2)) + device(5, "/host:CPU", worker=2))
    assert only_line(trace, "/host:CPU").name == "worker"


def test_events_of_unknown_devices_and_threads_are_kept() -> None:
    trace = read(event("a", 0, 1, on=(9, 4)))
    assert only_line(trace, "/host:CPU").name == "thread 4"


def test_an_event_from_before_the_session_has_a_negative_start() -> None:
    line = only_line(read(event("a", -3, 5)), "/host:CPU")
    assert (line.start_ns.tolist(), line.duration_ns.tolist()) == ([-3_000], [5_000])


def test_neighbors_in_picoseconds_stay_neighbors() -> None:
    parts = [number(9, start) + number(10, length) for start, length in ((0, 1_500), (1_500, 1_500))]
    line = only_line(read(b"".join(chunk(4, chunk(3, b"a") + part) for part in parts)), "/host:CPU")
    assert (line.start_ns + line.duration_ns).tolist() == [line.start_ns[1], 3]


def test_devices_without_events_are_a_sound_trace() -> None:
    trace = read(device(HOST, "/host:CPU", python=1))
    assert (trace.event_count, trace.salvage, [plane.name for plane in trace.planes]) == (0, None, ["/host:CPU"])


def test_the_host_is_in_the_file_name_unless_it_is_local() -> None:
    assert read(event("a", 0, 1), "vm-3.trace").host == "vm-3"


def test_a_file_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "local.trace"
    path.write_bytes(event("a", 0, 1))
    trace = read_trace(path)
    assert (trace.event_count, trace.size_bytes) == (1, path.stat().st_size)


@pytest.mark.parametrize("content", [b"\x0a", b"\x0a\x00", b"hello, this is no trace at all", b"\x00" * 64])
def test_what_is_no_trace_gets_a_sentence(content: bytes) -> None:
    with pytest.raises(TraceReadError, match="holds no trace events"):
        read(content)


def test_an_empty_file_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "local.trace").touch()
    with pytest.raises(TraceReadError, match="is empty"):
        read_trace(tmp_path / "local.trace")


SOUND = [event(f"op{k}", 10 * k, 5, label=f"id={k}") for k in range(6)]


@pytest.mark.slow
def test_a_truncated_file_keeps_what_came_before() -> None:
    content = b"".join(SOUND)[:-3]
    trace = read(content)
    assert trace.event_count == 5
    assert trace.salvage is not None
    assert (trace.salvage.bytes_lost, trace.salvage.events_kept) == (len(SOUND[5]) - 3, 5)
    assert f"byte {len(content) - len(SOUND[5]) + 3}" in trace.salvage.reason


@pytest.mark.slow
def test_zeros_in_the_middle_cost_the_events_under_them() -> None:
    content = bytearray(b"".join(SOUND))
    begin = len(SOUND[0]) + len(SOUND[1])
    content[begin : begin + len(SOUND[2])] = bytes(len(SOUND[2]))
    trace = read(bytes(content))
    assert names_of(trace, "/host:CPU") == ["op0", "op1", "op3", "op4", "op5"]
    assert trace.salvage is not None
    assert trace.salvage.bytes_lost == len(SOUND[2])


def test_a_wrong_length_costs_one_event() -> None:
    content = bytearray(b"".join(SOUND))
    content[len(SOUND[0]) + 1] += len(SOUND[2])
    assert names_of(read(bytes(content)), "/host:CPU") == ["op0", "op2", "op3", "op4", "op5"]


def test_two_files_in_one_are_one_trace() -> None:
    trace = read(
        device(HOST, "/host:CPU", python=1)
        + SOUND[0]
        + device(HOST, "/host:CPU", worker=2)
        + event("a", 0, 1, on=(0, 2))
    )
    (plane,) = trace.planes
    assert [line.name for line in plane.lines] == ["python", "worker"]


@pytest.mark.slow
def test_a_hostile_file_is_refused_before_memory_is_taken() -> None:
    lines = b"".join(chunk(4, number(2, k) + chunk(3, b"a")) for k in range(60_000))
    with pytest.raises(TraceReadError, match="more threads than a profiler writes into a file of its size"):
        read(lines)


def test_the_layout_is_that_of_the_published_classes() -> None:
    from xprof.protobuf import trace_events_old_pb2 as protos

    message = protos.Trace()
    message.devices[3].name = "/host:CPU"
    message.devices[3].device_id = 3
    message.devices[3].resources[300].name = "python"
    message.devices[3].resources[300].resource_id = 300
    for start in (2**40, 0):
        one = message.trace_events.add(device_id=3, resource_id=300, name="Sync", timestamp_ps=start, duration_ps=5_000)
        one.args["label"] = "id=18446744073709551615"
    line = only_line(read(message.SerializeToString()), "/host:CPU")
    assert (line.id, line.name) == (300, "python")
    assert (line.start_ns.tolist(), line.duration_ns.tolist()) == ([2**40 // 1000, 0], [5, 5])
    assert line.stats.texts(rows(0), "id") == ["18446744073709551615"]


FULL = device(HOST, "/host:CPU", python=1) + device(1, "/device:GPU:0/stream:13") + b"".join(SOUND)
FULL += event("MatMul", 1, 2, on=(1, 0), label="sgemm regs:1")


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_damage_anywhere_gives_a_trace_or_a_sentence(data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(FULL) - 1))
    content = bytearray(FULL[: data.draw(st.integers(begin + 1, len(FULL)))])
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        trace = read(bytes(content))
    except TraceReadError:
        return
    assert trace.salvage is None or 0 < trace.salvage.bytes_lost <= len(content)
    for plane in trace.planes:
        for line in plane.lines:
            every = np.arange(line.count)
            assert (line.duration_ns >= 0).all()
            assert (line.name_index < len(plane.names)).all()
            assert len(line.stats.texts(every, "label")) == line.count
            line.stats.ints(every, "id")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_noise_is_refused_or_read(content: bytes) -> None:
    try:
        read(content)
    except TraceReadError:
        return


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, len(SOUND) - 1), st.binary(min_size=1, max_size=40))
def test_noise_between_events_costs_no_sound_event_before_it(at: int, noise: bytes) -> None:
    kept = names_of(read(b"".join(SOUND[: at + 1]) + noise), "/host:CPU")
    assert kept[: at + 1] == [f"op{k}" for k in range(at + 1)]


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=9), st.integers(-(10**6), 10**9), st.integers(0, 10**9), st.integers(0, 3)
        )
    )
)
def test_what_was_written_is_read(written: list[tuple[str, int, int, int]]) -> None:
    content = device(HOST, "/host:CPU", python=1)
    content += b"".join(event(name, start, length, on=(HOST, thread)) for name, start, length, thread in written)
    trace = read(content)
    host = trace.host_plane
    assert host is not None
    found = [
        (host.names[index], start // 1000, length // 1000, line.id)
        for line in host.lines
        for index, start, length in zip(
            line.name_index.tolist(), line.start_ns.tolist(), line.duration_ns.tolist(), strict=True
        )
    ]
    assert found == sorted(written, key=lambda row: row[3])
    assert trace.salvage is None
