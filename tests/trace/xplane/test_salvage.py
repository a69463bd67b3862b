"""What is left of damaged files is read, and what was lost is said."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.file_memory import MemoryBudget, map_path
from pipeline_lab.trace.schema import Salvage, Trace
from pipeline_lab.trace.xplane.salvage import Loss, salvage_space
from pipeline_lab.trace.xplane.xspace import build_trace, read_bytes, read_xplane
from tests.support.xspace import XSpace, chunk
from tests.trace.checks import assert_consistent, events, spans
from tests.trace.mutations import mutate

SMALL = Path(__file__).parents[2] / "data" / "small_pipeline.xplane.pb"
SOUND = SMALL.read_bytes()


def read(data: bytes) -> Trace:
    return read_bytes(np.frombuffer(data, np.uint8), Path("h.xplane.pb"))


def loss(trace: Trace) -> Salvage:
    assert trace.salvage is not None
    return trace.salvage


ALL = events(read(SOUND))


def assert_same_by_shape(path: Path) -> None:
    data, sound = map_path(path), read_xplane(path)
    budget = MemoryBudget(path.name, len(data))
    space, lost = salvage_space(data, budget)
    assert events(build_trace(data, space, budget, path, "")) == events(sound)
    assert (lost.skipped, lost.missing) == (0, 0)
    assert space.hostnames == ((sound.host,) if sound.host else ())


@pytest.mark.slow
def test_reading_by_shape_finds_what_reading_by_structure_finds() -> None:
    assert_same_by_shape(SMALL)


@pytest.mark.slow
@pytest.mark.reference_traces
def test_reading_by_shape_finds_everything_in_reference_captures(reference_traces: Path) -> None:
    for path in sorted(reference_traces.glob("*/plugins/profile/run/*.xplane.pb")):
        assert_same_by_shape(path)


def test_a_file_short_by_a_byte_loses_no_event() -> None:
    trace = read(SOUND[:-1])
    assert events(trace) == ALL
    assert loss(trace).bytes_lost == 3
    assert loss(trace).events_kept == trace.event_count == 708


def test_half_a_file_keeps_the_events_of_its_half() -> None:
    trace = read(SOUND[: len(SOUND) // 2])
    assert spans(trace) < {(plane, start, duration) for plane, _, start, duration, _ in ALL}
    assert trace.event_count == 387
    assert loss(trace).reason.startswith("The file is cut off: 13.9 kB of at least 27.7 kB were read")
    assert "names" in loss(trace).reason


def test_a_file_cut_inside_a_record_says_how_much_was_read() -> None:
    """Some fields of the last record can still be recognized, so what is lost is not one piece."""
    reasons = {
        Loss(83, 917, 999, 0).reason(np.zeros(1000, np.uint8)),
        Loss(60, 917, 999, 0).reason(np.zeros(1000, np.uint8)),
    }
    assert reasons == {
        "The file is cut off: 917 B were read; how much is missing is not known.",
        "The file is cut off: 940 B were read; how much is missing is not known.",
    }


def test_zeros_in_the_middle_cost_only_what_they_cover() -> None:
    begin, end = 8_000, 12_000
    trace = read(SOUND[:begin] + bytes(end - begin) + SOUND[end:])
    assert len(events(trace) & ALL) > 0.85 * len(ALL)
    assert end - begin <= loss(trace).bytes_lost < end - begin + 200
    assert "zeros" in loss(trace).reason


def test_what_the_profiler_complained_about_outlives_damage_before_it() -> None:
    space = XSpace().complain(error="no privilege\nfor CUPTI").complain(warning="GPU events dropped")
    space.plane("/host:CPU").line("python").event("train", 0, 10)
    trace = read(b"\xff" + space.encode())
    assert trace.errors == ("no privilege\nfor CUPTI",)
    assert trace.warnings == ("GPU events dropped",)
    assert loss(trace).bytes_lost == 1, "what they say is not among it"


def test_a_line_whose_length_is_broken_keeps_its_events() -> None:
    space = XSpace()
    host = space.plane("/host:CPU")
    for name in ("a", "b"):
        line = host.line(name)
        for k in range(100):
            line.event("Op::Run", start_us=k, duration_us=1, id=k)
    sound = space.encode()
    at = sound.index(b"\x12\x01b") - 3
    trace = read(sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :])
    assert [(line.name, line.count) for line in trace.planes[0].lines] == [("a", 100), ("b", 100)]
    assert trace.planes[0].lines[1].stats.ints(np.arange(100), "id")[0].tolist() == list(range(100))


def test_a_plane_whose_head_is_lost_is_known_by_what_it_holds() -> None:
    trace = read(bytes(20) + SOUND[20:])
    assert [plane.name for plane in trace.planes] == ["/host:CPU", "Task Environment"]
    assert trace.planes[0].event_count >= 700


def test_bytes_replaced_by_a_text_program_are_called_that() -> None:
    trace = read(SOUND.decode("utf-8", "replace").encode())
    assert "text" in loss(trace).reason
    assert "binary" in loss(trace).reason


@pytest.mark.parametrize(
    "data", [b"hello world\n" * 500, bytes(5_000), bytes(range(256)) * 40, b"\x89PNG\r\n\x1a\n" + bytes(99)]
)
def test_what_never_was_a_trace_is_refused(data: bytes) -> None:
    with pytest.raises(TraceReadError, match="no profiler planes"):
        read(data)


def test_lengths_are_never_trusted() -> None:
    huge = (
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
        + chunk(2, b"/host:CPU")
        + b"\x1a\xff\xff\xff\xff\x0f"
        + chunk(2, b"t")
    )
    trace = read(huge)
    assert [plane.name for plane in trace.planes] == ["/host:CPU"]
    assert [line.name for line in trace.planes[0].lines] == ["t"]


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
@given(st.binary(max_size=400))
def test_any_bytes_behind_a_plane_are_survived(tail: bytes) -> None:
    assert_consistent(read(chunk(1, chunk(2, b"/host:CPU")) + tail))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, len(SOUND) - 1))
def test_a_cut_file_keeps_every_event_before_the_cut(at: int) -> None:
    whole = {(start, duration) for _, _, start, duration, _ in ALL}
    try:
        kept = read(SOUND[:at])
    except TraceReadError:
        assert at < 40
        return
    assert {(start, duration) for _, start, duration in spans(kept)} <= whole
