import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs.run_events import NoteEvent, read_events
from pipeline_lab.worker import calibrate as calibrate_module
from pipeline_lab.worker import calibrate as calibration
from pipeline_lab.worker.calibrate import (
    Dropping,
    calibrate,
    count_cached,
    drop,
    set_page_cache,
    time_pipeline,
    time_step,
)
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record import step_results
from pipeline_lab.worker.train.training_steps import Batch, PythonSteps
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import FakeTrainer, make_job

TICK_NS = 100_000_000


@pytest.fixture(autouse=True)
def _ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is 100 ms after the one before, so the budget is over after three."""
    ticks = iter(range(0, 10**12, TICK_NS))
    monkeypatch.setattr(calibration.time, "perf_counter_ns", lambda: next(ticks))


def test_the_first_batch_is_timed_apart() -> None:
    timed = time_pipeline([{"id": index} for index in range(100)])
    assert (timed.first_batch_ns, timed.batch_ns, timed.batches) == (TICK_NS, TICK_NS, 2)
    assert timed.batch == {"id": 2}


def test_data_that_ends_in_between_is_timed_as_far_as_it_goes() -> None:
    timed = time_pipeline([{"id": 0}, {"id": 1}])
    assert (timed.batch_ns, timed.batches) == (TICK_NS, 1)


def test_a_single_batch_has_no_time_per_batch() -> None:
    timed = time_pipeline([{"id": 0}])
    assert (timed.batch_ns, timed.batches) == (None, 0)


def test_a_pipeline_without_a_batch_says_why() -> None:
    with pytest.raises(DataError, match="yields no batch"):
        time_pipeline([])


def test_the_step_is_warmed_up_and_then_timed_within_the_budget() -> None:
    trainer = FakeTrainer()
    timed = time_step(trainer, PythonSteps(trainer, Clock()), {})
    assert trainer.reads == list(range(1, 3 + timed.steps))
    assert timed.steps >= calibration.MIN_STEPS
    assert timed.step_ns == pytest.approx(calibration.BUDGET_NS / timed.steps, rel=0.6)


class GpuTrainer(FakeTrainer):
    """Its results are in the memory of a device."""

    def step(self, batch: Batch) -> Any:
        return SimpleNamespace(number=super().step(batch), backing_device="GPU:0")

    def read(self, result: Any) -> tuple[float, float]:
        return super().read(result[0])


def test_the_first_copy_to_the_host_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is traced, which takes longer than many a step."""
    done: list[str] = []

    def copy(values: list[Any]) -> Any:
        done.append("copied")
        numbers = np.array([*(value.number for value in values), 0.0])
        return SimpleNamespace(numpy=lambda: numbers)

    def look() -> int:
        done.append("looked at the clock")
        return 0

    monkeypatch.setattr(step_results, "_numbers_on_host", lambda: copy)
    monkeypatch.setattr(calibration.time, "process_time_ns", look)
    trainer = GpuTrainer()
    time_step(trainer, PythonSteps(trainer, Clock()), {}, is_asynchronous=True)
    assert done[: calibration.WARMUP_STEPS + 1] == ["copied"] * calibration.WARMUP_STEPS + ["looked at the clock"]


def test_what_was_learnt_is_undone() -> None:
    trainer = FakeTrainer()
    trainer.steps = 7
    time_step(trainer, PythonSteps(trainer, Clock()), {})
    assert trainer.steps == 7


def test_the_step_is_timed_on_the_batch_that_the_device_holds() -> None:
    held: list[object] = []

    def hold(batch: object) -> dict[str, object]:
        held.append(batch)
        return {}

    trainer = FakeTrainer()
    event = calibrate(trainer, PythonSteps(trainer, Clock()), lambda: [{"id": 0}, {"id": 1}], hold)
    assert held == [{"id": 1}]
    assert (event.pipeline_only_batches, event.first_batch_ns) == (1, TICK_NS)


SIZE = 1_000_003
COLD = set_options(SYNTHETIC.options, [("training.page_cache", "cold")])


def cached(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = count_cached(descriptor, path.stat().st_size)
        assert found is not None
        return found
    finally:
        os.close(descriptor)


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Return a folder on a disk, even where temporary files lie in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_what_was_just_written_lies_in_the_page_cache_until_it_is_dropped(on_disk: Path) -> None:
    (on_disk / "folder").mkdir()
    files = [on_disk / "a", on_disk / "folder" / "b", on_disk / "empty"]
    for file in files:
        file.write_bytes(b"" if file.name == "empty" else os.urandom(SIZE))
    assert [cached(file) for file in files] == [SIZE, SIZE, 0]
    dropped = drop([str(on_disk / "a"), str(on_disk / "folder"), str(on_disk / "empty"), str(on_disk / "missing")])
    assert dropped.size_bytes == 2 * SIZE
    assert dropped.kept_bytes is not None
    if not dropped.is_cold:
        pytest.skip("the file system of /var/tmp keeps them in memory")
    assert [cached(file) for file in files] == [0, 0, 0]


def test_a_job_that_does_not_ask_drops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "drop", lambda _: pytest.fail("nobody asked"))
    assert set_page_cache(make_job(tmp_path, SYNTHETIC.options), ["a"]) == "warm"


@pytest.mark.parametrize(
    ("dropping", "state", "sentence"),
    [
        (Dropping(10**9, 10**6), "cold", None),
        (Dropping(10**9, 6 * 10**8), None, "the system kept 600 MB of 1 GB of the data files"),
        (Dropping(10**9, None), None, "the system does not say whether the data files have left"),
        (Dropping(0, 0), None, "the system found no data file that could be dropped"),
    ],
)
def test_a_system_that_does_not_comply_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropping: Dropping, state: str | None, sentence: str | None
) -> None:
    monkeypatch.setattr(calibrate_module, "drop", lambda _: dropping)
    job = make_job(tmp_path, COLD)
    assert set_page_cache(job, ["a"]) == state
    notes = [event.sentence for event in read_events(job.folder.events) if isinstance(event, NoteEvent)]
    assert [sentence in note for note in notes] == [True] if sentence else not notes
