"""The process that supervises one worker: waits for its turn, starts it, watches it, and records how it ended.

``python -m pipeline_lab.runs.launch.supervisor <run folder>``; the launcher starts it detached, so that it outlives the
app. It imports little, because it runs between a click and the first step. The kernel kills the worker when the supervisor
dies; a run whose supervisor is gone reads as lost.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO, Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError, StoreError
from pipeline_lab.hooks import Program
from pipeline_lab.runs.launch.queue import MeasurementLock, QueueTurn
from pipeline_lab.runs.launch.runtime import child_environment, die_with_parent, worker_command
from pipeline_lab.runs.record import RunKind, RunRecord, RunState, explain_loss, process_of, this_process
from pipeline_lab.runs.run_events import STOPPED, FailureEvent, ProgressEvent, RaceEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, end_run, update_record

_LOG_TAIL_BYTES = 16 * 1024
_FULL_BELOW_BYTES = 1_000_000
_DISK_FULL = "The disk that holds the run is full; free some space, or choose another store with --store."


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        state: done, failed or canceled.
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
    """Say what is kept of a run or race that was canceled while it ran."""
    is_race = kind is RunKind.RACE
    reason = f"Canceled {_rounds_done(folder) if is_race else _steps_done(folder)}; what was recorded is kept."
    if not flushed and not _has_trained(folder):
        reason = "Canceled before the first step; the worker did not stop in time and was killed."
    elif not flushed:
        lost = "its last round" if is_race else "a profile window that was open"
        reason += f" The worker did not stop in time and was killed, so {lost} is lost."
    return Ending(RunState.CANCELLED, reason, exit_code)


def _has_trained(folder: RunFolder) -> bool:
    return any(isinstance(event, ProgressEvent | RaceEvent) for event in read_events(folder.events))


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
    if kills is not None and oom_kills_before is not None:
        return "The worker was killed (SIGKILL) by somebody; the kernel counted no lack of memory."
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


POLL_S = 0.1


@dataclass
class WorkerProcess:
    """A worker in its own session, which the kernel kills when the supervisor dies."""

    process: subprocess.Popen[bytes]

    @classmethod
    def start_cold(cls, folder: RunFolder, lock: MeasurementLock, program: Program = Program.WORKER) -> "WorkerProcess":
        """Start what runs a job; its output goes to the run's log."""
        command = worker_command(str(folder.path), program=program)
        with folder.log.open("ab") as log:
            return cls(_start(command, lock, stdin=subprocess.DEVNULL, output=log))

    @classmethod
    def start_waiting(cls, log: Path, lock: MeasurementLock) -> "WorkerProcess":
        """Start a worker that loads TensorFlow, prints ``ready`` and then waits for :meth:`hand_over`."""
        with log.open("wb") as file:
            command = worker_command("--wait")
            return cls(_start(command, lock, stdin=subprocess.PIPE, stdout=subprocess.PIPE, output=file))

    @property
    def says(self) -> IO[bytes]:
        """Output of a waiting worker; any output means that it is ready."""
        assert self.process.stdout is not None
        return self.process.stdout

    def hand_over(self, folder: RunFolder) -> bool:
        """Hand a waiting worker its run; false if it is dead."""
        if self.exit_code() is not None or self.process.stdin is None:
            return False
        try:
            self.process.stdin.write(os.fsencode(folder.path) + b"\n")
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while the worker is alive.

        Its leftover processes are killed before it is reaped, while nobody else can have its process group.
        """
        if self.process.returncode is None:
            if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self._signal_group()
            self.process.wait()
        return self.process.returncode

    def stop(self, grace_s: float) -> bool:
        """Ask the worker to stop and flush, and kill it if it does not; true if it stopped."""
        if self.exit_code() is None:
            self.process.send_signal(signal.SIGTERM)
        deadline_s = time.monotonic() + grace_s
        while self.exit_code() is None:
            if time.monotonic() > deadline_s:
                self.kill()
                return False
            time.sleep(POLL_S)
        return True

    def kill(self) -> None:
        """Kill the worker and everything it started, and close its pipes."""
        if self.process.returncode is None:
            self._signal_group()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unread data cannot be flushed
                    pipe.close()

    def _signal_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _start(
    command: list[str], lock: MeasurementLock, *, stdin: int, output: IO[bytes], stdout: int | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=output if stdout is None else stdout,
        stderr=output,
        env=child_environment() | {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
        start_new_session=True,
        pass_fds=(lock.fileno(),),
        preexec_fn=die_with_parent(),  # safe, because the supervisor has one thread
    )


GRACE_S = 8.0
"""Time for the worker to write its open profile window after a request to stop."""
_QUEUE_POLL_S = 0.2
_DEFAULT_TIMEOUT_S = 3600.0


def main() -> None:
    folder = RunFolder(Path(sys.argv[1]))
    try:
        if claim(folder):
            with contextlib.closing(MeasurementLock()) as lock:
                supervise(folder, lock)
    except (StoreError, OSError) as error:
        _end(folder, _unwatchable(error))


def claim(folder: RunFolder) -> bool:
    """Register this process as the run's supervisor; false if the run has another one or is over."""
    claimed = False
    own = (this_process(), process_of(os.getppid()))
    """Whoever started this process named it; where a script starts Python, it named that script."""

    def enter(record: RunRecord) -> RunRecord:
        nonlocal claimed
        owner = record.status.supervisor
        is_free = owner is None or owner in own or bool(explain_loss(owner, folder.path))
        claimed = record.status.state.is_live and is_free
        return record.supervised_by(own[0]) if claimed else record

    update_record(folder, enter)
    return claimed


