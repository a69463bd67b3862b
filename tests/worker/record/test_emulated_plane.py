"""The emulated device's plane in a trace; the process with TensorFlow is that of the other tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ask = Callable[..., Any]

SESSION = [1_000, 2_000]


def test_events_count_from_the_start_of_the_session_on_the_systems_clock(ask_tensorflow: Ask) -> None:
    times = ask_tensorflow(
        "tests.worker.record.plane_tasks:times_in_plane", steps=[[600, 650], [700, 900]], shift_ns=500, session=SESSION
    )
    assert times == [[0, 100_000, 50_000], [1, 200_000, 200_000]]


def test_a_step_that_the_session_interrupted_begins_with_it(ask_tensorflow: Ask) -> None:
    times = ask_tensorflow(
        "tests.worker.record.plane_tasks:times_in_plane",
        steps=[[800, 1_000], [900, 1_300]],
        shift_ns=0,
        session=SESSION,
    )
    assert times == [[1, 0, 300_000]], "one that ended at its start is no part of it"


def test_a_step_that_had_not_ended_is_left_out(ask_tensorflow: Ask) -> None:
    steps = [[1_500, 2_000], [2_000, 2_001], [2_100, 2_200]]
    assert ask_tensorflow(
        "tests.worker.record.plane_tasks:times_in_plane", steps=steps, shift_ns=0, session=SESSION
    ) == [[0, 500_000, 500_000]]


@pytest.mark.parametrize("sizes", [[], [1], [200, 20_000], [70_000, 3_000_000]])
def test_the_times_of_the_session_are_found_behind_planes_of_any_size(
    ask_tensorflow: Ask, tmp_path: Path, sizes: list[int]
) -> None:
    session = [1_700_000_000_000_000_000, 1_700_000_001_000_000_000]
    path = str(tmp_path / "host.xplane.pb")
    assert (
        ask_tensorflow("tests.worker.record.plane_tasks:times_of_session", path=path, sizes=sizes, session=session)
        == session
    )


def test_a_trace_without_the_times_of_the_session_is_refused(ask_tensorflow: Ask, tmp_path: Path) -> None:
    path = str(tmp_path / "host.xplane.pb")
    found = ask_tensorflow("tests.worker.record.plane_tasks:times_of_session", path=path, sizes=[10], session=None)
    assert found == "TensorFlow wrote no session times"


def test_a_window_that_is_too_large_to_write_says_so(ask_tensorflow: Ask, tmp_path: Path) -> None:
    (note,) = ask_tensorflow("tests.worker.record.plane_tasks:what_became_of_an_empty_trace", folder=str(tmp_path))
    assert note == (
        "Profile window-0001 was lost: it holds more than the profiler can write (2 GiB); choose shorter windows."
    )
