"""A lab of its own for each test: a store, a queue, a fake worker, and nothing left running at the end."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.launch import spare
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_events import NoteEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from tests.support.patience import PATIENCE_S, until
from tests.support.presets import SYNTHETIC

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")


def options_for(behavior: str, **training: float) -> RunOptions:
    """Return options whose run the fake worker treats as named."""
    document = SYNTHETIC.options.model_dump()
    document["name"] = behavior
    document["training"] |= training
    return RunOptions.model_validate(document)


def notes(folder: RunFolder) -> list[str]:
    return [event.sentence for event in read_events(folder.events) if isinstance(event, NoteEvent)]


def is_gone(pid: int) -> bool:
    """Say whether a process has ended; one that nobody has waited for yet counts."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


@dataclass(frozen=True)
class Lab:
    store: RunStore
    runtime: Path

    def launch(self, behavior: str, **training: float) -> RunFolder:
        return launch(self.store, options_for(behavior, **training))

    def wait_for(self, folder: RunFolder, *states: RunState) -> RunRecord:
        until(lambda: read_record(folder).status.state in states, f"{folder.id} is {' or '.join(states)}")
        return read_record(folder)

    def wait_until_working(self, folder: RunFolder) -> int:
        """Return the worker's pid once it trains."""
        self.wait_for(folder, RunState.RUNNING)
        pid_file = folder.path / "worker.pid"
        until(lambda: pid_file.is_file() and pid_file.read_text(), "the worker said its pid")
        until(lambda: "steps" in folder.events.read_text(), "the worker made progress")
        return int(pid_file.read_text())

    def processes(self) -> list[psutil.Process]:
        """Return every process that this lab has started and that still lives."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.pid != os.getpid() and process.environ().get("PIPELINE_LAB_RUNTIME") == str(self.runtime)
        except psutil.Error:
            return False


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    runtime = tmp_path / "runtime"
    monkeypatch.setenv("PIPELINE_LAB_RUNTIME", str(runtime))
    monkeypatch.setattr(spare, "TIMEOUT_S", PATIENCE_S)
    monkeypatch.setenv("PIPELINE_LAB_WORKER", f"{sys.executable} {FAKE_WORKER}")
    store = RunStore(tmp_path / "store")
    store.root.mkdir()
    lab = Lab(store, runtime)
    yield lab
    deadline_s = time.monotonic() + PATIENCE_S / 2
    while (left := lab.processes()) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    commands = [process.cmdline() for process in left]
    for process in left:
        process.send_signal(signal.SIGKILL)
    assert not commands, "processes were left behind"
    zombies = [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]
    assert not zombies