def supervise(
    folder: RunFolder, lock: MeasurementLock, waiting: WorkerProcess | None = None, grace_s: float = GRACE_S
) -> None:
    """Bring a claimed run to its end, and record it.

    Args:
        folder: The run.
        lock: The measurement lock, not yet taken.
        waiting: A warm worker; without one, or if it has died, a cold one is started.
        grace_s: Time between the request to stop and the kill, s.
    """
    watch = Supervision(folder, lock, waiting, grace_s)
    try:
        ending = watch.to_the_end()
    except (PipelineLabError, OSError) as error:
        ending = _unwatchable(error)
    finally:
        watch.leave_nothing_behind()
    _end(folder, ending)


@dataclass(frozen=True)
class TimeLimit:
    """When a job that does not end is stopped.

    Attributes:
        seconds: After the start of its worker.
        option: What to raise to allow more.
    """

    seconds: float
    option: str


def find_time_limit(options: dict[str, Any]) -> TimeLimit:
    """Return the limit of a run or a race: its requested time plus ``timeout_s``.

    Args:
        options: Its options document; missing options have their defaults.
    """
    if options.get("kind") == RunKind.RACE:
        arms = len(options.get("arms") or (None, *options.get("changes", ())))
        asked_s = options.get("max_seconds", 0.0) + arms * options.get("warmup_seconds", 0.0)
        return TimeLimit(asked_s + options.get("timeout_s", _DEFAULT_TIMEOUT_S), "timeout_s")
    training = options.get("training", {})
    return TimeLimit(
        (training.get("seconds") or 0.0) + training.get("timeout_s", _DEFAULT_TIMEOUT_S), "training.timeout_s"
    )


@dataclass
class Supervision:
    """One run under supervision."""

    folder: RunFolder
    lock: MeasurementLock
    worker: WorkerProcess | None
    grace_s: float
    terminated: bool = False

    def to_the_end(self) -> Ending:
        signal.signal(signal.SIGTERM, self._on_sigterm)
        with contextlib.closing(QueueTurn(self.folder.id)) as turn:
            while not turn.has_come(self.lock) and not self._should_stop():
                time.sleep(_QUEUE_POLL_S)
            if self._should_stop():
                return Ending(RunState.CANCELLED, "Canceled before it started.")
            return self._measure()

    def leave_nothing_behind(self) -> None:
        if self.worker is not None:
            self.worker.kill()
        shutil.rmtree(self.folder.scratch, ignore_errors=True)

    def _measure(self) -> Ending:
        record = update_record(self.folder, _start_now)
        limit = find_time_limit(record.options or {})
        oom_kills = count_oom_kills()
        worker = self._start_worker(_program_of(record))
        deadline_s = time.monotonic() + limit.seconds
        while (exit_code := worker.exit_code()) is None:
            if self._should_stop():
                flushed = worker.stop(self.grace_s)
                return explain_stop(self.folder, record.kind, worker.exit_code(), flushed=flushed)
            if time.monotonic() > deadline_s:
                worker.stop(self.grace_s)
                return Ending(RunState.FAILED, _too_long(limit), worker.exit_code())
            time.sleep(POLL_S)
        if exit_code == STOPPED:  # by somebody else
            return explain_stop(self.folder, record.kind, exit_code, flushed=True)
        return explain_exit(self.folder, exit_code, oom_kills)

    def _start_worker(self, program: Program) -> WorkerProcess:
        if self.worker is None or not self.worker.hand_over(self.folder):
            if self.worker is not None:
                self.worker.kill()
            self.worker = WorkerProcess.start_cold(self.folder, self.lock, program)
        return self.worker

    def _should_stop(self) -> bool:
        """Say whether the run was canceled, the supervisor ended, or the folder deleted."""
        return self.terminated or self.folder.cancel_flag.exists() or not self.folder.record.exists()

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self.terminated = True


def _program_of(record: RunRecord) -> Program:
    """Return what runs a job: a script has a process of its own, for nothing may be imported before it begins."""
    is_script = record.kind is RunKind.RACE and "script" in (record.options or {})
    return Program.SCRIPT_RACE if is_script else Program.WORKER


def _start_now(record: RunRecord) -> RunRecord:
    return replace(record, status=record.status.change(RunState.STARTING, started_s=time.time()))


def _unwatchable(error: Exception) -> Ending:
    return Ending(RunState.FAILED, f"The run could not be supervised: {str(error).rstrip('.')}.")


def _too_long(limit: TimeLimit) -> str:
    return (
        f"The job exceeded its time limit of {limit.seconds:g} s and was stopped; what was recorded is kept. "
        f"Raise {limit.option} to allow more."
    )


def _end(folder: RunFolder, ending: Ending) -> None:
    end_run(folder, ending.state, ending.reason, ending.exit_code)


if __name__ == "__main__":
    main()
