"""Events at impossible times are left out and counted, and everything else stays what it was."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.trace.plausible import MARGIN_NS, leave_out_impossible
from tests.support.going_ahead import SMALL_TRACE
from tests.support.traces import host, line, trace
from tests.support.xspace import XSpace

DAY_US = 86_400e6
STEPS = tuple(("train", start, 90.0, {"step_num": start}) for start in range(0, 100_000, 100))


def write_with_stray(path: Path, timestamp_ns: int, start_us: float, duration_us: float) -> Path:
    """Append a thread with one event to a sound capture; spaces that follow each other are one."""
    extra = XSpace()
    extra.plane("/host:stray").line("thread", timestamp_ns=timestamp_ns).event("stray", start_us, duration_us)
    path.write_bytes(SMALL_TRACE.read_bytes() + extra.encode())
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("timestamp_ns", "start_us", "duration_us"),
    [(2**53, 0, 1), (2**62, 0, 1), (2**63 - 1, 0, 1), (0, 53 * DAY_US, 1), (0, 0, 53 * DAY_US), (-(2**62), 0, 1)],
)
def test_a_stray_event_changes_nothing_but_is_counted(
    tmp_path: Path, timestamp_ns: int, start_us: float, duration_us: float
) -> None:
    sound = diagnose(SMALL_TRACE)
    damaged = diagnose(write_with_stray(tmp_path / "a.xplane.pb", timestamp_ns, start_us, duration_us))
    assert damaged.source.salvaged is not None
    assert "1 of its events lie outside the time of the recording" in damaged.source.salvaged.reason
    assert damaged.source.events == sound.source.events
    kept = {**damaged.to_json(), **dict.fromkeys(("source", "findings", "verdict"))}
    assert kept == {**sound.to_json(), **dict.fromkeys(("source", "findings", "verdict"))}
    assert damaged.verdict.verdict_class is sound.verdict.verdict_class


def test_stats_belong_to_their_events_after_others_are_left_out() -> None:
    stray = ("train", 10 * DAY_US, 90.0, {"step_num": 7})
    found = leave_out_impossible(trace(host(line("python", stray, *STEPS))))
    (only,) = found.planes[0].lines
    values, known = only.stats.ints(np.arange(only.count), "step_num")
    assert known.all()
    assert list(values) == list(range(0, 100_000, 100))
    assert found.salvage is not None
    assert found.salvage.events_kept == len(STEPS)


def test_a_session_at_another_time_is_forgotten() -> None:
    sound = trace(host(line("python", *STEPS)))
    assert leave_out_impossible(sound) is sound
    found = leave_out_impossible(replace(sound, start_ns=0, stop_ns=2**61))
    assert (found.start_ns, found.stop_ns, found.salvage) == (None, None, None)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62)), max_size=9))
def test_what_is_left_has_no_negative_length_and_no_sum_that_overflows(strays: list[tuple[int, int]]) -> None:
    built = trace(host(line("python", *STEPS), line("other", *(("a", 0, 1) for _ in strays))))
    for row, (start_ns, duration_ns) in enumerate(strays):
        built.planes[0].lines[1].start_ns[row], built.planes[0].lines[1].duration_ns[row] = start_ns, duration_ns
    found = leave_out_impossible(built)
    lines = [one for one in found.planes[0].lines if one.count]
    assert all((one.duration_ns >= 0).all() for one in lines)
    first, last = min(int(one.start_ns.min()) for one in lines), max(int(one.end_ns.max()) for one in lines)
    assert last - first <= 3 * MARGIN_NS
    assert found.planes[0].lines[0].count == len(STEPS)


def test_what_happens_late_in_a_long_session_is_kept() -> None:
    late = ("train", 600e6, 120e6, {"step_num": 1000})  # nearly all events come first, as those of a compilation
    long = replace(trace(host(line("python", *STEPS, late))), start_ns=0, stop_ns=730_000_000_000)
    assert leave_out_impossible(long).salvage is None
    assert leave_out_impossible(replace(long, start_ns=None, stop_ns=None)).salvage is not None
