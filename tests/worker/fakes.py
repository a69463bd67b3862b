"""Stand-ins for what a job talks to: TensorFlow's profiler, the model, time."""

import contextlib
import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState, this_process
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.job_context import Job, StopRequest
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.train.training_steps import Batch, OneDeviceTrainer
from tests.support.patience import PATIENCE_S

TRACE = b"trace"


class FakeProfiler:
    """Writes five bytes per window, or as many as asked for, where TensorFlow would; ``stop`` waits until it is allowed to end."""

    def __init__(self, *, error: Exception | None = None, is_slow: bool = False, size_bytes: int = 0) -> None:
        self._error, self._size_bytes = error, size_bytes
        self._logdir: Path | None = None
        self.may_end = threading.Event()
        if not is_slow:
            self.may_end.set()
        self.threads: list[int] = []
        self.saves: list[bool] = []
        self.settled_before: list[str] = []
        self._settled = False

    def load(self) -> None:
        pass

    def settle(self) -> None:
        self._settled = True

    def start(self, logdir: Path) -> None:
        assert self._logdir is None, "there is only one profiler in a process"
        self._logdir = logdir
        self._note_settled("start")

    def stop(self, *, save: bool) -> None:
        assert self.may_end.wait(PATIENCE_S)
        logdir, self._logdir = self._logdir, None
        assert logdir is not None
        self.threads.append(threading.get_ident())
        self.saves.append(save)
        self._note_settled("stop")
        if self._error is not None:
            raise self._error
        if save:
            session = logdir / "plugins" / "profile" / "2026_01_01_00_00_00"
            session.mkdir(parents=True)
            (session / "host.xplane.pb").write_bytes(TRACE.ljust(self._size_bytes, b"\0"))

    def _note_settled(self, what: str) -> None:
        if self._settled:
            self.settled_before.append(what)
        self._settled = False


class FakeMemory:
    """Resident memory that a test sets, bytes."""

    def __init__(self) -> None:
        self.rss_bytes = 1_000_000_000

    def read_bytes(self) -> int:
        return self.rss_bytes


class FakeTrainer(OneDeviceTrainer):
    """Counts its steps; a step's loss is its number."""

    def __init__(self) -> None:
        self.steps = 0
        self.reads: list[int] = []

    def step(self, batch: Batch) -> int:
        del batch
        self.steps += 1
        return self.steps

    def evaluate(self, batch: Batch) -> int:
        del batch
        return self.steps

    def read(self, result: Any) -> tuple[float, float]:
        self.reads.append(result)
        return float(result), math.nan

    def save_state(self) -> Any:
        return self.steps

    def restore_state(self, state: Any) -> None:
        self.steps = state


@contextlib.contextmanager
def no_marker(step: int) -> Iterator[None]:
    del step
    yield


def make_folder(root: Path, options: RunOptions) -> RunFolder:
    return RunStore(root).create(options, render_source(options))


def supervised(folder: RunFolder) -> RunFolder:
    """Let a run count as watched over, as a supervisor does before it starts the worker."""
    update_record(
        folder,
        lambda record: replace(record, status=record.status.change(RunState.STARTING, supervisor=this_process())),
    )
    return folder


def make_job(root: Path, options: RunOptions) -> Job:
    folder = make_folder(root, options)
    return Job(folder, options, EventLog(folder.events), StopRequest(), Clock())
