import errno
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.runs.machine.nvidia import Gpu
from pipeline_lab.runs.run_tables import RESOURCES, read_table
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record import resources
from pipeline_lab.worker.record.resources import (
    ProcessorLoad,
    ProcessorUse,
    sample_resources,
)
from tests.support.patience import PATIENCE_S, unless_late

TAKES_MEMORY = """
from pipeline_lab.worker.record.own_process import ResidentMemory
memory = ResidentMemory()
before_bytes = memory.read_bytes()
taken = bytearray(50_000_000)
taken[::4096] = b"x" * len(taken[::4096])
print(memory.read_bytes() - before_bytes)
"""


@pytest.mark.slow
def test_resident_memory_grows_by_what_is_taken() -> None:
    """In a process of its own: threads of others return what earlier tests freed."""
    grown = subprocess.run([sys.executable, "-c", TAKES_MEMORY], capture_output=True, text=True, check=True)
    assert 45_000_000 < int(grown.stdout) < 60_000_000


def test_load_is_split_into_own_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # clock, own, children's, machine: one of four seconds is ours, half a one that of processes that we started
    readings = iter([(0.0, 10.0, 3.0, 100.0), (2.0, 11.0, 3.5, 104.0)])
    monkeypatch.setattr(ProcessorLoad, "_read", lambda _: next(readings))
    assert ProcessorLoad().lap() == ProcessorUse(elapsed_s=2.0, own_s=1.0, children_s=0.5, others_s=2.5)


@pytest.mark.slow
@unless_late
def test_a_process_that_this_one_started_is_not_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "FIRST_LOOK_S", 0.0)
    load = ProcessorLoad()
    script = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert load.lap().children_s >= 0.25
        child.communicate(b"\n")
    assert 0.0 <= load.lap().children_s < 0.25  # it has ended and counts on


def test_samples_are_taken_while_the_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "SAMPLE_PERIOD_S", 0.001)
    seen = threading.Event()

    def on_sample(rss_bytes: int) -> bool:
        assert rss_bytes > 0
        seen.set()
        return True

    with sample_resources(tmp_path / "resources", Clock(), on_sample, Gpu()):
        assert seen.wait(PATIENCE_S)
    rows = read_table(tmp_path / "resources", RESOURCES)
    assert rows.num_rows >= 1
    assert set(rows["flushing"].to_pylist()) == {True}
    assert set(rows["gpu_percent"].to_pylist()) == {None}


def test_a_full_disk_reaches_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "SAMPLE_PERIOD_S", 0.001)
    failed = threading.Event()

    class FullTable:
        def append(self, *_: Any) -> None:
            failed.set()
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr(resources, "TableWriter", lambda *_: FullTable())

    def run() -> None:
        with sample_resources(tmp_path / "resources", Clock(), lambda _: False, Gpu()):
            assert failed.wait(PATIENCE_S)

    with pytest.raises(OSError, match="No space left"):
        run()
