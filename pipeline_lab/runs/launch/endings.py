"""Explain how a run ended, from the worker's events, exit code and log."""

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.run_events import FailureEvent, ProgressEvent, RaceEvent, read_events
from pipeline_lab.runs.store import RunFolder

_LOG_TAIL_BYTES = 16 * 1024
_FULL_BELOW_BYTES = 1_000_000
_DISK_FULL = "The disk that holds the run is full; free some space, or choose another store with --store."


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        state: done, failed or cancelled.
        reason: One sentence; empty for a run that ended as planned.
        exit_code: Of the worker; None if it never started.
    """

    state: RunState
    reason: str = ""
    exit_code: int | None = None


def explain_exit(folder: RunFolder, exit_code: int, oom_kills_before: int | None) -> Ending:
    """Explain the end of a worker that was not asked to stop.

    Args:
        folder: The run.
        exit_code: Negative for a signal.
        oom_kills_before: What :func:`count_oom_kills` returned before the worker started.
    """
    if exit_code == 0:
        return Ending(RunState.DONE, exit_code=0)
    return Ending(RunState.FAILED, _reason(folder, exit_code, oom_kills_before), exit_code)


def explain_stop(folder: RunFolder, kind: RunKind, exit_code: int | None, *, flushed: bool) -> Ending:
    """Say what is kept of a run or race that was cancelled while it ran."""
    is_race = kind is RunKind.RACE
    reason = f"Cancelled {_rounds_done(folder) if is_race else _steps_done(folder)}; what was recorded is kept."
    if not flushed:
        lost = "its last round" if is_race else "a profile window that was open"
        reason += f" The worker did not stop in time and was killed, so {lost} is lost."
    return Ending(RunState.CANCELLED, reason, exit_code)


def count_oom_kills(counters: Path = Path("/proc/vmstat")) -> int | None:
    """Return how many processes the kernel has killed for lack of memory since boot; None if unknown."""
    try:
        words = dict(line.split(maxsplit=1) for line in counters.read_text().splitlines())
        return int(words["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None


def _steps_done(folder: RunFolder) -> str:
    steps = max((event.steps for event in read_events(folder.events) if isinstance(event, ProgressEvent)), default=0)
    return f"after {steps} steps"


def _rounds_done(folder: RunFolder) -> str:
    rounds = max((event.rounds for event in read_events(folder.events) if isinstance(event, RaceEvent)), default=0)
    return f"after {rounds} {'round' if rounds == 1 else 'rounds'}" if rounds else "before the first round"


def _reason(folder: RunFolder, exit_code: int, oom_kills_before: int | None) -> str:
    failures = [event for event in read_events(folder.events) if isinstance(event, FailureEvent)]
    if failures:
        return failures[-1].sentence
    log = _last_lines(folder.log)
    if any("No space left on device" in line for line in log) or _is_disk_full(folder.path):
        return _DISK_FULL
    if exit_code == -signal.SIGKILL:
        return _killed(oom_kills_before)
    where = f"see {folder.log.name} in the run folder."
    if exit_code < 0:
        checks = [line for line in log if "Check failed" in line]  # printed by TensorFlow before it aborts
        return f"The worker crashed ({_signal_name(-exit_code)}){_quote(checks)}; {where}"
    return f"The worker ended with exit code {exit_code}{_quote(log)}; {where}"


def _quote(lines: list[str]) -> str:
    return f" after “{lines[-1][:300].rstrip('.')}”" if lines else ""


def _killed(oom_kills_before: int | None) -> str:
    advice = "a smaller batch, image or shuffle buffer needs less"
    kills = count_oom_kills()
    if kills is not None and oom_kills_before is not None and kills > oom_kills_before:
        return f"The kernel killed the worker because memory ran out; {advice}."
    return f"The worker was killed (SIGKILL), most likely because memory ran out; {advice}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_lines(log: Path) -> list[str]:
    """Return the non-empty lines at the end of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()]


def _is_disk_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path).free < _FULL_BELOW_BYTES
    except OSError:
        return False
