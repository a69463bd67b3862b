import signal
from pathlib import Path

import pytest

from pipeline_lab.runs.launch.supervisor import count_oom_kills, explain_exit, explain_stop
from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.run_events import FailureEvent, ProgressEvent, RaceEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_exit_code_0_is_done_whatever_was_printed(folder: RunFolder) -> None:
    folder.log.write_text("Warning: something\n")
    assert explain_exit(folder, 0, None).state is RunState.DONE
    assert explain_exit(folder, 0, None).reason == ""


def test_the_last_failure_event_wins_over_the_log(folder: RunFolder) -> None:
    folder.events.write_text("".join(format_event(FailureEvent(text, "")) for text in ("first.", "second.")))
    folder.log.write_text("No space left on device\n")
    assert explain_exit(folder, 1, None).reason == "second."


def test_a_kill_that_the_kernel_counted_is_certain(folder: RunFolder) -> None:
    kills = count_oom_kills()
    assert kills is not None
    assert "most likely because memory ran out" in explain_exit(folder, -9, None).reason
    assert "the kernel counted no lack of memory" in explain_exit(folder, -9, kills).reason
    assert explain_exit(folder, -9, kills - 1).reason.startswith("The kernel killed the worker because memory ran out;")


def test_oom_kills_are_read_from_the_kernels_counters(tmp_path: Path) -> None:
    counters = tmp_path / "vmstat"
    assert count_oom_kills(counters) is None
    counters.write_text("nr_free_pages 12\n")
    assert count_oom_kills(counters) is None
    counters.write_text("nr_free_pages 12\noom_kill 3\nswap_ra 0\n")
    assert count_oom_kills(counters) == 3


def test_an_abort_quotes_tensorflows_check_and_not_the_stack_below_it(folder: RunFolder) -> None:
    folder.log.write_text("F0000 cudnn.cc:7] Check failed: a == b\nFatal Python error: Aborted\n  File x\n")
    reason = explain_exit(folder, -signal.SIGABRT, None).reason
    assert reason.startswith("The worker crashed (SIGABRT) after “F0000 cudnn.cc:7] Check failed: a == b”;")


def test_a_silent_end_and_an_odd_signal_have_a_sentence_too(folder: RunFolder) -> None:
    assert explain_exit(folder, 7, None).reason.startswith("The worker ended with exit code 7;")
    assert "crashed (signal 99)" in explain_exit(folder, -99, None).reason


def test_a_long_last_line_is_cut_and_a_huge_log_is_not_read_whole(folder: RunFolder) -> None:
    folder.log.write_bytes(b"x" * 1_000_000 + b"\n" + b"y" * 1_000 + b"\n\n  \n")
    assert "y" * 300 + "”" in explain_exit(folder, 2, None).reason


def test_a_stop_tells_what_is_kept(folder: RunFolder) -> None:
    folder.events.write_text("".join(format_event(ProgressEvent(steps, 9, 1.0, None)) for steps in (1, 5)))
    assert (
        explain_stop(folder, RunKind.RUN, 0, flushed=True).reason
        == "Canceled after 5 steps; what was recorded is kept."
    )
    assert "a profile window that was open is lost" in explain_stop(folder, RunKind.RUN, -9, flushed=False).reason
    folder.events.write_text("")
    reason = explain_stop(folder, RunKind.RUN, -9, flushed=False).reason
    assert reason == "Canceled before the first step; the worker did not stop in time and was killed."


@pytest.mark.parametrize(
    ("rounds", "words"), [(0, "before the first round"), (1, "after 1 round"), (3, "after 3 rounds")]
)
def test_a_race_that_was_stopped_tells_its_rounds(folder: RunFolder, rounds: int, words: str) -> None:
    events = [RaceEvent(number + 1, number + 1, 45, 1.0, 600.0, []) for number in range(rounds)]
    folder.events.write_text("".join(map(format_event, events)))
    reason = explain_stop(folder, RunKind.RACE, 0, flushed=True).reason
    assert reason == f"Canceled {words}; what was recorded is kept."
    assert "profile window" not in explain_stop(folder, RunKind.RACE, -9, flushed=False).reason
