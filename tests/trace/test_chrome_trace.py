"""Chrome traces as TensorFlow 2.2 to 2.8 and JAX write them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.chrome_trace import read_bytes
from pipeline_lab.trace.schema import Trace
from pipeline_lab.trace.sources import is_json, open_traces, read_trace
from tests.support.xspace import chunk
from tests.trace.checks import assert_consistent, events, spans
from tests.trace.mutations import mutate


def name_of(pid: int, name: str, tid: int | None = None) -> dict[str, Any]:
    kind = "process_name" if tid is None else "thread_name"
    return {"ph": "M", "pid": pid, "name": kind, "args": {"name": name}} | ({} if tid is None else {"tid": tid})


def event(name: str, ts: float, dur: float, pid: int = 1, tid: int = 7, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name} | ({"args": args} if args else {})


def encode(*listed: dict[str, Any], **dump: Any) -> bytes:
    head = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}}
    return json.dumps({**head, "traceEvents": [*listed, {}]}, **dump).encode()


def read(data: bytes) -> Trace:
    return read_bytes(np.frombuffer(data, np.uint8), Path("h.trace.json"))


TWO = (
    name_of(1, "/host:CPU"),
    name_of(1, "python", 7),
    name_of(2, "/device:GPU:0"),
    event("Iterator::Map", 10, 2.5, id="-552662417884077752", long_name="Iterator::Root::Map", ratio="0.5"),
    event("kernel", 11.001, 0.999, pid=2, tid=14),
)


@pytest.mark.parametrize("layout", [{}, {"indent": "\t"}, {"separators": (",", ":")}])
def test_processes_are_planes_and_threads_are_lines(layout: dict[str, Any]) -> None:
    trace = read(encode(*TWO, **layout))
    host, device = trace.planes
    assert (host.name, device.name) == ("/host:CPU", "/device:GPU:0")
    assert [(line.id, line.name) for line in host.lines] == [(7, "python")]
    assert [(line.id, line.name) for line in device.lines] == [(14, "14")]
    assert trace.salvage is None


def test_times_are_microseconds_and_names_come_in_two_lengths() -> None:
    host, device = read(encode(*TWO)).planes
    assert (host.lines[0].start_ns.tolist(), host.lines[0].duration_ns.tolist()) == ([10_000], [2_500])
    assert (device.lines[0].start_ns.tolist(), device.lines[0].end_ns.tolist()) == ([11_001], [12_000])
    assert (host.names, host.display_names) == (("Iterator::Root::Map",), ("Iterator::Map",))
    assert (device.names, device.display_names) == (("kernel",), ("kernel",))


def test_arguments_are_stats() -> None:
    stats = read(encode(*TWO)).planes[0].lines[0].stats
    row = np.array([0])
    assert stats.ints(row, "id")[0].tolist() == [-552662417884077752]
    assert stats.floats(row, "ratio").tolist() == [0.5]
    assert stats.texts(row, "id") == ["-552662417884077752"]
    assert stats.texts(row, "absent") == [None]
    assert stats.ints(row, "absent")[1].tolist() == [False]


def test_unsigned_ids_wrap_as_they_do_in_an_xspace() -> None:
    trace = read(encode(event("e", 1, 1, id=str(2**64 - 2))))
    assert trace.planes[0].lines[0].stats.ints(np.array([0]), "id")[0].tolist() == [-2]


def test_a_name_that_was_cut_within_a_character_is_text_all_the_same() -> None:
    trace = read(encode(event("cut\ud83d", 1, 1), event("whole😀", 1, 1), event("\ude00\ude00", 1, 1)))
    assert trace.planes[0].names == ("cut\ufffd", "whole😀", "\ufffd\ufffd")


def test_a_process_may_be_named_after_its_events() -> None:
    trace = read(
        encode(event("a", 1, 1, pid=1), event("b", 1, 1, pid=2), name_of(1, "/host:CPU"), name_of(2, "/host:CPU"))
    )
    [plane] = trace.planes
    assert [plane.names[line.name_index[0]] for line in plane.lines] == ["a", "b"]


def test_times_since_the_epoch_are_made_relative() -> None:
    epoch_us = 1_700_000_000 * 10**6
    trace = read(encode(event("a", epoch_us, 1), event("b", epoch_us + 5, 1)))
    assert trace.origin_epoch_ns == epoch_us * 1000
    assert trace.planes[0].lines[0].start_ns.tolist() == [0, 5_000]


def test_an_xspace_that_begins_with_a_brace_is_no_json() -> None:
    space = chunk(1, chunk(2, b"x" * 121))
    assert space[:2] == b"\n{"
    assert not is_json(np.frombuffer(space, np.uint8))
    assert is_json(np.frombuffer(b'\xef\xbb\xbf {\n "traceEvents": []}', np.uint8))


@pytest.mark.parametrize("data", [b'{"traceEvents": []}', b'{"a": {"b": 1}}', b"[{}]"])
def test_json_without_events_is_refused(data: bytes) -> None:
    with pytest.raises(TraceReadError, match="without trace events"):
        read(data)


def test_a_cut_file_keeps_its_whole_events() -> None:
    data = encode(*TWO)
    trace = read(data[: data.index(b'"kernel"')])
    assert trace.event_count == 1
    assert trace.salvage is not None
    assert trace.salvage.bytes_lost > 0
    assert "cut off" in trace.salvage.reason
    assert "were read; how much is missing is not known" in trace.salvage.reason


def test_a_lost_quote_costs_the_events_around_it_only() -> None:
    many = [event(f"e{k}", k, 1) for k in range(200)]
    data = encode(*many)
    at = data.index(b'"e100"')
    trace = read(data[:at] + data[at + 1 :])
    kept = {name for *_, name in events(trace)}
    assert len(kept) >= 198
    assert "e101" in kept
    assert trace.salvage is not None


@pytest.mark.parametrize(
    "odd",
    [
        b'"ts": 1e999',
        b'"ts": NaN',
        b'"ts": "soon"',
        b'"ts": ' + b"9" * 400,
        b'"ts": ' + b"9" * 5000,
        b'"ts": null',
    ],
)
def test_times_that_are_none_are_left_out(odd: bytes) -> None:
    data = encode(event("a", 1, 1), event("b", 2, 0.5)).replace(b'"ts": 2', odd)
    assert read(data).event_count == 1


def test_braces_that_never_close_end_the_search() -> None:
    data = encode(*TWO)[:-2] + b"{" * 3_000_000
    assert read(data).event_count == 2


def test_nesting_too_deep_is_survived() -> None:
    deep = b'{"ph": "X", "args": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert read(encode(*TWO)[:-2] + deep).event_count == 2


@pytest.mark.reference_traces
def test_reference_json_captures(reference_traces: Path) -> None:
    cached = read_trace(reference_traces / "P4-json-tfrecord-cache")
    host = cached.plane("/host:CPU")
    assert host is not None
    waits = host.name_mask(lambda name: name == "IteratorGetNextOp::DoCompute")
    total_ns = sum(int(line.duration_ns[waits[line.name_index]].sum()) for line in host.lines)
    assert total_ns == pytest.approx(13.068e6, abs=1e3)
    [small] = open_traces(reference_traces / "P5-tf22-cpu-run")
    assert small.host == "8c859046be41.ant.amazon.com"


@pytest.mark.reference_traces
@pytest.mark.parametrize("name", ["P8-kineto-workers0", "P8-kineto-workers4"])
def test_pytorch_traces_are_refused_by_name(reference_traces: Path, name: str) -> None:
    with pytest.raises(TraceReadError, match="PyTorch"):
        read_trace(reference_traces / name)


SOUND = encode(*TWO, *(event(f"e{k % 5}", k, 1, tid=k % 3, id=str(k)) for k in range(60)))
ALL = spans(read(SOUND))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
@pytest.mark.slow
def test_any_damage_leaves_a_consistent_trace_or_a_sentence(seed: int) -> None:
    try:
        trace = read(mutate(SOUND, seed))
    except TraceReadError as error:
        sentence = str(error)
    else:
        assert_consistent(trace)
        return
    assert sentence.endswith(".")


@settings(max_examples=100, deadline=None)
@given(st.integers(300, len(SOUND) - 1))
def test_a_cut_keeps_only_true_events(at: int) -> None:
    try:
        kept = spans(read(SOUND[:at]))
    except TraceReadError:
        return
    assert kept <= ALL
